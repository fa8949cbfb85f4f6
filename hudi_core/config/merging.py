"""How a table merges versions: by its properties and a user's options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from hudi_core.config.extension_points import RECORD_MERGER_POINT
from hudi_core.config.key import ConfigKey
from hudi_core.config.kinds import MergeMode, PartialUpdateMode, PayloadKind
from hudi_core.config.merge_keys import (
    FIRST_WITHOUT_PAYLOADS,
    MERGE_PROPERTY,
    STORED_PROPERTIES,
    DeleteMarker,
    MergeKeys,
    StoredMergeKeys,
)
from hudi_core.config.named_generators import NamedMerger, stored_name
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import InvalidOptionError, OptionConflictError

T = TypeVar("T")

_OF_TABLE: Final = (PartialUpdateMode.IGNORE_DEFAULTS, PartialUpdateMode.FILL_UNAVAILABLE)
OF_WRITE: Final = (PartialUpdateMode.NONE, PartialUpdateMode.KEEP_VALUES)
"""Modes of partial updates that a table does not keep."""
_PLAIN: Final = (PayloadKind.DEFAULT, PayloadKind.EVENT_TIME, PayloadKind.LATEST)
"""Payload classes that mean a merge mode and nothing else."""


class Read(Protocol):
    """Reads a stored property."""

    def __call__(self, key: ConfigKey[T], /) -> T: ...


# --- what a table has stored ----------------------------------------------------------------------


def stored_merging(read: Read, version: int, properties: Mapping[str, str]) -> dict[str, Any]:
    """How a stored table merges rows: fields of its ``TableConfig``."""
    ordering = read(TableKeys.ordering)
    strategy, merging = read(TableKeys.merge_strategy), read(TableKeys.payload_class)
    legacy = read(StoredMergeKeys.legacy_payload)
    has_payloads = version < FIRST_WITHOUT_PAYLOADS
    payload = merging if has_payloads or legacy is None else legacy
    declared = (read(TableKeys.merge_mode), _mode(strategy), _mode(merging))
    mode = next((one for one in declared if one is not None), default_mode(ordering))
    is_built_in = has_payloads and _mode(payload) is mode and isinstance(payload, PayloadKind)
    merger = named = None
    if isinstance(strategy, str) and not isinstance(strategy, MergeMode):
        name = stored_name(strategy)
        named = None if name is None else NamedMerger.stored(name, properties)
    is_foreign = strategy not in (None, mode) or not is_built_in
    if named is None and mode is MergeMode.CUSTOM and is_foreign:
        own = payload if strategy in (None, mode) else strategy
        merger = f"merge mode CUSTOM{'' if own is None else f' by {own}'}"
    field, value = read(MergeKeys.delete_field), read(MergeKeys.delete_marker)
    return {
        "ordering_fields": ordering,
        "merge_mode": mode,
        "payload": kept_payload(payload, version) if isinstance(payload, PayloadKind) else None,
        "named_merger": named,
        "merger": merger,
        "delete_marker": DeleteMarker(field, value) if field and value else None,
        "partial_update": read(StoredMergeKeys.partial_update),
        "unavailable_value": read(MergeKeys.unavailable_value),
    }


def kept_payload(payload: PayloadKind | None, version: int) -> PayloadKind | None:
    """The payload class to store; ``None`` where the merge mode implies it.

    A class is left out if every table of the version with its merge mode has it.
    """
    usual = version < FIRST_WITHOUT_PAYLOADS and payload in (
        PayloadKind.DEFAULT,
        PayloadKind.LATEST,
    )
    return None if usual else payload


def unknown_merging(config: TableConfig) -> Iterator[str]:
    """Yield merge settings of a stored table that nothing here provides."""
    named = config.named_merger
    if named is not None:
        RECORD_MERGER_POINT.require(named.name)
        if config.merge_mode is not MergeMode.CUSTOM:
            yield f"names the record merger {named.name} beside merge mode {config.merge_mode}"
    if config.merger is not None:
        yield f"merges rows by code of its own ({config.merger})"
    for name in sorted(config.raw):
        if named is not None and name.startswith(named.prefix):
            continue
        if name.startswith(MERGE_PROPERTY) and name not in STORED_PROPERTIES:
            yield f"merges rows by a property that is not known here ({name})"
    halves = (MergeKeys.delete_field, MergeKeys.delete_marker)
    there = [key.aliases[0] for key in halves if key.read(config.raw)]
    if len(there) == 1:
        yield f"has half a delete marker ({there[0]})"
    mode = config.partial_update
    has_payloads = config.version < FIRST_WITHOUT_PAYLOADS
    if mode is not PartialUpdateMode.NONE and (has_payloads or mode not in _OF_TABLE):
        yield f"merges partial updates ({MergeKeys.partial_update_mode.key}={mode})"


def default_mode(ordering: tuple[str, ...]) -> MergeMode:
    """The default merge mode of a table, by its ordering fields."""
    return MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING


def _mode(value: PayloadKind | MergeMode | str | None) -> MergeMode | None:
    """The merge mode that a payload class or a strategy means."""
    if value is None or isinstance(value, MergeMode):
        return value
    return value.merge_mode if isinstance(value, PayloadKind) else MergeMode.CUSTOM


# --- options against a stored table ---------------------------------------------------------------


def given_name(key: ConfigKey[Any], options: Mapping[str, str]) -> str:
    """The name under which an option is given."""
    found = key.find(options)
    return key.key if found is None else found[0]


def foreign_code(key: ConfigKey[Any], options: Mapping[str, str], named: str) -> InvalidOptionError:
    """The error of an option that names code of others."""
    return InvalidOptionError(
        given_name(key, options),
        named,
        "rows are not merged by code of others: no Java class is loaded",
        f"Built in are: {', '.join(known.short_name for known in PayloadKind)}, of the package "
        f"{PayloadKind.DEFAULT.value.rpartition('.')[0]} and debezium below it. Values that are "
        "computed from both rows are for Table.merge, or MERGE INTO by hudi.sql.",
    )


def require_same_ordering(options: Mapping[str, str], fields: tuple[str, ...]) -> None:
    """Refuse a payload's ordering field that differs from the table's.

    Hudi looks at it where a table has no ordering fields, and only for some payload classes.
    """
    key = MergeKeys.payload_ordering
    if key.is_given(options) and key.read(options) not in ((), fields):
        raise InvalidOptionError(
            key.key,
            options[key.key],
            f"the table orders by {','.join(fields) or 'no field'}",
            "Name the ordering fields by hoodie.table.ordering.fields, when the table is created.",
        )


def given_marker(options: Mapping[str, str]) -> DeleteMarker | None:
    """The delete marker that options name."""
    field, value = (key.read(options) for key in (MergeKeys.delete_field, MergeKeys.delete_marker))
    if field is None and value is None:
        return None
    if field is None or value is None:
        there, missing = MergeKeys.delete_field, MergeKeys.delete_marker
        if field is None:
            there, missing = missing, there
        raise InvalidOptionError(
            given_name(there, options),
            field or value,
            f"it needs {missing.key}",
            f"Set {missing.key} as well.",
        )
    return DeleteMarker(field, value)


def require_same_merging(options: Mapping[str, str], stored: TableConfig) -> None:
    """Refuse options for another merging than the table's."""
    MergeKeys.mergers.read(options)
    require_same_ordering(options, stored.ordering_fields)
    payload = TableKeys.payload_class.read(options)
    is_foreign = payload is not None and not isinstance(payload, PayloadKind)
    if is_foreign and stored.payload is None and payload != stored.merger:
        raise foreign_code(TableKeys.payload_class, options, str(payload))
    if payload is not None and payload is not stored.payload:
        same = stored.payload in (None, *_PLAIN) and payload in _PLAIN
        if not (same and _mode(payload) is stored.merge_mode):
            had = stored.payload or stored.merger or stored.merge_mode
            name = given_name(TableKeys.payload_class, options)
            raise OptionConflictError(name, str(payload), str(had))
    by_payload = payload is not None and _mode(payload) is MergeMode.CUSTOM
    for key in (TableKeys.merge_mode, TableKeys.merge_strategy):
        mode = key.read(options)
        if mode is None or mode is stored.merge_mode:
            continue
        named = stored.named_merger
        if named is not None and RECORD_MERGER_POINT.find_name(str(mode)) == named.name:
            continue
        if not isinstance(mode, MergeMode) and RECORD_MERGER_POINT.find_name(mode) is None:
            raise foreign_code(key, options, mode)
        if not (mode is MergeMode.CUSTOM and by_payload):
            had = stored.merge_mode.value if named is None else named.name
            raise OptionConflictError(given_name(key, options), str(mode), had)
    partial = MergeKeys.partial_update_mode
    if partial.is_given(options) and partial.read(options) not in (
        PartialUpdateMode.KEEP_VALUES,
        stored.partial_update,
    ):
        raise OptionConflictError(
            partial.key, partial.read(options).value, str(stored.partial_update)
        )
    value = MergeKeys.unavailable_value.read(options)
    if value is not None and value != stored.unavailable_value:
        raise OptionConflictError(MergeKeys.unavailable_value.key, value, stored.unavailable_value)


def marker_for(options: Mapping[str, str], stored: TableConfig) -> DeleteMarker | None:
    """The delete marker of a write: the table's, else the options'."""
    given = given_marker(options)
    if given is None or stored.delete_marker is None:
        return given or stored.delete_marker
    for key, wanted, had in (
        (MergeKeys.delete_field, given.field, stored.delete_marker.field),
        (MergeKeys.delete_marker, given.value, stored.delete_marker.value),
    ):
        if wanted != had:
            raise OptionConflictError(given_name(key, options), wanted, had)
    return stored.delete_marker


COMPARED: Final = frozenset(
    name
    for key in (
        TableKeys.merge_mode,
        TableKeys.merge_strategy,
        TableKeys.payload_class,
        *MergeKeys.keys,
    )
    for name in key.names
)
"""The options that :func:`require_same_merging` and :func:`marker_for` look at."""
