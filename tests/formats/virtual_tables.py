"""Tables that differ in whether they store their record keys, and one history for all of them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import hudi_core as hudi
from hudi_core.errors import TableServiceError
from tests.formats.service_tables import bag
from tests.tables import new_table

_TEXTS: Final = [("id", pa.string()), ("number", pa.int32()), ("city", pa.string())]
_NUMBERS: Final = [("day", pa.int64()), ("ts", pa.int64()), ("value", pa.float64())]
KEY_COLUMNS: Final = pa.schema([*_TEXTS, *_NUMBERS])
LEVELS: Final[Mapping[str, Mapping[str, str]]] = {
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
    "no key column": {"hoodie.recordkey.virtual.enabled": "true"},
    "transition": {
        "hoodie.recordkey.virtual.enabled": "true",
        "hoodie.recordkey.virtual.transition.enabled": "true",
    },
}
_KEYGEN: Final = "hoodie.datasource.write.keygenerator.type"
_DAYS: Final = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}
GENERATORS: Final[Mapping[str, tuple[list[str], list[str], Mapping[str, str]]]] = {
    "simple": (["id"], ["city"], {}),
    "simple number": (["ts"], ["city"], {}),
    "complex": (["id", "number"], ["city", "day"], {}),
    "complex one": (["id"], ["city"], {_KEYGEN: "COMPLEX"}),
    "nonpartitioned": (["id", "city"], [], {}),
    "timestamp": (["id"], ["day"], {_KEYGEN: "TIMESTAMP", **_DAYS}),
    "custom": (["id", "city"], ["city:SIMPLE", "day:TIMESTAMP"], {_KEYGEN: "CUSTOM", **_DAYS}),
}
"""Columns of the key and of the partition, and options."""
INDEXES: Final[Mapping[str, Mapping[str, str]]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "GLOBAL_BLOOM": {},
    "BUCKET": {"hoodie.bucket.index.num.buckets": "3"},
    "RECORD_INDEX": {"hoodie.metadata.record.index.enable": "true"},
    "RECORD_LEVEL_INDEX": {"hoodie.metadata.record.level.index.enable": "true"},
}
_DAY: Final = 86_400_000
CITIES: Final = ("rome", "oslo", "new york")


def made(
    path: Path,
    level: str | None,
    *,
    generator: str = "simple",
    index: str = "SIMPLE",
    table_format: str = "native",
    **options: str,
) -> hudi.Table:
    """A new table; its keys are stored where no level is named."""
    keys, partitions, own = GENERATORS[generator]
    fixed = {
        "hoodie.index.type": index,
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "3",
        "hoodie.clean.automatic": "false",
    }
    given = {**fixed, **INDEXES[index], **own, **(LEVELS[level] if level else {}), **options}
    ordering = "value" if generator == "simple number" else "ts"
    settings = {"record_key": keys, "partition_by": partitions, "ordering_field": ordering}
    return new_table(path, KEY_COLUMNS, given, format=table_format, **settings)


@dataclass(frozen=True)
class Step:
    """One operation with its rows."""

    operation: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self, table: hudi.Table, spark: Any = None) -> tuple[int, int, int] | None:
        """Counts of rows inserted, updated and deleted; ``None`` for services.

        Rows are written from a DataFrame where a session is given.
        """
        given = pa.Table.from_pylist(self.rows, KEY_COLUMNS)
        rows = given if spark is None else spark.createDataFrame(given)
        match self.operation:
            case "cluster":
                if table.config.buckets is None:  # whose rows stay where they are
                    table.cluster()
                return None
            case "restore":
                saved = table.timeline.completed_writes()[-1].requested_time
                table.savepoint(saved)
                table.upsert(rows)
                table.restore(saved)
                return None
            case "rollback":
                result = table.upsert(rows)
                if result.instant:
                    roll_back_if_it_may_be(table, result.instant.requested_time)
                return None
            case "delete_partitions" if not table.config.is_partitioned:
                return None
            case "delete_partitions":
                paths = sorted({str(one.partition_path) for one in table.file_slices()})
                done = table.delete_partitions(paths[:1])
            case name:
                done = getattr(table, name)(rows)
        return done.inserted, done.updated, done.deleted


def roll_back_if_it_may_be(table: hudi.Table, time: str) -> None:
    """Roll a write back, unless a compaction has taken its keys into a record index."""
    try:
        table.rollback(time)
    except TableServiceError as refused:
        if "compaction of the metadata table has taken its keys" not in str(refused):
            raise


def row(number: int, ts: int, chance: random.Random) -> dict[str, Any]:
    """The row of a key; which partition it is in follows from the key."""
    return {
        "id": f"k{number:03}",
        "number": number % 2,
        "city": CITIES[number % len(CITIES)],
        "day": number % 2 * _DAY,
        "ts": ts,
        "value": float(chance.randrange(100)),
    }


def history(seed: int, *, by_ts: bool = False, length: int = 9) -> list[Step]:
    """Operations that every table can do, in an order that a seed decides.

    ``by_ts``: whether the column ``ts`` is the key: then it is that of the row's number.
    """
    chance = random.Random(seed)

    def rows(numbers: list[int], ts: int) -> list[dict[str, Any]]:
        return [row(one, one if by_ts else ts, chance) for one in numbers]

    steps, fresh = [Step("insert", rows(list(range(8)), 0))], 8
    often = ["upsert", "upsert", "delete", "insert", "bulk_insert", "cluster"]
    seldom = ["insert_overwrite", "delete_partitions", "restore", "rollback"]
    for ts in range(1, length):
        operation = chance.choice([*often, *seldom])
        if operation in ("insert", "bulk_insert", "insert_overwrite"):
            numbers = list(range(fresh, fresh + 3))
            fresh += 3
        elif operation in ("cluster", "delete_partitions"):
            numbers = []
        else:
            numbers = sorted({chance.randrange(fresh + 2) for _ in range(5)})
            fresh += 2
        steps.append(Step(operation, rows(numbers, ts)))
    return [*steps, Step("insert_overwrite_table", rows([1, 2, fresh], length))]


def equal(one: hudi.Table, other: hudi.Table) -> None:
    """Both tables have the same rows."""
    names = KEY_COLUMNS.names
    assert bag(one.to_arrow(columns=names)) == bag(other.to_arrow(columns=names))
