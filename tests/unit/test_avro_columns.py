"""Avro records decoded into columns: the same as record by record, and as safe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.avro.columns import MAX_ITEMS, Columns, decode_columns
from hudi_core.avro.datum import decode_datum, encode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError

PATH = "/table/f"
INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "n", "type": "long"}, {"name": "t", "type": ["null", "string"]}],
}
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "x", "type": "double"}]}
FIELDS: dict[str, Any] = {
    "i": "int",
    "l": ["null", "long"],
    "b": "boolean",
    "f": ["float", "null"],
    "s": "string",
    "y": ["null", "bytes"],
    "skipped": {"type": "array", "items": ["null", "int"]},
    "stepped": {"type": "map", "values": "string"},
    "either": ["null", INNER, OTHER, "int"],
    "again": ["null", "Inner"],
    "e": {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    "x": {"type": "fixed", "name": "F", "size": 3},
    "end": "double",
}


def record_of(fields: Mapping[str, Any]) -> Any:
    named = [{"name": name, "type": kind} for name, kind in fields.items()]
    text = json.dumps({"type": "record", "name": "R", "fields": named})
    return parse_writer_schema(text, PATH).parsed


RECORD = record_of(FIELDS)
LONG = st.integers(-(2**63), 2**63 - 1)
inner = st.fixed_dictionaries({"n": LONG, "t": st.none() | st.text(max_size=9)})
records = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | LONG,
        "b": st.booleans(),
        "f": st.none() | st.floats(width=32, allow_nan=False),
        "s": st.text(max_size=200),
        "y": st.none() | st.binary(max_size=9),
        "skipped": st.lists(st.none() | st.integers(-5, 5), max_size=5),
        "stepped": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
        "either": st.none()
        | inner.map(lambda value: ("Inner", value))
        | st.floats(allow_nan=False).map(lambda value: ("Other", {"x": value}))
        | st.integers(-9, 9),
        "again": st.none() | inner,
        "e": st.sampled_from("AB"),
        "x": st.binary(min_size=3, max_size=3),
        "end": st.floats(allow_nan=False),
    }
)


def columns_of(datums: list[bytes], schema: Any = RECORD) -> Columns:
    begins, content = [], b"before"
    for datum in datums:
        begins.append(len(content))
        content += datum + b"between"
    ends = [begin + len(datum) for begin, datum in zip(begins, datums, strict=True)]
    return decode_columns(content, begins, ends, schema, PATH)


@given(st.lists(records, max_size=5))
def test_columns_are_what_the_records_say(rows: list[dict[str, Any]]) -> None:
    found = columns_of([encode_datum(row, RECORD) for row in rows])
    assert len(found) == len(rows)

    def numbers(path: str, kind: pa.DataType) -> list[Any]:
        return list(found.numbers(path, kind).to_pylist())

    def texts(path: str, kind: pa.DataType) -> list[Any]:
        return list(found.texts(path, kind, PATH).to_pylist())

    kinds = {"i": "int32", "l": "int64", "b": "bool", "f": "float32", "end": "float64"}
    for name, kind in kinds.items():
        assert numbers(name, pa.type_for_alias(kind)) == [row[name] for row in rows]
    for name, kind in (("s", "string"), ("y", "binary")):
        assert texts(name, pa.type_for_alias(kind)) == [row[name] for row in rows]
    again = [row["again"] or {"n": None, "t": None} for row in rows]
    assert numbers("again.n", pa.int64()) == [value["n"] for value in again]
    assert texts("again.t", pa.string()) == [value["t"] for value in again]
    either = [row["either"] for row in rows]
    pairs = [value if isinstance(value, tuple) else ("", {}) for value in either]
    whole = [value if isinstance(value, int) else None for value in either]
    assert numbers("either:Inner.n", pa.int64()) == [value.get("n") for _, value in pairs]
    assert texts("either:Inner.t", pa.string()) == [value.get("t") for _, value in pairs]
    assert numbers("either:Other.x", pa.float64()) == [value.get("x") for _, value in pairs]
    assert numbers("either:int", pa.int64()) == whole
    assert not any("skipped" in path or "stepped" in path for path in found.paths)


ROW = {
    "i": 1,
    "l": 1 << 40,
    "b": True,
    "f": 0.5,
    "s": "text",
    "y": b"y",
    "skipped": [1, None],
    "stepped": {"a": "b"},
    "either": ("Inner", {"n": 5, "t": "t"}),
    "again": None,
    "e": "B",
    "x": b"xyz",
    "end": 0.25,
}


def test_damage_is_found_as_by_the_decoder_of_single_records() -> None:
    good = encode_datum(ROW, RECORD)
    for place in range(len(good)):
        for mask in (1, 2, 0x10, 0x80, 0xFF):
            changed = good[:place] + bytes([good[place] ^ mask]) + good[place + 1 :]
            try:
                single: Any = decode_datum(changed, RECORD, PATH)
            except CorruptMetadataError:
                continue
            try:
                found = columns_of([good, changed])
            except CorruptMetadataError:
                # stricter: on the bytes of booleans
                assert place == good.index(b"\1", 2) or "b" in single
                continue
            assert found.numbers("i", pa.int64()).to_pylist() == [1, single["i"]]
            assert found.numbers("end", pa.float64()).to_pylist() == [0.25, single["end"]]


def test_records_that_are_cut_off_are_damage() -> None:
    good = encode_datum(ROW, RECORD)
    for end in range(len(good)):
        with pytest.raises(CorruptMetadataError) as caught:
            columns_of([good, good[:end]])
        assert caught.value.path == PATH
        # nothing follows in the buffer
        with pytest.raises(CorruptMetadataError):
            decode_columns(good[:end], [0], [end], RECORD, PATH)
    with pytest.raises(CorruptMetadataError, match="shorter"):
        columns_of([good + b"\0"])


LISTS = record_of({"a": {"type": "array", "items": "boolean"}})


@pytest.mark.parametrize(
    "datum",
    [
        bytes.fromhex("feffffffffffffffff01") + b"\0",  # 2**63 - 1 entries
        bytes.fromhex("ffffffffffffffffff01") + b"\0",  # -(2**63) entries
        b"\x01\x7f",  # one entry, of -64 bytes
        b"\xff" * 11,
    ],
)
def test_endless_lists_are_refused(datum: bytes) -> None:
    with pytest.raises(CorruptMetadataError):
        columns_of([datum], LISTS)


def test_lists_have_a_greatest_length() -> None:
    short = encode_datum({"a": [True] * MAX_ITEMS}, LISTS)
    assert len(columns_of([short, b"\0"], LISTS)) == 2
    # a block that says how many bytes it has
    assert len(columns_of([b"\x03\x04\x01\x01\x00"], LISTS)) == 1
    with pytest.raises(CorruptMetadataError, match="more than"):
        columns_of([encode_datum({"a": [True] * (MAX_ITEMS + 1)}, LISTS)], LISTS)


def test_nothing_is_read_beyond_the_buffer() -> None:
    doubles = record_of({f"f{number}": "double" for number in range(9)})
    with pytest.raises(CorruptMetadataError, match="is cut off"):
        decode_columns(bytes(8), [0], [8], doubles, PATH)


def test_texts_are_checked() -> None:
    good = encode_datum(ROW, RECORD)
    found = columns_of([good.replace(b"text", b"\xff\xfe\xfd\xfc")])
    with pytest.raises(CorruptMetadataError, match="a string of s"):
        found.texts("s", pa.string(), PATH)
