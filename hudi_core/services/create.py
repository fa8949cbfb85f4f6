"""Making a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_core.config.catalog import FORMAT_PREFIX
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.resolve import resolve_table_config
from hudi_core.config.storage import FSYNC
from hudi_core.config.table import KeyGeneratorType, TableConfig
from hudi_core.config.table_keys import NAME
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import arrow_schema, engine_for, is_spark_schema
from hudi_core.errors import AlreadyExistsError, NotATableError, RecordKeyError, SchemaError
from hudi_core.keygen import refuse_unfit_moments
from hudi_core.metadata.preparation import prepare
from hudi_core.model.files import BasePath
from hudi_core.model.protocols import Storage
from hudi_core.model.schema import META_COLUMNS, TableSchema
from hudi_core.plugin.capability import table_needs
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.services.drop import empty_table
from hudi_core.services.opening import open_table
from hudi_core.storage.location import parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.properties_file import (
    PROPERTIES_PATH,
    read_properties,
    update_properties,
    write_new,
)
from hudi_core.txn.markers import TEMP_FOLDER
from hudi_core.txn.open_table import OpenTable
from hudi_core.txn.table_lock import LOCK_FILES, LOCK_FOLDER, lock_at
from hudi_core.write.deciding import check_deciding_columns, check_markers

SchemaLike = Any
"""A schema of Arrow, Spark or polars, or a frame or table that has one."""


def as_arrow_schema(schema: SchemaLike) -> pa.Schema:
    """Return the schema as Arrow's; of a frame, without reading its rows.

    Raises
    ------
    SchemaError
        It is no schema, and has none.
    """
    if isinstance(schema, pa.Schema):
        return schema
    if is_spark_schema(schema):
        return arrow_schema(schema)
    if hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__"):
        return pa.schema(schema)
    try:
        return engine_for(schema).schema_of(schema)
    except SchemaError as error:
        raise SchemaError(
            f"A schema of type {type(schema).__qualname__} cannot be used",
            "Give a pyarrow.Schema, a Spark StructType, or a frame that has the columns.",
        ) from error


def create_table(path: str, schema: pa.Schema, options: Mapping[str, str]) -> OpenTable:
    """Create an empty table and open it.

    Parameters
    ----------
    schema
        Columns; meta columns in it are ignored.
    options
        Hudi options.

    Raises
    ------
    NotATableError
        The path holds something already.
    SchemaError, RecordKeyError, ConfigError, PluginError
        What was asked for cannot be; nothing is written.
    """
    base_path = BasePath(parse_location(path).uri)
    design, _ = design_table(base_path, schema, options)
    config = WriteConfig.from_options(options)
    storage = _storage(base_path, options)
    # before the lock, whose file would be left among what is not ours
    _refuse_occupied(base_path, storage)
    with lock_at(base_path, storage, config).held():
        return _new_table(storage, base_path, design, options)


def replace_table(
    path: str, schema: pa.Schema, options: Mapping[str, str], keep: str | None = None
) -> OpenTable:
    """Drop the table at a path and create an empty one in its place, under one hold of its lock.

    Nobody else can make a table there in between.

    Parameters
    ----------
    schema, options
        See :func:`create_table`.
    keep
        See :func:`~hudi_core.services.drop.empty_table`.

    Raises
    ------
    NotATableError, CorruptMetadataError
        There is no table, or a damaged one; nothing is deleted.
    ConcurrentWriterError, LockError
        Another writer is at work; nothing is deleted.
    SchemaError, RecordKeyError, ConfigError, PluginError
        What was asked for cannot be; nothing is deleted.
    """
    base_path = BasePath(parse_location(path).uri)
    design, _ = design_table(base_path, schema, options)
    config = WriteConfig.from_options(options)
    storage = _storage(base_path, options)
    read_properties(storage)  # there must be a table; what it is does not matter any more
    with lock_at(base_path, storage, config).held():
        empty_table(storage, base_path, config, keep)
        return _new_table(storage, base_path, design, options)


def _storage(base_path: BasePath, options: Mapping[str, str]) -> Storage:
    return open_storage(base_path, StorageOptions.from_options(options), fsync=FSYNC.read(options))


def _new_table(
    storage: Storage, base_path: BasePath, design: TableConfig, options: Mapping[str, str]
) -> OpenTable:
    try:
        write_new(storage, design.to_properties())
    except AlreadyExistsError as error:
        raise _occupied(base_path) from error
    opened = open_table(base_path, options)
    receipt = opened.host.initialize(opened.client, create=True)
    if receipt.location is not None:
        key = f"{FORMAT_PREFIX}{opened.host.name}.location"
        # as the user wrote it, so that the same options open the table again
        update_properties(storage, {key: options.get(key, receipt.location)})
        opened = open_table(base_path, options)
    config = MetadataConfig.from_options(options)
    if not config.enabled:
        return opened
    prepare(opened.client, config, opened.client.timeline())
    return open_table(base_path, options)


def design_table(
    base_path: str, schema: pa.Schema, options: Mapping[str, str]
) -> tuple[TableConfig, TableSchema]:
    """Return what a new table would be; nothing is read or written at its path.

    Raises
    ------
    SchemaError, RecordKeyError, ConfigError, PluginError
        What was asked for cannot be.
    """
    own = pa.schema([field for field in schema if field.name not in META_COLUMNS])
    given = dict(options)
    if not NAME.is_given(given):
        given[NAME.key] = base_path.rsplit("/", 1)[-1]
    table_schema = TableSchema.create(own)
    config = resolve_table_config(given, None)
    _check_columns(config, own)
    check_deciding_columns(config.merge_rules, table_schema)
    check_markers(config.merge_rules, table_schema)
    refuse_unfit_moments(config, table_schema)
    config = replace(
        config,
        create_schema=table_schema.to_avro(config.name),
        last_column_id=table_schema.last_column_id,
        field_ids=table_schema.field_ids(),
    )
    config.validate_for_write(base_path)
    # a missing plugin, or one that cannot hold such a table, is told before anything is written
    host = FormatHost.load(FormatRegistry(), config.table_format)
    host.require(*table_needs(config))
    host.check_schema(config, table_schema)
    return config, table_schema


def _occupied(base_path: str) -> NotATableError:
    return NotATableError(
        base_path, "holds a table already", "Open it with Table.open, or use another path."
    )


def _refuse_occupied(base_path: str, storage: Storage) -> None:
    if storage.head(PROPERTIES_PATH) is not None:
        raise _occupied(base_path)
    # rows that wait for their table, and the lock of a dropped one, are nothing that would be lost
    harmless = (f"{TEMP_FOLDER}/", f"{LOCK_FOLDER}/")
    files = storage.list("", recursive=True)
    others = (file for file in files if file.path not in LOCK_FILES)
    strange = next((file for file in others if not file.path.startswith(harmless)), None)
    if strange is not None:
        raise NotATableError(
            base_path,
            f"is not a Hudi table and holds other files ({strange.path})",
            "Use an empty folder.",
        )


def _check_columns(config: TableConfig, schema: pa.Schema) -> None:
    names = set(schema.names)
    missing = [name for name in config.record_key_fields if name not in names]
    if missing:
        raise RecordKeyError(
            f"The record key {', '.join(map(repr, missing))} is no column",
            "Name columns of the schema in hoodie.datasource.write.recordkey.field: "
            f"{', '.join(schema.names)}.",
            columns=missing,
        )
    if config.keygen_type is KeyGeneratorType.NON_PARTITION and config.partition_fields:
        raise SchemaError(
            "Partition columns are given together with the NON_PARTITION key generator",
            "Drop one of them.",
        )
    tops = [name.split(".")[0] for name in config.ordering_fields]
    for key, columns in (
        ("hoodie.datasource.write.partitionpath.field", config.partition_fields),
        ("hoodie.table.ordering.fields", tops),
    ):
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise SchemaError(
                f"{key} names {', '.join(map(repr, unknown))}, which is no column",
                f"The columns are: {', '.join(schema.names)}.",
                columns=unknown,
            )
