"""What other engines do to split tables between our commits: deltalake and pyiceberg.

It changes nothing, or is named by our next write; a repair takes it back, unasked where no row
changed. Until then we read what we read before, and no row is lost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.errors import ForeignCommitError
from tests.foreign import by_hudi_rs
from tests.formats import foreign_writers
from tests.formats.foreign_writers import iceberg
from tests.tables import SCHEMA, new_table, rows

OPTIONS: Final = {
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.fs.fsync": "false",
}
NOW: Final = [("a", 2), ("b", 1), ("d", 1), ("e", 2)]
Act = Callable[[Path], object]


def delta(path: Path) -> DeltaTable:
    return DeltaTable(str(path))


def expire(path: Path) -> None:
    everything = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    iceberg(path).maintenance.expire_snapshots().older_than(everything).commit()


def vacuum_all(path: Path) -> None:
    delta(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)


HARMLESS: Final[Mapping[str, tuple[str, Act]]] = {
    "vacuum": ("delta", lambda path: delta(path).vacuum(dry_run=False)),
    "vacuum of all": ("delta", vacuum_all),
    "checkpoint": ("delta", lambda path: delta(path).create_checkpoint()),
    "cleanup of the log": ("delta", lambda path: delta(path).cleanup_metadata()),
    "expiry": ("iceberg 2", expire),
    "expiry, version 3": ("iceberg 3", expire),
}
REWRITES: Final[Mapping[str, tuple[str, Act]]] = {
    "compaction": ("delta", lambda path: delta(path).optimize.compact()),
    "z-order": ("delta", lambda path: delta(path).optimize.z_order(["id"])),
    "rewrite": ("iceberg 2", lambda path: foreign_writers.rewrite(path, "iceberg")),
}
CHANGES: Final[Mapping[str, tuple[str, Act]]] = {
    "delete": ("delta", lambda path: foreign_writers.delete(path, "delta", "b")),
    "restore": ("delta", lambda path: delta(path).restore(1)),
    "delete, Iceberg": ("iceberg 2", lambda path: foreign_writers.delete(path, "iceberg", "b")),
}


def made(path: Path, kind: str) -> None:
    """A table of two files, of whose rows two are dead."""
    table_format, _, version = kind.partition(" ")
    options = {"hoodie.table.format.iceberg.format-version": version} if version else {}
    table = new_table(
        path,
        SCHEMA,
        {**OPTIONS, **options},
        format=table_format,
        table_type="MERGE_ON_READ",
        partition_by=None,
    )
    table.insert(rows("a", "b", "c", "d", part="p", ts=1))
    table.upsert(rows("a", "e", part="p", ts=2))
    table.delete(rows("c", part="p"))


def opened(path: Path) -> hudi.Table:
    return hudi.Table.open(path, OPTIONS)


def held(found: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    return sorted((one["id"], one["ts"]) for one in found)


def by_format(path: Path, kind: str) -> list[tuple[str, int]]:
    if kind == "delta":
        query = QueryBuilder().register("t", delta(path))
        return held(pa.table(query.execute("select id, ts from t").read_all()).to_pylist())
    return held(StaticTable.from_metadata(str(path)).scan().to_arrow().to_pylist())


def agree(path: Path, kind: str) -> list[tuple[str, int]]:
    found = held(opened(path).to_arrow().to_pylist())
    assert found == by_format(path, kind) == held(by_hudi_rs(path))
    return found


def goes_on(path: Path, kind: str) -> None:
    """Our writes, and what they have to know of dead rows, are as if nothing had been."""
    assert agree(path, kind) == NOW
    opened(path).upsert(rows("a", "c", part="p", ts=3))
    opened(path).delete(rows("d", part="p"))
    assert agree(path, kind) == [("a", 3), ("b", 1), ("c", 3), ("e", 2)]
    opened(path).compact()
    assert agree(path, kind) == [("a", 3), ("b", 1), ("c", 3), ("e", 2)]
    assert opened(path).validate(keys=True).is_valid


@pytest.mark.parametrize("action", HARMLESS)
def test_what_changes_nothing(tmp_path: Path, action: str) -> None:
    path, (kind, act) = tmp_path / "t", HARMLESS[action]
    made(path, kind)
    act(path)
    goes_on(path, kind)


@pytest.mark.parametrize("action", [*REWRITES, *CHANGES])
def test_what_stops_our_writes(tmp_path: Path, action: str) -> None:
    path, (kind, act) = tmp_path / "t", {**REWRITES, **CHANGES}[action]
    made(path, kind)
    act(path)
    assert (by_format(path, kind) == NOW) == (action in REWRITES)
    with pytest.raises(ForeignCommitError):
        opened(path).upsert(rows("b", part="p", ts=9))
    assert held(opened(path).to_arrow().to_pylist()) == NOW
    [counted] = opened(path).repair(dry_run=True).foreign
    assert counted.is_rewrite == (action in REWRITES)
    if action in CHANGES:
        with pytest.raises(ForeignCommitError):
            opened(path).repair()
    opened(path).repair(discard=action in CHANGES)
    goes_on(path, kind)
