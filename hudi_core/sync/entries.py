"""The entries that a table is to have in a metastore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from hudi_core.config.kinds import TableType
from hudi_core.config.read import ReadConfig
from hudi_core.config.sync import GlueConfig, SyncConfig, TableStrategy
from hudi_core.config.table import TableConfig
from hudi_core.errors import UnsupportedTableError
from hudi_core.metastore.catalog import MetastoreColumn, MetastoreTable
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.model.registration import Registration
from hudi_core.read.connector.handles import PLACE_KEY
from hudi_core.schema.arrow_types import DOC
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.sync.hive_types import hive_type
from hudi_core.sync.partition_values import PartitionValues
from hudi_core.sync.spark_properties import spark_properties
from hudi_core.table_handle import OpenTable

_HADOOP: Final = "org.apache.hudi.hadoop."
_BASE_FILES: Final = f"{_HADOOP}HoodieParquetInputFormat"
_REAL_TIME: Final = f"{_HADOOP}realtime.HoodieParquetRealtimeInputFormat"
_FORMER: Final = {
    _BASE_FILES: "com.uber.hoodie.hadoop.HoodieInputFormat",
    _REAL_TIME: "com.uber.hoodie.hadoop.realtime.HoodieRealtimeInputFormat",
}
_OUTPUT: Final = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_STRATEGY_KEY: Final = "hudi.storage.strategy"
_AS_BASE_FILES: Final = "hoodie.query.as.ro.table"
_ATHENA_LISTING: Final = "hudi.metadata-listing-enabled"
_READ_OPTIMIZED: Final = "read_optimized"


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """A table, and how it is to be registered.

    ``glue`` is set where it is registered in Glue. ``schema`` has the meta columns first. ``place``
    spells places of files as the metastore does.
    """

    opened: OpenTable
    config: SyncConfig
    glue: GlueConfig | None
    registration: Registration
    schema: pa.Schema
    values: PartitionValues
    place: Callable[[str], str]

    @property
    def table_config(self) -> TableConfig:
        """The table's properties."""
        return self.opened.client.config

    @property
    def database(self) -> str:
        """The database that its entries are in."""
        of_glue = None if self.glue is None else self.glue.database
        # metastores know names in lower case alone
        return (of_glue or self.config.database or self.table_config.database or "default").lower()

    @property
    def name(self) -> str:
        """The name of its entry, or the begin of several names."""
        of_glue = None if self.glue is None else self.glue.table
        return (of_glue or self.config.table or self.table_config.name).lower()

    @property
    def has_partitions(self) -> bool:
        """Whether entries of partitions belong to it."""
        return self.registration.is_hudi and bool(self.values.columns)

    @property
    def recreates(self) -> bool:
        """Whether an entry that cannot be changed is made again."""
        return self.config.recreates or (self.glue is not None and self.glue.recreates)

    def partition_place(self, path: str) -> str:
        """Where a partition is, as the metastore spells it."""
        base = self.place(self.registration.location)
        return f"{base}/{path}" if path else base


def require_registrable(
    opened: OpenTable, config: SyncConfig, registration: Registration | None
) -> Registration:
    """The registration of a table that may have an entry."""
    base_path, table = opened.client.base_path, opened.client.config
    if registration is None:
        raise UnsupportedTableError(
            base_path,
            f"has the format {table.table_format}, which does not say how metastores know its "
            "tables",
            "Read it by its path.",
        )
    if registration.held_by is not None:
        raise UnsupportedTableError(
            base_path,
            f"is in the catalog {registration.held_by}, whose entry each commit changes itself; a "
            "second entry would fall behind",
            "Read it there; `hudi table validate` shows whether that entry is up to date.",
        )
    is_hidden = registration.is_hudi and not table.placement.is_default
    if is_hidden and not config.takes_hidden_layout:
        raise UnsupportedTableError(
            base_path,
            f"keeps its data files elsewhere ({_STRATEGY_KEY}={table.placement.strategy}), where "
            "Hudi's readers do not look for them: an engine that finds its entry reads no rows",
            f"Set {SyncConfig.takes_hidden_layout.key}=true where only readers of this project "
            "are to find it, or move the files by `hudi table convert --storage default`.",
        )
    return registration


def entries_of(table: SyncedTable) -> tuple[MetastoreTable, ...]:
    """The entries of a table, without what records the last sync."""
    if not table.registration.is_hudi:
        return (_foreign_entry(table),)
    if table.table_config.table_type is not TableType.MERGE_ON_READ:
        return (_entry(table, table.name, _BASE_FILES, as_base_files=False),)
    config, name = table.config, table.name
    if config.strategy is TableStrategy.RO:
        return (_entry(table, name, _BASE_FILES, as_base_files=True),)
    if config.strategy is TableStrategy.RT:
        return (_entry(table, name, _REAL_TIME, as_base_files=False),)
    base_files = name if config.skips_ro_suffix else f"{name}_ro"
    found = [
        _entry(table, base_files, _BASE_FILES, as_base_files=True),
        _entry(table, f"{name}_rt", _REAL_TIME, as_base_files=False),
    ]
    if config.names_snapshot and base_files != name:
        found.append(_entry(table, name, _REAL_TIME, as_base_files=False))
    return tuple(found)


def _entry(
    table: SyncedTable, name: str, input_format: str, *, as_base_files: bool
) -> MetastoreTable:
    """An entry for Hudi's readers."""
    config, keys = table.config, table.values.columns
    place = table.place(table.registration.location)
    serde = {"serialization.format": "1", **dict(config.serde_properties)}
    parameters = dict(config.table_properties)
    if config.as_datasource:
        serde |= {"path": place, _AS_BASE_FILES: str(as_base_files).lower()}
        options = {"path": str(table.opened.client.base_path)}
        if as_base_files:
            options[ReadConfig.query_type.key] = _READ_OPTIMIZED
        parameters |= spark_properties(
            table.schema,
            keys,
            options,
            length=config.schema_length,
            version=config.spark_version,
        )
    if not table.table_config.placement.is_default:
        parameters[_STRATEGY_KEY] = table.table_config.placement.strategy
    if table.glue is not None:
        parameters[_ATHENA_LISTING] = str(table.glue.lists_metadata).upper()
    columns = _columns(table)
    own = set(keys)
    kinds = {column.name: column for column in columns}
    return MetastoreTable(
        database=table.database,
        name=name,
        location=place,
        table_type=_table_type(config),
        input_format=_FORMER[input_format] if config.uses_old_input_format else input_format,
        columns=tuple(_lower(one) for one in columns if one.name not in own),
        partition_columns=tuple(_lower(_partition_column(table, key, kinds)) for key in keys),
        parameters=_owned(parameters, config),
        serde_parameters=serde,
        output_format=_OUTPUT,
        serde=_SERDE,
    )


def _foreign_entry(table: SyncedTable) -> MetastoreTable:
    """An entry in the words of the table's format."""
    registration, config = table.registration, table.config
    place, parameters = table.place(registration.location), dict(registration.parameters)
    if registration.pointer is not None:
        parameters[registration.pointer] = table.place(parameters[registration.pointer])
    parameters[PLACE_KEY] = table.place(table.opened.client.base_path)
    path = {"path": place} if registration.has_path else {}
    return MetastoreTable(
        database=table.database,
        name=table.name,
        location=place,
        table_type=_table_type(config),
        input_format=registration.input_format,
        columns=tuple(_lower(column) for column in _columns(table)),
        parameters=_owned({**dict(config.table_properties), **parameters}, config),
        serde_parameters={
            **dict(config.serde_properties),
            **registration.serde_parameters,
            **path,
        },
        output_format=registration.output_format,
        serde=registration.serde,
    )


def _table_type(config: SyncConfig) -> str:
    return "MANAGED_TABLE" if config.is_managed else "EXTERNAL_TABLE"


def _owned(parameters: Mapping[str, str], config: SyncConfig) -> dict[str, str]:
    return dict(parameters) if config.is_managed else {**parameters, "EXTERNAL": "TRUE"}


def _columns(table: SyncedTable) -> list[MetastoreColumn]:
    config = table.config
    hidden = META_COLUMNS if config.omits_meta_columns else ()
    found = []
    for field in table.schema:
        if field.name in hidden:
            continue
        doc = (field.metadata or {}).get(DOC, b"").decode() if config.comments else ""
        kind = hive_type(field.type, timestamps=config.supports_timestamp)
        found.append(MetastoreColumn(field.name, kind, doc or None))
    return found


def _partition_column(
    table: SyncedTable, name: str, columns: Mapping[str, MetastoreColumn]
) -> MetastoreColumn:
    """A partition column, of strings where paths hold something else than values."""
    config = table.table_config
    transforms = dict(zip(config.partition_fields, config.partition_transforms, strict=True))
    is_value = transforms.get(name) is PartitionTransform.IDENTITY
    if name in columns and is_value:
        return columns[name]
    return MetastoreColumn(name, "string")


def _lower(column: MetastoreColumn) -> MetastoreColumn:
    return replace(column, name=column.name.lower())
