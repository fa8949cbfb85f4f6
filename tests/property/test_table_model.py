"""Random operation sequences against a dictionary: rows, counts, statistics and file sizing.

The model is a dictionary of rows by key. After every operation the rows of this project's reader
and of hudi-rs must equal it, the counts of the result must equal what happened to it, and both
engines must have decided the same about files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings

import hudi_core as hudi
from hudi_core.engine.base import Engine
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import HistoryExpiredError
from tests.foreign import by_hudi_rs
from tests.foreign_services import foreign_archive, foreign_clean
from tests.samples import IS_WHOLE

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("city", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
SMALL = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
SERVICES: Mapping[str, Callable[[hudi.Table], object]] = {
    "purge": lambda table: table.purge(),
    "one commit": lambda table: table.clean(options={"hoodie.cleaner.commits.retained": "1"}),
    "one version": lambda table: table.clean(
        options={
            "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.cleaner.fileversions.retained": "1",
        }
    ),
    "archive": lambda table: table.archive(
        options={**SMALL, "hoodie.cleaner.commits.retained": "1"}
    ),
    "foreign clean": foreign_clean,
    "foreign archive": foreign_archive,
}
"""What changes no row, and may take past states away."""
REPLACE = "replace"
REPLACING = ("insert_overwrite", "insert_overwrite_table", "delete_partitions")
CITIES = ("rome", "oslo", "new york", "a%b")

Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    operation: str
    rows: tuple[Row, ...]


@st.composite
def rows(draw: st.DrawFn, keys: int) -> Row:
    key = draw(st.integers(0, keys))
    return {
        "id": f"k{key}",
        # a key lives in one partition, as the index looks only there
        "city": CITIES[key % len(CITIES)],
        "ts": draw(st.integers(0, 5)),
        "value": draw(st.none() | st.floats(allow_nan=False, width=32)),
        "tags": draw(st.none() | st.lists(st.none() | st.text("ab\u00e9", max_size=3), max_size=3)),
    }


def _step(operation: str, keys: Iterable[int], ts: int) -> Step:
    rows = tuple(
        {"id": f"k{key}", "city": CITIES[key % 4], "ts": ts, "value": float(key), "tags": ["a"]}
        for key in keys
    )
    return Step(operation, rows)


EVERY = [
    _step("insert", range(10), 1),
    _step("upsert", (0, 1, 4, 11), 2),
    _step("delete", (0, 5, 12), 2),
    _step("insert_overwrite", (2, 6), 3),
    _step("bulk_insert", (0, 12), 3),
    _step("delete_partitions", (3,), 3),
    _step("insert_overwrite_table", (1, 2, 3), 4),
    *(Step(name, ()) for name in ("one version", "foreign clean", "archive", "foreign archive")),
    _step("upsert", (1, 2, 3), 5),
    Step("purge", ()),
    _step("upsert", (1, 2), 6),
]
"""A history with every operation: few that are drawn have them all."""


def steps(*services: str) -> st.SearchStrategy[list[Step]]:
    batch = st.lists(rows(12), min_size=1, max_size=12).map(tuple)
    often = ("upsert", "delete", "insert")
    operation = st.sampled_from([*often, *often, "upsert", "bulk_insert", *REPLACING, *services])
    return st.lists(st.builds(Step, operation, batch), min_size=1, max_size=5)


@dataclass
class Model:
    """What the table must hold, and what each operation must report."""

    event_time: bool
    partitioned: bool = True
    held: dict[str, Row] = field(default_factory=dict)

    def apply(self, step: Step) -> tuple[int, int, int]:
        if step.operation in REPLACING:
            everything = step.operation == "insert_overwrite_table" or not self.partitioned
            gone = set(CITIES) if everything else {row["city"] for row in step.rows}
            before = len(self.held)
            self.held = {key: row for key, row in self.held.items() if row["city"] not in gone}
            if step.operation == "delete_partitions":
                return 0, 0, before - len(self.held)
        if step.operation == "delete":
            keys = {row["id"] for row in step.rows} & self.held.keys()
            for key in keys:
                del self.held[key]
            return 0, 0, len(keys)
        inserted = updated = 0
        for row in self._combined(step.rows):
            stored = self.held.get(row["id"])
            if stored is None:
                inserted += 1
            elif self.event_time and stored["ts"] > row["ts"]:
                continue
            else:
                updated += 1
            self.held[row["id"]] = row
        return inserted, updated, 0

    def _combined(self, batch: tuple[Row, ...]) -> list[Row]:
        best: dict[str, Row] = {}
        for row in batch:
            other = best.get(row["id"])
            if other is None or not self.event_time or row["ts"] >= other["ts"]:
                best[row["id"]] = row
        return list(best.values())


def runnable(step: Step, model: Model) -> Step:
    """Inserts bring only new keys, each once: they look nothing up, so duplicates would stay.

    Overwrites bring each key once, and only partitions with rows are deleted.
    """
    once = {row["id"]: row for row in step.rows}
    cities = {row["city"] for row in model.held.values()} if model.partitioned else set()
    match step.operation:
        case "insert" | "bulk_insert":
            fresh = (row for row in once.values() if row["id"] not in model.held)
        case "insert_overwrite" | "insert_overwrite_table":
            fresh = (row for row in once.values())
        case "delete_partitions":
            fresh = (row for row in once.values() if row["city"] in cities)
        case _:
            return step
    return Step(step.operation, tuple(fresh))


def new_table(path: Path, event_time: bool, partitioned: bool, version: int) -> hudi.Table:
    return hudi.Table.create(
        str(path),
        SCHEMA,
        name="model",
        record_key="id",
        partition_by="city" if partitioned else None,
        ordering_field="ts" if event_time else None,
        options={
            "hoodie.write.table.version": str(version),
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            # small files stay open for two more rows, and new files hold three
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": "3",
            "hoodie.fs.fsync": "false",
        },
    )


def content(table: pa.Table) -> Counter[str]:
    names = sorted(SCHEMA.names)
    return Counter(repr([row[name] for name in names]) for row in table.to_pylist())


def expected(model: Model) -> Counter[str]:
    names = sorted(SCHEMA.names)
    return Counter(repr([row[name] for name in names]) for row in model.held.values())


def decisions(result: hudi.CommitResult) -> Counter[str]:
    """What was decided per file, without ids and byte sizes, which differ from table to table."""
    return Counter(
        repr(
            (
                status.partition_path,
                status.stat.num_writes,
                status.stat.num_inserts,
                status.stat.num_update_writes,
                status.stat.num_deletes,
                sorted(
                    (path, stats.min_value, stats.max_value, stats.null_count, stats.value_count)
                    for path, stats in status.columns.items()
                    if not path.startswith("_hoodie_")
                ),
            )
        )
        for status in result.statuses
    )


def run(
    table: hudi.Table,
    step: Step,
    engine: Engine | None = None,
    data: Any = None,
    event_time: bool = False,
) -> hudi.CommitResult:
    """Do a step, and compare it with what a dry run said before."""
    method = getattr(table, step.operation)
    result: hudi.CommitResult
    if step.operation == "delete_partitions":
        cities = sorted({row["city"] for row in step.rows})
        partitions = [{"city": city} for city in cities]
        dry = table.plan(step.operation, partitions)
        result = method(partitions)
    else:
        batch = pa.Table.from_pylist(list(step.rows), SCHEMA) if data is None else data
        dry = table.plan(step.operation, batch, engine=engine)
        result = method(batch, engine=engine)
    assert (dry.inserted, dry.deleted) == (result.inserted, result.deleted)
    told = Counter((file.partition_path, file.path) for file in dry.files if file.change != REPLACE)
    done = Counter(
        (status.partition_path, base and "/".join(filter(None, (status.partition_path, base))))
        for status in result.statuses
        for base in [status.stat.prev_base_file]
    )
    if event_time:  # a dry run does not know which rows are late, and their files stay
        assert dry.updated >= result.updated
        assert done <= told
    else:
        assert dry.updated == result.updated
        assert done == told
    replaced = getattr(result.metadata, "partition_to_replace_file_ids", {})
    assert {file.file_id for file in dry.files if file.change == REPLACE} == {
        file_id for ids in replaced.values() for file_id in ids
    }
    return result


@given(
    plan=steps(*SERVICES),
    event_time=st.booleans(),
    partitioned=st.booleans(),
    version=st.sampled_from([8, 9]),
)
@example(plan=EVERY, event_time=True, partitioned=True, version=9)
@settings(
    max_examples=40 if IS_WHOLE else 16, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
def test_rows_and_counts_follow_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    plan: list[Step],
    event_time: bool,
    partitioned: bool,
    version: int,
) -> None:
    path = tmp_path_factory.mktemp("model") / "table"
    table = new_table(path, event_time, partitioned, version)
    model = Model(event_time, partitioned)
    past: dict[str, Counter[str]] = {}
    for drawn in plan:
        step = runnable(drawn, model)
        if step.operation in SERVICES:
            SERVICES[step.operation](table)
        elif not step.rows:
            continue
        else:
            result = run(table, step, event_time=event_time)
            counts = model.apply(step)
            assert (result.inserted, result.updated, result.deleted) == counts
            past[result.instant.requested_time] = expected(model)
        for time, then in past.items():
            try:
                assert content(table.to_arrow(as_of=time)) == then
            except HistoryExpiredError:
                assert time != max(past)
        assert content(table.to_arrow()) == expected(model)
        foreign = by_hudi_rs(path)
        assert content(pa.Table.from_pylist(foreign, SCHEMA)) == expected(model)


@pytest.mark.spark
def test_both_engines_decide_alike(tmp_path: Path, spark: Any) -> None:
    drawn: list[tuple[list[Step], bool]] = []

    @given(plan=steps(), event_time=st.booleans())
    @settings(
        max_examples=4 if IS_WHOLE else 2, deadline=None, suppress_health_check=list(HealthCheck)
    )
    def check(plan: list[Step], event_time: bool) -> None:
        folder = tmp_path / str(len(drawn))
        drawn.append((plan, event_time))
        local = new_table(folder / "local", event_time, True, 9)
        distributed = new_table(folder / "spark", event_time, True, 9)
        model = Model(event_time)
        for step in (runnable(step, model) for step in plan):
            if not step.rows or step.operation in SERVICES:
                continue
            here = run(local, step, event_time=event_time)
            frame = spark.createDataFrame(pa.Table.from_pylist(list(step.rows), SCHEMA))
            engine = SparkEngine(spark, tasks_on_driver=len(drawn) % 2 == 0)
            there = run(distributed, step, engine, frame.coalesce(1), event_time)
            counts = model.apply(step)
            assert (there.inserted, there.updated, there.deleted) == counts
            assert decisions(here) == decisions(there)
            assert content(distributed.to_arrow()) == expected(model)
            assert content(distributed.read(spark).toArrow()) == expected(model)

    check()
    assert drawn
