"""Records of the metadata table: values to bytes and back, under foreign schemas too."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.avro import decode_datum, encode_datum, parse_writer_schema
from hudi_core.avro.wrappers import ARRAY, SCALARS, Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.record_codec import RecordDecoder, RecordEncoder, record_schema
from hudi_core.metadata.records import (
    BloomFilterEntry,
    ColumnRange,
    FileEntry,
    FileList,
    MetadataRecord,
    RecordLocation,
    RecordType,
    SecondaryEntry,
    ValueType,
)

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


# --- schemas of others --------------------------------------------------------


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
    with pytest.raises(CorruptMetadataError, match="a value of type") as caught:
        RecordDecoder(schema, PATH).decode(b"k", encoded_by(schema, **fields))
    assert caught.value.hint == REBUILD


def test_keys_are_texts() -> None:
    schema = record_schema()
    with pytest.raises(CorruptMetadataError, match="not UTF-8"):
        RecordDecoder(schema, PATH).decode(b"\xff", encoded_by(schema, type=2))


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
