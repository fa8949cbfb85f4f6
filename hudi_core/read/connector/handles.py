"""What a connector calls tables and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.errors import MetastoreEntryError
from hudi_core.metastore.catalog import MetastoreTable


class TableName(NamedTuple):
    """A table's schema, which Hive calls a database, and its own name."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


class QueryKind(StrEnum):
    """What a scan reads of a table."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A table that is to be scanned.

    ``name`` is the name in a metastore, ``None`` for a table found by its path; ``kind`` is what a
    scan reads by default.
    """

    base_path: str
    name: TableName | None
    kind: QueryKind
    format: str
    partition_columns: tuple[str, ...]
    entry: MetastoreTable | None = None

    def as_stored(self, config: TableConfig) -> TableHandle:
        """This handle of the table that is at its place now."""
        if (config.table_format, config.partition_fields) == (self.format, self.partition_columns):
            return self
        return replace(self, format=config.table_format, partition_columns=config.partition_fields)


@dataclass(frozen=True, slots=True)
class ColumnHandle:
    """A column of a table.

    ``is_hidden`` columns are read only where they are named; ``is_stored`` ones are in the files,
    not concluded from where a row is.
    """

    name: str
    type: pa.DataType
    comment: str | None = None
    is_hidden: bool = False
    is_partition_key: bool = False
    is_stored: bool = True


_BASE_FILES: Final = frozenset(
    {
        "org.apache.hudi.hadoop.HoodieParquetInputFormat",
        "org.apache.hudi.hadoop.HoodieHFileInputFormat",
        "com.uber.hoodie.hadoop.HoodieInputFormat",
    }
)
_REAL_TIME: Final = frozenset(
    {
        "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
        "org.apache.hudi.hadoop.realtime.HoodieHFileRealtimeInputFormat",
        "com.uber.hoodie.hadoop.realtime.HoodieRealtimeInputFormat",
    }
)
_AS_BASE_FILES: Final = "hoodie.query.as.ro.table"
_FORMAT_KEYS: Final = ("table_type", "spark.sql.sources.provider")
_HUDI: Final = "hudi"
PLACE_KEY: Final = "hudi.base.path"
"""Parameter of an entry that names the table where the location is something of its format's."""


def require_table(entry: MetastoreTable) -> str | None:
    """The format that an entry declares; ``None`` for Hudi's own."""
    declared = _declared(entry.parameters)
    is_hudi = entry.input_format in _BASE_FILES | _REAL_TIME
    if is_hudi or declared == _HUDI:
        return None
    if declared is None or entry.table_type == "VIRTUAL_VIEW":
        raise MetastoreEntryError(
            f"{entry.database}.{entry.name}",
            f"is no table of this project, but {entry.table_type or 'something'} with the input "
            f"format {entry.input_format or '(none)'}",
            "Read it by the connector of its kind.",
        )
    return declared


def kind_of(entry: MetastoreTable, *, has_logs: bool) -> QueryKind:
    """What a scan of an entry reads."""
    as_base_files = entry.serde_parameters.get(_AS_BASE_FILES, "").lower() == "true"
    if has_logs and (as_base_files or entry.input_format in _BASE_FILES):
        return QueryKind.READ_OPTIMIZED
    return QueryKind.SNAPSHOT


def place_of(entry: MetastoreTable) -> str:
    """Where the table of an entry is."""
    place = entry.parameters.get(PLACE_KEY) or entry.location or entry.serde_parameters.get("path")
    if not place:
        raise MetastoreEntryError(
            f"{entry.database}.{entry.name}", "has no location", "Register the table again."
        )
    return place


def _declared(parameters: Mapping[str, str]) -> str | None:
    for key in _FORMAT_KEYS:
        if found := parameters.get(key, "").strip().lower():
            return found
    return None
