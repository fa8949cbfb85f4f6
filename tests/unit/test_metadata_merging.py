"""What an older and a newer record of one key come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.avro.wrappers import ARRAY, Wrapped
from hudi_core.metadata.merging import merge, present
from hudi_core.metadata.records import (
    BloomFilterEntry,
    ColumnRange,
    FileEntry,
    FileList,
    MetadataRecord,
    Payload,
    RecordLocation,
    RecordType,
    SecondaryEntry,
    ValueType,
)


def files(**entries: int | None) -> MetadataRecord:
    """Return a record of files with sizes; ``None`` for one that is gone."""
    found = {
        name: FileEntry(0, True) if size is None else FileEntry(size)
        for name, size in entries.items()
    }
    return MetadataRecord("p", RecordType.FILES, FileList(found))


@pytest.mark.parametrize(
    ("older", "newer", "both"),
    [
        (files(a=1), files(b=2), files(a=1, b=2)),
        (files(a=1), files(a=5), files(a=5)),
        (files(a=5), files(a=1), files(a=5)),
        (files(a=1, b=2), files(a=None), files(a=None, b=2)),
        (files(b=2), files(a=None), files(a=None, b=2)),
        (files(a=None), files(a=3), files(a=3)),
        (files(a=None), files(a=None), files(a=None)),
    ],
)
def test_files_are_merged_by_name(
    older: MetadataRecord, newer: MetadataRecord, both: MetadataRecord
) -> None:
    assert merge(older, newer) == both


def test_merging_changes_neither_record() -> None:
    older, newer = files(a=1, b=1), files(a=None, c=3)
    merge(older, newer)
    assert (older, newer) == (files(a=1, b=1), files(a=None, c=3))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(1, 9)), max_size=6))
def test_files_come_to_the_same_merged_from_the_left_or_in_groups(
    steps: list[dict[str, int | None]],
) -> None:
    alive: set[str] = set()
    for step in steps:
        alive -= step.keys()
        alive |= {name for name, size in step.items() if size is not None}
    records = [files(**step) for step in steps]
    for cut in range(len(records) + 1):
        merged = present(merge_all([merge_all(records[:cut]), *records[cut:]]))
        assert names(merged) == alive
        merged = present(merge_all([*records[:cut], merge_all(records[cut:])]))
        assert names(merged) == alive


def merge_all(records: Sequence[MetadataRecord | None]) -> MetadataRecord | None:
    """Merge records, oldest first; ``None`` stands for no record."""
    return reduce(merge, filter(None, records), None)


def names(record: MetadataRecord | None) -> set[str]:
    if record is None:
        return set()
    assert isinstance(record.payload, FileList)
    return set(record.payload.files)


def test_readers_do_not_see_what_is_gone() -> None:
    assert present(files(a=1, b=None)) == files(a=1)
    assert present(files(a=None)) == files()
    assert present(None) is None


def record(kind: RecordType, payload: Payload) -> MetadataRecord:
    return MetadataRecord("k", kind, payload)


STATS = record(RecordType.COLUMN_STATS, ColumnRange("f", "c", value_count=3))
BLOOM = record(RecordType.BLOOM_FILTERS, BloomFilterEntry("DYNAMIC_V0", "1", b""))
PLACE = record(RecordType.RECORD_INDEX, RecordLocation("p", "f-0", 1))
ENTRY = record(RecordType.SECONDARY_INDEX, SecondaryEntry())


@pytest.mark.parametrize("older", [STATS, BLOOM, PLACE, ENTRY])
def test_all_other_records_are_said_anew(older: MetadataRecord) -> None:
    newer = replace(older, key="k")
    if isinstance(older.payload, RecordLocation):
        newer = replace(older, payload=replace(older.payload, file_id="g-0"))
    assert merge(older, newer) is newer
    assert merge(None, newer) is newer
    assert present(newer) == newer


@pytest.mark.parametrize("older", [STATS, BLOOM, PLACE, ENTRY, files(a=1)])
def test_a_delete_block_takes_the_key_away(older: MetadataRecord) -> None:
    assert merge(older, None) is None


@pytest.mark.parametrize("older", [STATS, BLOOM, ENTRY])
def test_tombstones_are_kept_and_hidden(older: MetadataRecord) -> None:
    assert isinstance(older.payload, ColumnRange | BloomFilterEntry | SecondaryEntry)
    gone = replace(older, payload=replace(older.payload, is_deleted=True))
    assert merge(older, gone) is gone
    assert present(gone) is None
    assert merge(gone, older) is older


# --- statistics of partitions --------------------------------------------------


def part(low: Wrapped | None, high: Wrapped | None, **changes: object) -> MetadataRecord:
    stats = ColumnRange("p", "c", low, high, 10, 1, 100, 200)
    return record(RecordType.PARTITION_STATS, replace(stats, **changes))  # type: ignore[arg-type]


def number(value: int) -> Wrapped:
    return Wrapped("IntWrapper", value)


def test_tight_statistics_replace_older_ones() -> None:
    newer = part(number(3), number(4), is_tight_bound=True)
    assert merge(part(number(1), number(9)), newer) == newer


def test_loose_statistics_are_widened() -> None:
    merged = merge(part(number(1), number(5)), part(number(3), number(9)))
    assert merged == part(
        number(1),
        number(9),
        value_count=20,
        null_count=2,
        total_size=200,
        total_uncompressed_size=400,
    )


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (number(1), Wrapped("LongWrapper", 2)),
        (number(1), None),
        (None, number(2)),
        (Wrapped(ARRAY, ()), Wrapped(ARRAY, ())),
    ],
)
def test_what_cannot_be_compared_is_no_bound(low: Wrapped | None, high: Wrapped | None) -> None:
    merged = merge(part(low, low), part(high, high))
    assert merged is not None
    assert isinstance(merged.payload, ColumnRange)
    assert merged.payload.min_value is None
    assert merged.payload.max_value is None


def test_nulls_only_do_not_widen() -> None:
    nulls = part(None, None, null_count=10)
    for merged in (
        merge(nulls, part(number(1), number(2))),
        merge(part(number(1), number(2)), nulls),
    ):
        assert merged is not None
        assert isinstance(merged.payload, ColumnRange)
        assert (merged.payload.min_value, merged.payload.max_value) == (number(1), number(2))


def test_decimals_are_compared_as_numbers() -> None:
    kind = ValueType(10, "5,0")
    minus, plus = Wrapped("BytesWrapper", b"\xff"), Wrapped("BytesWrapper", b"\1")
    merged = merge(part(plus, plus, value_type=kind), part(minus, minus, value_type=kind))
    assert merged is not None
    assert isinstance(merged.payload, ColumnRange)
    assert (merged.payload.min_value, merged.payload.max_value) == (minus, plus)
    other = merge(
        part(plus, plus, value_type=ValueType(10, "5,1")), part(plus, plus, value_type=kind)
    )
    assert other is not None
    assert isinstance(other.payload, ColumnRange)
    assert other.payload.min_value is None


def test_unknown_counts_stay_unknown() -> None:
    merged = merge(part(None, None, value_count=None), part(None, None))
    assert merged is not None
    assert isinstance(merged.payload, ColumnRange)
    assert merged.payload.value_count is None
    assert merged.payload.null_count == 2
