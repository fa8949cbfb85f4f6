"""Other writers of a table's format: deltalake and pyiceberg, which know nothing of Hudi."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import StaticTable, Table

from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from iceberg_format.table import IcebergTable


class _Folder(NoopCatalog):
    """Commits to an Iceberg table in its own folder, as any catalog would."""

    def __init__(self, table: OpenTable) -> None:
        super().__init__("foreign")
        self._catalog = IcebergTable.open(table.client).catalog

    def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
        loaded = self._catalog.load()
        assert loaded is not None
        made = self._catalog.commit(loaded, requirements, updates)
        return type("Answer", (), {"metadata": made.metadata, "metadata_location": made.location})()


def iceberg(path: Path) -> Table:
    """The Iceberg table in a folder, as pyiceberg writes it."""
    found = StaticTable.from_metadata(str(path))
    (part,) = (one for one in open_table(str(path), {}).each() if one.host.name == "iceberg")
    found.catalog = _Folder(part)
    return found


def version(path: Path, table_format: str) -> str:
    """The format's own id of its present state."""
    if table_format == "delta":
        return str(DeltaTable(str(path)).version())
    return str(StaticTable.from_metadata(str(path)).metadata.current_snapshot_id)


def append(path: Path, table_format: str, rows: pa.Table) -> str:
    """Append rows; return the id of the state that it makes."""
    if table_format == "delta":
        write_deltalake(str(path), rows, mode="append", schema_mode="merge")
    else:
        iceberg(path).append(rows)
    return version(path, table_format)


def delete(path: Path, table_format: str, key: str) -> None:
    """Delete the row of a key."""
    if table_format == "delta":
        DeltaTable(str(path)).delete(f"id = '{key}'")
    else:
        iceberg(path).delete(f"id == '{key}'")


def rewrite(path: Path, table_format: str) -> None:
    """Put all rows into other files, as a compaction does."""
    if table_format == "delta":
        DeltaTable(str(path)).optimize.compact()
    else:
        table = iceberg(path)
        table.overwrite(table.scan().to_arrow())


def states(path: Path, table_format: str) -> list[pa.Table]:
    """The rows of every state that the format keeps, the oldest first."""
    if table_format == "delta":
        newest = DeltaTable(str(path)).version()
        return [
            DeltaTable(str(path), version=number).to_pyarrow_table() for number in range(newest + 1)
        ]
    table = StaticTable.from_metadata(str(path))
    snapshots = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)
    return [table.scan(snapshot_id=one.snapshot_id).to_arrow() for one in snapshots]


Append = Callable[[Path, str, pa.Table], str]
