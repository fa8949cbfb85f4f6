"""Merges older and newer records of one key; pure.

For readers and compaction.

Source: ``hudi-format`` section 5. That something is gone is kept in what :func:`merge` returns, as
an older record may still come that has it; so records may be merged in any grouping that keeps
their order. :func:`present` leaves it out, for readers and for new base files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hudi_core.avro.wrappers import ARRAY, Wrapped
from hudi_core.metadata.log.records import (
    ColumnRange,
    FileEntry,
    FileList,
    MetadataRecord,
    RecordType,
    RemovablePayload,
)
from hudi_core.metadata.statistics.bound_forms import bound_order, has_values
from hudi_core.metadata.statistics.column_records import sums_of


def merge(older: MetadataRecord | None, newer: MetadataRecord | None) -> MetadataRecord | None:
    """A key's record merged with a newer one.

    ``newer`` is ``None`` for a deletion (a delete block or an empty value), and the result is
    ``None`` when the key is gone. Code that merges log blocks before it reads the base file has to
    keep that apart from a key that no log block names.
    """
    if older is None or newer is None:
        return newer
    old, new = older.payload, newer.payload
    if isinstance(old, FileList) and isinstance(new, FileList):
        return replace(newer, payload=_merge_files(old, new))
    if (
        newer.type == RecordType.PARTITION_STATS
        and isinstance(old, ColumnRange)
        and isinstance(new, ColumnRange)
    ):
        return replace(newer, payload=_merge_ranges(old, new))
    # statistics and filters of a file, locations and secondary entries are stated again as a whole
    return newer


def present(record: MetadataRecord | None) -> MetadataRecord | None:
    """Return a merged record as readers see it, or ``None``.

    A list of files is without those that are gone, and may be empty: the partition is known.
    """
    if record is None:
        return None
    payload = record.payload
    if isinstance(payload, FileList):
        if not any(entry.is_deleted for entry in payload.files.values()):
            return record
        files = {name: entry for name, entry in payload.files.items() if not entry.is_deleted}
        return replace(record, payload=FileList(files))
    if isinstance(payload, RemovablePayload) and payload.is_deleted:
        return None
    return record


def _merge_files(old: FileList, new: FileList) -> FileList:
    files = dict(old.files)
    for name, entry in new.files.items():
        known = files.get(name)
        if known is None or known.is_deleted or entry.is_deleted:
            # kept even where the older record had the file: the records of the log may be merged
            # among themselves before they meet the base file's, which may have it, too
            files[name] = entry
        else:
            # log files grow, and their writers' reports may come in any order
            files[name] = FileEntry(max(known.size, entry.size))
    return FileList(files)


def _merge_ranges(old: ColumnRange, new: ColumnRange) -> ColumnRange:
    """Return partition statistics of both, unless the newer are tight."""
    if new.is_tight_bound or new.is_deleted or old.is_deleted:
        return new
    same = old.value_type == new.value_type
    return replace(
        new,
        min_value=_outer(old, new, old.min_value, new.min_value, min) if same else None,
        max_value=_outer(old, new, old.max_value, new.max_value, max) if same else None,
        **sums_of([old, new]),
    )


def _outer(
    old: ColumnRange,
    new: ColumnRange,
    old_bound: Wrapped | None,
    new_bound: Wrapped | None,
    choose: Callable[..., Wrapped],
) -> Wrapped | None:
    if not has_values(old):
        return new_bound
    if not has_values(new):
        return old_bound
    if old_bound is None or new_bound is None or old_bound.wrapper != new_bound.wrapper:
        return None
    if old_bound.wrapper == ARRAY:
        return None
    return choose(old_bound, new_bound, key=bound_order(new))
