"""Record keys and partition paths, made from columns of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.key_generators import KEY_GENERATORS, KeyGeneratorForm
from hudi_core.config.key_settings import key_form
from hudi_core.config.kinds import TIMESTAMP_FIELD, KeyGeneratorType
from hudi_core.config.table import TableConfig
from hudi_core.errors import InvalidOptionError, PartitionValueError, RecordKeyError
from hudi_core.keygen.ambiguity import KeyAmbiguity
from hudi_core.keygen.base import (
    PLAIN,
    FieldStrings,
    KeyColumn,
    KeyColumns,
    KeyGenerator,
    ValueStrings,
    is_missing,
    joined_paths,
    no_paths,
)
from hudi_core.keygen.named import named_keys
from hudi_core.keygen.timestamp import TimeStrings
from hudi_core.model.key_form import KeyForm
from hudi_core.schema.table_schema import PARTITION_PATH, RECORD_KEY, TableSchema, is_column
from hudi_core.storage.partition_path import PartitionPathCodec

__all__ = [
    "KeyGenerator",
    "bare_key_field",
    "brings_keys",
    "key_ambiguity",
    "key_generator",
    "path_codec",
    "require_key_columns",
]

_KEY = "hoodie.table.keygenerator.type"


def key_generator(
    config: TableConfig, schema: TableSchema, *, knows_partitions: bool = True
) -> KeyGenerator:
    """Return the key generator of a table.

    The batches must have been cast to ``schema``. With the meta column of the record key in it, a
    table without a record key takes the keys from there. Without ``knows_partitions`` the path is
    empty.
    """
    partition, types = (
        (config.partition_fields, config.field_types) if knows_partitions else ((), ())
    )
    if brings_keys(config, schema.names):
        paths_only = [name for name in schema.names if name != RECORD_KEY]
        plain = replace(schema, arrow=pa.schema([schema.arrow.field(n) for n in paths_only]))
        if not all(is_column(plain.arrow, name) for name in partition):
            return StoredKeys(None)
        return StoredKeys(key_generator(config, plain, knows_partitions=knows_partitions))
    if config.named_keygen is not None:
        columns = KeyColumns.resolve(schema, config.record_key_fields, partition, key_form(config))
        return named_keys(config.named_keygen, columns, path_codec(config))
    form = _writable_form(config.keygen_type)
    columns = KeyColumns.resolve(
        schema,
        config.record_key_fields,
        partition,
        key_form(config),
        are_whole=config.virtual_keys,
    )
    if knows_partitions and not form.fits(columns.record_key, columns.partition):
        raise InvalidOptionError(
            _KEY,
            config.keygen_type.value,
            f"it {form.limits}",
            f"Use {KeyGeneratorType.COMPLEX.value}, or leave it out.",
        )
    fields = [
        _strings(config, schema, column, columns.form, field_type)
        for column, field_type in zip(columns.partition, types, strict=True)
    ]
    names_one_key = form.may_name_one_key and not config.complex_keygen_new_encoding
    # none for who asks for paths alone
    between = config.key_concatenator if columns.record_key else None
    return ColumnKeys(
        columns, fields, path_codec(config), names_one_key=names_one_key, between=between
    )


def key_ambiguity(config: TableConfig, schema: TableSchema) -> KeyAmbiguity | None:
    """Which record keys of a table several rows could have.

    ``None`` where each is of one row; and where a key generator of another distribution makes them,
    which may take different values for one key.
    """
    is_made_here = config.record_key_fields and config.keygen_type in KEY_GENERATORS
    if not is_made_here or config.key_concatenator is not None:
        return None
    columns = KeyColumns.resolve(schema, config.record_key_fields, (), key_form(config))
    return KeyAmbiguity.of_columns(columns, schema)


def require_key_columns(config: TableConfig, schema: TableSchema) -> None:
    """Refuse a new table whose columns make no keys or paths."""
    KeyColumns.resolve(schema, config.record_key_fields, config.partition_fields, PLAIN)
    for name, kind in zip(config.partition_fields, config.field_types, strict=False):
        field = schema.field(name)
        if config.time_based is not None and kind == TIMESTAMP_FIELD and field is not None:
            TimeStrings(KeyColumn(name, name, ()), field.type, config.time_based, new=True)


def path_codec(config: TableConfig) -> PartitionPathCodec:
    """Codec of a table's partition paths."""
    levels = None
    if config.time_based is not None:
        folders = config.time_based.output.levels
        levels = [folders if each == TIMESTAMP_FIELD else 1 for each in config.field_types]
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
            f"the table does not record how partitions are made of {column.name}",
            "Set hoodie.keygen.timebased.timestamp.type and "
            "hoodie.keygen.timebased.output.dateformat.",
        )
    return TimeStrings(column, field.type, config.time_based)


def bare_key_field(config: TableConfig) -> str | None:
    """Return the top-level column that alone forms the record keys.

    Its values, as strings, are the keys. ``None`` if keys are made otherwise, or may have been.
    """
    fields = config.record_key_fields
    # writers of one table may have differed in what a complex key of one field is
    if config.keygen_type not in KEY_GENERATORS or config.may_name_one_key:
        return None
    return fields[0] if len(fields) == 1 and "." not in fields[0] else None


def _writable_form(kind: KeyGeneratorType) -> KeyGeneratorForm:
    form = KEY_GENERATORS.get(kind)
    if form is None:
        raise InvalidOptionError(
            _KEY,
            kind.value,
            "tables with this key generator are read, not written",
            f"Use {', '.join(each.value for each in KEY_GENERATORS)}.",
        )
    return form


def _strings(
    config: TableConfig, schema: TableSchema, column: KeyColumn, form: KeyForm, field_type: str
) -> FieldStrings:
    if field_type == TIMESTAMP_FIELD:
        return _time_strings(config, schema, column)
    return ValueStrings(column, form)


# --- record keys that rows carry ------------------------------------------------------------------

# A table without a record key generates its keys, so that no column has them. Rows that were read
# from it have them in their meta columns, as in Hudi: written back, they are updates.


def brings_keys(config: TableConfig, names: list[str]) -> bool:
    """Whether rows with these columns carry generated record keys."""
    return not config.record_key_fields and RECORD_KEY in names


class StoredKeys:
    """The record key and partition path with which a row was read."""

    def __init__(self, made: KeyGenerator | None) -> None:
        self._made = made

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """The key that each row was read with."""
        keys = batch.column(RECORD_KEY)
        missing = pc.sum(is_missing(keys), min_count=0).as_py()
        if missing:
            raise RecordKeyError(
                f"The column {RECORD_KEY} is null or empty in {missing} of {len(keys)} rows",
                f"Rows that were read from the table have a key; insert new rows by themselves, "
                f"without the column {RECORD_KEY}.",
                columns=(RECORD_KEY,),
                rows=missing,
            )
        return keys

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """The partition that each row was read from."""
        made = None if self._made is None else self._made.partition_paths(batch)
        if PARTITION_PATH not in batch.schema.names:
            if made is None:
                raise ValueError("neither the columns nor the meta column of the path were staged")
            return made
        stored = batch.column(PARTITION_PATH)
        others = 0 if made is None else _count_of_others(stored, made)
        if others or stored.null_count:
            raise PartitionValueError(
                f"{others or stored.null_count} of {len(stored)} rows do not belong to the "
                f"partition that their column {PARTITION_PATH} names",
                "Without a record key a row stays in its partition: delete it there, and insert it "
                f"without the column {RECORD_KEY}. Rows of another table are written with the "
                "operation insert.",
                rows=others or stored.null_count,
            )
        return stored.dictionary_encode()


def _count_of_others(stored: pa.StringArray, made: pa.DictionaryArray) -> int:
    differs = pc.not_equal(stored, made.dictionary_decode())
    return int(pc.sum(pc.fill_null(differs, True), min_count=0).as_py())


# --- columns of keys ------------------------------------------------------------------------------


class ColumnKeys:
    """Keys and paths of columns, as Hudi's key generators make them.

    With ``names_one_key`` the key of one field is ``f:v`` and not the bare value; that of several
    is always ``f1:v1,f2:v2``, unless ``between`` separates the values instead. ``fields`` is empty
    without partitions.
    """

    def __init__(
        self,
        columns: KeyColumns,
        fields: Sequence[FieldStrings],
        codec: PartitionPathCodec,
        *,
        names_one_key: bool,
        between: str | None = None,
    ) -> None:
        self._columns, self._fields, self._codec = columns, tuple(fields), codec
        self._between = between
        self._bare = len(columns.record_key) == 1 and not names_one_key

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row."""
        if self._between is not None:
            return self._columns.concatenated_key(batch, self._between)
        return self._columns.bare_key(batch) if self._bare else self._columns.joined_key(batch)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row."""
        return joined_paths(batch, self._fields, self._codec) if self._fields else no_paths(batch)
