"""Column statistics as an Arrow table: what the records say, one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.avro.wrappers import ARRAY, Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.column_ranges import decode_ranges
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.record_codec import RecordEncoder
from hudi_core.metadata.records import ColumnRange, FileList, MetadataRecord, RecordType, ValueType

PATH = "/table/.hoodie/metadata/column_stats/f.hfile"
WHOLE = st.integers(-(2**31), 2**31 - 1)
FLOAT = st.floats(width=32, allow_nan=False)
bounds = st.one_of(
    st.none(),
    st.booleans().map(lambda value: Wrapped("BooleanWrapper", value)),
    WHOLE.map(lambda value: Wrapped("IntWrapper", value)),
    WHOLE.map(lambda value: Wrapped("LongWrapper", value * 2**20)),
    WHOLE.map(lambda value: Wrapped("DateWrapper", value)),
    WHOLE.map(lambda value: Wrapped("TimestampMicrosWrapper", value)),
    FLOAT.map(lambda value: Wrapped("FloatWrapper", value)),
    FLOAT.map(lambda value: Wrapped("DoubleWrapper", value)),
    st.text(max_size=9).map(lambda value: Wrapped("StringWrapper", value)),
    st.binary(max_size=9).map(lambda value: Wrapped("BytesWrapper", value)),
    st.binary(min_size=1, max_size=9).map(lambda value: Wrapped("DecimalWrapper", value)),
    st.just(Wrapped(ARRAY, (Wrapped("IntWrapper", 1),))),
)
counts = st.none() | WHOLE
ranges = st.builds(
    ColumnRange,
    st.none() | st.text(max_size=9),
    st.none() | st.text(max_size=9),
    bounds,
    bounds,
    counts,
    counts,
    counts,
    counts,
    st.booleans(),
    st.booleans(),
    st.none() | st.builds(ValueType, WHOLE, st.none() | st.text(max_size=5)),
)


def expected(key: str, value: ColumnRange) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": key,
        "file_name": value.file_name,
        "column_name": value.column_name,
        "value_count": value.value_count,
        "null_count": value.null_count,
        "total_size": value.total_size,
        "total_uncompressed_size": value.total_uncompressed_size,
        "is_deleted": value.is_deleted,
        "is_tight_bound": value.is_tight_bound,
        "type_ordinal": value.value_type and value.value_type.ordinal,
        "type_info": value.value_type and value.value_type.info,
    }
    for side, bound in (("min", value.min_value), ("max", value.max_value)):
        forms: dict[str, Any] = dict.fromkeys(["int", "float", "bytes"])
        wrapper = None
        if bound is not None and bound.wrapper != ARRAY:
            wrapper, content = bound
            if isinstance(content, int):
                forms["int"] = int(content)
            elif isinstance(content, float):
                forms["float"] = content
            else:
                forms["bytes"] = content.encode() if isinstance(content, str) else content
        row[f"{side}_wrapper"] = wrapper
        row |= {f"{side}_{form}": content for form, content in forms.items()}
    return row


@given(st.lists(ranges, max_size=20), st.booleans())
def test_the_table_is_what_the_records_say(values: list[ColumnRange], has_deleted: bool) -> None:
    encoder = RecordEncoder()
    entries = [
        encoder.encode(MetadataRecord(f"k{number}", RecordType.COLUMN_STATS, value))
        for number, value in enumerate(values)
    ]
    rows = [expected(f"k{number}", value) for number, value in enumerate(values)]
    if has_deleted:
        entries.insert(0, (b"gone", b""))
        row: dict[str, Any] = dict.fromkeys(expected("gone", ColumnRange(None, None)))
        rows.insert(0, {**row, "key": "gone", "is_deleted": True})
    assert decode_ranges(entries, encoder.schema, PATH).to_pylist() == rows


def test_schemas_without_types_of_bounds_have_the_same_columns() -> None:
    """Hudi 1.0 has neither these nor bounds that are arrays."""
    encoder = RecordEncoder()
    old = json.loads(encoder.schema)
    stats = next(one for one in old["fields"] if one["name"] == "ColumnStatsMetadata")["type"][1]
    assert stats["fields"].pop()["name"] == "valueType"
    for bound in stats["fields"][2:4]:
        bound["type"].pop()
    record = MetadataRecord("k", RecordType.COLUMN_STATS, ColumnRange("f", "c"))
    key, value = encoder.encode(record)
    # the type is the last of the statistics, and two kinds of records follow them, all null
    assert value.endswith(b"\0\0\0")
    tables = [
        decode_ranges([(key, bytes_)], json.dumps(schema), PATH)
        for schema, bytes_ in ((old, value[:-1]), (json.loads(encoder.schema), value))
    ]
    assert tables[0] == tables[1]
    assert decode_ranges([], json.dumps(old), PATH).schema == tables[0].schema


def test_records_of_another_kind_are_damage() -> None:
    encoder = RecordEncoder()
    entry = encoder.encode(MetadataRecord("p", RecordType.FILES, FileList({})))
    with pytest.raises(CorruptMetadataError, match="no column statistics") as caught:
        decode_ranges([entry], encoder.schema, PATH)
    assert (caught.value.path, caught.value.hint) == (PATH, REBUILD)


def test_keys_and_schemas_are_checked() -> None:
    encoder = RecordEncoder()
    record = MetadataRecord("k", RecordType.COLUMN_STATS, ColumnRange("f", "c"))
    _, value = encoder.encode(record)
    with pytest.raises(CorruptMetadataError, match="not UTF-8"):
        decode_ranges([(b"\xff", value)], encoder.schema, PATH)
    schema = encoder.schema.replace('"isDeleted","type":"boolean"', '"isDeleted","type":"string"')
    with pytest.raises(CorruptMetadataError, match="its schema is not right"):
        decode_ranges([(b"k", value)], schema, PATH)
