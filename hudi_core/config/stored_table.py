"""What a table is, by a user's options and by its properties.

A property that is one field is declared as :class:`~hudi_core.config.stored.Stored`, other parts as
:class:`~hudi_core.config.stored.Setting`. New tables, stored ones, their properties and options of
later writes are loops over these (``hudi-format`` section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from hudi_core.config.index_keys import BUCKETS
from hudi_core.config.key_settings import KEYS, require_possible_keys
from hudi_core.config.kinds import MergeOnReadMode, TableType
from hudi_core.config.merging import MERGING
from hudi_core.config.placement import (
    STRATEGY_PREFIX,
    PlacementKeys,
    new_placement,
    placement_of,
    require_same_placement,
)
from hudi_core.config.properties import CHECKSUM_KEY, FILE_NAME, table_checksum
from hudi_core.config.stored import Property, Setting, StoredReader
from hudi_core.config.stored_keys import CHOSEN_ROWS, ROWS, ManagedKeys
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import READABLE_VERSIONS, WRITABLE_VERSIONS, TableKeys
from hudi_core.config.time_zone import process_zone
from hudi_core.errors import (
    CorruptMetadataError,
    InvalidOptionError,
    OptionConflictError,
    UnsupportedTableError,
)

_META_PATH: Final = f"/.hoodie/{FILE_NAME}"


def _same_meta_columns(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    if not stored.virtual_keys:  # else other engines alone read it
        row = TableKeys.populate_meta_fields
        row.require_same(options, stored.populate_meta_fields, stored.raw)
    return stored


META_COLUMNS: Final = Setting(
    lambda _, made: {"populate_meta_fields": made["populate_meta_fields"]},
    # for other engines alone: a table whose key is virtual has the others
    lambda _, made: {"populate_meta_fields": made["populate_meta_fields"] or made["virtual_keys"]},
    # those that know no other virtual keys find none where only the key is missing: they make it of
    # its columns, too, and leave the other meta columns alone
    lambda config: [
        TableKeys.populate_meta_fields.property_of(config.tells_meta_columns, config.raw)
    ],
    _same_meta_columns,
    TableKeys.populate_meta_fields.names,
    lambda _: TableKeys.populate_meta_fields.names,
)


def _same_placement(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    require_same_placement(options, stored.placement)
    return stored


PLACEMENT: Final = Setting(
    lambda options, _: {"placement": new_placement(options)},
    lambda read, _: {"placement": read(placement_of)},
    lambda config: config.placement.properties.items(),
    _same_placement,
    (STRATEGY_PREFIX, *(key.key for key in PlacementKeys.keys)),
    lambda stored: (*stored.placement.properties, *(key.key for key in PlacementKeys.keys)),
)

SETTINGS: Final[Mapping[str, Setting]] = {
    "partition_fields": KEYS,
    "merge_mode": MERGING,
    "populate_meta_fields": META_COLUMNS,
    "buckets": BUCKETS,
    "placement": PLACEMENT,
}
"""The parts that are more than a property each, by the fields at whose place they are stored."""
_BY_ROW: Final = {name: row for name, row in ROWS.items() if name not in SETTINGS}
_COMPARED_ROWS: Final = {name: row for name, row in CHOSEN_ROWS.items() if name not in SETTINGS}
_MANAGED: Final = frozenset(name for key in ManagedKeys.keys for name in key.names)
_SPELLED_BY_ROW: Final = {name: row for name, row in _BY_ROW.items() if not row.is_open}


# --- new ------------------------------------------------------------------------------------------


def new_table_config(options: Mapping[str, str]) -> TableConfig:
    """Return the configuration of a new table, without schema and field ids."""
    made: dict[str, Any] = {name: row.as_new(options) for name, row in CHOSEN_ROWS.items()}
    if not made["name"]:
        missing = TableKeys.name.key
        raise InvalidOptionError(missing, None, "a new table needs a name", f"Set {missing}.")
    for setting in SETTINGS.values():
        made |= setting.as_new(options, made)
    config = TableConfig(**made, initial_version=made["version"])
    require_possible_mode(config, options)
    require_possible_keys(config)
    properties = properties_of(config)
    for name in filter(_MANAGED.__contains__, options):
        if options[name].strip() != properties.get(name):
            raise InvalidOptionError(
                name, options[name], "the table keeps it itself", "Drop the option."
            )
    return config


def require_possible_mode(config: TableConfig, options: Mapping[str, str]) -> None:
    """Refuse the mode ``split`` for tables without logs, or with buckets."""
    if config.merge_on_read_mode is not MergeOnReadMode.SPLIT:
        return
    row = TableKeys.merge_on_read_mode
    given = row.given_name(options), config.merge_on_read_mode.value
    if config.table_type is not TableType.MERGE_ON_READ:
        raise InvalidOptionError(
            *given,
            f"the table is of type {config.table_type}, and only MERGE_ON_READ has modes",
            f"Add {TableKeys.table_type.key}=MERGE_ON_READ, or drop it.",
        )
    if config.buckets is not None:
        raise InvalidOptionError(
            *given,
            "a bucket index keeps a row in the file group of its key, and in this mode updated "
            "rows go to another one",
            "Take another hoodie.index.type, such as RECORD_INDEX or SIMPLE, or the mode logs.",
        )


# --- stored ---------------------------------------------------------------------------------------


def stored_config(properties: Mapping[str, str], path: str = FILE_NAME) -> TableConfig:
    """What a table is, as its properties say."""
    read = StoredReader(properties, path)
    layout = _checked_layout(read)
    made: dict[str, Any] = {name: row.as_stored(read) for name, row in ROWS.items()}
    made["initial_version"] = made["initial_version"] or made["version"]
    made["layout_version"] = layout
    for setting in SETTINGS.values():
        made |= setting.as_stored(read, made)
    partitions = read(ManagedKeys.metadata_partitions.read)
    partitions += read(ManagedKeys.metadata_partitions_inflight.read)
    return TableConfig(
        **made,
        metadata_partitions=tuple(dict.fromkeys(partitions)),
        bootstrap_base_path=read(ManagedKeys.bootstrap_base_path.read),
        storage_move=read(ManagedKeys.storage_move.read),
        raw=dict(properties),
    )


def _checked_layout(read: StoredReader) -> int:
    """The timeline's layout of a whole table of a readable version."""
    name, version = TableKeys.name.as_stored(read), TableKeys.version.as_stored(read)
    checksum = read(ManagedKeys.checksum.read)
    database = read.properties.get(TableKeys.database.key)
    if checksum not in (None, str(table_checksum(database, name or ""))):
        raise CorruptMetadataError(read.path, f"{CHECKSUM_KEY} is {checksum}, another table's")
    base_path = read.path.removesuffix(_META_PATH)
    if version not in READABLE_VERSIONS:
        raise UnsupportedTableError(
            base_path,
            f"has table version {version}",
            "Versions 6, 8 and 9 are read; upgrade or downgrade the table with Apache Hudi.",
        )
    expected = 1 if version == 6 else 2
    layout = read(ManagedKeys.layout_version.read) or expected
    if layout != expected:
        raise UnsupportedTableError(
            base_path,
            f"has timeline layout {layout}, which table version {version} does not have",
            "Restore hoodie.properties from a backup of the table.",
        )
    return layout


# --- its properties -------------------------------------------------------------------------------


def properties_of(config: TableConfig) -> dict[str, str]:
    """The properties of a table in its version, checksum last.

    Properties that were read and mean nothing here are kept as they are. A table of version 6 is
    never written, so its properties are returned as read.
    """
    properties = dict(config.raw)
    if config.version not in WRITABLE_VERSIONS:
        return properties
    for key, value in _own_properties(config):
        if value is None:
            properties.pop(key, None)
        else:
            properties[key] = value
    properties.pop(CHECKSUM_KEY, None)
    properties[CHECKSUM_KEY] = str(table_checksum(config.database, config.name))
    return properties


def _own_properties(config: TableConfig) -> Iterator[Property]:
    """The string of each property, in field order; ``None`` for none."""
    for field in fields(config):
        if field.name in SETTINGS:
            yield from SETTINGS[field.name].properties(config)
        elif field.name in _SPELLED_BY_ROW:
            yield _SPELLED_BY_ROW[field.name].property_of(getattr(config, field.name), config.raw)


def id_properties(field_ids: Mapping[str, int], last_column_id: int | None) -> list[Property]:
    """Return the properties that keep a table's field ids."""
    return [
        ManagedKeys.last_column_id.property_of(last_column_id, {}),
        ManagedKeys.field_ids.property_of(field_ids, {}),
    ]


# --- options against a stored table ---------------------------------------------------------------


def checked_against(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """The table with options for what it does not say itself.

    Options that contradict it are refused.
    """
    taken: dict[str, Any] = {}
    for name, row in _COMPARED_ROWS.items():
        value = getattr(stored, name)
        if not (row.is_open and value is None):
            row.require_same(options, value, stored.raw)
        elif row.is_given(options):
            taken[name] = row.read(options)
    if stored.timezone == "LOCAL" and taken.get("local_zone", stored.local_zone) is None:
        taken["local_zone"] = process_zone()
    for name in (_MANAGED | stored.raw.keys()) & options.keys():
        was = stored.raw.get(name)
        same = was is not None and was.strip().lower() == options[name].strip().lower()
        if not same and name not in _compared(stored):
            raise OptionConflictError(name, options[name], was)
    found = replace(stored, **taken) if taken else stored
    for setting in SETTINGS.values():
        if any(name.startswith(setting.reads) for name in options):
            found = setting.against(options, found)
    return found


def _compared(stored: TableConfig) -> set[str]:
    """The names that are compared by what they mean."""
    settings = (setting.compared(stored) for setting in SETTINGS.values())
    rows = (row.names for row in _COMPARED_ROWS.values())
    return {name for names in (*settings, *rows) for name in names}
