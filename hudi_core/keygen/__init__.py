"""Record keys and partition paths, made from columns of rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hudi_core.config.key_forms import key_form
from hudi_core.config.kinds import (
    TIMESTAMP_FIELD,
    WRITABLE_KEY_GENERATORS,
    KeyGeneratorType,
)
from hudi_core.config.table import TableConfig
from hudi_core.errors import InvalidOptionError
from hudi_core.keygen.base import KeyColumn, KeyColumns, KeyGenerator
from hudi_core.keygen.complex import ComplexKeyGenerator
from hudi_core.keygen.custom import CustomKeyGenerator
from hudi_core.keygen.nonpartitioned import NonpartitionedKeyGenerator
from hudi_core.keygen.partitions import FieldStrings, ValueStrings
from hudi_core.keygen.simple import SimpleKeyGenerator
from hudi_core.keygen.stored import StoredKeys, brings_keys
from hudi_core.keygen.timestamp import TimestampKeyGenerator, TimeStrings
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.storage.partition_path import PartitionPathCodec

__all__ = [
    "KeyGenerator",
    "bare_key_field",
    "brings_keys",
    "key_generator",
    "keys_alone",
    "path_codec",
    "require_timestamp_columns",
]

_KEY = "hoodie.table.keygenerator.type"


def key_generator(config: TableConfig, schema: TableSchema) -> KeyGenerator:
    """Return the key generator of a table.

    Parameters
    ----------
    config
        The table's properties.
    schema
        The table's schema; the batches given to the generator have been cast to it. With the meta
        column of the record key in it, a table without a record key takes the keys from there.

    Raises
    ------
    InvalidOptionError
        Tables with this key generator are read, not written; or it cannot have that many fields.
    RecordKeyError
        The table has no key column of that name, or no record key.
    PartitionValueError
        The table has no partition column of that name.
    SchemaError
        The type of a key or partition column has no text form.
    """
    if brings_keys(config, schema.names):
        paths_only = [name for name in schema.names if name != RECORD_KEY]
        has_columns = {name.split(".")[0] for name in config.partition_fields} <= set(paths_only)
        plain = replace(schema, arrow=pa.schema([schema.arrow.field(n) for n in paths_only]))
        return StoredKeys(key_generator(config, plain) if has_columns else None)
    kind = config.keygen_type
    if kind not in WRITABLE_KEY_GENERATORS:
        raise InvalidOptionError(
            _KEY,
            kind.value,
            "tables with this key generator are read, not written",
            f"Use {', '.join(each.value for each in WRITABLE_KEY_GENERATORS)}.",
        )
    columns = KeyColumns.resolve(
        schema, config.record_key_fields, config.partition_fields, key_form(config)
    )
    if kind is KeyGeneratorType.COMPLEX:
        return ComplexKeyGenerator(
            columns, path_codec(config), not config.complex_keygen_new_encoding
        )
    if kind is KeyGeneratorType.SIMPLE:
        if len(columns.record_key) > 1 or len(columns.partition) > 1:
            raise _wrong_number(kind, "takes one record key field and one partition field")
        return SimpleKeyGenerator(columns, path_codec(config))
    if kind is KeyGeneratorType.TIMESTAMP:
        if len(columns.record_key) > 1 or len(columns.partition) != 1:
            raise _wrong_number(kind, "needs one record key field and one partition field")
        strings = _time_strings(config, schema, columns.partition[0])
        return TimestampKeyGenerator(columns, strings, path_codec(config))
    if kind is KeyGeneratorType.CUSTOM:
        fields: list[FieldStrings] = [
            _time_strings(config, schema, column)
            if field_type == TIMESTAMP_FIELD
            else ValueStrings(column, columns.form)
            for column, field_type in zip(columns.partition, config.partition_types, strict=True)
        ]
        return CustomKeyGenerator(columns, fields, path_codec(config))
    if columns.partition:
        raise _wrong_number(kind, "makes no partitions, and the table has partition fields")
    return NonpartitionedKeyGenerator(columns)


def require_timestamp_columns(config: TableConfig, schema: TableSchema) -> None:
    """Refuse a new table with partition columns whose values are no timestamps.

    Raises
    ------
    SchemaError
        Names the column.
    """
    types = config.partition_types or (TIMESTAMP_FIELD,) * len(config.partition_fields)
    for name, kind in zip(config.partition_fields, types, strict=True):
        field = schema.field(name)
        if config.time_based is not None and kind == TIMESTAMP_FIELD and field is not None:
            TimeStrings(KeyColumn(name, name, ()), field.type, config.time_based, new=True)


def keys_alone(config: TableConfig) -> TableConfig:
    """The configuration for rows of which only the record key is known.

    Its generator makes the same keys, and no partitions.
    """
    kind = config.keygen_type
    if kind is not KeyGeneratorType.COMPLEX:
        kind = KeyGeneratorType.NON_PARTITION
    return replace(
        config, keygen_type=kind, partition_fields=(), partition_types=(), time_based=None
    )


def path_codec(config: TableConfig) -> PartitionPathCodec:
    """Codec of a table's partition paths."""
    levels = None
    if config.time_based is not None:
        types = config.partition_types or (TIMESTAMP_FIELD,)
        folders = config.time_based.output.levels
        levels = [folders if each == TIMESTAMP_FIELD else 1 for each in types]
    return PartitionPathCodec(
        config.partition_fields,
        config.hive_style,
        config.url_encode,
        levels,
        config.takes_empty_partitions,
    )


def _time_strings(config: TableConfig, schema: TableSchema, column: KeyColumn) -> TimeStrings:
    field = schema.field(column.name)
    if config.time_based is None or field is None:
        raise InvalidOptionError(
            _KEY,
            config.keygen_type.value,
            f"the table does not tell how partitions are made of {column.name}",
            "Set hoodie.keygen.timebased.timestamp.type and "
            "hoodie.keygen.timebased.output.dateformat.",
        )
    return TimeStrings(column, field.type, config.time_based)


def bare_key_field(config: TableConfig) -> str | None:
    """Return the top-level column that alone forms the record keys.

    Its values, as strings, are the keys. ``None`` if keys are made otherwise, or may have been.
    """
    kinds = (
        KeyGeneratorType.SIMPLE,
        KeyGeneratorType.NON_PARTITION,
        KeyGeneratorType.TIMESTAMP,
        KeyGeneratorType.CUSTOM,
    )
    fields = config.record_key_fields
    # writers of one table may have differed in what a complex key of one field is
    if config.keygen_type not in kinds or len(fields) != 1 or "." in fields[0]:
        return None
    return fields[0]


def _wrong_number(kind: KeyGeneratorType, reason: str) -> InvalidOptionError:
    return InvalidOptionError(
        _KEY, kind.value, f"it {reason}", f"Use {KeyGeneratorType.COMPLEX.value}, or leave it out."
    )
