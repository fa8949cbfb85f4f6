"""Whether a record of the metadata table says what the files say, and how both are told."""

from __future__ import annotations

from collections.abc import Collection

from hudi_core.metadata.bound_forms import BoundForm, covers, has_values, in_form
from hudi_core.metadata.partition_types import RecordType
from hudi_core.metadata.records import (
    BloomFilterEntry,
    ColumnRange,
    MetadataRecord,
    RecordLocation,
)


def is_benign_extra(record: MetadataRecord, files: Collection[str]) -> bool:
    """Whether nobody is misled by a record for which the files gave no reason."""
    payload = record.payload
    if not isinstance(payload, ColumnRange):
        return False
    # a range of a partition can only be too wide; a column that is not indexed any more, or a log
    # file, whose ranges its writer alone knows
    return record.type == RecordType.PARTITION_STATS or payload.file_name in files


def is_needed(record: MetadataRecord) -> bool:
    """Whether readers are misled where such a record is missing.

    Of a partition, one that has values: readers leave a partition out that has no range.
    """
    payload = record.payload
    is_partition = record.type == RecordType.PARTITION_STATS
    return not is_partition or (isinstance(payload, ColumnRange) and has_values(payload))


def are_equivalent(
    listed: MetadataRecord,
    expected: MetadataRecord,
    form: BoundForm | None = None,
    *,
    is_former: bool = False,
) -> bool:
    """Whether a record says what the files say, where readers rely on it.

    Parameters
    ----------
    form
        Of a range: the form of the column's bounds, in which ``expected`` is.
    is_former
        Of a range: whether the name of its column once stood for another one. The file's column may
        be that one; the range need not be as narrow.
    """
    ours, theirs = listed.payload, expected.payload
    if isinstance(ours, ColumnRange) and isinstance(theirs, ColumnRange):
        is_partition = listed.type == RecordType.PARTITION_STATS
        known = ours if form is None or ours.min_value is None else in_form(ours, form)
        return _are_ranges_equivalent(known, theirs, may_be_wide=is_partition or is_former)
    if isinstance(ours, RecordLocation) and isinstance(theirs, RecordLocation):
        return (ours.partition_name, ours.file_id) == (theirs.partition_name, theirs.file_id)
    if isinstance(ours, BloomFilterEntry) and isinstance(theirs, BloomFilterEntry):
        return ours.bloom == theirs.bloom
    return ours == theirs


def _are_ranges_equivalent(ours: ColumnRange, theirs: ColumnRange, *, may_be_wide: bool) -> bool:
    if may_be_wide:
        return covers(ours, theirs)
    counts = (ours.value_count, ours.null_count) == (theirs.value_count, theirs.null_count)
    return counts and covers(ours, theirs) and covers(theirs, ours)


def record_subject(record: MetadataRecord) -> str:
    """Return of what a record says something: a file, a column, a key."""
    payload = record.payload
    if isinstance(payload, ColumnRange):
        return f"column {payload.column_name} of {payload.file_name}"
    if isinstance(payload, RecordLocation):
        return f"record key {record.key!r}"
    return f"key {record.key!r}"


def describe_record(record: MetadataRecord) -> str:
    """A record's contents in words."""
    payload = record.payload
    if isinstance(payload, ColumnRange):
        low, high = (
            None if one is None else one.value for one in (payload.min_value, payload.max_value)
        )
        return (
            f"{low!r} to {high!r}, {payload.value_count} values, {payload.null_count} of them null"
        )
    if isinstance(payload, RecordLocation):
        return f"in file group {payload.file_id} of partition {payload.partition_name!r}"
    if isinstance(payload, BloomFilterEntry):
        return f"a bloom filter of {len(payload.bloom)} bytes"
    return f"a record of type {int(record.type)}"
