"""Random histories of every operation, for every format and on both engines.

After each step all readers see the rows of a dictionary: this project's, hudi-rs, and those of the
table's format. At each instant the rows are the same in the Hudi view and in the format's own
history.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.engine.choice import engine_for
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant_time import instant_time_of, to_datetime
from hudi_core.txn.transaction import Transaction
from tests.formats.columns import CITIES, TYPED
from tests.formats.history_readers import FOREIGN, content
from tests.samples import sampled

OPTIONS = {
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    # small files stay open for two more rows, and new files hold three
    "hoodie.copyonwrite.insert.auto.split": "false",
    "hoodie.copyonwrite.insert.split.size": "3",
    "hoodie.fs.fsync": "false",
}
OPERATIONS = (
    *("upsert", "delete", "insert") * 2,
    *("bulk_insert", "insert_overwrite", "insert_overwrite_table", "delete_partitions"),
    *("alter", "rollback", "cluster"),
    *("failed upsert", "failed insert_overwrite", "failed cluster"),
)
LAYOUTS = ("linear", "z-order", "hilbert")
Row = dict[str, Any]
Step = tuple[str, tuple[int, ...]]


class Failed(Exception):
    """A writer that fails when its files are there and its commit is not."""


def row(key: int, ts: int, added: int) -> Row:
    """A row whose key decides its partition, as the index looks only there."""
    return {
        "id": f"k{key:03d}",
        "city": CITIES[key % len(CITIES)],
        "ts": ts,
        "value": key - 3.5,
        "price": Decimal(key - 2) + Decimal("0.0000000001"),
        "at": dt.datetime(2024, 1, 1, 12, 0, 0, key, tzinfo=dt.UTC),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=key),
        "flag": bool(key % 2),
        "inner": {"x": key, "word": "wörd" * (3 + key % 5)},
        "tags": ["a", "b"][: key % 3],
        **{f"new{number}": key * 10 + number for number in range(added)},
    }


@dataclass
class History:
    """A table, what it must hold, and what it held after each instant."""

    path: Path
    format_name: str
    partitioned: bool
    frame: Callable[[pa.Table], Any] = lambda rows: rows
    metadata_table: bool = True
    now: dict[str, Row] = field(default_factory=dict)
    added: int = 0
    past: list[tuple[str, dict[str, Row], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = hudi.Table.create(
            str(self.path),
            TYPED,
            record_key="id",
            partition_by="city" if self.partitioned else None,
            ordering_field="ts",
            options={
                **OPTIONS,
                "hoodie.table.format": self.format_name,
                "hoodie.metadata.enable": str(self.metadata_table).lower(),
            },
        )

    @property
    def schema(self) -> pa.Schema:
        more = [pa.field(f"new{number}", pa.int64()) for number in range(self.added)]
        return pa.schema([*TYPED, *more])

    def perform(self, operation: str, keys: tuple[int, ...], ts: int) -> bool:
        """Perform one step on the table and on the dictionary; ``False`` where it makes no
        sense."""
        rows = {one["id"]: one for one in (row(key, ts, self.added) for key in keys)}
        name = operation.removeprefix("failed ")
        match name:
            case "rollback":
                return self._roll_back()
            case "alter":
                return self._add_column()
            case "cluster":
                return self._cluster(LAYOUTS[keys[0] % 3], name != operation)
            case "insert" | "bulk_insert":  # these look nothing up
                rows = {key: one for key, one in rows.items() if key not in self.now}
            case "delete_partitions":
                held = {one["city"] for one in self.now.values()} if self.partitioned else set()
                rows = {key: one for key, one in rows.items() if one["city"] in held}
        if not rows:
            return False
        if name != operation:
            self._fail(name, rows)
            return True
        result = self._write(name, rows)
        self.now = self._after(name, rows)
        self.past.append((result.instant.requested_time, self.now, self.added))
        return True

    def _write(self, name: str, rows: dict[str, Row]) -> hudi.CommitResult:
        if name == "delete_partitions":
            cities = {one["city"] for one in rows.values()}
            result: hudi.CommitResult = self.table.delete_partitions(
                [{"city": city} for city in sorted(cities, key=str)]
            )
            return result
        data = self.frame(pa.Table.from_pylist(list(rows.values()), self.schema))
        written: hudi.CommitResult = getattr(self.table, name)(data)
        return written

    def _after(self, name: str, rows: dict[str, Row]) -> dict[str, Row]:
        cities = {one["city"] for one in rows.values()} if self.partitioned else {*CITIES}
        match name:
            case "delete":
                return {key: one for key, one in self.now.items() if key not in rows}
            case "insert_overwrite_table":
                return rows
            case "insert_overwrite" | "delete_partitions":
                left = {key: one for key, one in self.now.items() if one["city"] not in cities}
                return left if name == "delete_partitions" else left | rows
        return self.now | rows

    def _fail(self, name: str, rows: dict[str, Row]) -> None:
        self._failing(lambda: self._write(name, rows))

    def _failing(self, write: Callable[[], Any]) -> None:
        commit = Transaction.commit

        def fail(self: Transaction, metadata: CommitMetadata, statuses: Any) -> Any:
            raise Failed

        try:
            Transaction.commit = fail  # type: ignore[method-assign]
            with pytest.raises(Failed):
                write()
        finally:
            Transaction.commit = commit  # type: ignore[method-assign]

    def _add_column(self) -> bool:
        result = self.table.alter(add_columns={f"new{self.added}": pa.int64()})
        assert result.instant is not None
        self.added += 1
        self.past.append((result.instant.requested_time, self.now, self.added))
        return True

    def _cluster(self, layout: str, fails: bool) -> bool:
        """Rewrite the files with nothing changed; what fails leaves them as they are."""
        if not self.now:
            return False
        engine = engine_for(self.frame(self.schema.empty_table()))
        before = self.table.to_arrow().drop_columns("_hoodie_file_name")

        def cluster() -> Any:
            return self.table.cluster(sort_by=["ts", "inner.word"], layout=layout, engine=engine)

        if fails:
            self._failing(cluster)
            return True
        done = cluster()
        assert done.result.operation is hudi.WriteOperation.CLUSTER
        after = self.table.to_arrow().drop_columns("_hoodie_file_name")
        assert after.sort_by("id").equals(before.sort_by("id"))
        window = self.table.incremental(begin=before_completion(done.result.instant))
        assert not window.num_rows
        self.past.append((done.instant, self.now, self.added))
        return True

    def _roll_back(self) -> bool:
        if not self.past:
            return False
        self.check_past()
        instant, _, _ = self.past.pop()
        self.table.rollback(instant)
        self.table = hudi.Table.open(str(self.path), options={"hoodie.fs.fsync": "false"})
        _, self.now, self.added = self.past[-1] if self.past else ("", {}, 0)
        return True

    def check(self) -> None:
        """Compare all readers with the dictionary."""
        expected = content(self.now.values())
        opened = hudi.Table.open(str(self.path))
        assert content(opened.to_arrow().to_pylist()) == expected
        for name, seen in FOREIGN[self.format_name].read(self.path).items():
            assert seen == expected, name

    def check_past(self) -> None:
        """Compare the states after all instants in both views.

        What a step does to an earlier state is seen at the end, or before a rollback takes it away.
        """
        opened = hudi.Table.open(str(self.path))
        foreign = FOREIGN[self.format_name]
        states = {instant: content(held.values()) for instant, held, _ in self.past}
        theirs = {at: content(rows) for at, rows in foreign.history(self.path).items()}
        assert theirs.keys() <= states.keys()
        for instant, held in states.items():
            assert content(opened.to_arrow(as_of=instant).to_pylist()) == held, instant
            # an instant that changed columns only may have no state of its own
            assert theirs.get(instant, held) == held, instant
        before: list[dict[str, Row]] = [{}, *(held for _, held, _ in self.past)]
        changed = {at for (at, now, _), then in zip(self.past, before, strict=False) if now != then}
        assert changed <= theirs.keys()


def before_completion(instant: hudi.Instant) -> str:
    """The millisecond before an instant completed."""
    assert instant.completion_time is not None
    return instant_time_of(to_datetime(instant.completion_time) - dt.timedelta(milliseconds=1))


KEYS = st.lists(st.integers(0, 14), min_size=1, max_size=8, unique=True).map(tuple)
STEPS = st.tuples(st.sampled_from(OPERATIONS), KEYS)
PHASES = (Phase.explicit, Phase.generate)  # shrinking takes minutes


def follow(history: History, steps: list[Step], *, skips: bool = True) -> None:
    """Perform steps; ``skips``: those that make no sense are left out."""
    for number, (operation, keys) in enumerate(steps, 1):
        is_done = history.perform(operation, keys, number)
        assert is_done or skips, operation
        if is_done:
            history.check()
    history.check_past()


@pytest.mark.parametrize(
    ("format_name", "partitioned"), sampled(list(product(FOREIGN, [True, False])), 2)
)
@settings(max_examples=3, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=2, max_size=7), metadata_table=st.booleans())
def test_all_readers_see_every_state(
    tmp_path_factory: pytest.TempPathFactory,
    format_name: str,
    partitioned: bool,
    steps: list[Step],
    metadata_table: bool,
) -> None:
    path = tmp_path_factory.mktemp("history") / "table"
    follow(History(path, format_name, partitioned, metadata_table=metadata_table), steps)


# every operation at least once, in an order in which each has something to do
EVERY: list[Step] = [
    ("bulk_insert", (0, 1, 2, 3, 4, 5, 6)),
    ("upsert", (0, 5, 7)),
    ("failed upsert", (1, 8)),
    ("insert", (9, 10, 11)),
    ("alter", (0,)),
    ("upsert", (1, 12)),
    ("cluster", (0,)),
    ("upsert", (2, 9)),
    ("failed cluster", (1,)),
    ("insert_overwrite", (13,)),
    ("cluster", (1,)),
    ("rollback", (0,)),
    ("failed insert_overwrite", (0,)),
    ("delete", (0, 12)),
    ("rollback", (0,)),
    ("delete_partitions", (1,)),
    ("insert_overwrite_table", (2, 3, 4)),
    ("rollback", (0,)),
    ("cluster", (2,)),
    ("delete", (2,)),
]


@pytest.mark.parametrize("format_name", FOREIGN)
def test_every_operation_in_this_process(tmp_path: Path, format_name: str) -> None:
    follow(History(tmp_path / "table", format_name, True), EVERY, skips=False)


@pytest.mark.spark
@pytest.mark.parametrize("format_name", sampled(sorted(FOREIGN), 3, 1))
def test_every_operation_through_spark(
    tmp_path: Path, spark: SparkSession, format_name: str
) -> None:
    def frame(rows: pa.Table) -> Any:
        return spark.createDataFrame(rows).coalesce(1)

    history = History(tmp_path / "table", format_name, True, frame)
    follow(history, EVERY, skips=False)
    read = history.table.read(spark).toArrow().to_pylist()
    assert content(read) == content(history.now.values())


@pytest.mark.spark
@pytest.mark.parametrize("format_name", FOREIGN)
def test_random_histories_through_spark(
    tmp_path: Path, spark: SparkSession, format_name: str
) -> None:
    drawn: list[int] = []

    @settings(max_examples=1, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(STEPS, min_size=2, max_size=5), partitioned=st.booleans())
    def check(steps: list[Step], partitioned: bool) -> None:
        path = tmp_path / str(len(drawn))
        drawn.append(len(steps))
        history = History(
            path, format_name, partitioned, lambda rows: spark.createDataFrame(rows).coalesce(1)
        )
        follow(history, steps)

    check()
    assert drawn
