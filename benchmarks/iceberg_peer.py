"""pyiceberg: an Iceberg table without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlparse

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from variant import Traits
from workload import KEY, PARTITION, Batch

_NAME = ("bench", "trips")


class Iceberg:
    """Append and upsert of pyiceberg, in this process, with a catalog in SQLite."""

    name = "pyiceberg"
    slow = True
    loads = True
    upserts = True
    traits = Traits(
        layout="a folder per city",
        index="scan of the table filtered by the keys of the batch",
        ordering="no",
        codec="zstd level 1",
        statistics="parquet footers, bounds in the manifests",
        fsync="catalog only",
    )

    def load(self, rows: Batch, table: Path) -> None:
        table.mkdir(parents=True)
        data = rows.read()
        catalog = _catalog(table)
        catalog.create_namespace(_NAME[0])
        created = catalog.create_table(
            _NAME, data.schema, properties={"write.parquet.compression-level": "1"}
        )
        with created.update_spec() as spec:
            spec.add_identity(PARTITION)
        created.append(data)

    def upsert(self, rows: Batch, table: Path) -> None:
        opened_table(table).upsert(rows.read(), join_cols=[KEY])

    def files(self, table: Path) -> Sequence[Path]:
        tasks = opened_table(table).scan().plan_files()
        if any(task.delete_files for task in tasks):
            raise AssertionError("pyiceberg left delete files: counting data files would be wrong")
        return [Path(urlparse(task.file.file_path).path) for task in tasks]


def _catalog(table: Path) -> SqlCatalog:
    return SqlCatalog(
        "bench", uri=f"sqlite:///{table}/catalog.db", warehouse=f"file://{table}/warehouse"
    )


def opened_table(table: Path) -> Table:
    """The table as its catalog has it now."""
    return _catalog(table).load_table(_NAME)
