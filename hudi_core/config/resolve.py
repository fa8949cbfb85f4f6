"""A user's options against what the table has stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from hudi_core.config.creation import new_table_config
from hudi_core.config.index_keys import IndexConfig, buckets_of
from hudi_core.config.key import ConfigKey, GivenOptions, Secret
from hudi_core.config.key_generators import has_time_based, typed_fields
from hudi_core.config.kinds import IndexType, KeyGeneratorType
from hudi_core.config.merging import COMPARED, marker_for, require_same_merging
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.option_warnings import warn_of_options
from hudi_core.config.placement import Placement, PlacementKeys, require_same_placement
from hudi_core.config.stored_keys import CHOSEN_ROWS, ManagedKeys
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.time_zone import process_zone
from hudi_core.config.timebased import TimeKeys, conflicting, time_based, with_zones_of
from hudi_core.errors import InvalidOptionError, OptionConflictError


def given_options(options: Any) -> Mapping[str, object]:
    """Options as a caller gave them; none for ``None``."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        kind = type(options).__qualname__
        raise InvalidOptionError(
            "options", kind, "options are values by name", 'Pass a dict: {"hoodie...": "..."}.'
        )
    for name in options:
        if not isinstance(name, str):
            raise InvalidOptionError(
                repr(name), options[name], "the name of an option is a string", "Pass its name."
            )
    return options


def options_as_strings(options: Mapping[str, object] | None) -> GivenOptions:
    """Return options as text, as Spark and Hudi spell them.

    Truth values become ``true`` and ``false``, numbers their digits, lists of names are joined with
    commas, and options whose value is ``None`` are left out.
    """
    strings = GivenOptions()
    for name, value in given_options(options).items():
        match value:
            case None:
                continue
            case bool():
                strings[name] = "true" if value else "false"
            case str() | int() | float():
                strings[name] = str(value)
            case Secret():
                strings[name] = value.reveal()
            case list() | tuple() if all(isinstance(part, str) for part in value):
                strings[name] = ",".join(value)
            case _:
                raise InvalidOptionError(
                    name,
                    type(value).__name__,
                    "an option is a string, a number, a boolean or a list of names",
                    "Pass a string.",
                )
    return strings


def resolve_table_config(options: Mapping[str, str], stored: TableConfig | None) -> TableConfig:
    """Configuration of a table: as stored, or new by its options.

    Options without effect are warned of.
    """
    warn_of_options(options, () if stored is None else stored.raw)
    made = new_table_config(options) if stored is None else _checked_against(options, stored)
    require_metadata_table(options, made.placement)
    return made


def require_metadata_table(options: Mapping[str, str], placement: Placement) -> None:
    """Refuse options without which the files of a table are unknown."""
    if not placement.is_default and MetadataConfig.from_options(options).is_refused:
        raise InvalidOptionError(
            MetadataConfig.enabled.key,
            "false",
            "the table's data files lie below storage paths, and only its metadata table lists "
            "them",
            "Drop the option.",
        )


def resolve_again(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Configuration of an open table whose properties have changed.

    Nothing is warned of.
    """
    return _checked_against(options, stored)


def _checked_against(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    keygen, partition = _generated_as(options, stored)
    own: dict[ConfigKey[Any], object] = {
        TableKeys.partition_path: partition,
        TableKeys.ordering: stored.ordering_fields,
        TableKeys.key_generator: keygen,
        TableKeys.key_generator_class: keygen,
        TableKeys.populate_meta_fields: stored.populate_meta_fields,
        TableKeys.virtual_columns: stored.record_key_fields,
        TableKeys.virtual_generator: keygen,
    }
    if stored.virtual_keys:  # other engines read this one instead
        own[TableKeys.populate_meta_fields] = TableKeys.populate_meta_fields.read(options)
    values: list[tuple[ConfigKey[Any], object]] = [
        (key, own[key] if key in own else getattr(stored, name))
        for name, key in TableKeys.by_attribute.items()
        if key in own or (name in CHOSEN_ROWS and not _is_open(stored, name))
    ]
    if stored.buckets is not None:
        values += [
            (IndexConfig.index_type, IndexType.BUCKET),
            (IndexConfig.bucket_number, stored.buckets.number),
            (IndexConfig.bucket_fields, stored.buckets.fields),
        ]
    # an index other than buckets leaves no trace in a table, and may change from write to write
    compared = {TableKeys.complex_new_encoding.key, IndexConfig.index_type.key}
    compared |= {key.key for key in CHOSEN_ROWS.values() if key.is_open}
    compared |= {name for key in TimeKeys.keys for name in key.names} | COMPARED
    compared |= {*stored.placement.properties, *(key.key for key in PlacementKeys.keys)}
    for key, value in values:
        compared.update(key.names)
        found = key.find(options)
        if found is None:
            continue
        given = key.parse_as(*found)
        if given is not None and given != value:
            raise OptionConflictError(*found, stored.raw.get(key.key, _shown(value)))
    require_same_merging(options, stored)
    require_same_placement(options, stored.placement)
    stored_only = {name for key in ManagedKeys.keys for name in key.names}
    for name in (stored_only | stored.raw.keys()) & options.keys() - compared:
        was = stored.raw.get(name)
        if was is None or was.strip().lower() != options[name].strip().lower():
            raise OptionConflictError(name, options[name], was)
    stored = _with_forms(options, _with_marker(options, stored))
    return _with_buckets(options, _with_encoding(options, _with_time(options, stored)))


def _with_forms(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """The table with options for what it does not say itself."""
    given = {name: key.read(options) for name, key in CHOSEN_ROWS.items() if _is_open(stored, name)}
    present = {name: value for name, value in given.items() if value is not None}
    if stored.timezone == "LOCAL" and stored.local_zone is None and "local_zone" not in present:
        present["local_zone"] = process_zone()
    return replace(stored, **present) if present else stored


def _is_open(stored: TableConfig, name: str) -> bool:
    """Whether the table leaves a setting to the options."""
    return CHOSEN_ROWS[name].is_open and getattr(stored, name) is None


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
        raise OptionConflictError(key.key, options[key.key], _shown(not given))
    return replace(stored, complex_keygen_new_encoding=given)


def _with_marker(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take the delete marker from options where none is stored."""
    marker = marker_for(options, stored)
    return stored if marker == stored.delete_marker else replace(stored, delete_marker=marker)


def _with_buckets(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Take the buckets from options where none are stored yet."""
    if stored.buckets is not None:
        return stored
    buckets = buckets_of(options, stored.record_key_fields)
    return stored if buckets is None else replace(stored, buckets=buckets)


def _shown(value: object) -> object:
    match value:
        case tuple():
            return ",".join(value)
        case bool():
            return "true" if value else "false"
        case StrEnum():
            return str(value)  # without the name of its class
    return value
