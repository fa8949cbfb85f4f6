"""Merge rules: the outcome of merge mode, payload class and properties.

Source: ``HoodieTableConfig.inferMergingConfigsForV9TableCreation`` and ``getTableMergeProperties``,
``BufferedRecordMergerFactory``, ``PartialUpdateHandler``, ``DeleteContext``; and, for tables of
version 8, the payload classes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from hudi_core.config.extension_points import NamedMerger
from hudi_core.config.kinds import MergeMode, PartialUpdateMode, PayloadKind
from hudi_core.config.merge_keys import FIRST_WITHOUT_PAYLOADS, DeleteMarker
from hudi_core.config.table import TableConfig

DEBEZIUM_UNAVAILABLE: Final = "__debezium_unavailable_value"
"""What Debezium sends for a column of Postgres that did not change and is stored out of line."""

_LSN: Final = "_event_lsn"
_BINLOG_SEQUENCE: Final = "_event_seq"


@dataclass(frozen=True, slots=True)
class PayloadRule:
    """What a payload class means.

    ``mode`` is the merge mode that tables of version 8 store for it. The rest is what version 9,
    whose rows no payload class merges, has instead: ``mode_without_payloads``, the ``delete``
    marker, the ``ordering`` fields, empty where the user names them, and the mode of ``partial``
    updates.
    """

    mode: MergeMode = MergeMode.CUSTOM
    mode_without_payloads: MergeMode = MergeMode.EVENT_TIME_ORDERING
    delete: DeleteMarker | None = None
    ordering: tuple[str, ...] = ()
    partial: PartialUpdateMode = PartialUpdateMode.NONE


_BY_COMMIT: Final = MergeMode.COMMIT_TIME_ORDERING
_DEBEZIUM_DELETE: Final = DeleteMarker("_change_operation_type", "d")
_PAYLOAD_RULES: Final[Mapping[PayloadKind, PayloadRule]] = {
    PayloadKind.DEFAULT: PayloadRule(MergeMode.EVENT_TIME_ORDERING),
    PayloadKind.EVENT_TIME: PayloadRule(MergeMode.EVENT_TIME_ORDERING),
    PayloadKind.LATEST: PayloadRule(_BY_COMMIT, _BY_COMMIT),
    PayloadKind.NON_DEFAULTS: PayloadRule(
        mode_without_payloads=_BY_COMMIT, partial=PartialUpdateMode.IGNORE_DEFAULTS
    ),
    PayloadKind.PARTIAL_UPDATE: PayloadRule(partial=PartialUpdateMode.IGNORE_DEFAULTS),
    PayloadKind.AWS_DMS: PayloadRule(
        mode_without_payloads=_BY_COMMIT, delete=DeleteMarker("Op", "D")
    ),
    PayloadKind.POSTGRES_DEBEZIUM: PayloadRule(
        delete=_DEBEZIUM_DELETE, ordering=(_LSN,), partial=PartialUpdateMode.FILL_UNAVAILABLE
    ),
    PayloadKind.MYSQL_DEBEZIUM: PayloadRule(
        delete=_DEBEZIUM_DELETE, ordering=("_event_bin_file", "_event_pos")
    ),
}


def payload_rule(payload: PayloadKind | None) -> PayloadRule:
    """What a payload class means; nothing for none."""
    return PayloadRule() if payload is None else _PAYLOAD_RULES[payload]


class Fill(StrEnum):
    """Which values the winning version takes from the other."""

    NULLS = "nulls"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How versions of a row are merged.

    ``batch_order`` and ``stored_order`` are the columns, the first one first, that decide which
    version is later: among incoming rows, and of an incoming row against the stored one. Empty: the
    incoming row counts, and among them the one that arrived last. ``named`` is a record merger of
    another distribution that makes ranks of these columns, the greater being the later.
    ``is_sequence`` means that the ordering column holds a file number and a position, as in
    ``000012.3045``.

    ``markers`` make a row a delete, besides ``_hoodie_is_deleted``; ``deletes_always`` lets it hold
    against a later stored row. ``fill`` is which values are taken from the version that does not
    count, ``None`` for none; ``unavailable`` is the text for which :attr:`Fill.UNAVAILABLE` takes
    the other value. ``never_filled`` are top-level columns of the partition: a row lies where they
    say, so that none comes from another version. ``fills_batch`` lets incoming rows with one key
    fill each other; ``fills_stored`` lets one that is too late fill the stored row;
    ``late_is_written`` gives the stored row its meta columns in logs, too.
    """

    batch_order: tuple[str, ...] = ()
    stored_order: tuple[str, ...] = ()
    named: NamedMerger | None = None
    is_sequence: bool = False
    markers: tuple[DeleteMarker, ...] = ()
    fill: Fill | None = None
    unavailable: str | None = None
    never_filled: frozenset[str] = frozenset()
    fills_batch: bool = True
    fills_stored: bool = True
    deletes_always: bool = False
    late_is_written: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns that decide, each once; nested ones with dots."""
        markers = (marker.field for marker in self.markers)
        return tuple(dict.fromkeys((*self.batch_order, *self.stored_order, *markers)))

    @property
    def order(self) -> tuple[str, ...]:
        """The ordering columns, each once."""
        return tuple(dict.fromkeys((*self.batch_order, *self.stored_order)))


def merge_rules(config: TableConfig) -> MergeRules:
    """The rules by which a table merges versions of a row.

    A table that merges by code of its own must have been refused before.
    """
    markers = () if config.delete_marker is None else (config.delete_marker,)
    fields = config.ordering_fields
    if config.named_merger is not None:
        return MergeRules(fields, fields, config.named_merger, markers=markers)
    if config.version >= FIRST_WITHOUT_PAYLOADS or config.merge_mode is not MergeMode.CUSTOM:
        ordered = config.merge_mode is MergeMode.EVENT_TIME_ORDERING
        order = fields if ordered else ()
        if config.version < FIRST_WITHOUT_PAYLOADS:
            own = payload_rule(config.payload).delete
            markers = markers if own is None else (own,)
        rules = MergeRules(order, order, markers=markers)
        rules = _filling(rules, config)
    else:
        rules = _of_payload(config.payload, fields, markers)
    tops = frozenset(name.partition(".")[0] for name in config.partition_fields)
    return rules if rules.fill is None else replace(rules, never_filled=tops)


def _of_payload(
    payload: PayloadKind | None, fields: tuple[str, ...], markers: tuple[DeleteMarker, ...]
) -> MergeRules:
    """The rules of a payload class of a table of version 8."""
    own = payload_rule(payload).delete
    if own is not None:
        markers = (replace(own, any_case=True),)
    match payload:
        case PayloadKind.POSTGRES_DEBEZIUM:
            return MergeRules(
                batch_order=fields,
                stored_order=(_LSN,),
                markers=markers,
                fill=Fill.UNAVAILABLE,
                unavailable=DEBEZIUM_UNAVAILABLE,
                fills_batch=False,
                fills_stored=False,
            )
        case PayloadKind.MYSQL_DEBEZIUM:
            order = (_BINLOG_SEQUENCE,)
            return MergeRules(order, order, is_sequence=True, markers=markers)
        case PayloadKind.PARTIAL_UPDATE:
            return MergeRules(
                fields,
                fields,
                markers=markers,
                fill=Fill.NULLS,
                deletes_always=True,
                late_is_written=True,
            )
        case PayloadKind.NON_DEFAULTS:
            return MergeRules(fields, (), markers=markers, fill=Fill.NULLS, fills_batch=False)
    return MergeRules(batch_order=fields, markers=markers)


def _filling(rules: MergeRules, config: TableConfig) -> MergeRules:
    match config.partial_update:
        case PartialUpdateMode.IGNORE_DEFAULTS:
            return replace(rules, fill=Fill.NULLS)
        case PartialUpdateMode.FILL_UNAVAILABLE if config.unavailable_value is not None:
            return replace(rules, fill=Fill.UNAVAILABLE, unavailable=config.unavailable_value)
    return rules
