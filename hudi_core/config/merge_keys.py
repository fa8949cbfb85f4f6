"""Merge options beside ordering fields, merge mode and payload.

A table keeps some of them under Hudi's prefix for what merging needs; the stored names are aliases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hudi_core.config.kinds import PartialUpdateMode, PayloadKind
from hudi_core.config.options import ConfigKey, Group, Options
from hudi_core.config.table_parsers import (
    IGNORE_MARKERS,
    merger_classes,
    partial_update_mode,
    payload_class,
    stored_partial_update,
)

MERGE_PROPERTY: Final = "hoodie.record.merge.property."
"""Prefix of the properties that readers need in order to merge."""

FIRST_WITHOUT_PAYLOADS: Final = 9
"""Table version from which on rows are merged by properties only, not by a payload class."""


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """A value of a column that makes a row a delete.

    ``field`` has dots between the names of nested fields; ``value`` is text, compared without
    regard to case with ``any_case``.
    """

    field: str
    value: str
    any_case: bool = False


class MergeKeys(Options, group=Group.TABLE):
    """What a user may say of merging."""

    delete_field = ConfigKey[str | None](
        "hoodie.payload.delete.field", aliases=(f"{MERGE_PROPERTY}hoodie.payload.delete.field",)
    )
    """Column that marks deletes: a row whose value there is that of `hoodie.payload.delete.marker`
    deletes the row of its key, as `_hoodie_is_deleted` does. A new table keeps it; for a table that
    keeps none it holds for the write it is given to."""
    delete_marker = ConfigKey[str | None](
        "hoodie.payload.delete.marker", aliases=(f"{MERGE_PROPERTY}hoodie.payload.delete.marker",)
    )
    """Value of `hoodie.payload.delete.field` that makes a row a delete, such as `D`."""
    partial_update_mode = ConfigKey(
        "hoodie.table.partial.update.mode",
        default=PartialUpdateMode.NONE,
        parse=partial_update_mode,
        choices=(*PartialUpdateMode, IGNORE_MARKERS),
    )
    """Which values of a row are taken from the version before. NONE: none; rows that lack columns
    are refused. KEEP_VALUES: those of columns that incoming rows lack, each its own; an updated row
    keeps its values, a new row has nulls. It holds for the write it is given to and is not kept
    with the table. IGNORE_DEFAULTS: those of columns that are null. FILL_UNAVAILABLE: those of
    columns that hold the text `hoodie.write.partial.update.unavailable.value`. The last two are
    chosen when a table of version 9 is created."""
    unavailable_value = ConfigKey[str | None](
        "hoodie.write.partial.update.unavailable.value",
        aliases=(f"{MERGE_PROPERTY}hoodie.write.partial.update.unavailable.value",),
    )
    """What a source sends instead of a value that did not change; see
    `hoodie.table.partial.update.mode`."""
    payload_ordering = ConfigKey[tuple[str, ...]](
        "hoodie.payload.ordering.field", default=(), default_text="(the ordering fields)"
    )
    """Has to name the ordering fields of the table, which decide."""
    mergers = ConfigKey[tuple[str, ...]](
        "hoodie.write.record.merge.custom.implementation.classes",
        default=(),
        parse=merger_classes,
        aliases=("hoodie.datasource.write.record.merger.impls",),
        default_text="(as the merge mode says)",
    )
    """Classes that merge rows. Those that come with Hudi do what the merge mode says, and are
    accepted; others are refused."""


class StoredMergeKeys(Options, group=Group.TABLE):
    """What a table may say of merging besides."""

    partial_update = ConfigKey[PartialUpdateMode | str](
        MergeKeys.partial_update_mode.key,
        default=PartialUpdateMode.NONE,
        parse=stored_partial_update,
    )
    """The same as a table keeps it; one that is not known shuts out writers only."""
    legacy_payload = ConfigKey[PayloadKind | str | None](
        "hoodie.table.legacy.payload.class", parse=payload_class
    )
    """Payload class that a table of version 9 was created for; rows are merged by the rule that it
    means."""


STORED_PROPERTIES: Final = frozenset(
    name
    for key in (MergeKeys.delete_field, MergeKeys.delete_marker, MergeKeys.unavailable_value)
    for name in key.names
    if name.startswith(MERGE_PROPERTY)
)
"""The merge properties whose meaning is known; a table with others is not written."""
