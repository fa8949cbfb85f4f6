"""Two writers of one table: this project and Hudi-Spark, given the same of Hudi's options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

import hudi_core as hudi
from tests.jvm.engines import Engine

_BOTH: Final = {
    "hoodie.table.name": "judged",
    # an upgrade, and services that nobody asked for, would make another table of it
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    # every insert has a file of its own, with both writers
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.parquet.compression.codec": "zstd",
}
_OURS: Final = {"hoodie.fs.fsync": "false"}
_SPARK: Final = {
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.simple.index.parallelism": "1",
}
"""Of Hudi's engine alone: small tables need few tasks."""


_TYPE: Final = "hoodie.datasource.write.keygenerator.type"
_CLASS: Final = "hoodie.datasource.write.keygenerator.class"
_CLASSES: Final = {
    "TIMESTAMP": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "CUSTOM": "org.apache.hudi.keygen.CustomKeyGenerator",
}
"""Of the types that Hudi-Spark does not infer from the fields, nor take by their names."""


@dataclass(frozen=True)
class Shape:
    """What a table is made as.

    ``version``: of the table: ``8`` or ``9``. ``key``, ``partition``: fields, several of them
    separated by commas; no partition field: not partitioned. ``ordering``: the ordering field, if
    any. ``options``: more of Hudi's options, which both writers know.
    """

    version: str
    key: str = "id"
    partition: str = ""
    ordering: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def generator(self) -> str:
        """The key generator that Hudi would infer."""
        fields = self.partition.split(",") if self.partition else []
        if not fields:
            return "NON_PARTITION"
        if any(":" in one for one in fields):
            return "CUSTOM"
        return "SIMPLE" if len(fields) == 1 and "," not in self.key else "COMPLEX"

    def with_options(self, options: Mapping[str, str]) -> Shape:
        """The same with more options."""
        return replace(self, options={**self.options, **options})

    @property
    def given(self) -> dict[str, str]:
        """The options, for either writer."""
        named = {
            "hoodie.datasource.write.recordkey.field": self.key,
            "hoodie.datasource.write.partitionpath.field": self.partition,
            "hoodie.table.ordering.fields": self.ordering,
        }
        kind = self.options.get(_TYPE, self.generator)
        return {
            **_BOTH,
            **{name: value for name, value in named.items() if value},
            _TYPE: kind,
            **({_CLASS: _CLASSES[kind]} if kind in _CLASSES else {}),
            "hoodie.write.table.version": self.version,
            **self.options,
        }


class Writer(Protocol):
    """Somebody who writes a table with Hudi's options."""

    def __call__(self, operation: str, rows: pa.Table, path: Path, shape: Shape) -> None:
        """Run an operation, on a new table where there is none."""
        ...


def ours(operation: str, rows: pa.Table, path: Path, shape: Shape) -> None:
    """Write with this project."""
    options = {**shape.given, **_OURS, "hoodie.datasource.write.operation": operation}
    hudi.write(rows, str(path), options=options)


@dataclass(frozen=True)
class HudiSpark:
    """Writes with Hudi's own Spark runtime."""

    engine: Engine

    def __call__(self, operation: str, rows: pa.Table, path: Path, shape: Shape) -> None:
        """Run an operation."""
        options = {**shape.given, **_SPARK, "hoodie.datasource.write.operation": operation}
        self.engine.save(rows, path, options)


def name_of(write: Writer) -> str:
    """A folder's name for the table of a writer."""
    return "ours" if write is ours else "theirs"


def insert_all(write: Writer, path: Path, shape: Shape, batches: Iterable[pa.Table]) -> Path:
    """Make a table of batches, each of which becomes files of its own; return its path."""
    for rows in batches:
        write("insert", rows, path, shape)
    return path


def plain_rows(batches: Iterable[pa.Table]) -> list[dict[str, Any]]:
    """Rows of batches as Python's values, with nulls for columns that a batch lacks."""
    return [row for batch in batches for row in batch.to_pylist()]
