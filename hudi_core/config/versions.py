"""Properties of tables in another version, as Hudi's upgrades leave them.

Versions differ in the timeline's layout (6 against 8) and in how a table says by which rule its
rows are merged: by a payload class up to version 8, by properties alone from version 9 on. The
rules that both say are those of :mod:`hudi_core.config.merge_rules`.

Source: Hudi's handlers ``SevenToEightUpgradeHandler``, ``EightToNineUpgradeHandler``,
``NineToEightDowngradeHandler`` and ``EightToSevenDowngradeHandler``, and what its upgrades of real
tables leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudi_core.config.key_generators import class_of_word, typed_fields, word_of_class
from hudi_core.config.kinds import (
    MERGE_STRATEGY_IDS,
    PAYLOAD_STRATEGY_ID,
    MergeMode,
    PartialUpdateMode,
    PayloadKind,
    TableType,
)
from hudi_core.config.merge_keys import MergeKeys, StoredMergeKeys
from hudi_core.config.merge_rules import DEBEZIUM_UNAVAILABLE, payload_rule
from hudi_core.config.properties import CHECKSUM_KEY
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import UnsupportedTableError

Properties = dict[str, str]

TARGETS: Final = (6, 8, 9)
"""Versions that a table can be brought to."""

_MODE: Final = "hoodie.record.merge.mode"
_STRATEGY: Final = "hoodie.record.merge.strategy.id"
_OLD_STRATEGY: Final = "hoodie.compaction.record.merger.strategy"
"""Where releases before 1.0 look for the strategy."""
_PAYLOAD: Final = "hoodie.compaction.payload.class"
_LEGACY: Final = StoredMergeKeys.legacy_payload.key
_PARTIAL: Final = StoredMergeKeys.partial_update.key
_ORDERING: Final = "hoodie.table.ordering.fields"
_PRECOMBINE: Final = "hoodie.table.precombine.field"
_MARKER: Final = (MergeKeys.delete_field.aliases[0], MergeKeys.delete_marker.aliases[0])
_UNAVAILABLE: Final = MergeKeys.unavailable_value.aliases[0]
_BINLOG_SEQUENCE: Final = "_event_seq"
_PLAIN: Final = (PayloadKind.DEFAULT, PayloadKind.EVENT_TIME, PayloadKind.LATEST)
"""Payload classes that a merge mode says all of."""
_OLD_PACKAGE: Final = "com.uber.hoodie."


def properties_in(properties: Mapping[str, str], to: int, base_path: str) -> Properties:
    """Every property of a table once it has another version.

    The checksum is left out.

    ``properties`` are those of version 6, 8 or 9; so is ``to``. Merging that cannot be said in
    that version is refused.
    """
    made = {key: text for key, text in properties.items() if key != CHECKSUM_KEY}
    change = _CHANGES.get((TableKeys.version.read(made), to))
    if change is not None:
        made = change(made, base_path)
        made[TableKeys.version.property_name] = str(to)
    return made


def _from_6_to_9(properties: Properties, base_path: str) -> Properties:
    made = _from_6_to_8(properties, base_path)
    # version 9 has the words for what version 8 does not distinguish
    made[_PAYLOAD] = _payload_of_6(properties)
    made = _from_8_to_9(made, base_path)
    made.pop(_STRATEGY, None)
    return made


def _payload_of_6(properties: Properties) -> str:
    """The payload class of a table of version 6."""
    text = properties.get(_PAYLOAD, "").replace(_OLD_PACKAGE, "org.apache.hudi.")
    return text or PayloadKind.DEFAULT.value


def _from_6_to_8(properties: Properties, base_path: str) -> Properties:
    del base_path
    made = dict(properties)
    made[ManagedKeys.initial_version.key] = "6"
    made[ManagedKeys.layout_version.key] = "2"
    made[ManagedKeys.timeline_path.key] = ManagedKeys.timeline_path.default
    made |= _key_generator(properties)
    payload = _payload_of_6(properties)
    if payload not in _PLAIN:
        mode, strategy = MergeMode.CUSTOM, PAYLOAD_STRATEGY_ID
    elif payload == PayloadKind.DEFAULT or _orders_logs(properties):
        mode, payload = MergeMode.EVENT_TIME_ORDERING, PayloadKind.DEFAULT.value
        strategy = MERGE_STRATEGY_IDS[mode]
    else:
        # also the class that orders by event time: so does Hudi, for tables without log files
        mode, payload = MergeMode.COMMIT_TIME_ORDERING, PayloadKind.LATEST.value
        strategy = MERGE_STRATEGY_IDS[mode]
    made |= {_MODE: mode.value, _PAYLOAD: payload, _STRATEGY: strategy, _OLD_STRATEGY: strategy}
    return made


def _orders_logs(properties: Mapping[str, str]) -> bool:
    """Whether a table has log files and ordering fields.

    Hudi orders its rows by them from version 8 on, whichever of the plain classes it had.
    """
    has_logs = TableKeys.table_type.read(properties) is TableType.MERGE_ON_READ
    return has_logs and bool(properties.get(_ORDERING) or properties.get(_PRECOMBINE))


def _key_generator(properties: Mapping[str, str]) -> Properties:
    """Both names of the key generator, where one of them is stored."""
    name = properties.get(TableKeys.key_generator_class.aliases[0])
    word = properties.get(TableKeys.key_generator.aliases[0])
    name = name or (class_of_word(word) if word else None)
    word = word_of_class(name) if name else None
    if not name or not word:
        return {}
    return {
        TableKeys.key_generator_class.aliases[0]: name,
        TableKeys.key_generator.aliases[0]: word,
    }


def _from_8_to_9(properties: Properties, base_path: str) -> Properties:
    del base_path
    made = dict(properties)
    text = properties.get(_PAYLOAD)
    payload = _known(text or PayloadKind.DEFAULT)
    if properties.get(_MODE) != MergeMode.CUSTOM:
        made.pop(_STRATEGY, None)
    elif not text:
        return _ordered(made, ())  # merged by a strategy, which goes on
    if payload is None:
        return _ordered(made, ())
    if payload not in (PayloadKind.DEFAULT, PayloadKind.LATEST):
        mode = payload_rule(payload).mode_without_payloads
        made[_MODE] = mode.value
        made |= dict.fromkeys((_STRATEGY, _OLD_STRATEGY), MERGE_STRATEGY_IDS[mode])
    made.pop(_PAYLOAD, None)
    made[_LEGACY] = payload.value
    made |= _partial_update(payload)
    return _ordered(made, payload_rule(payload).ordering)


def _partial_update(payload: PayloadKind) -> Properties:
    """What a payload class does beside choosing, as properties."""
    found = {}
    mode, marker = payload_rule(payload).partial, payload_rule(payload).delete
    if mode is not PartialUpdateMode.NONE:
        found[_PARTIAL] = mode.value
    if mode is PartialUpdateMode.FILL_UNAVAILABLE:
        found[_UNAVAILABLE] = DEBEZIUM_UNAVAILABLE
    if marker is not None:
        found |= dict(zip(_MARKER, (marker.field, marker.value), strict=True))
    return found


def _ordered(made: Properties, own: tuple[str, ...]) -> Properties:
    """The properties with the ordering fields under the name of version 9."""
    fields = ",".join(own) or made.get(_ORDERING) or made.get(_PRECOMBINE)
    made.pop(_PRECOMBINE, None)
    return {**made, _ORDERING: fields} if fields else made


def _from_9_to_8(properties: Properties, base_path: str) -> Properties:
    made = dict(properties)
    payload = _known(properties.get(_LEGACY))
    _require_sayable(properties, payload, base_path)
    made.pop(_PARTIAL, None)
    mode = MergeMode(properties[_MODE]) if _MODE in properties else None
    if mode in MERGE_STRATEGY_IDS:
        made |= dict.fromkeys((_STRATEGY, _OLD_STRATEGY), MERGE_STRATEGY_IDS[mode])
    if payload is PayloadKind.LATEST and mode is MergeMode.EVENT_TIME_ORDERING:
        payload = PayloadKind.DEFAULT  # it was the class of a table with logs in version 6
    if payload is not None:
        made.pop(_LEGACY)
        made[_PAYLOAD] = payload.value
        if payload not in _PLAIN:
            made |= dict.fromkeys((_STRATEGY, _OLD_STRATEGY), PAYLOAD_STRATEGY_ID)
            made[_MODE] = MergeMode.CUSTOM.value
        for key in _partial_update(payload):
            made.pop(key, None)
    fields = made.pop(_ORDERING, None) or made.get(_PRECOMBINE)
    if payload is PayloadKind.MYSQL_DEBEZIUM:
        fields = _BINLOG_SEQUENCE
    return {**made, _PRECOMBINE: fields} if fields else made


def _require_sayable(
    properties: Mapping[str, str], payload: PayloadKind | None, base_path: str
) -> None:
    """Refuse a table whose merging version 8 has no words for."""
    expressed = {} if payload is None else _partial_update(payload)
    for key in (_PARTIAL, _UNAVAILABLE):
        text = properties.get(key)
        if text and text != PartialUpdateMode.NONE and key not in expressed:
            raise UnsupportedTableError(
                base_path,
                f"merges partial updates ({key}={text}), which tables of version 8 do by a "
                "payload class only",
                "Leave it at version 9, or copy its rows into a new table of version 8.",
            )


def _known(text: str | None) -> PayloadKind | None:
    """The built-in payload class of a name, else ``None``."""
    return PayloadKind(text) if text in list(PayloadKind) else None


def _from_8_to_6(properties: Properties, base_path: str) -> Properties:
    made = dict(properties)
    mode = MergeMode(made[_MODE]) if _MODE in made else MergeMode.EVENT_TIME_ORDERING
    payload = made.get(_PAYLOAD) or _PAYLOADS.get(mode)
    if payload is None:
        raise UnsupportedTableError(
            base_path,
            "merges rows by a record merger, and version 6 knows payload classes only",
            "Leave it at version 8 or 9.",
        )
    fields = made.get(_ORDERING) or made.get(_PRECOMBINE)
    if fields and "," in fields:
        raise UnsupportedTableError(
            base_path,
            f"orders rows by several fields ({fields}), and version 6 by one",
            "Leave it at version 8 or 9.",
        )
    made |= _key_generator(properties)
    for key in _NOT_IN_6:
        made.pop(key, None)
    names = TableKeys.partition_path.aliases[0]
    if names in made:
        made[names] = ",".join(typed_fields(tuple(made[names].split(",")))[0])
    made |= {ManagedKeys.layout_version.key: "1", _PAYLOAD: payload}
    return {**made, _PRECOMBINE: fields} if fields else made


def _from_9_to_6(properties: Properties, base_path: str) -> Properties:
    return _from_8_to_6(_from_9_to_8(properties, base_path), base_path)


_PAYLOADS: Final[Mapping[MergeMode, str]] = {
    MergeMode.EVENT_TIME_ORDERING: PayloadKind.DEFAULT.value,
    MergeMode.COMMIT_TIME_ORDERING: PayloadKind.LATEST.value,
}
_NOT_IN_6: Final = (
    *(_MODE, _STRATEGY, _OLD_STRATEGY, _ORDERING, _LEGACY),
    *(TableKeys.key_generator.aliases[0], TableKeys.table_format.key),
    ManagedKeys.initial_version.key,
    ManagedKeys.timeline_path.key,
    ManagedKeys.history_path.key,
    ManagedKeys.metadata_partitions.key,
    ManagedKeys.metadata_partitions_inflight.key,
    "hoodie.table.index.defs.path",
)

_CHANGES: Final[Mapping[tuple[int, int], Callable[[Properties, str], Properties]]] = {
    (6, 8): _from_6_to_8,
    (6, 9): _from_6_to_9,
    (8, 9): _from_8_to_9,
    (9, 8): _from_9_to_8,
    (8, 6): _from_8_to_6,
    (9, 6): _from_9_to_6,
}
"""What is done to the properties, by the versions before and after."""
