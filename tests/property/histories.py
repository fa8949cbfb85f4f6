"""Random histories of a table against a dictionary of its rows: steps, and what they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from hypothesis import HealthCheck, settings

import hudi_core as hudi
from hudi_core.engine.base import Engine
from tests.samples import IS_WHOLE

Row = dict[str, Any]

DELETED: Final = "_hoodie_is_deleted"
UNKNOWN: Final = "__HIVE_DEFAULT_PARTITION__"
OVERWRITES: Final = ("insert_overwrite", "insert_overwrite_table")
REPLACING: Final = (*OVERWRITES, "delete_partitions")


@dataclass(frozen=True)
class Step:
    operation: str
    rows: tuple[Row, ...] = ()
    failure: str | None = None

    @property
    def cities(self) -> set[Any]:
        return {row["city"] for row in self.rows}


@dataclass(kw_only=True)
class Model:
    """What a table must hold, and what each operation must report.

    ``moves``: a row that comes with another city takes its key along. ``by_partition``: a key is
    unique in its partition only.
    """

    event_time: bool = False
    partitioned: bool = True
    moves: bool = True
    by_partition: bool = False
    held: dict[Any, Row] = field(default_factory=dict)

    def key(self, row: Row) -> Any:
        return (row["city"], row["id"]) if self.by_partition else row["id"]

    def runnable(self, step: Step) -> Step:
        """Inserts bring only new keys, each once: they look nothing up, so duplicates would stay.

        Overwrites bring each key once, and none that stays elsewhere; only partitions with rows
        are deleted.
        """
        once = {self.key(row): row for row in step.rows}
        match step.operation:
            case "insert" | "bulk_insert":
                there: Mapping[Any, Row] = self.held
            case "insert_overwrite" | "insert_overwrite_table":
                there = self._left(step)
            case "delete_partitions":
                cities = {row["city"] for row in self.held.values() if self.partitioned}
                return replace(step, rows=tuple(r for r in once.values() if r["city"] in cities))
            case _:
                return step
        rows = (row for key, row in once.items() if key not in there)
        living = tuple({**row, DELETED: False} if DELETED in row else row for row in rows)
        return replace(step, rows=living)

    def apply(self, step: Step) -> tuple[int, int, int]:
        """Count of rows that are inserted, updated and deleted."""
        before = len(self.held)
        if step.operation in REPLACING:
            self.held = self._left(step)
        if step.operation == "delete":
            for row in step.rows:
                self.held.pop(self.key(row), None)
        if step.operation in ("delete", "delete_partitions"):
            return 0, 0, before - len(self.held)
        counts = Counter[str]()
        for row in self._combined(step.rows):
            counts.update(self._upsert(row))
        return counts["inserted"], counts["updated"], counts["deleted"]

    def content(self, names: Sequence[str]) -> Counter[str]:
        path = "_hoodie_partition_path"
        return content(({path: r["city"] or UNKNOWN, **r} for r in self.held.values()), names)

    def _left(self, step: Step) -> dict[Any, Row]:
        if step.operation == "insert_overwrite_table" or not self.partitioned:
            return {}
        return {key: row for key, row in self.held.items() if row["city"] not in step.cities}

    def _upsert(self, row: Row) -> list[str]:
        key = self.key(row)
        stored = self.held.get(key)
        if stored is not None and self.event_time and stored["ts"] > row["ts"]:
            return []
        if row.get(DELETED):
            return [] if self.held.pop(key, None) is None else ["deleted"]
        self.held[key] = row
        if stored is None:
            return ["inserted"]
        if stored["city"] == row["city"]:
            return ["updated"]
        if self.moves:
            return ["inserted", "deleted"]
        self.held[key] = {**row, "city": stored["city"]}
        return ["updated"]

    def _combined(self, batch: tuple[Row, ...]) -> list[Row]:
        best: dict[Any, Row] = {}
        for row in batch:
            other = best.get(self.key(row))
            if other is None or not self.event_time or row["ts"] >= other["ts"]:
                best[self.key(row)] = row
        return list(best.values())


def small_files(rows: int, **more: str) -> dict[str, str]:
    """Options by which each new file holds so many rows, and small ones grow."""
    return {
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": str(rows),
        "hoodie.fs.fsync": "false",
        **more,
    }


def examples(whole: int, few: int) -> settings:
    """Settings of slow tests: so many examples in a campaign, and in the others."""
    return settings(
        max_examples=whole if IS_WHOLE else few,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def perform(
    table: hudi.Table, step: Step, schema: pa.Schema, engine: Engine | None = None
) -> hudi.CommitResult:
    method: Any = getattr(table, step.operation)
    result: hudi.CommitResult
    if step.operation == "delete_partitions":
        result = method([{"city": city} for city in sorted(step.cities, key=str)])
    else:
        result = method(pa.Table.from_pylist(list(step.rows), schema), engine=engine)
    return result


def counts(result: hudi.CommitResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


def content(found: Iterable[Row], names: Sequence[str]) -> Counter[str]:
    return Counter(repr([row[name] for name in names]) for row in found)
