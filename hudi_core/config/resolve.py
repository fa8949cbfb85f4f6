"""A user's options against what the table has stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hudi_core.config import index_keys, stored_keys, timebased
from hudi_core.config import table_keys as keys
from hudi_core.config.creation import new_table_config
from hudi_core.config.key import ConfigKey, GivenOptions, Secret
from hudi_core.config.kinds import IndexType, KeyGeneratorType
from hudi_core.config.merging import COMPARED, marker_for, refuse_other_merging
from hudi_core.config.option_warnings import warn_of_options
from hudi_core.config.table import TableConfig, has_time_based, typed_fields
from hudi_core.config.time_zone import process_zone
from hudi_core.errors import InvalidOptionError, OptionConflictError


def text_options(options: Mapping[str, object]) -> GivenOptions:
    """Return options as text, as Spark and Hudi spell them.

    Truth values become ``true`` and ``false``, numbers their digits, lists of names are joined with
    commas, and options whose value is ``None`` are left out.

    Raises
    ------
    InvalidOptionError
        A value of another type.
    """
    texts = GivenOptions()
    for name, value in options.items():
        match value:
            case None:
                continue
            case bool():
                texts[name] = "true" if value else "false"
            case str() | int() | float():
                texts[name] = str(value)
            case Secret():
                texts[name] = value.reveal()
            case list() | tuple() if all(isinstance(part, str) for part in value):
                texts[name] = ",".join(value)
            case _:
                raise InvalidOptionError(
                    name,
                    type(value).__name__,
                    "an option is a text, a number, a truth value or a list of names",
                    "Pass its text.",
                )
    return texts


def resolve_table_config(options: Mapping[str, str], stored: TableConfig | None) -> TableConfig:
    """Return what the table is: its stored view, or for a new table the one its options describe.

    Options without effect are warned of.

    Parameters
    ----------
    options
        A user's options, as text; see :func:`text_options`.
    stored
        The table's stored view; ``None`` for a new table.

    Raises
    ------
    OptionConflictError
        An option contradicts the stored table.
    InvalidOptionError
        A value that cannot be used, or a new table that cannot be written.
    """
    warn_of_options(options, () if stored is None else stored.raw)
    return new_table_config(options) if stored is None else _checked_against(options, stored)


def _checked_against(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    keygen, partition = _generated_as(options, stored)
    values: list[tuple[ConfigKey[Any], object]] = [
        (keys.NAME, stored.name),
        (keys.DATABASE, stored.database),
        (keys.TABLE_TYPE, stored.table_type),
        (keys.VERSION, stored.version),
        (keys.FORMAT, stored.table_format),
        (keys.RECORD_KEY, stored.record_key_fields),
        (keys.PARTITION_PATH, partition),
        (keys.ORDERING, stored.ordering_fields),
        (keys.KEY_GENERATOR, keygen),
        (keys.KEY_GENERATOR_CLASS, keygen),
        (keys.HIVE_STYLE, stored.hive_style),
        (keys.URL_ENCODE, stored.url_encode),
        (keys.DROP_PARTITION_COLUMNS, stored.drop_partition_columns),
        (keys.POPULATE_META_FIELDS, stored.populate_meta_fields),
        (keys.BASE_FILE_FORMAT, stored.base_file_format),
        (keys.TIMEZONE, stored.timezone),
    ]
    if stored.buckets is not None:
        values += [
            (index_keys.INDEX_TYPE, IndexType.BUCKET),
            (index_keys.BUCKET_NUMBER, stored.buckets.number),
            (index_keys.BUCKET_FIELDS, stored.buckets.fields),
        ]
    optional = [
        (keys.LOCAL_ZONE, stored.local_zone),
        (keys.CONSISTENT_TIMESTAMPS, stored.consistent_timestamps),
        (keys.JAVA_VERSION, stored.old_floats),
    ]
    values += [(key, value) for key, value in optional if value is not None]
    # an index other than buckets leaves no trace in a table, and may change from write to write
    compared = {keys.COMPLEX_NEW_ENCODING.key, index_keys.INDEX_TYPE.key}
    compared |= {key.key for key, _ in optional}
    compared |= {name for key in timebased.KEYS for name in key.names} | COMPARED
    for key, value in values:
        compared.update(key.names)
        found = key.find(options)
        if found is None:
            continue
        given = key.parse_as(*found)
        if given is not None and given != value:
            raise OptionConflictError(*found, stored.raw.get(key.key, _shown(value)))
    refuse_other_merging(options, stored)
    stored_only = {name for key in stored_keys.MANAGED_KEYS for name in key.names}
    for name in (stored_only | stored.raw.keys()) & options.keys() - compared:
        was = stored.raw.get(name)
        if was is None or was.strip().lower() != options[name].strip().lower():
            raise OptionConflictError(name, options[name], was)
    stored = _with_forms(options, _with_marker(options, stored))
    return _with_buckets(options, _with_encoding(options, _with_time(options, stored)))


def _with_forms(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """The table with options for what it does not say itself."""
    found: dict[str, Any] = {}
    if stored.local_zone is None:
        is_local = stored.timezone == "LOCAL"
        zone = keys.LOCAL_ZONE.read(options) or (process_zone() if is_local else None)
        found["local_zone"] = zone
    if stored.consistent_timestamps is None:
        found["consistent_timestamps"] = keys.CONSISTENT_TIMESTAMPS.read(options)
    if stored.old_floats is None:
        found["old_floats"] = keys.JAVA_VERSION.read(options)
    said = {name: value for name, value in found.items() if value is not None}
    return replace(stored, **said) if said else stored


def _generated_as(
    options: Mapping[str, str], stored: TableConfig
) -> tuple[KeyGeneratorType, tuple[str, ...]]:
    """The table's key generator and partition fields, as the options write theirs.

    A table without partitions may be written in several ways.
    """
    by_class = keys.KEY_GENERATOR_CLASS.read(options)
    given = by_class or keys.KEY_GENERATOR.read(options)
    fields = keys.PARTITION_PATH.read(options)
    if stored.keygen_type is not KeyGeneratorType.NON_PARTITION:
        return stored.keygen_type, _written_as(options, stored)
    if given is KeyGeneratorType.SIMPLE and not fields:
        return given, ()
    return stored.keygen_type, fields if by_class is stored.keygen_type else ()


def _written_as(options: Mapping[str, str], stored: TableConfig) -> tuple[str, ...]:
    """Return the table's partition fields as the options write theirs, where they are the same."""
    typed = tuple(
        f"{name}:{kind}"
        for name, kind in zip(stored.partition_fields, stored.partition_types, strict=False)
    )
    given = keys.PARTITION_PATH.read(options)
    names, types = typed_fields(given)
    same = names == stored.partition_fields and types == stored.partition_types
    return given if typed and same else typed or stored.partition_fields


def _with_time(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take from the options how partitions are made of moments, where the table does not tell."""
    if stored.time_based is not None:
        found = timebased.conflicting(options, stored.time_based)
        if found is not None:
            raise OptionConflictError(*found, dict(stored.time_based.properties).get(found[0]))
        how = timebased.with_zones_of(options, stored.time_based)
        return replace(stored, time_based=how)
    told = timebased.TIMESTAMP_TYPE.is_given(stored.raw)
    if told or not has_time_based(stored.keygen_type, stored.partition_types):
        return stored
    if not timebased.TIMESTAMP_TYPE.is_given(options):
        return stored
    return replace(stored, time_based=timebased.time_based(options))


def _with_encoding(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take the key encoding from the options where Hudi left a table of version 8 without it."""
    key = keys.COMPLEX_NEW_ENCODING
    if not key.is_given(options):
        return stored
    given = key.read(options)
    recorded = stored_keys.COMPLEX_ENCODING.key in stored.raw or stored.version >= 9
    if recorded and given != stored.complex_keygen_new_encoding:
        raise OptionConflictError(key.key, options[key.key], _shown(not given))
    return replace(stored, complex_keygen_new_encoding=given)


def _with_marker(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take from the options what marks deletes, where the table does not tell."""
    marker = marker_for(options, stored)
    return stored if marker == stored.delete_marker else replace(stored, delete_marker=marker)


def _with_buckets(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take the buckets from the options where the table has not stored any (yet)."""
    if stored.buckets is not None:
        return stored
    buckets = index_keys.buckets_of(options, stored.record_key_fields)
    return stored if buckets is None else replace(stored, buckets=buckets)


def _shown(value: object) -> object:
    match value:
        case tuple():
            return ",".join(value)
        case bool():
            return "true" if value else "false"
    return value
