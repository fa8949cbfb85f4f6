"""Schemas, tables and columns of a connector."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.connector import ConnectorConfig
from hudi_core.config.kinds import TableType
from hudi_core.errors import InvalidOptionError, MetastoreEntryError, NotATableError
from hudi_core.metastore.catalog import Metastore
from hudi_core.read.connector.handles import (
    ColumnHandle,
    QueryKind,
    TableHandle,
    TableName,
    kind_of,
    place_of,
    require_table,
)
from hudi_core.read.connector.splits import Split
from hudi_core.read.plan import read_schema
from hudi_core.schema.arrow_types import DOC
from hudi_core.storage.location import PathLike, location_of
from hudi_core.table_handle import OpenTable

OpenPath = Callable[[str], OpenTable]
"""Opens the table at a path, or raises ``NotATableError``."""
OpenMetastore = Callable[[], Metastore]
"""Opens a connection of its own to the metastore."""


@dataclass(frozen=True)
class ConnectorMetadata:
    """What there is to query."""

    open_path: OpenPath
    open_metastore: OpenMetastore | None
    config: ConnectorConfig

    def list_schemas(self) -> list[str]:
        """Names of the schemas, which Hive calls databases."""
        with closing(self.metastore()) as metastore:
            return list(metastore.databases())

    def list_tables(self, schema: str | None = None) -> list[TableName]:
        """Names of the tables of one schema, or of all.

        Whatever kind of table they are.
        """
        with closing(self.metastore()) as metastore:
            schemas = metastore.databases() if schema is None else [schema]
            return [TableName(one, name) for one in schemas for name in metastore.tables(one)]

    def list_views(self, schema: str | None = None) -> list[TableName]:
        """None: there are no views."""
        del schema
        return []

    def table(self, schema: str, name: str) -> TableHandle | None:
        """The table of a name; ``None`` where the metastore has none.

        ``MetastoreEntryError`` also means that the entry describes another table than the one at
        its path.
        """
        with closing(self.metastore()) as metastore:
            entry = metastore.table(schema, name)
        if entry is None:
            return None
        declared, place = require_table(entry), place_of(entry)
        called = TableName(entry.database, entry.name)
        try:
            opened = self.open_path(place)
        except NotATableError as error:
            what = "" if declared is None else f" of the format {declared}"
            raise MetastoreEntryError(
                str(called),
                f"is a table{what} at {place}, where there is no timeline of Hudi's",
                "Read it by the connector of its format, or adopt it.",
            ) from error
        config = opened.client.config
        if declared is not None and declared != config.table_format:
            raise MetastoreEntryError(
                str(called),
                f"is registered as a table of the format {declared}, and the table at {place} has "
                f"the format {config.table_format}",
                "Bring the metastore up to date with the table.",
            )
        kind = kind_of(entry, has_logs=config.table_type is TableType.MERGE_ON_READ)
        return TableHandle(
            opened.client.base_path,
            called,
            kind,
            config.table_format,
            config.partition_fields,
            entry,
        )

    def table_at(self, path: PathLike) -> TableHandle:
        """The table at a path."""
        client = self.open_path(location_of(path)).client
        config = client.config
        return TableHandle(
            client.base_path, None, QueryKind.SNAPSHOT, config.table_format, config.partition_fields
        )

    def columns(self, handle: TableHandle) -> tuple[ColumnHandle, ...]:
        """The columns of a table.

        The meta columns, its own, and the hidden ones.
        """
        opened = self.open_path(handle.base_path)
        handle = handle.as_stored(opened.client.config)
        schema = read_schema(opened.client, opened.timeline())
        hide = {name.lower() for name in self.config.columns_to_hide}
        keys = set(handle.partition_columns)
        stored = [_column(field, hide, keys) for field in schema]
        hidden = [
            ColumnHandle(name, one.field.type, is_hidden=True, is_stored=False)
            for name, one in HIDDEN_COLUMNS.items()
            if handle.partition_columns or not one.needs_partitions
        ]
        return (*stored, *hidden)

    def metastore(self) -> Metastore:
        """A connection to the metastore, to be closed.

        The caller closes it.
        """
        if self.open_metastore is None:
            raise InvalidOptionError(
                ConnectorConfig.metastore_uris.key,
                None,
                "tables are asked for by name, and it is not given",
                "Give thrift://HOST:PORT of the Hive metastore, or the path of the table.",
            )
        return self.open_metastore()


def _column(field: pa.Field, hide: Collection[str], keys: Collection[str]) -> ColumnHandle:
    comment = (field.metadata or {}).get(DOC)
    return ColumnHandle(
        field.name,
        field.type,
        None if not comment else comment.decode(),
        is_hidden=field.name.lower() in hide,
        is_partition_key=field.name in keys,
    )


# --- columns that are not in the rows ------------------------------------------------------------


_PATH: Final = pa.field("$path", pa.string())
_SIZE: Final = pa.field("$file_size", pa.int64())
_TIME: Final = pa.field("$file_modified_time", pa.timestamp("ms", "UTC"))
_PARTITION: Final = pa.field("$partition", pa.string())


@dataclass(frozen=True)
class HiddenColumn:
    """A column that is read only where it is named.

    ``value`` is the same for all rows of a split; it may ask when the file was last changed. With
    ``needs_partitions`` only partitioned tables have the column.
    """

    field: pa.Field
    value: Callable[[Split, Callable[[], dt.datetime | None]], Any]
    needs_partitions: bool = False

    def scalar(self, split: Split, modified: Callable[[], dt.datetime | None]) -> pa.Scalar:
        """Its value in the rows of a split, as Arrow has it."""
        return pa.scalar(self.value(split, modified), self.field.type)


HIDDEN_COLUMNS: Final = {
    one.field.name: one
    for one in (
        HiddenColumn(_PATH, lambda split, _: split.path),
        HiddenColumn(_SIZE, lambda split, _: split.file_size),
        HiddenColumn(_TIME, lambda _, modified: modified()),
        HiddenColumn(_PARTITION, lambda split, _: split.partition, needs_partitions=True),
    )
}
"""By name, as Trino's connector for Hudi has them."""
