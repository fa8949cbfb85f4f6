"""Tables whose rows are updated, deleted and merged by conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_core as hudi

FORMATS = ("native", "iceberg", "delta")


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("city", pa.string()),
        pa.field("ts", pa.int32()),
        pa.field("v", pa.float64()),
        pa.field("name", pa.string()),
    ]
)


Rows = list[tuple[Any, ...]]


def some(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def new_table(path: Path, format_name: str = "native", **given: Any) -> hudi.Table:
    wanted: dict[str, Any] = {
        "record_key": "id",
        "partition_by": "city",
        "ordering_field": "ts",
        **given,
    }
    options = {"hoodie.fs.fsync": "false", **wanted.pop("options", {})}
    return hudi.Table.create(
        str(path), SCHEMA, name="t", format=format_name, options=options, **wanted
    )


def held(table: hudi.Table | pa.Table) -> Rows:
    found = table if isinstance(table, pa.Table) else table.to_arrow()
    return sorted(
        (tuple(row[name] for name in SCHEMA.names) for row in found.to_pylist()), key=repr
    )


def untouched(table: hudi.Table, rows: Rows, instants: int) -> None:
    """Require that a refused write left no trace."""
    again = hudi.Table.open(table.path)
    assert held(again) == rows
    assert len(again.timeline.instants) == instants
    folder = Path(table.path) / ".hoodie" / "timeline"
    assert not [one.name for one in folder.iterdir() if "inflight" in one.suffixes[-1]][instants:]
