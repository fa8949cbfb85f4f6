"""How a table merges versions of a row: chosen, stored and compared.

What follows for rows is in :mod:`hudi_core.config.merge_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hudi_core.config.extension_points import RECORD_MERGER_POINT, NamedMerger, stored_name
from hudi_core.config.kinds import (
    MERGE_STRATEGY_IDS,
    PAYLOAD_STRATEGY_ID,
    MergeMode,
    PartialUpdateMode,
    PayloadKind,
)
from hudi_core.config.merge_keys import (
    FIRST_WITHOUT_PAYLOADS,
    MERGE_PROPERTY,
    STORED_PROPERTIES,
    DeleteMarker,
    MergeKeys,
    StoredMergeKeys,
)
from hudi_core.config.merge_rules import DEBEZIUM_UNAVAILABLE, payload_rule
from hudi_core.config.options import ConfigKey
from hudi_core.config.stored import Made, Property, Setting, StoredReader
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import InvalidOptionError, OptionConflictError
from hudi_core.extension.registry import named_by

_OF_TABLE: Final = (PartialUpdateMode.IGNORE_DEFAULTS, PartialUpdateMode.FILL_UNAVAILABLE)
_OF_WRITE: Final = (PartialUpdateMode.NONE, PartialUpdateMode.KEEP_VALUES)
"""Modes of partial updates that a table does not keep."""
_PLAIN: Final = (PayloadKind.DEFAULT, PayloadKind.EVENT_TIME, PayloadKind.LATEST)
"""Payload classes that mean a merge mode and nothing else."""


# --- of a new table -------------------------------------------------------------------------------


def _new_merging(options: Mapping[str, str], made: Made) -> Made:
    # a table of version 9 has no payload class, but what Hudi makes of it
    version = made["version"]
    MergeKeys.mergers.read(options)
    named = _named_merger(options)
    if named is not None:
        return _named_merging(options, named)
    payload = _given_payload(options)
    ordering = _ordering(options, payload, version)
    partial, unavailable = _partial_update(options, payload, version)
    own_marker = payload_rule(payload).delete if version >= FIRST_WITHOUT_PAYLOADS else None
    return {
        "ordering_fields": ordering,
        "merge_mode": _given_mode(options, payload, ordering, version),
        "payload": _kept_payload(payload, version),
        "delete_marker": _given_marker(options) or own_marker,
        "partial_update": partial,
        "unavailable_value": unavailable,
    }


def _named_merger(options: Mapping[str, str]) -> NamedMerger | None:
    """The record merger of another distribution that options name."""
    strategy = TableKeys.merge_strategy.read(options)
    if strategy is None or isinstance(strategy, MergeMode):
        return None
    name = RECORD_MERGER_POINT.find_name(strategy)
    if name is None:
        return None
    with named_by(TableKeys.merge_strategy.given_name(options), strategy):
        return NamedMerger.chosen(name, options)


def _named_merging(options: Mapping[str, str], named: NamedMerger) -> Made:
    """How a new table merges rows by a named record merger."""
    ordering = TableKeys.ordering.read(options)
    key = TableKeys.merge_strategy.given_name(options)
    if not ordering:
        raise InvalidOptionError(
            key,
            named.name,
            "it ranks versions of a row by ordering fields, and the table has none",
            f"Set {TableKeys.ordering.key}.",
        )
    _require_same_ordering(options, ordering)
    partial = MergeKeys.partial_update_mode
    rivals = {
        TableKeys.merge_mode: (None, MergeMode.CUSTOM),
        TableKeys.payload_class: (None,),
        partial: _OF_WRITE,
    }
    for rival, fitting in rivals.items():
        value = rival.read(options)
        if value not in fitting:
            raise rival.refused(
                str(value),
                f"rows are merged by the record merger {named.name}",
                "Give only one of them.",
                options,
            )
    return {
        "ordering_fields": ordering,
        "merge_mode": MergeMode.CUSTOM,
        "named_merger": named,
        "delete_marker": _given_marker(options),
        "unavailable_value": MergeKeys.unavailable_value.read(options),
    }


def _given_payload(options: Mapping[str, str]) -> PayloadKind | None:
    payload = TableKeys.payload_class.read(options)
    if payload is None or isinstance(payload, PayloadKind):
        return payload
    raise _foreign_code(TableKeys.payload_class, options, payload)


def _ordering(
    options: Mapping[str, str], payload: PayloadKind | None, version: int
) -> tuple[str, ...]:
    given = TableKeys.ordering.read(options)
    own = payload_rule(payload).ordering if version >= FIRST_WITHOUT_PAYLOADS else ()
    if own and given not in ((), own):
        raise TableKeys.ordering.refused(
            ",".join(given),
            f"a table of version {version} with this payload class orders by {','.join(own)}",
            "Drop the option, or name these fields.",
            options,
        )
    fields = own or given
    _require_same_ordering(options, fields)
    return fields


def _given_mode(
    options: Mapping[str, str], payload: PayloadKind | None, ordering: tuple[str, ...], version: int
) -> MergeMode:
    own = None
    if payload is not None:
        own = payload_rule(payload).mode
        if version >= FIRST_WITHOUT_PAYLOADS:
            own = payload_rule(payload).mode_without_payloads
    named: dict[str, MergeMode] = {}
    if own is not None:
        named[TableKeys.payload_class.given_name(options)] = own
    for key in (TableKeys.merge_mode, TableKeys.merge_strategy):
        mode = key.read(options)
        if mode is None:
            continue
        if not isinstance(mode, MergeMode) or (mode is MergeMode.CUSTOM and payload is None):
            raise key.refused(
                str(mode),
                "rows are not merged by code of others",
                f"Use EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING, or name a payload class of "
                f"Hudi's in {TableKeys.payload_class.key}.",
                options,
            )
        # what a table of version 9 has no word for any more
        if mode is MergeMode.CUSTOM and payload is not None and payload_rule(payload).mode is mode:
            continue
        named[key.given_name(options)] = mode
    if len(set(named.values())) > 1:
        first, second, *_ = (f"{name} means {mode}" for name, mode in named.items())
        name, mode = next(iter(named.items()))
        raise InvalidOptionError(
            name, mode.value, f"{first}, but {second}", f"Give only {TableKeys.merge_mode.key}."
        )
    if not named:
        return _default_mode(ordering)
    name, mode = next(iter(named.items()))
    if mode is MergeMode.EVENT_TIME_ORDERING and not ordering and payload is None:
        raise InvalidOptionError(
            name,
            mode.value,
            "ordering by event time needs an ordering field",
            f"Set {TableKeys.ordering.key}, or use COMMIT_TIME_ORDERING.",
        )
    return mode


def _partial_update(
    options: Mapping[str, str], payload: PayloadKind | None, version: int
) -> tuple[PartialUpdateMode, str | None]:
    key = MergeKeys.partial_update_mode
    given, value = key.read(options), MergeKeys.unavailable_value.read(options)
    if version < FIRST_WITHOUT_PAYLOADS:
        if given not in _OF_WRITE:
            raise key.refused(
                given.value,
                f"tables of version {version} cannot keep it",
                f"Create a table of version 9, or name a payload class in "
                f"{TableKeys.payload_class.key}.",
            )
        return PartialUpdateMode.NONE, value
    own = payload_rule(payload).partial
    if own is not PartialUpdateMode.NONE and given not in (*_OF_WRITE, own):
        raise key.refused(given.value, f"the payload class means {own}", "Give only one of them.")
    mode = own if given in _OF_WRITE else given
    if mode is PartialUpdateMode.FILL_UNAVAILABLE and value is None:
        if payload is not PayloadKind.POSTGRES_DEBEZIUM:
            raise key.refused(
                given.value,
                f"it needs {MergeKeys.unavailable_value.key}",
                "Set it to the string that marks a value that was not sent.",
            )
        value = DEBEZIUM_UNAVAILABLE
    return mode, value


# --- what a table has stored ----------------------------------------------------------------------


def _stored_merging(read: StoredReader, made: Made) -> Made:
    ordering, version = read(TableKeys.ordering.read), made["version"]
    strategy, merging = read(TableKeys.merge_strategy.read), read(TableKeys.payload_class.read)
    legacy = read(StoredMergeKeys.legacy_payload.read)
    has_payloads = version < FIRST_WITHOUT_PAYLOADS
    payload = merging if has_payloads or legacy is None else legacy
    declared = (read(TableKeys.merge_mode.read), _mode(strategy), _mode(merging))
    mode = next((one for one in declared if one is not None), _default_mode(ordering))
    is_built_in = has_payloads and _mode(payload) is mode and isinstance(payload, PayloadKind)
    merger = named = None
    if isinstance(strategy, str) and not isinstance(strategy, MergeMode):
        name = stored_name(strategy)
        named = None if name is None else NamedMerger.stored(name, read.properties)
    is_foreign = strategy not in (None, mode) or not is_built_in
    if named is None and mode is MergeMode.CUSTOM and is_foreign:
        own = payload if strategy in (None, mode) else strategy
        merger = f"merge mode CUSTOM{'' if own is None else f' by {own}'}"
    field, value = read(MergeKeys.delete_field.read), read(MergeKeys.delete_marker.read)
    return {
        "ordering_fields": ordering,
        "merge_mode": mode,
        "payload": _kept_payload(payload, version) if isinstance(payload, PayloadKind) else None,
        "named_merger": named,
        "merger": merger,
        "delete_marker": DeleteMarker(field, value) if field and value else None,
        "partial_update": read(StoredMergeKeys.partial_update.read),
        "unavailable_value": read(MergeKeys.unavailable_value.read),
    }


def _kept_payload(payload: PayloadKind | None, version: int) -> PayloadKind | None:
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


def _default_mode(ordering: tuple[str, ...]) -> MergeMode:
    """The default merge mode of a table, by its ordering fields."""
    return MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING


def _mode(value: PayloadKind | MergeMode | str | None) -> MergeMode | None:
    """The merge mode that a payload class or a strategy means."""
    if value is None or isinstance(value, MergeMode):
        return value
    return payload_rule(value).mode if isinstance(value, PayloadKind) else MergeMode.CUSTOM


# --- its properties -------------------------------------------------------------------------------


def _properties(config: TableConfig) -> list[Property]:
    """Return Hudi's merge properties; stored ones stay as they are."""
    if config.raw:
        return []
    mode, payload = config.merge_mode, config.payload
    properties: list[Property] = [("hoodie.record.merge.mode", mode.value)]
    fields = ",".join(config.ordering_fields) or None
    named = config.named_merger
    if named is not None:
        properties += [("hoodie.record.merge.strategy.id", named.name), *named.properties.items()]
    if config.delete_marker is not None:
        properties += [
            (MergeKeys.delete_field.aliases[0], config.delete_marker.field),
            (MergeKeys.delete_marker.aliases[0], config.delete_marker.value),
        ]
    if config.version >= FIRST_WITHOUT_PAYLOADS:
        partial = config.partial_update
        return [
            *properties,
            ("hoodie.table.ordering.fields", fields),
            (StoredMergeKeys.legacy_payload.key, payload),
            (
                MergeKeys.partial_update_mode.key,
                None if partial is PartialUpdateMode.NONE else partial,
            ),
            (MergeKeys.unavailable_value.aliases[0], config.unavailable_value),
        ]
    if named is not None:
        return [*properties, ("hoodie.table.precombine.field", fields)]
    if payload is None:
        is_event = mode is MergeMode.EVENT_TIME_ORDERING
        payload = PayloadKind.DEFAULT if is_event else PayloadKind.LATEST
    strategy = PAYLOAD_STRATEGY_ID if mode is MergeMode.CUSTOM else MERGE_STRATEGY_IDS[mode]
    # Hudi 1.0 has no other name for the ordering field
    return [
        *properties,
        ("hoodie.table.precombine.field", fields),
        ("hoodie.compaction.payload.class", payload),
        ("hoodie.record.merge.strategy.id", strategy),
    ]


# --- options against a stored table ---------------------------------------------------------------


def _foreign_code(
    key: ConfigKey[Any], options: Mapping[str, str], named: str
) -> InvalidOptionError:
    """The error of an option that names code of others."""
    return key.refused(
        named,
        "rows are not merged by code of others: no Java class is loaded",
        f"Built in are: {', '.join(known.short_name for known in PayloadKind)}, of the package "
        f"{PayloadKind.DEFAULT.value.rpartition('.')[0]} and debezium below it. Values that are "
        "computed from both rows are for Table.merge, or MERGE INTO by hudi.sql.",
        options,
    )


def _require_same_ordering(options: Mapping[str, str], fields: tuple[str, ...]) -> None:
    """Refuse a payload's ordering field that differs from the table's.

    Hudi looks at it where a table has no ordering fields, and only for some payload classes.
    """
    key = MergeKeys.payload_ordering
    if key.is_given(options) and key.read(options) not in ((), fields):
        raise key.refused(
            options[key.key],
            f"the table orders by {','.join(fields) or 'no field'}",
            "Name the ordering fields by hoodie.table.ordering.fields, when the table is created.",
        )


def _given_marker(options: Mapping[str, str]) -> DeleteMarker | None:
    """The delete marker that options name."""
    field, value = (key.read(options) for key in (MergeKeys.delete_field, MergeKeys.delete_marker))
    if field is None and value is None:
        return None
    if field is None or value is None:
        there, missing = MergeKeys.delete_field, MergeKeys.delete_marker
        if field is None:
            there, missing = missing, there
        raise there.refused(
            field or value, f"it needs {missing.key}", f"Set {missing.key} as well.", options
        )
    return DeleteMarker(field, value)


def _against(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    TableKeys.ordering.require_same(options, stored.ordering_fields, stored.raw)
    MergeKeys.mergers.read(options)
    _require_same_ordering(options, stored.ordering_fields)
    payload = TableKeys.payload_class.read(options)
    is_foreign = payload is not None and not isinstance(payload, PayloadKind)
    if is_foreign and stored.payload is None and payload != stored.merger:
        raise _foreign_code(TableKeys.payload_class, options, str(payload))
    if payload is not None and payload is not stored.payload:
        same = stored.payload in (None, *_PLAIN) and payload in _PLAIN
        if not (same and _mode(payload) is stored.merge_mode):
            had = stored.payload or stored.merger or stored.merge_mode
            name = TableKeys.payload_class.given_name(options)
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
            raise _foreign_code(key, options, mode)
        if not (mode is MergeMode.CUSTOM and by_payload):
            had = stored.merge_mode.value if named is None else named.name
            raise OptionConflictError(key.given_name(options), str(mode), had)
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
    marker = _marker_for(options, stored)
    return stored if marker == stored.delete_marker else replace(stored, delete_marker=marker)


def _marker_for(options: Mapping[str, str], stored: TableConfig) -> DeleteMarker | None:
    """The delete marker of a write: the table's, else the options'."""
    given = _given_marker(options)
    if given is None or stored.delete_marker is None:
        return given or stored.delete_marker
    for key, wanted, had in (
        (MergeKeys.delete_field, given.field, stored.delete_marker.field),
        (MergeKeys.delete_marker, given.value, stored.delete_marker.value),
    ):
        if wanted != had:
            raise OptionConflictError(key.given_name(options), wanted, had)
    return stored.delete_marker


_COMPARED: Final = tuple(
    name
    for key in (
        TableKeys.ordering,
        TableKeys.merge_mode,
        TableKeys.merge_strategy,
        TableKeys.payload_class,
        *MergeKeys.keys,
    )
    for name in key.names
)
MERGING: Final = Setting(
    _new_merging, _stored_merging, _properties, _against, _COMPARED, lambda _: _COMPARED
)
