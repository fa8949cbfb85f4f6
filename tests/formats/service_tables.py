"""Small tables in any format, and the readers of others, for tests of what is done to whole
tables."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from math import nan
from pathlib import Path

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable
from hudi import HudiTableBuilder
from pyiceberg.table import StaticTable

import hudi_core as hudi
from tests import tables
from tests.tables import rows_of

_PLAIN = [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("value", pa.float64())]
TAGGED = pa.schema([*_PLAIN, ("tags", pa.list_(pa.string()))])
TWO_STEP = ("iceberg", "delta")


def batch(ts: int, *keys: str) -> pa.Table:
    """Rows whose key decides their partition."""
    return rows_of(
        TAGGED,
        *(
            (key, "rome" if key < "m" else "oslo", ts, nan if key == "b" else float(ts), [key])
            for key in keys
        ),
    )


def two_writes(path: Path, table_format: str = "native", **options: str) -> hudi.Table:
    """A table with four rows in two partitions, after two writes."""
    table = tables.new_table(path, batch(1, "a", "b", "x"), options, format=table_format)
    table.upsert(batch(2, "a", "y"))
    return table


def damage_file_list(path: Path) -> None:
    """Damage what the metadata table of a table says of its files."""
    for one in (path / ".hoodie/metadata/files").iterdir():
        one.write_bytes(b"\0" * 64)


def bag(table: pa.Table, columns: list[str] | None = None) -> Counter[str]:
    names = sorted(columns or table.column_names)
    return Counter(repr([row[name] for name in names]) for row in table.to_pylist())


def by_iceberg(path: Path) -> pa.Table:
    return StaticTable.from_metadata(str(path)).scan().to_arrow()


def by_iceberg_of_polars(path: Path) -> pa.Table:
    location = StaticTable.from_metadata(str(path)).metadata_location
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells which of its planners it prefers
        return pl.scan_iceberg(location).collect().to_arrow()


def by_delta(path: Path) -> pa.Table:
    return DeltaTable(str(path)).to_pyarrow_table()


def by_delta_of_polars(path: Path) -> pa.Table:
    return pl.scan_delta(str(path)).collect().to_arrow()


def by_hudi_rs(path: Path) -> pa.Table:
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    return pa.Table.from_batches([pa.record_batch(one) for one in batches])


READERS: dict[str, tuple[Callable[[Path], pa.Table], ...]] = {
    "native": (by_hudi_rs,),
    "iceberg": (by_hudi_rs, by_iceberg, by_iceberg_of_polars),
    "delta": (by_hudi_rs, by_delta, by_delta_of_polars),
    "iceberg,delta": (by_hudi_rs, by_iceberg, by_delta),
}


def agree(path: Path) -> Counter[str]:
    """Return the rows, which all readers of the table's format must see alike."""
    table = hudi.Table.open(path)
    rows = table.to_arrow()
    for read in READERS[table.format]:
        assert bag(read(path), rows.column_names) == bag(rows), read.__name__
    return bag(rows, TAGGED.names)


def sound(path: Path) -> Counter[str]:
    """Return the rows, which all readers and all metadata of the table agree on."""
    rows = agree(path)
    assert hudi.Table.open(path).validate().differences == ()
    return rows


def instants(path: Path) -> list[str]:
    return [str(one) for one in hudi.Table.open(path).timeline.instants]
