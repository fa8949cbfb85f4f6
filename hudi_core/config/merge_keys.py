"""How versions of a row are merged: the options beside ordering fields, merge mode and payload.

A table keeps some of them under Hudi's prefix for what merging needs; the stored names are aliases.
"""

from __future__ import annotations

from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.kinds import PartialUpdateMode, Payload
from hudi_core.config.parsers import names, text_or_none
from hudi_core.config.table_parsers import (
    IGNORE_MARKERS,
    merger_classes,
    partial_update_mode,
    payload_class,
    stored_partial_update,
)

MERGE_PROPERTY: Final = "hoodie.record.merge.property."
"""Prefix of the properties that readers need in order to merge."""

DELETE_FIELD: Final = ConfigKey(
    key="hoodie.payload.delete.field",
    aliases=(f"{MERGE_PROPERTY}hoodie.payload.delete.field",),
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="Column that marks deletes: a row whose value there is that of "
    "`hoodie.payload.delete.marker` deletes the row of its key, as `_hoodie_is_deleted` does. A "
    "new table keeps it; for a table that keeps none it holds for the write it is given to.",
    group=Group.TABLE,
)
DELETE_MARKER: Final = ConfigKey(
    key="hoodie.payload.delete.marker",
    aliases=(f"{MERGE_PROPERTY}hoodie.payload.delete.marker",),
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="Value of `hoodie.payload.delete.field` that makes a row a delete, such as `D`.",
    group=Group.TABLE,
)
PARTIAL_UPDATE_MODE: Final = ConfigKey(
    key="hoodie.table.partial.update.mode",
    default=PartialUpdateMode.NONE,
    parse=partial_update_mode,
    choices=(*PartialUpdateMode, IGNORE_MARKERS),
    doc="Which values of a row are taken from the version before. NONE: none; rows that lack "
    "columns are refused. KEEP_VALUES: those of columns that all incoming rows lack; an updated "
    "row keeps its values, a new row has nulls. It holds for the write it is given to and is not "
    "kept with the table. IGNORE_DEFAULTS: those of columns that are null. FILL_UNAVAILABLE: those "
    "of columns that hold the text `hoodie.write.partial.update.unavailable.value`. The last two "
    "are chosen when a table of version 9 is created.",
    group=Group.TABLE,
)
STORED_PARTIAL_UPDATE: Final[ConfigKey[PartialUpdateMode | str]] = ConfigKey(
    key=PARTIAL_UPDATE_MODE.key,
    default=PartialUpdateMode.NONE,
    parse=stored_partial_update,
    doc="The same as a table keeps it; one that is not known shuts out writers only.",
    group=Group.TABLE,
)
UNAVAILABLE_VALUE: Final = ConfigKey(
    key="hoodie.write.partial.update.unavailable.value",
    aliases=(f"{MERGE_PROPERTY}hoodie.write.partial.update.unavailable.value",),
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="What a source sends instead of a value that did not change; see "
    "`hoodie.table.partial.update.mode`.",
    group=Group.TABLE,
)
PAYLOAD_ORDERING: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.payload.ordering.field",
    default=(),
    default_text="(the ordering fields)",
    parse=names,
    doc="Has to name the ordering fields of the table, which decide.",
    group=Group.TABLE,
)
MERGERS: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.write.record.merge.custom.implementation.classes",
    aliases=("hoodie.datasource.write.record.merger.impls",),
    default=(),
    default_text="(as the merge mode says)",
    parse=merger_classes,
    doc="Classes that merge rows. Those that come with Hudi do what the merge mode says, and are "
    "accepted; others are refused.",
    group=Group.TABLE,
)
LEGACY_PAYLOAD: Final[ConfigKey[Payload | str | None]] = ConfigKey(
    key="hoodie.table.legacy.payload.class",
    default=None,
    default_text="(none)",
    parse=payload_class,
    doc="Payload class that a table of version 9 was created for; rows are merged by what it "
    "stands for.",
    group=Group.TABLE,
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    DELETE_FIELD,
    DELETE_MARKER,
    PARTIAL_UPDATE_MODE,
    UNAVAILABLE_VALUE,
    PAYLOAD_ORDERING,
    MERGERS,
)
"""What a user may give."""
STORED_PROPERTIES: Final = frozenset(
    name
    for key in (DELETE_FIELD, DELETE_MARKER, UNAVAILABLE_VALUE)
    for name in key.names
    if name.startswith(MERGE_PROPERTY)
)
"""The merge properties whose meaning is known; a table with others is not written."""
