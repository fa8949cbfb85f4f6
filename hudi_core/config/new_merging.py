"""How a new table merges versions of a row, by user options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_core.config.extension_points import RECORD_MERGER_POINT
from hudi_core.config.kinds import MergeMode, PartialUpdateMode, PayloadKind
from hudi_core.config.merge_keys import FIRST_WITHOUT_PAYLOADS, MergeKeys
from hudi_core.config.merge_rules import (
    DEBEZIUM_UNAVAILABLE,
    delete_of,
    ordering_of,
    partial_update_of,
)
from hudi_core.config.merging import (
    OF_WRITE,
    default_mode,
    foreign_code,
    given_marker,
    given_name,
    kept_payload,
    require_same_ordering,
)
from hudi_core.config.named_generators import NamedMerger
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import InvalidOptionError
from hudi_core.extension.registry import named_by


def new_merging(options: Mapping[str, str], version: int) -> dict[str, Any]:
    """Return how a new table merges rows: fields of its ``TableConfig``.

    A table of version 9 has no payload class, but what Hudi makes of it.
    """
    MergeKeys.mergers.read(options)
    named = _named_merger(options)
    if named is not None:
        return _named_merging(options, named)
    payload = _given_payload(options)
    ordering = _ordering(options, payload, version)
    partial, unavailable = _partial_update(options, payload, version)
    own_marker = delete_of(payload) if version >= FIRST_WITHOUT_PAYLOADS else None
    return {
        "ordering_fields": ordering,
        "merge_mode": _given_mode(options, payload, ordering, version),
        "payload": kept_payload(payload, version),
        "delete_marker": given_marker(options) or own_marker,
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
    with named_by(given_name(TableKeys.merge_strategy, options), strategy):
        return NamedMerger.chosen(name, options)


def _named_merging(options: Mapping[str, str], named: NamedMerger) -> dict[str, Any]:
    """How a new table merges rows by a named record merger."""
    ordering = TableKeys.ordering.read(options)
    key = given_name(TableKeys.merge_strategy, options)
    if not ordering:
        raise InvalidOptionError(
            key,
            named.name,
            "it ranks versions of a row by ordering fields, and the table has none",
            f"Set {TableKeys.ordering.key}.",
        )
    require_same_ordering(options, ordering)
    partial = MergeKeys.partial_update_mode
    rivals = {
        TableKeys.merge_mode: (None, MergeMode.CUSTOM),
        TableKeys.payload_class: (None,),
        partial: OF_WRITE,
    }
    for rival, fitting in rivals.items():
        value = rival.read(options)
        if value not in fitting:
            raise InvalidOptionError(
                given_name(rival, options),
                str(value),
                f"rows are merged by the record merger {named.name}",
                "Give only one of them.",
            )
    return {
        "ordering_fields": ordering,
        "merge_mode": MergeMode.CUSTOM,
        "named_merger": named,
        "delete_marker": given_marker(options),
        "unavailable_value": MergeKeys.unavailable_value.read(options),
    }


def _given_payload(options: Mapping[str, str]) -> PayloadKind | None:
    payload = TableKeys.payload_class.read(options)
    if payload is None or isinstance(payload, PayloadKind):
        return payload
    raise foreign_code(TableKeys.payload_class, options, payload)


def _ordering(
    options: Mapping[str, str], payload: PayloadKind | None, version: int
) -> tuple[str, ...]:
    given = TableKeys.ordering.read(options)
    own = ordering_of(payload) if version >= FIRST_WITHOUT_PAYLOADS else ()
    if own and given not in ((), own):
        raise InvalidOptionError(
            given_name(TableKeys.ordering, options),
            ",".join(given),
            f"a table of version {version} with this payload class orders by {','.join(own)}",
            "Drop the option, or name these fields.",
        )
    fields = own or given
    require_same_ordering(options, fields)
    return fields


def _given_mode(
    options: Mapping[str, str], payload: PayloadKind | None, ordering: tuple[str, ...], version: int
) -> MergeMode:
    own = None
    if payload is not None:
        own = payload.merge_mode
        if version >= FIRST_WITHOUT_PAYLOADS:
            own = payload.merge_mode_without_payloads
    named: dict[str, MergeMode] = {}
    if own is not None:
        named[given_name(TableKeys.payload_class, options)] = own
    for key in (TableKeys.merge_mode, TableKeys.merge_strategy):
        mode = key.read(options)
        if mode is None:
            continue
        if not isinstance(mode, MergeMode) or (mode is MergeMode.CUSTOM and payload is None):
            raise InvalidOptionError(
                given_name(key, options),
                str(mode),
                "rows are not merged by code of others",
                f"Use EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING, or name a payload class of "
                f"Hudi's in {TableKeys.payload_class.key}.",
            )
        # what a table of version 9 has no word for any more
        if mode is MergeMode.CUSTOM and payload is not None and payload.merge_mode is mode:
            continue
        named[given_name(key, options)] = mode
    if len(set(named.values())) > 1:
        first, second, *_ = (f"{name} means {mode}" for name, mode in named.items())
        name, mode = next(iter(named.items()))
        raise InvalidOptionError(
            name, mode.value, f"{first}, but {second}", f"Give only {TableKeys.merge_mode.key}."
        )
    if not named:
        return default_mode(ordering)
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
        if given not in OF_WRITE:
            raise InvalidOptionError(
                key.key,
                given.value,
                f"tables of version {version} cannot keep it",
                f"Create a table of version 9, or name a payload class in "
                f"{TableKeys.payload_class.key}.",
            )
        return PartialUpdateMode.NONE, value
    own = partial_update_of(payload)
    if own is not PartialUpdateMode.NONE and given not in (*OF_WRITE, own):
        raise InvalidOptionError(
            key.key, given.value, f"the payload class means {own}", "Give only one of them."
        )
    mode = own if given in OF_WRITE else given
    if mode is PartialUpdateMode.FILL_UNAVAILABLE and value is None:
        if payload is not PayloadKind.POSTGRES_DEBEZIUM:
            raise InvalidOptionError(
                key.key,
                given.value,
                f"it needs {MergeKeys.unavailable_value.key}",
                "Set it to the string that marks a value that was not sent.",
            )
        value = DEBEZIUM_UNAVAILABLE
    return mode, value
