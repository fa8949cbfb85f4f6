"""Folders with rows in them that are no Hudi tables, and their readers: none is this project's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform

PLAIN: Final = "files"
"""Kind of a folder of Parquet files alone; the others are called as their formats."""
PARTITION: Final = "part"


def make_files(path: Path, rows: pa.Table) -> None:
    """Leave one file for each partition, as Spark does but that they have all columns."""
    for name, some in _by_partition(rows).items():
        folder = path / f"{PARTITION}={name}"
        folder.mkdir(parents=True)
        pq.write_table(some, folder / "part-00000-abc.snappy.parquet")
    (path / "_SUCCESS").touch()


def make_iceberg(path: Path, rows: pa.Table) -> None:
    """Leave a partitioned table of pyiceberg, found by its folder as Hadoop tables are."""
    catalog = SqlCatalog("own", uri="sqlite:///:memory:", warehouse=path.parent.as_uri())
    catalog.create_namespace("own")
    table = catalog.create_table("own.t", schema=rows.schema, location=path.as_uri())
    with table.update_spec() as update:
        update.add_field(PARTITION, IdentityTransform(), PARTITION)
    table.append(rows)
    catalog.engine.dispose()
    newest = Path(table.metadata_location.removeprefix("file://"))
    first = newest.with_name("v1.metadata.json")
    shutil.copyfile(newest, first)
    for other in newest.parent.glob("*.metadata.json"):
        if other != first:
            other.unlink()
    (newest.parent / "version-hint.text").write_text("1")


def make_delta(path: Path, rows: pa.Table) -> None:
    """Leave a table of deltalake, each file of which has the rows of one partition."""
    for some in _by_partition(rows).values():
        write_deltalake(str(path), some, mode="append")


def _by_partition(rows: pa.Table) -> dict[str, pa.Table]:
    names = pc.unique(rows.column(PARTITION)).to_pylist()
    return {name: rows.filter(pc.equal(rows.column(PARTITION), name)) for name in names}


def read_files(path: Path) -> pa.Table:
    """Return the rows of all Parquet files; those of a file with two names once."""
    names = {one.stat().st_ino: str(one) for one in path.rglob("*.parquet") if _is_data(path, one)}
    return ds.dataset(list(names.values())).to_table()


def _is_data(path: Path, file: Path) -> bool:
    parts = file.relative_to(path).parts
    return not any(part.startswith((".", "_")) for part in parts)


def read_iceberg(path: Path) -> pa.Table:
    """Return the rows that pyiceberg sees."""
    return StaticTable.from_metadata(str(path)).scan().to_arrow()


def read_delta(path: Path) -> pa.Table:
    """Return the rows that deltalake sees."""
    return DeltaTable(str(path)).to_pyarrow_table()


MAKERS: Final[Mapping[str, Callable[[Path, pa.Table], None]]] = {
    PLAIN: make_files,
    "iceberg": make_iceberg,
    "delta": make_delta,
}
READERS: Final[Mapping[str, Callable[[Path], pa.Table]]] = {
    PLAIN: read_files,
    "iceberg": read_iceberg,
    "delta": read_delta,
}
