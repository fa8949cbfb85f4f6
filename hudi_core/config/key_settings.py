"""How a table makes keys and paths: chosen, stored and compared.

Virtual record keys are those of RFC-21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from hudi_core.config.extension_points import (
    KEY_GENERATOR_POINT,
    KEYGEN_CLASS_PROPERTY,
    NamedKeyGenerator,
    stored_name,
)
from hudi_core.config.key_generators import (
    KEY_GENERATORS,
    fields_of,
    has_time_based,
    infer_key_generator,
    typed_fields,
)
from hudi_core.config.kinds import FIELD_TYPES, KeyGeneratorType
from hudi_core.config.options import shown_value
from hudi_core.config.stored import (
    Made,
    Property,
    Setting,
    StoredReader,
)
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.time_zone import UTC, stored_zone
from hudi_core.config.timebased import (
    TimeBased,
    TimeKeys,
    chosen_time_based,
    conflicting,
    time_based,
    with_zones_of,
)
from hudi_core.errors import InvalidOptionError, OptionConflictError
from hudi_core.extension.registry import named_by
from hudi_core.model.key_form import KeyForm

_NO_KEY: Final = "keys that are generated when rows are written cannot be made again of a row"
_JAVA: Final = {True: "17", False: "21"}
"""A release of Java for each way of spelling floating-point numbers."""
_GENERATOR_KEYS: Final = (
    TableKeys.key_generator_class,
    TableKeys.key_generator,
    TableKeys.virtual_generator,
)
"""Options that name the key generator, in the order in which they count."""


# --- of a new table -------------------------------------------------------------------------------


def _new_keys(options: Mapping[str, str], made: Made) -> Made:
    columns, virtual = made["record_key_fields"], TableKeys.virtual_columns
    again = virtual.read(options)
    if columns and again and columns != again:
        raise OptionConflictError(virtual.key, ",".join(again), ",".join(columns))
    record_key = columns or again
    partition = TableKeys.partition_path.read(options)
    keygen = _key_generator(options, record_key, partition)
    named = None
    if not isinstance(keygen, KeyGeneratorType):
        named = _named_key_generator(keygen, options, record_key)
        keygen = KeyGeneratorType.USER_PROVIDED
    if keygen is KeyGeneratorType.NON_PARTITION:
        partition = ()  # Hudi's class takes fields, and makes no paths of them
    names, types = fields_of(keygen, partition)
    _require_types(partition, types)
    return {
        "record_key_fields": record_key,
        "partition_fields": names,
        "partition_types": types,
        "keygen_type": keygen,
        "named_keygen": named,
        "time_based": _new_time_based(options, keygen, types),
        "complex_keygen_new_encoding": _new_encoding(options, made["version"]),
    }


def _key_generator(
    options: Mapping[str, str], record_key: tuple[str, ...], partition: tuple[str, ...]
) -> KeyGeneratorType | str:
    by_class = TableKeys.key_generator_class.read(options)
    by_type = TableKeys.key_generator.read(options) or TableKeys.virtual_generator.read(options)
    if by_class and by_type and by_class != by_type:
        raise TableKeys.key_generator.refused(
            str(by_type),
            f"{TableKeys.key_generator_class.key} names a generator of type {by_class}",
            "Give one of the two.",
        )
    inferred = infer_key_generator(record_key, partition)
    chosen = by_class or by_type
    if chosen is None:
        return inferred
    key = next(one for one in _GENERATOR_KEYS if one.find(options) is not None)
    if not isinstance(chosen, KeyGeneratorType):
        return chosen
    if chosen not in KEY_GENERATORS:
        names = (*KEY_GENERATORS, *(each.name for each in KEY_GENERATOR_POINT.installed()))
        raise key.refused(
            options[key.given_name(options)],
            "it is not supported for writing",
            f"Supported: {', '.join(names)}.",
        )
    if chosen is KeyGeneratorType.SIMPLE and not partition:
        chosen = inferred  # as Hudi stores it: keys are the same, and so is the path
    # Hudi's option of the type gives way to the fields; to its class the fields do
    drops_fields = chosen is KeyGeneratorType.NON_PARTITION and by_class is not None
    if not drops_fields and not KEY_GENERATORS[chosen].fits(record_key, partition):
        raise key.refused(
            options[key.given_name(options)],
            f"{len(record_key)} record key and {len(partition)} partition fields do not fit it",
            f"Drop the option; {inferred} fits.",
        )
    return chosen


def _named_key_generator(
    name: str, options: Mapping[str, str], record_key: tuple[str, ...]
) -> NamedKeyGenerator:
    """The key generator that another distribution provides for a new table."""
    given = next(filter(None, (key.find(options) for key in _GENERATOR_KEYS)))
    with named_by(*given):
        named = NamedKeyGenerator.chosen(name, options)
    if not record_key:
        raise TableKeys.key_generator.refused(
            name,
            "it makes keys of the values of rows, and the table has no record key",
            f"Name columns in {TableKeys.record_key_fields.key}.",
        )
    return named


def _require_types(stated: tuple[str, ...], types: tuple[str, ...]) -> None:
    if not set(types) <= set(FIELD_TYPES):
        raise TableKeys.partition_path.refused(
            ",".join(stated),
            "the CUSTOM key generator needs a type for each field, SIMPLE or TIMESTAMP",
            "Write it as city:SIMPLE,ts:TIMESTAMP.",
        )


def _new_time_based(
    options: Mapping[str, str], keygen: KeyGeneratorType, types: tuple[str, ...]
) -> TimeBased | None:
    if has_time_based(keygen, types):
        return chosen_time_based(options)
    for key in TimeKeys.keys:
        key.read(options)  # of no use here, but a typing error is one
    return None


def _new_encoding(options: Mapping[str, str], version: int) -> bool:
    wanted = TableKeys.complex_new_encoding.read(options)
    if wanted and version >= 9:
        raise TableKeys.complex_new_encoding.refused(
            "true",
            f"tables of version {version} always prefix the value with the field",
            "Drop the option, or create a table of version 8.",
        )
    return wanted


def require_possible_keys(config: TableConfig) -> None:
    """Refuse a new table whose virtual keys cannot be."""
    if config.makes_keys and not config.record_key_fields:
        switch = TableKeys.virtual_keys if config.virtual_keys else TableKeys.populate_meta_fields
        raise switch.refused(
            str(config.virtual_keys).lower(),
            f"the table has no record key, and {_NO_KEY}",
            f"Set {TableKeys.record_key_fields.key}, or leave it out.",
        )
    if config.virtual_keys and not config.populate_meta_fields:
        raise TableKeys.virtual_keys.refused(
            "true",
            f"with {TableKeys.populate_meta_fields.key}=false no meta column is stored anyway",
            "Give one of the two.",
        )
    if config.virtual_keys:
        return
    for key, value in (
        (TableKeys.key_concatenator, config.key_concatenator),
        (TableKeys.keeps_virtual_keys, config.keeps_virtual_keys),
    ):
        if value:
            raise key.refused(
                str(value).lower(),
                "it is about virtual keys, which the table does not have",
                f"Set {TableKeys.virtual_keys.key}=true as well, or leave it out.",
            )


def why_unmade(config: TableConfig) -> str | None:
    """Why keys of a table cannot be made; ``None`` if possible."""
    return _NO_KEY if config.makes_keys and not config.record_key_fields else None


# --- of a stored table ----------------------------------------------------------------------------


def _stored_keys(read: StoredReader, made: Made) -> Made:
    record_key = made["record_key_fields"]
    partition = read(TableKeys.partition_path.read)
    by_name = read(TableKeys.key_generator_class.read) or read(TableKeys.key_generator.read)
    named = None
    if isinstance(by_name, str) and not isinstance(by_name, KeyGeneratorType):
        name = stored_name(read.properties.get(KEYGEN_CLASS_PROPERTY))
        named = None if name is None else NamedKeyGenerator.stored(name, read.properties)
        by_name = KeyGeneratorType.USER_PROVIDED
    keygen = by_name or infer_key_generator(record_key, partition)
    partition, types = fields_of(keygen, partition)
    return {
        "partition_fields": partition,
        "partition_types": types,
        "keygen_type": keygen,
        "named_keygen": named,
        "time_based": _stored_time_based(read, keygen, types),
        "complex_keygen_new_encoding": bool(read(ManagedKeys.complex_encoding.read)),
    }


def _stored_time_based(
    read: StoredReader, keygen: KeyGeneratorType, types: tuple[str, ...]
) -> TimeBased | None:
    if not has_time_based(keygen, types):
        return None
    try:
        return time_based(read.properties)
    except InvalidOptionError:
        return None  # such a table is read, and refused where it is written


# --- its properties -------------------------------------------------------------------------------


def _properties(config: TableConfig) -> Iterator[Property]:
    types = config.partition_types or ("",) * len(config.partition_fields)
    named = zip(config.partition_fields, types, strict=True)
    text = ",".join(f"{name}:{kind}" if kind else name for name, kind in named)
    yield "hoodie.table.partition.fields", text or None
    yield from _generator_properties(config)
    # stored ones stay as they are
    if config.time_based is not None and not TimeKeys.timestamp_type.is_given(config.raw):
        yield from config.time_based.properties
    yield _encoding_property(config)
    forms = config.raw or form_properties(config)
    for key in (TableKeys.consistent_timestamps, TableKeys.local_zone, TableKeys.old_floats):
        yield key.key, forms.get(key.key)


def _generator_properties(config: TableConfig) -> list[Property]:
    key = "hoodie.table.keygenerator.type"
    if config.keygen_type is KeyGeneratorType.USER_PROVIDED:
        named = config.named_keygen
        if named is not None and not config.raw:
            return [(key, config.keygen_type.value), *named.properties.items()]
        return [(key, config.raw.get(key))]
    # SIMPLE_AVRO and SIMPLE are one type; what was stored stays
    was = config.raw.get(key)
    same = was is not None and TableKeys.key_generator.parse(was) is config.keygen_type
    return [(key, was if same else config.keygen_type.value)]


def _encoding_property(config: TableConfig) -> Property:
    """The key encoding property.

    Hudi assumes the encoding of version 9, and guesses that of version 8 where no property names
    it.
    """
    key = ManagedKeys.complex_encoding.key
    ambiguous = config.may_name_one_key and config.version < 9 and not config.raw
    if not (ambiguous or key in config.raw):
        return key, None
    text = "VALUE_ONLY" if config.complex_keygen_new_encoding else "FIELD_PREFIXED"
    return key, text


def key_form(config: TableConfig) -> KeyForm:
    """The spelling of timestamps and floating-point numbers in keys and paths.

    Refused where timestamps are strings in the zone of this process, which has no name.
    """
    zone = None
    if config.consistent_timestamps:
        zone = config.local_zone or (None if config.timezone == "LOCAL" else UTC)
        if zone is None:
            raise TableKeys.local_zone.refused(
                None,
                "keys spell timestamps as clocks show them, and this process's zone has no name",
                "Set it to the zone of the table's other writers.",
            )
    return KeyForm(zone, bool(config.old_floats))


def form_properties(config: TableConfig) -> dict[str, str]:
    """The properties of a spelling that is not the default."""
    found = {}
    if config.consistent_timestamps:
        found[TableKeys.consistent_timestamps.key] = "true"
        zone = key_form(config).timestamp_zone
        if zone not in (None, UTC) or config.timezone == "LOCAL":
            found[TableKeys.local_zone.key] = stored_zone(zone or UTC)
    if config.old_floats is not None:
        found[TableKeys.old_floats.key] = _JAVA[config.old_floats]
    return found


# --- options against a stored table ---------------------------------------------------------------


def _against(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    keygen, partition = _generated_as(options, stored)
    for key, value in (
        (TableKeys.partition_path, partition),
        *((key, keygen) for key in _GENERATOR_KEYS),
        (TableKeys.virtual_columns, stored.record_key_fields),
    ):
        key.require_same(options, value, stored.raw)
    return _with_encoding(options, _with_time(options, stored))


def _generated_as(
    options: Mapping[str, str], stored: TableConfig
) -> tuple[KeyGeneratorType | str, tuple[str, ...]]:
    """The table's key generator and partition fields, as the options write theirs.

    A table without partitions may be written in several ways.
    """
    by_class = TableKeys.key_generator_class.read(options)
    given = by_class or TableKeys.key_generator.read(options)
    given = given or TableKeys.virtual_generator.read(options)
    fields = TableKeys.partition_path.read(options)
    if stored.named_keygen is not None:
        return stored.named_keygen.name, _written_as(options, stored)
    if stored.keygen_type is not KeyGeneratorType.NON_PARTITION:
        return stored.keygen_type, _written_as(options, stored)
    if given is KeyGeneratorType.SIMPLE and not fields:
        return given, ()
    return stored.keygen_type, fields if by_class is stored.keygen_type else ()


def _written_as(options: Mapping[str, str], stored: TableConfig) -> tuple[str, ...]:
    """Return equal partition fields in the options' spelling.

    The table's where they are not the same.
    """
    typed = tuple(
        f"{name}:{kind}"
        for name, kind in zip(stored.partition_fields, stored.partition_types, strict=False)
    )
    given = TableKeys.partition_path.read(options)
    names, types = typed_fields(given)
    same = names == stored.partition_fields and types == stored.partition_types
    return given if typed and same else typed or stored.partition_fields


def _with_time(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take TIMESTAMP partition rules from options where none are stored."""
    if stored.time_based is not None:
        found = conflicting(options, stored.time_based)
        if found is not None:
            raise OptionConflictError(*found, dict(stored.time_based.properties).get(found[0]))
        how = with_zones_of(options, stored.time_based)
        return replace(stored, time_based=how)
    is_stored = TimeKeys.timestamp_type.is_given(stored.raw)
    if is_stored or not has_time_based(stored.keygen_type, stored.partition_types):
        return stored
    if not TimeKeys.timestamp_type.is_given(options):
        return stored
    return replace(stored, time_based=time_based(options))


def _with_encoding(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take the key encoding from options where none is stored.

    Hudi leaves tables of version 8 without it.
    """
    key = TableKeys.complex_new_encoding
    if not key.is_given(options):
        return stored
    given = key.read(options)
    recorded = ManagedKeys.complex_encoding.key in stored.raw or stored.version >= 9
    if recorded and given != stored.complex_keygen_new_encoding:
        raise OptionConflictError(key.key, options[key.key], shown_value(not given))
    return replace(stored, complex_keygen_new_encoding=given)


_COMPARED: Final = tuple(
    name
    for key in (
        TableKeys.partition_path,
        *_GENERATOR_KEYS,
        TableKeys.virtual_columns,
        TableKeys.complex_new_encoding,
        *TimeKeys.keys,
    )
    for name in key.names
)
KEYS: Final = Setting(
    _new_keys, _stored_keys, _properties, _against, _COMPARED, lambda _: _COMPARED
)
