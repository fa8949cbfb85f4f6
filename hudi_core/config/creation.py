"""What a new table is, from a user's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_core.config.extension_points import KEY_GENERATOR_POINT
from hudi_core.config.index_keys import buckets_of
from hudi_core.config.key import ConfigKey
from hudi_core.config.key_generators import (
    KEY_GENERATORS,
    fields_of,
    has_time_based,
    infer_key_generator,
)
from hudi_core.config.kinds import (
    FIELD_TYPES,
    KeyGeneratorType,
    TableType,
)
from hudi_core.config.named_generators import NamedKeyGenerator
from hudi_core.config.new_merging import new_merging
from hudi_core.config.placement import new_placement
from hudi_core.config.stored_form import properties_of
from hudi_core.config.stored_keys import CHOSEN_ROWS, ManagedKeys
from hudi_core.config.support import WRITABLE_VERSIONS
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.timebased import TimeBased, TimeKeys, chosen_time_based
from hudi_core.config.virtual_keys import require_possible_keys
from hudi_core.errors import InvalidOptionError, OptionConflictError
from hudi_core.extension.registry import named_by

_ONLY: Final[tuple[tuple[ConfigKey[Any], tuple[object, ...]], ...]] = (
    (TableKeys.table_type, (TableType.COPY_ON_WRITE,)),
    (TableKeys.version, WRITABLE_VERSIONS),
    (TableKeys.drop_partition_columns, (False,)),
    (TableKeys.base_file_format, ("PARQUET",)),
    (TableKeys.timezone, ("UTC",)),
)
"""What this release writes, where Hudi offers more."""


def new_table_config(options: Mapping[str, str]) -> TableConfig:
    """Return the configuration of a new table, without schema and field ids."""
    for key, supported in _ONLY:
        _refuse_others(key, supported, options)
    values = {name: key.read(options) for name, key in CHOSEN_ROWS.items()}
    if not values["name"]:
        raise _missing(TableKeys.name, "a new table needs a name")
    version, record_key = values["version"], _record_key(options)
    values["record_key_fields"] = record_key
    config = TableConfig(
        **values,
        **_key_generation(options, record_key),
        **new_merging(options, version),
        initial_version=version,
        complex_keygen_new_encoding=_new_encoding(options, version),
        buckets=buckets_of(options, record_key),
        placement=new_placement(options),
    )
    require_possible_keys(config)
    _refuse_managed(options, config)
    return config


def _record_key(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of the record key, under whichever name they are given."""
    named, virtual = TableKeys.record_key_fields, TableKeys.virtual_columns
    columns, again = named.read(options), virtual.read(options)
    if columns and again and columns != again:
        raise OptionConflictError(virtual.key, ",".join(again), ",".join(columns))
    return columns or again


def _key_generation(options: Mapping[str, str], record_key: tuple[str, ...]) -> dict[str, Any]:
    """How keys and partition paths are made: fields of ``TableConfig``."""
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
        "partition_fields": names,
        "partition_types": types,
        "keygen_type": keygen,
        "named_keygen": named,
        "time_based": _time_based(options, keygen, types),
    }


def _missing(key: ConfigKey[Any], reason: str) -> InvalidOptionError:
    return InvalidOptionError(key.key, None, reason, f"Set {key.key}.")


_GENERATOR_KEYS: Final = (
    TableKeys.key_generator_class,
    TableKeys.key_generator,
    TableKeys.virtual_generator,
)
"""Options that name the key generator, in the order in which they count."""


def _refuse_others(
    key: ConfigKey[Any], supported: tuple[object, ...], options: Mapping[str, str]
) -> None:
    found = key.find(options)
    if found is None or key.parse_as(*found) in supported:
        return
    name, text = found
    shown = ", ".join(
        str(value).lower() if isinstance(value, bool) else str(value)
        for value in supported
        if value is not None
    )
    raise InvalidOptionError(name, text, "it is not supported for writing", f"Supported: {shown}.")


def _key_generator(
    options: Mapping[str, str], record_key: tuple[str, ...], partition: tuple[str, ...]
) -> KeyGeneratorType | str:
    by_class = TableKeys.key_generator_class.read(options)
    by_type = TableKeys.key_generator.read(options) or TableKeys.virtual_generator.read(options)
    if by_class and by_type and by_class != by_type:
        raise InvalidOptionError(
            TableKeys.key_generator.key,
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
        raise InvalidOptionError(
            key.key,
            options[next(name for name in key.names if name in options)],
            "it is not supported for writing",
            f"Supported: {', '.join(names)}.",
        )
    if chosen is KeyGeneratorType.SIMPLE and not partition:
        chosen = inferred  # as Hudi stores it: keys are the same, and so is the path
    # Hudi's option of the type gives way to the fields; to its class the fields do
    drops_fields = chosen is KeyGeneratorType.NON_PARTITION and by_class is not None
    if not drops_fields and not KEY_GENERATORS[chosen].fits(record_key, partition):
        raise InvalidOptionError(
            key.key,
            options[next(name for name in key.names if name in options)],
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
        raise InvalidOptionError(
            TableKeys.key_generator.key,
            name,
            "it makes keys of the values of rows, and the table has no record key",
            f"Name columns in {TableKeys.record_key_fields.key}.",
        )
    return named


def _require_types(stated: tuple[str, ...], types: tuple[str, ...]) -> None:
    if not set(types) <= set(FIELD_TYPES):
        raise InvalidOptionError(
            TableKeys.partition_path.key,
            ",".join(stated),
            "the CUSTOM key generator needs a type for each field, SIMPLE or TIMESTAMP",
            "Write it as city:SIMPLE,ts:TIMESTAMP.",
        )


def _time_based(
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
        raise InvalidOptionError(
            TableKeys.complex_new_encoding.key,
            "true",
            f"tables of version {version} always prefix the value with the field",
            "Drop the option, or create a table of version 8.",
        )
    return wanted


def _refuse_managed(options: Mapping[str, str], config: TableConfig) -> None:
    properties = properties_of(config)
    for key in ManagedKeys.keys:
        for name in key.names:
            if name in options and options[name].strip() != properties.get(name):
                raise InvalidOptionError(
                    name, options[name], "the table keeps it itself", "Drop the option."
                )
