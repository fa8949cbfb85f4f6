"""Whether a record of the metadata table says what the files say, and how both are told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hudi_core.avro.wrappers import Wrapped
from hudi_core.metadata.merging import merge
from hudi_core.metadata.partition_types import RecordType
from hudi_core.metadata.records import (
    BloomFilterEntry,
    ColumnRange,
    MetadataRecord,
    RecordLocation,
)


def is_harmless(record: MetadataRecord, files: Collection[str]) -> bool:
    """Tell whether nobody is misled by a record for which the files gave no reason."""
    payload = record.payload
    if not isinstance(payload, ColumnRange):
        return False
    # a column that is not indexed any more, or a log file, whose ranges its writer alone knows
    return payload.file_name in files or _is_unknown(payload)


def _is_unknown(one: ColumnRange) -> bool:
    return one.min_value is None and one.max_value is None and one.value_count is None


def agree(listed: MetadataRecord, expected: MetadataRecord) -> bool:
    """Tell whether a record says what the files say, as far as readers rely on it."""
    ours, theirs = listed.payload, expected.payload
    if isinstance(ours, ColumnRange) and isinstance(theirs, ColumnRange):
        if listed.type == RecordType.PARTITION_STATS:
            return _covers(listed, expected)
        counts = (ours.value_count, ours.null_count) == (theirs.value_count, theirs.null_count)
        return counts and all(
            one is None or other is None or one == other for one, other in _bounds(ours, theirs)
        )
    if isinstance(ours, RecordLocation) and isinstance(theirs, RecordLocation):
        return (ours.partition_name, ours.file_id) == (theirs.partition_name, theirs.file_id)
    if isinstance(ours, BloomFilterEntry) and isinstance(theirs, BloomFilterEntry):
        return ours.bloom == theirs.bloom
    return ours == theirs


def _bounds(
    ours: ColumnRange, theirs: ColumnRange
) -> tuple[tuple[Wrapped | None, Wrapped | None], ...]:
    return (ours.min_value, theirs.min_value), (ours.max_value, theirs.max_value)


def _covers(listed: MetadataRecord, expected: MetadataRecord) -> bool:
    """Tell whether a partition's range holds for its rows: merged with theirs, it is as it was."""
    ours, theirs = listed.payload, expected.payload
    if not isinstance(ours, ColumnRange) or not isinstance(theirs, ColumnRange):
        return False
    both = merge(
        replace(listed, payload=ours),
        replace(expected, payload=replace(theirs, is_tight_bound=False)),
    )
    merged = both.payload if both is not None else None
    return isinstance(merged, ColumnRange) and all(
        one is None or one == other for one, other in _bounds(ours, merged)
    )


def subject_of(record: MetadataRecord) -> str:
    """Return of what a record says something: a file, a column, a key."""
    payload = record.payload
    if isinstance(payload, ColumnRange):
        return f"column {payload.column_name} of {payload.file_name}"
    if isinstance(payload, RecordLocation):
        return f"record key {record.key!r}"
    return f"key {record.key!r}"


def saying_of(record: MetadataRecord) -> str:
    """Return what it says."""
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
