"""Random operation sequences against a dictionary: rows, counts, statistics and file sizing.

The model is a dictionary of rows by key. After every operation the rows of this project's reader
and of hudi-rs must equal it, the counts of the result must equal what happened to it, and both
engines must have decided the same about files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import example, given

import hudi_core as hudi
from hudi_core.engine.base import Engine
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import HistoryExpiredError
from tests.foreign import by_hudi_rs
from tests.foreign_services import foreign_archive, foreign_clean
from tests.property.histories import (
    REPLACING,
    Model,
    Row,
    Step,
    content,
    counts,
    examples,
    small_files,
)
from tests.tables import new_table

MODEL_COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("value", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
NAMES = sorted(MODEL_COLUMNS.names)
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
CITIES = ("rome", "oslo", "new york", "a%b")


@st.composite
def drawn_rows(draw: st.DrawFn, keys: int) -> Row:
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
    batch = st.lists(drawn_rows(12), min_size=1, max_size=12).map(tuple)
    often = ("upsert", "delete", "insert")
    operation = st.sampled_from([*often, *often, "upsert", "bulk_insert", *REPLACING, *services])
    return st.lists(st.builds(Step, operation, batch), min_size=1, max_size=5)


def model_table(path: Path, event_time: bool, partitioned: bool, version: int) -> hudi.Table:
    options = {
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    return new_table(
        path,
        MODEL_COLUMNS,
        small_files(3) | options,
        partition_by="city" if partitioned else None,
        ordering_field="ts" if event_time else None,
    )


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
        batch = pa.Table.from_pylist(list(step.rows), MODEL_COLUMNS) if data is None else data
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
@examples(40, 16)
def test_rows_and_counts_follow_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    plan: list[Step],
    event_time: bool,
    partitioned: bool,
    version: int,
) -> None:
    path = tmp_path_factory.mktemp("model") / "table"
    table = model_table(path, event_time, partitioned, version)
    model = Model(event_time=event_time, partitioned=partitioned)
    past: dict[str, Counter[str]] = {}
    for drawn in plan:
        step = model.runnable(drawn)
        if step.operation in SERVICES:
            SERVICES[step.operation](table)
        elif not step.rows:
            continue
        else:
            result = run(table, step, event_time=event_time)
            assert counts(result) == model.apply(step)
            past[result.instant.requested_time] = model.content(NAMES)
        for time, then in past.items():
            try:
                assert content(table.to_arrow(as_of=time).to_pylist(), NAMES) == then
            except HistoryExpiredError:
                assert time != max(past)
        assert content(table.to_arrow().to_pylist(), NAMES) == model.content(NAMES)
        assert content(by_hudi_rs(path), NAMES) == model.content(NAMES)


@pytest.mark.spark
def test_both_engines_decide_alike(tmp_path: Path, spark: Any) -> None:
    drawn: list[tuple[list[Step], bool]] = []

    @given(plan=steps(), event_time=st.booleans())
    @examples(4, 2)
    def check(plan: list[Step], event_time: bool) -> None:
        folder = tmp_path / str(len(drawn))
        drawn.append((plan, event_time))
        local = model_table(folder / "local", event_time, True, 9)
        distributed = model_table(folder / "spark", event_time, True, 9)
        model = Model(event_time=event_time)
        for step in (model.runnable(step) for step in plan):
            if not step.rows or step.operation in SERVICES:
                continue
            here = run(local, step, event_time=event_time)
            frame = spark.createDataFrame(pa.Table.from_pylist(list(step.rows), MODEL_COLUMNS))
            engine = SparkEngine(spark, tasks_on_driver=len(drawn) % 2 == 0)
            there = run(distributed, step, engine, frame.coalesce(1), event_time)
            assert counts(there) == model.apply(step)
            assert decisions(here) == decisions(there)
            for found in (distributed.to_arrow(), distributed.read(spark).toArrow()):
                assert content(found.to_pylist(), NAMES) == model.content(NAMES)

    check()
    assert drawn
