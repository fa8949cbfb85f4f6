"""What a new table is, from a user's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_core.config import stored_keys
from hudi_core.config import table_keys as keys
from hudi_core.config.index_keys import buckets_of
from hudi_core.config.key import ConfigKey
from hudi_core.config.kinds import (
    FIELD_TYPES,
    WRITABLE_KEY_GENERATORS,
    KeyGeneratorType,
    TableType,
)
from hudi_core.config.new_merging import new_merging
from hudi_core.config.table import (
    WRITABLE_VERSIONS,
    TableConfig,
    has_time_based,
    infer_key_generator,
    typed_fields,
)
from hudi_core.config.timebased import KEYS as TIME_KEYS
from hudi_core.config.timebased import TimeBased, chosen_time_based
from hudi_core.errors import InvalidOptionError

_ONLY: Final[tuple[tuple[ConfigKey[Any], tuple[object, ...]], ...]] = (
    (keys.TABLE_TYPE, (TableType.COPY_ON_WRITE,)),
    (keys.VERSION, WRITABLE_VERSIONS),
    (keys.DROP_PARTITION_COLUMNS, (False,)),
    (keys.POPULATE_META_FIELDS, (True,)),
    (keys.BASE_FILE_FORMAT, ("PARQUET",)),
    (keys.TIMEZONE, ("UTC",)),
    (keys.KEY_GENERATOR, (None, *WRITABLE_KEY_GENERATORS)),
    (keys.KEY_GENERATOR_CLASS, (None, *WRITABLE_KEY_GENERATORS)),
)
"""What this release writes, where Hudi offers more."""


def new_table_config(options: Mapping[str, str]) -> TableConfig:
    """Return the view of a table that does not exist yet; it has no schema and no field ids.

    Raises
    ------
    InvalidOptionError
        Something is missing, contradicts itself, or is not written by this release.
    """
    for key, supported in _ONLY:
        _refuse_others(key, supported, options)
    name, record_key = keys.NAME.read(options), keys.RECORD_KEY.read(options)
    if not name:
        raise _missing(keys.NAME, "a new table needs a name")
    partition, version = keys.PARTITION_PATH.read(options), keys.VERSION.read(options)
    keygen = _key_generator(options, record_key, partition)
    if keygen is KeyGeneratorType.NON_PARTITION:
        partition = ()  # Hudi's class takes fields, and makes no paths of them
    types: tuple[str, ...] = ()
    if keygen is KeyGeneratorType.CUSTOM:
        partition, types = _typed_fields(partition)
    config = TableConfig(
        name=name,
        database=keys.DATABASE.read(options),
        version=version,
        initial_version=version,
        record_key_fields=record_key,
        partition_fields=partition,
        partition_types=types,
        keygen_type=keygen,
        time_based=_time_based(options, keygen, types),
        **new_merging(options, version),
        hive_style=keys.HIVE_STYLE.read(options),
        url_encode=keys.URL_ENCODE.read(options),
        table_format=keys.FORMAT.read(options),
        complex_keygen_new_encoding=_new_encoding(options, version),
        consistent_timestamps=keys.CONSISTENT_TIMESTAMPS.read(options),
        old_floats=keys.JAVA_VERSION.read(options),
        local_zone=keys.LOCAL_ZONE.read(options),
        buckets=buckets_of(options, record_key),
    )
    _refuse_managed(options, config)
    return config


def _missing(key: ConfigKey[Any], reason: str) -> InvalidOptionError:
    return InvalidOptionError(key.key, None, reason, f"Set {key.key}.")


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
) -> KeyGeneratorType:
    by_class = keys.KEY_GENERATOR_CLASS.read(options)
    by_type = keys.KEY_GENERATOR.read(options)
    if by_class and by_type and by_class is not by_type:
        raise InvalidOptionError(
            keys.KEY_GENERATOR.key,
            by_type.value,
            f"{keys.KEY_GENERATOR_CLASS.key} names a generator of type {by_class}",
            "Give one of the two.",
        )
    inferred = infer_key_generator(record_key, partition)
    chosen = by_class or by_type
    if chosen is None:
        return inferred
    key = keys.KEY_GENERATOR_CLASS if by_class else keys.KEY_GENERATOR
    if chosen is KeyGeneratorType.SIMPLE and not partition:
        chosen = inferred  # as Hudi stores it: keys are the same, and so is the path
    fits = {
        KeyGeneratorType.SIMPLE: len(record_key) <= 1 and len(partition) == 1,
        KeyGeneratorType.COMPLEX: True,
        # Hudi's option of the type gives way to the fields, its class does not
        KeyGeneratorType.NON_PARTITION: not partition or by_class is not None,
        KeyGeneratorType.TIMESTAMP: len(record_key) <= 1 and len(partition) == 1,
        KeyGeneratorType.CUSTOM: bool(partition),
    }
    if not fits[chosen]:
        raise InvalidOptionError(
            key.key,
            options[next(name for name in key.names if name in options)],
            f"{len(record_key)} record key and {len(partition)} partition fields do not fit it",
            f"Drop the option; {inferred} fits.",
        )
    return chosen


def _typed_fields(partition: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names, types = typed_fields(partition)
    if not set(types) <= set(FIELD_TYPES):
        raise InvalidOptionError(
            keys.PARTITION_PATH.key,
            ",".join(partition),
            "the CUSTOM key generator needs a type for each field, SIMPLE or TIMESTAMP",
            "Write it as city:SIMPLE,ts:TIMESTAMP.",
        )
    return names, types


def _time_based(
    options: Mapping[str, str], keygen: KeyGeneratorType, types: tuple[str, ...]
) -> TimeBased | None:
    if has_time_based(keygen, types):
        return chosen_time_based(options)
    for key in TIME_KEYS:
        key.read(options)  # of no use here, but a typing error is one
    return None


def _new_encoding(options: Mapping[str, str], version: int) -> bool:
    wanted = keys.COMPLEX_NEW_ENCODING.read(options)
    if wanted and version >= 9:
        raise InvalidOptionError(
            keys.COMPLEX_NEW_ENCODING.key,
            "true",
            f"tables of version {version} always prefix the value with the field",
            "Drop the option, or create a table of version 8.",
        )
    return wanted


def _refuse_managed(options: Mapping[str, str], config: TableConfig) -> None:
    properties = config.to_properties()
    for key in stored_keys.MANAGED_KEYS:
        for name in key.names:
            if name in options and options[name].strip() != properties.get(name):
                raise InvalidOptionError(
                    name, options[name], "the table keeps it itself", "Drop the option."
                )
