"""Folders with data as somebody left them, and what must hold once they are tables."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_core as hudi
from tests.formats.service_tables import FORMATS, READERS, bag

ALL = ("native", *FORMATS)
ROWS = pa.table(
    {
        "id": ["a", "b", "x", "y"],
        "city": ["rome", "rome", "new york", None],
        "n": pa.array([1, 2, 3, None], pa.int64()),
        "price": pa.array([Decimal("1.50"), None, Decimal("2.25"), Decimal("0.00")]),
        "at": pa.array([dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)] * 4, pa.timestamp("us", "UTC")),
        "tags": [["t"], [], None, ["u", "v"]],
    }
)
FOLDERS = {
    "city=rome": (0, 2),
    "city=new%20york": (2, 1),
    "city=__HIVE_DEFAULT_PARTITION__": (3, 1),
}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def plain(path: Path, *, drop: tuple[str, ...] = (), rows: pa.Table = ROWS) -> Path:
    """A folder as Spark or pyarrow leaves it, with one file in each folder of a partition."""
    for folder, (offset, length) in FOLDERS.items():
        (path / folder).mkdir(parents=True)
        some = rows.slice(offset, length).drop_columns(list(drop))
        pq.write_table(some, path / folder / "part-00000-abc.snappy.parquet")
    (path / "_SUCCESS").touch()
    return path


def agree(path: Path, rows: pa.Table = ROWS) -> hudi.Table:
    """Every reader of the table sees just these rows."""
    table = hudi.Table.open(str(path))
    names = sorted(rows.column_names)
    assert bag(table.to_arrow(), names) == bag(rows, names)
    for read in READERS[table.format]:
        assert bag(read(path), names) == bag(rows, names), read.__name__
    assert table.validate().differences == ()
    return table


def data_of(path: Path) -> Counter[bytes]:
    """The bytes of every data file, whatever it is called."""
    files = [one for one in path.rglob("*.parquet") if "_delta_log" not in one.parts]
    return Counter(one.read_bytes() for one in files)
