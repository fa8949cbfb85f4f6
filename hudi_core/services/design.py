"""What a new table is, from its columns and a user's options.

Nothing is read or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.merge_rules import merge_rules
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.resolve import resolve_table_config
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.support import require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.engine.choice import arrow_schema, engine_for, is_spark_schema
from hudi_core.errors import InvalidOptionError, RecordKeyError, SchemaError
from hudi_core.keygen import require_key_columns
from hudi_core.keygen.foreign_keys import require_consent
from hudi_core.metadata.partitions.registry import enabled_partitions
from hudi_core.plugin.capability import table_needs
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.rows.deciding import require_delete_markers, require_merge_columns
from hudi_core.schema.table_schema import META_COLUMNS, TableSchema, is_column
from hudi_core.services.opening import takes_empty_partitions
from hudi_core.services.placement import with_placement
from hudi_core.write.key_proof import without_idle_forms

SchemaLike = Any
"""A schema of Arrow, Spark or polars, or a frame or table that has one."""

_SHOWN: Final = 80
"""Letters of a wrong argument in its error."""


def as_arrow_schema(schema: SchemaLike) -> pa.Schema:
    """Return the schema as Arrow's; of a frame, without reading its rows."""
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
            f"A schema of type {type(schema).__qualname__} cannot be used: {error.what}",
            "Give a pyarrow.Schema, a Spark StructType, or a frame that has the columns.",
        ) from error


def design_table(
    base_path: str, schema: pa.Schema, options: Mapping[str, str]
) -> tuple[TableConfig, TableSchema]:
    """Design of a new table, without reading or writing its path."""
    own = pa.schema([field for field in schema if field.name not in META_COLUMNS])
    given = dict(options)
    if not TableKeys.name.is_given(given):
        given[TableKeys.name.key] = base_path.rsplit("/", 1)[-1]
    table_schema = TableSchema.create(own)
    if SchemaConfig.local_timestamps.read(given):
        table_schema = table_schema.with_local_timestamps()
    config = resolve_table_config(given, None)
    _require_columns(config, table_schema)
    require_merge_columns(merge_rules(config), table_schema)
    require_delete_markers(merge_rules(config), table_schema)
    config = without_idle_forms(config, table_schema)
    require_key_columns(config, table_schema)
    require_consent(config, table_schema, given)
    config = replace(
        config,
        create_schema=table_schema.to_avro(config.name),
        last_column_id=table_schema.last_column_id,
        field_ids=table_schema.field_ids(),
    )
    require_writable_table(config, base_path)
    metadata = MetadataConfig.from_options(given)
    if metadata.enabled:
        enabled_partitions(metadata, config)
    # a missing plugin, or one that cannot hold such a table, is refused before anything is written
    host = FormatHost.load(FormatRegistry(), config.table_format)
    host.require(*table_needs(config))
    host.check_options(given)
    host.check_schema(config, table_schema, None)
    config = with_placement(config, base_path, host)
    return replace(config, takes_empty_partitions=takes_empty_partitions(host)), table_schema


def _require_columns(config: TableConfig, schema: TableSchema) -> None:
    missing = [name for name in config.record_key_fields if not is_column(schema.arrow, name)]
    if missing:
        raise RecordKeyError(
            f"The record key {', '.join(map(repr, missing))} is no column",
            "Name columns of the schema in hoodie.datasource.write.recordkey.field, or fields of "
            f"its structs as in `struct.field`: {', '.join(schema.names)}.",
            columns=missing,
        )
    tops = [name.split(".")[0] for name in config.ordering_fields]
    for key, columns in (
        ("hoodie.datasource.write.partitionpath.field", config.partition_fields),
        ("hoodie.table.ordering.fields", tops),
    ):
        unknown = [name for name in columns if not is_column(schema.arrow, name)]
        if unknown:
            raise SchemaError(
                f"{key} names {', '.join(map(repr, unknown))}, which is no column",
                f"The columns are: {', '.join(schema.names)}.",
                columns=unknown,
            )


def named_options(
    name: str | None,
    record_key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None,
    ordering_field: str | Sequence[str] | None,
    table_format: str | Sequence[str] | None,
) -> dict[str, str]:
    """The arguments of a new table as options."""
    named = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": _joined("record_key", record_key),
        "hoodie.datasource.write.partitionpath.field": _joined("partition_by", partition_by),
        "hoodie.table.ordering.fields": _joined("ordering_field", ordering_field),
        "hoodie.table.format": _joined("format", table_format),
    }
    return {key: value for key, value in named.items() if value is not None}


def _joined(argument: str, names: object) -> str | None:
    if names is None or isinstance(names, str):
        return names
    # a set has no order, in which a key would be made
    has_order = isinstance(names, Iterable) and not isinstance(names, Set | Mapping)
    given: list[Any] = list(names) if isinstance(names, Iterable) and has_order else []
    if not has_order or not all(isinstance(name, str) for name in given):
        raise InvalidOptionError(
            argument,
            repr(names)[:_SHOWN],
            "it is no name, nor a list of names",
            f'Pass names as strings: {argument}="id", or {argument}=["id", "day"].',
        )
    return ",".join(given)
