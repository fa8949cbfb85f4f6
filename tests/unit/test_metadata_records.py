"""Records of the metadata table: encoded, merged, and lists of files as columns."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.avro.datum import decode_datum, encode_datum, parse_writer_schema
from hudi_core.avro.wrappers import ARRAY, SCALARS, Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.hfile.reader import HFileReader
from hudi_core.metadata.hfile.writer import HFileOptions, write_hfile
from hudi_core.metadata.lister import _decoded, columns_of_lists, decode_lists
from hudi_core.metadata.log.layers import BaseLayer
from hudi_core.metadata.log.record_codec import RecordDecoder, RecordEncoder, record_schema
from hudi_core.metadata.log.records import (
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
from hudi_core.metadata.merging import merge, present
from hudi_core.model.file_columns import FileColumns

PATH = "/table/.hoodie/metadata/files/f.hfile"
LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
FLOAT = st.floats(width=32, allow_nan=False)
SCALAR_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BooleanWrapper": st.booleans(),
    "IntWrapper": INT,
    "LongWrapper": LONG,
    "FloatWrapper": FLOAT,
    "DoubleWrapper": st.floats(allow_nan=False),
    "BytesWrapper": st.binary(max_size=8),
    "StringWrapper": st.text(max_size=8),
    "DateWrapper": INT,
    "DecimalWrapper": st.binary(min_size=1, max_size=8),
    "TimeMicrosWrapper": LONG,
    "TimestampMicrosWrapper": LONG,
    "LocalDateWrapper": INT,
}
scalars = st.one_of(
    *(st.builds(Wrapped, st.just(name), values) for name, values in SCALAR_VALUES.items())
)
arrays = st.builds(Wrapped, st.just(ARRAY), st.lists(st.none() | scalars, max_size=3).map(tuple))
ranges = st.builds(
    ColumnRange,
    file_name=st.none() | st.text(max_size=10),
    column_name=st.none() | st.text(max_size=10),
    min_value=st.none() | scalars | arrays,
    max_value=st.none() | scalars | arrays,
    value_count=st.none() | LONG,
    null_count=st.none() | LONG,
    total_size=st.none() | LONG,
    total_uncompressed_size=st.none() | LONG,
    is_deleted=st.booleans(),
    is_tight_bound=st.booleans(),
    value_type=st.none() | st.builds(ValueType, INT, st.none() | st.text(max_size=5)),
)
file_ids = st.builds("{}-{}".format, st.uuids(), st.integers(0, 99)) | st.text(max_size=20)
records = st.one_of(
    st.builds(
        MetadataRecord,
        st.text(max_size=20),
        st.sampled_from([RecordType.ALL_PARTITIONS, RecordType.FILES]),
        st.builds(
            FileList,
            st.dictionaries(
                st.text(max_size=10),
                st.builds(FileEntry, st.integers(0, 2**62), st.booleans()),
                max_size=5,
            ),
        ),
    ),
    st.builds(
        MetadataRecord,
        st.text(max_size=20),
        st.sampled_from([RecordType.COLUMN_STATS, RecordType.PARTITION_STATS]),
        ranges,
    ),
    st.builds(
        MetadataRecord,
        st.text(max_size=20),
        st.just(RecordType.BLOOM_FILTERS),
        st.builds(BloomFilterEntry, st.text(), st.text(), st.binary(max_size=20), st.booleans()),
    ),
    st.builds(
        MetadataRecord,
        st.text(max_size=20),
        st.just(RecordType.RECORD_INDEX),
        st.builds(RecordLocation, st.text(), file_ids, LONG, st.none() | LONG),
    ),
    st.builds(
        MetadataRecord,
        st.text(max_size=20),
        st.just(RecordType.SECONDARY_INDEX),
        st.builds(SecondaryEntry, st.booleans()),
    ),
)


def test_every_wrapper_is_tried() -> None:
    assert set(SCALAR_VALUES) == set(SCALARS)


@given(record=records, file_name=st.none() | st.text(max_size=10))
def test_what_is_encoded_is_decoded(record: MetadataRecord, file_name: str | None) -> None:
    encoder = RecordEncoder(file_name)
    key, value = encoder.encode(record)
    assert key == record.key.encode()
    assert RecordDecoder(encoder.schema, PATH).decode(key, value) == record


def test_an_empty_value_deletes_its_key() -> None:
    assert RecordDecoder(record_schema(), PATH).decode(b"k", b"") is None


def test_values_by_their_bytes() -> None:
    # the first value of a new table's first base file
    encoder = RecordEncoder()
    record = MetadataRecord("__all_partitions__", RecordType.ALL_PARTITIONS, FileList({}))
    assert encoder.encode(record)[1].hex() == "00000000000002020000000000"
    deleted = MetadataRecord("a$b", RecordType.SECONDARY_INDEX, SecondaryEntry(True))
    assert encoder.encode(deleted)[1].hex() == "0000000000000e000000000201"


@pytest.mark.parametrize(
    ("file_id", "by_uuid"),
    [
        ("00000000-0000-0000-0000-000000000000-0", True),
        ("ffffffff-ffff-ffff-8000-000000000000-12", True),
        ("FFFFFFFF-ffff-ffff-8000-000000000000-12", False),
        ("ffffffff-ffff-ffff-8000-000000000000-012", False),
        ("ffffffff-ffff-ffff-8000-000000000000-9999999999", False),
        ("ffffffff-ffff-ffff-8000-000000000000", True),  # of Flink
        ("00000003-0000-0000-0000-000000000000--1", False),
        ("00000003-0000-0000-0000", False),
        ("", False),
    ],
)
def test_file_ids_are_kept_as_numbers_where_numbers_say_it_all(file_id: str, by_uuid: bool) -> None:
    encoder = RecordEncoder()
    location = RecordLocation("p=1", file_id, 5)
    key, value = encoder.encode(MetadataRecord("k", RecordType.RECORD_INDEX, location))
    found = RecordDecoder(encoder.schema, PATH).decode(key, value)
    assert found is not None
    assert found.payload == location
    assert (file_id.encode() in value) is (not by_uuid or not file_id)


def test_file_ids_are_kept_as_apache_hudi_keeps_them() -> None:
    encoder = RecordEncoder()
    schema = parse_writer_schema(encoder.schema, PATH).parsed

    def kept(file_id: str) -> list[Any]:
        location = RecordLocation("p", file_id, 5)
        _, value = encoder.encode(MetadataRecord("k", RecordType.RECORD_INDEX, location))
        content = decode_datum(value, schema, PATH, named=True)["recordIndexMetadata"]
        names = ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")
        return [content[name] for name in names]

    # HoodieMetadataPayload.createRecordIndexUpdate; Java has no null for a number
    assert kept("00000000-0000-0007-8000-000000000000-3") == [7, -(1 << 63), 3, "", 0]
    assert kept("00000000-0000-0007-8000-000000000000") == [7, -(1 << 63), -1, "", 0]
    assert kept("bucket-3") == [-1, -1, -1, "bucket-3", 1]


def test_equal_values_are_decoded_once() -> None:
    encoder = RecordEncoder()
    decoder = RecordDecoder(encoder.schema, PATH)
    found = []
    for number in range(10_000):
        location = RecordLocation("p", f"{uuid.UUID(int=number % 5)}-0", 7)
        entry = encoder.encode(MetadataRecord(f"k{number}", RecordType.RECORD_INDEX, location))
        record = decoder.decode(*entry)
        assert record is not None
        assert (record.key, record.payload) == (f"k{number}", location)
        found.append(record.payload)
    assert len(set(map(id, found))) == 5
    # more different ones than are remembered
    for number in range(10_000):
        location = RecordLocation("p", f"{uuid.UUID(int=number)}-0", 7)
        entry = encoder.encode(MetadataRecord("k", RecordType.RECORD_INDEX, location))
        assert decoder.decode(*entry) == MetadataRecord("k", RecordType.RECORD_INDEX, location)


# --- schemas of others
def changed_schema(change: Any) -> str:
    schema = json.loads(record_schema())
    change({field["name"]: field for field in schema["fields"]}, schema["fields"])
    return json.dumps(schema)


def encoded_by(schema: str, **fields: Any) -> bytes:
    names = [field["name"] for field in json.loads(schema)["fields"]]
    record = {**dict.fromkeys(names), "key": "", **fields}
    return encode_datum(record, parse_writer_schema(schema, PATH).parsed)


def test_later_fields_are_left_out() -> None:
    def change(named: dict[str, Any], fields: list[Any]) -> None:
        fields.insert(6, {"name": "vector", "type": ["null", "string"]})
        fields.append({"name": "last", "type": "long"})
        named["filesystemMetadata"]["type"][1]["values"]["fields"].insert(
            0, {"name": "checksum", "type": "string"}
        )
        named["ColumnStatsMetadata"]["type"][1]["fields"][2]["type"].append(
            {"type": "record", "name": "NewWrapper", "fields": [{"name": "value", "type": "int"}]}
        )

    schema = changed_schema(change)
    files = {"f": {"size": 3, "isDeleted": False, "checksum": "x"}}
    value = encoded_by(schema, type=2, filesystemMetadata=files, last=1)
    expected = MetadataRecord("p", RecordType.FILES, FileList({"f": FileEntry(3)}))
    assert RecordDecoder(schema, PATH).decode(b"p", value) == expected


def test_fields_that_older_files_lack_have_their_defaults() -> None:
    def change(named: dict[str, Any], fields: list[Any]) -> None:
        stats = named["ColumnStatsMetadata"]["type"][1]["fields"]
        stats[:] = [field for field in stats if field["name"] not in ("isTightBound", "valueType")]
        fields.remove(named["SecondaryIndexMetadata"])

    schema = changed_schema(change)
    stats = {
        **dict.fromkeys(["minValue", "maxValue", "nullCount", "totalSize"]),
        **dict.fromkeys(["fileName", "columnName", "valueCount", "totalUncompressedSize"]),
        "isDeleted": True,
    }
    value = encoded_by(schema, type=3, ColumnStatsMetadata=stats)
    found = RecordDecoder(schema, PATH).decode(b"k", value)
    expected = ColumnRange(None, None, is_deleted=True)
    assert found == MetadataRecord("k", RecordType.COLUMN_STATS, expected)


def test_kinds_of_later_releases_have_no_payload() -> None:
    schema = record_schema()
    found = RecordDecoder(schema, PATH).decode(b"k", encoded_by(schema, type=99))
    assert found == MetadataRecord("k", 99, None)


def _retyped(path: tuple[Any, ...], kind: Any) -> str:
    schema = json.loads(record_schema())
    place = {field["name"]: field for field in schema["fields"]}[path[0]]["type"]
    for step in path[1:-1]:
        place = place[step]
    place[path[-1]] = kind
    return json.dumps(schema)


def _without(name: str) -> str:
    return changed_schema(lambda named, fields: fields.remove(named[name]))


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ("no JSON", "Avro schema"),
        ('{"type": "record", "name": "R", "fields": []}', "without fields"),
        ('"string"', "not one of a record"),
        (_without("type"), "HoodieMetadataRecord.type"),
        (_without("key"), "HoodieMetadataRecord.key"),
        (
            _retyped(("filesystemMetadata", 1, "values", "fields", 0, "type"), "string"),
            "HoodieMetadataRecord.filesystemMetadata",
        ),
        (_retyped(("filesystemMetadata", 1), "string"), "filesystemMetadata"),
        (
            _retyped(("filesystemMetadata", 1), {"type": "array", "items": "string"}),
            "filesystemMetadata",
        ),
        (_retyped(("BloomFilterMetadata", 1, "fields", 2, "type"), "string"), "BloomFilter"),
        (_retyped(("recordIndexMetadata", 1, "fields", 3, "type", 1), "long"), "recordIndex"),
        (
            _retyped(
                ("ColumnStatsMetadata", 1, "fields", 2, "type", 2, "fields", 0, "type"), "string"
            ),
            "ColumnStatsMetadata",
        ),
        (
            _retyped(("SecondaryIndexMetadata", 1, "fields", 0, "type"), ["null", "boolean"]),
            "Second",
        ),
        (
            _retyped(
                ("SecondaryIndexMetadata", 1), {"type": "enum", "name": "E", "symbols": ["A"]}
            ),
            "Second",
        ),
    ],
)
def test_schemas_that_lie_about_the_form_are_refused(schema: str, where: str) -> None:
    with pytest.raises(CorruptMetadataError, match=where) as caught:
        RecordDecoder(schema, PATH)
    assert caught.value.path == PATH
    assert caught.value.hint == REBUILD


@pytest.mark.parametrize(
    "fields",
    [
        {"type": 2, "filesystemMetadata": {"f": {"size": -1, "isDeleted": False}}},
        {
            "type": 5,
            "recordIndexMetadata": {
                **dict.fromkeys(["partitionName", "fileIdHighBits", "fileIdLowBits"]),
                **dict.fromkeys(["fileIndex", "fileId", "instantTime", "position"]),
                "fileIdEncoding": 0,
            },
        },
    ],
)
def test_values_that_lack_what_their_kind_needs_are_refused(fields: dict[str, Any]) -> None:
    schema = record_schema()
    with pytest.raises(CorruptMetadataError, match="not UTF-8"):
        RecordDecoder(schema, PATH).decode(b"\xff", encoded_by(schema, type=2))
    with pytest.raises(CorruptMetadataError, match="a value of type") as caught:
        RecordDecoder(schema, PATH).decode(b"k", encoded_by(schema, **fields))
    assert caught.value.hint == REBUILD


@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_are_a_record_or_damage(noise: bytes) -> None:
    decoder = RecordDecoder(record_schema(), PATH)
    try:
        found = decoder.decode(b"k", noise)
    except CorruptMetadataError as error:
        assert (error.path, error.hint) == (PATH, REBUILD)  # noqa: PT017 - either is right
    else:
        assert isinstance(found, MetadataRecord)


def test_a_changed_byte_of_a_value_is_no_other_error() -> None:
    encoder = RecordEncoder()
    decoder = RecordDecoder(encoder.schema, PATH)
    location = RecordLocation("p", f"{uuid.UUID(int=5)}-0", 7)
    stats = ColumnRange("f", "c", Wrapped("LongWrapper", 1), Wrapped("LongWrapper", 9), 3, 0)
    for record in (
        MetadataRecord("k", RecordType.RECORD_INDEX, location),
        MetadataRecord("k", RecordType.COLUMN_STATS, stats),
    ):
        key, value = encoder.encode(record)
        for place in range(len(value)):
            for mask in (1, 2, 0x80, 0xFF):
                changed = value[:place] + bytes([value[place] ^ mask]) + value[place + 1 :]
                try:
                    kind = type(decoder.decode(key, changed))
                except CorruptMetadataError:
                    kind = MetadataRecord
                assert kind is MetadataRecord


def test_errors_of_lower_rooms_name_the_rebuild() -> None:
    with (
        pytest.raises(CorruptMetadataError, match="hudi table repair --metadata") as caught,
        with_rebuild_hint(),
    ):
        raise CorruptMetadataError("p", "why")
    assert (caught.value.path, caught.value.reason) == ("p", "why")


# --- what an older and a newer record of one key come to
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


# --- statistics of partitions
def part(low: Wrapped | None, high: Wrapped | None, **changes: object) -> MetadataRecord:
    stats = ColumnRange("p", "c", low, high, 10, 1, 100, 200)
    return record(RecordType.PARTITION_STATS, replace(stats, **changes))  # type: ignore[arg-type]


def number(value: int) -> Wrapped:
    return Wrapped("IntWrapper", value)


def range_of(merged: MetadataRecord | None) -> ColumnRange:
    assert merged is not None
    assert isinstance(merged.payload, ColumnRange)
    return merged.payload


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
    merged = range_of(merge(part(low, low), part(high, high)))
    assert (merged.min_value, merged.max_value) == (None, None)


def test_nulls_only_do_not_widen() -> None:
    nulls, both = part(None, None, null_count=10), part(number(1), number(2))
    for merged in map(range_of, (merge(nulls, both), merge(both, nulls))):
        assert (merged.min_value, merged.max_value) == (number(1), number(2))
    unknown = range_of(merge(part(None, None, value_count=None), part(None, None)))
    assert (unknown.value_count, unknown.null_count) == (None, 2)


def test_decimals_are_compared_as_numbers() -> None:
    kind, other = ValueType(10, "5,0"), ValueType(10, "5,1")
    minus, plus = Wrapped("BytesWrapper", b"\xff"), Wrapped("BytesWrapper", b"\1")
    merged = range_of(merge(part(plus, plus, value_type=kind), part(minus, minus, value_type=kind)))
    assert (merged.min_value, merged.max_value) == (minus, plus)
    mixed = range_of(merge(part(plus, plus, value_type=other), part(plus, plus, value_type=kind)))
    assert mixed.min_value is None


# --- lists of files decoded into columns say what they say record by record, damaged ones too
ENCODER = RecordEncoder("f.hfile")
endings = st.sampled_from([".parquet", ".parquet", ".parquet", ".orc", ".log.1_0-0-0"])
listed_names = st.builds(
    "{}_{}{}".format, st.text("abc-.é", max_size=70), st.integers(0, 99), endings
)
entries = st.builds(
    FileEntry,
    st.one_of(st.integers(0, 200), st.integers(0, 2**62)),
    st.sampled_from([False] * 9 + [True]),
)
lists = st.dictionaries(
    st.text("pq=/é", min_size=1, max_size=9),
    st.dictionaries(listed_names, entries, max_size=6).map(FileList),
    max_size=6,
)


def encoded(content: dict[str, FileList]) -> list[tuple[bytes, bytes]]:
    return [
        ENCODER.encode(MetadataRecord(key, RecordType.FILES, found))
        for key, found in sorted(content.items(), key=lambda item: item[0].encode())
    ]


def by_name(found: FileColumns) -> dict[str, dict[str, int]]:
    told: dict[str, dict[str, int]] = {key: {} for key in found.partitions.to_pylist()}
    keys = found.partitions.to_pylist()
    for owner, name, size in zip(
        found.owners.tolist(), found.names.to_pylist(), found.sizes.tolist(), strict=True
    ):
        assert name not in told[keys[owner]]
        told[keys[owner]][name] = size
    return told


def listed_present(content: dict[str, FileList]) -> dict[str, dict[str, int]]:
    return {
        key: {name: one.size for name, one in found.files.items() if not one.is_deleted}
        for key, found in content.items()
    }


def listed(*files: str) -> FileList:
    return FileList({name: FileEntry(len(name)) for name in files})


@given(lists)
def test_columns_hold_what_records_hold(content: dict[str, FileList]) -> None:
    found = decode_lists(encoded(content), ENCODER.schema, PATH)
    assert by_name(columns_of_lists(content)) == listed_present(content)
    if found is not None:
        assert by_name(found) == listed_present(content)


def test_names_that_end_alike_are_read_all_at_once() -> None:
    content = {
        "p": listed(*(f"{number}-0_0-0-0_20260101000000000.parquet" for number in range(2000))),
        "empty": FileList({}),
        "q": listed("a.parquet_1.parquet", ".parquet", "x" * 200 + ".parquet"),
    }
    found = decode_lists(encoded(content), ENCODER.schema, PATH)
    # what looks like the end of a name within one is not mistaken for it, but not guessed either
    assert found is None
    content["q"] = listed(".parquet", "x" * 200 + ".parquet")
    found = decode_lists(encoded(content), ENCODER.schema, PATH)
    assert found is not None
    assert by_name(found) == listed_present(content)


@given(st.data())
def test_damage_is_seen_or_makes_no_difference(data: st.DataObject) -> None:
    content = {"p": listed("a_1.parquet", "b_22.parquet"), "q": listed("c_3.parquet")}
    pairs = encoded(content)
    which = data.draw(st.integers(0, len(pairs) - 1))
    key, value = pairs[which]
    place = data.draw(st.integers(0, len(value) - 1))
    change = data.draw(st.integers(1, 255))
    pairs[which] = key, value[:place] + bytes([value[place] ^ change]) + value[place + 1 :]
    found = decode_lists(pairs, ENCODER.schema, PATH)
    if found is None:
        return
    decoder = RecordDecoder(ENCODER.schema, PATH)
    try:
        records = [decoder.decode(*pair) for pair in pairs]
    except CorruptMetadataError:
        # in a field that lists have nothing to do with
        assert by_name(found) == listed_present(content)
        return
    said = {one.key: one.payload for one in records if one is not None}
    assert all(isinstance(payload, FileList) for payload in said.values())
    assert by_name(found) == listed_present(said)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "record",
    [
        MetadataRecord("p", RecordType.FILES, FileList({"../x.parquet": FileEntry(1)})),
        MetadataRecord("p", RecordType.FILES, FileList({"x.parquet": FileEntry(-1)})),
        MetadataRecord("p", RecordType.ALL_PARTITIONS, FileList({"x.parquet": FileEntry(1)})),
        MetadataRecord("p", RecordType.FILES, None),
    ],
)
def test_what_is_not_right_is_left_to_those_who_say_what(record: MetadataRecord) -> None:
    good = ENCODER.encode(MetadataRecord("o", RecordType.FILES, listed("y.parquet")))
    assert decode_lists([good], ENCODER.schema, PATH) is not None
    assert decode_lists([good, ENCODER.encode(record)], ENCODER.schema, PATH) is None


def test_selected_lists_come_in_the_order_asked_for() -> None:
    content = {
        "a": listed("a1.parquet", "a2.parquet"),
        "b": FileList({}),
        "c": listed("c1.parquet"),
    }
    found = columns_of_lists(content)
    some = found.select(["c", "missing", "a"])
    assert some.owners.tolist() == [0, 2, 2]
    assert some.names.to_pylist() == ["c1.parquet", "a1.parquet", "a2.parquet"]
    assert found.known(["c", "missing"]).to_pylist() == [True, False]
    both = found.select(["a"]).with_others(found.select(["c"]))
    assert by_name(both) == listed_present({key: content[key] for key in "ac"})


def test_the_files_of_a_group_go_together() -> None:
    one, two = "f1_0-0-0_20260101000000000.parquet", "f1_0-0-0_20260102000000000.parquet"
    log, other = ".f2_20260101000000000.log.1_0-0-0", "f2_0-0-0_20260101000000000.parquet"
    # the same ids in two partitions are two file groups
    found = columns_of_lists({"p": listed(one, two, other), "q": listed(one, log)})
    found = found.with_others(columns_of_lists({"r": listed(one)}))
    names = found.names.to_pylist()

    def together(*rows: int) -> list[int]:
        wanted = np.zeros(len(names), np.bool_)
        wanted[[*rows]] = True
        places: list[int] = found.with_their_groups(wanted).tolist()
        return places

    assert together() == []
    assert together(0) == together(1) == [0, 1]
    assert together(2) == [2]
    assert together(3, 4) == [3, 4]
    assert together(5) == [5]


def test_a_list_that_cannot_be_read_names_the_file() -> None:
    bad = MetadataRecord("p", RecordType.FILES, FileList({"a/b.parquet": FileEntry(1)}))
    data = write_hfile([ENCODER.encode(bad)], HFileOptions(ENCODER.schema, 0))
    layer = BaseLayer(PATH, HFileReader.from_bytes(data, PATH))
    with pytest.raises(CorruptMetadataError, match=r"'a/b\.parquet' is not the name of a file"):
        _decoded(layer, layer.reader.entries())
