"""Random histories of an Iceberg table against a dictionary, read by pyiceberg and hudi-rs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings

import hudi_core as hudi
from tests.formats.iceberg_tables import (
    CITIES,
    SCHEMA,
    Iceberg,
    agree,
    bag,
    create,
    ours,
    row,
    rows,
    summary,
)

OPERATIONS = (
    *("upsert", "delete", "insert") * 2,
    *("bulk_insert", "insert_overwrite", "insert_overwrite_table"),
    *("delete_partitions", "rollback"),
)
Step = tuple[str, tuple[int, ...]]
Model = dict[int, int]


def steps() -> st.SearchStrategy[list[Step]]:
    keys = st.lists(st.integers(0, 14), min_size=1, max_size=8, unique=True).map(tuple)
    return st.lists(st.tuples(st.sampled_from(OPERATIONS), keys), min_size=1, max_size=6)


@dataclass
class History:
    """A table, what it must hold (the ordering value of each key), and what it held before."""

    path: Path
    partitioned: bool
    table: hudi.Table
    now: Model = field(default_factory=dict)
    past: list[tuple[str, Model]] = field(default_factory=list)

    def perform(self, operation: str, keys: tuple[int, ...], ts: int) -> bool:
        """Perform one operation on the table and on the model; ``False`` if there is no sense."""
        here = {row(key)["city"] for key in keys} if self.partitioned else set(CITIES)
        inside = {key for key in self.now if row(key)["city"] in here}
        data: Any = rows(keys, ts)
        written = dict.fromkeys(keys, ts)
        match operation:
            case "upsert":
                new = {**self.now, **written}
            case "insert" | "bulk_insert":
                if self.now.keys() & set(keys):
                    return False
                new = {**self.now, **written}
            case "delete":
                new = {key: at for key, at in self.now.items() if key not in keys}
            case "insert_overwrite":
                new = {key: at for key, at in self.now.items() if key not in inside} | written
            case "insert_overwrite_table":
                new = written
            case "delete_partitions":
                named = [city for city in CITIES if city in here and city is not None]
                held = {row(key)["city"] for key in self.now}
                data = [city.replace("%", "%25") for city in named if city in held]
                if not data or not self.partitioned:
                    return False
                new = {key: at for key, at in self.now.items() if row(key)["city"] not in named}
            case _:
                return self.undo()
        result = getattr(self.table, operation)(data)
        if result.instant is None:
            return False
        self.now = new
        self.past.append((result.instant.requested_time, new))
        return True

    def undo(self) -> bool:
        if not self.past:
            return False
        instant, _ = self.past.pop()
        self.table.rollback(instant)
        self.now = self.past[-1][1] if self.past else {}
        return True

    def check(self) -> None:
        assert agree(self.path) == expected(self.now)
        lineage = Iceberg(self.path).lineage
        assert [summary(one)["hudi.instant"] for one in lineage] == [one for one, _ in self.past]
        for snapshot, (instant, model) in zip(lineage, self.past, strict=True):
            read = Iceberg(self.path).rows(SCHEMA.names, snapshot.snapshot_id)
            assert bag(read) == expected(model) == ours(self.path, instant)
            assert summary(snapshot)["total-records"] == str(len(model))


def expected(model: Model) -> Any:
    return bag(pa.Table.from_pylist([row(key, ts) for key, ts in model.items()], SCHEMA))


@pytest.mark.parametrize("partition_by", ["city", None])
@settings(max_examples=8, phases=(Phase.explicit, Phase.generate))  # shrinking takes minutes
@given(history=steps())
def test_every_history_is_the_same_in_iceberg(
    tmp_path_factory: pytest.TempPathFactory, partition_by: str | None, history: list[Step]
) -> None:
    path = tmp_path_factory.mktemp("table") / "t"
    tracked = History(path, partition_by is not None, create(path, partition_by))
    for number, (operation, keys) in enumerate(history, 1):
        if tracked.perform(operation, keys, number):
            tracked.check()
