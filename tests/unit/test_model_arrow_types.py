"""The types tables store, and the paths of nested fields."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.errors import SchemaError
from hudi_core.schema.arrow_types import leaves, normalise_type, walk

ELEMENT = pa.list_(pa.field("element", pa.string()))


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.bool_(), pa.bool_()),
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.int64(), pa.int64()),
        (pa.uint8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal64(12, 2), pa.decimal128(12, 2)),
        (pa.decimal256(38, 5), pa.decimal128(38, 5)),
        (pa.date64(), pa.date32()),
        (pa.time32("s"), pa.time64("us")),
        (pa.time64("ns"), pa.time64("us")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.int16()), pa.int32()),
        (pa.large_list(pa.large_string()), ELEMENT),
        (pa.list_(pa.string(), 3), ELEMENT),
        (pa.list_view(pa.string_view()), ELEMENT),
        (pa.large_list_view(pa.string()), ELEMENT),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int32())])),
    ],
    ids=str,
)
def test_types_have_one_stored_form(given: pa.DataType, stored: pa.DataType) -> None:
    assert normalise_type(given, "c") == stored
    assert normalise_type(stored, "c") == stored


@pytest.mark.parametrize(
    "kind",
    [
        pa.null(),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.decimal256(39, 0),
        pa.decimal128(5, -2),
        pa.decimal128(2, 5),
        pa.map_(pa.int32(), pa.string()),
        pa.list_(pa.null()),
        pa.dense_union([pa.field("a", pa.int32())]),
        pa.uuid(),
    ],
    ids=str,
)
def test_types_without_a_counterpart_are_refused_by_column(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"Column a\.b.* has the type"):
        normalise_type(kind, "a.b")


def test_an_empty_struct_is_refused() -> None:
    with pytest.raises(SchemaError, match="struct<>"):
        normalise_type(pa.struct([]), "s")


def test_a_nested_twin_is_refused() -> None:
    with pytest.raises(SchemaError, match="The struct s has several columns named a"):
        normalise_type(pa.struct([("a", pa.int32()), ("a", pa.int64())]), "s")


def test_nullability_survives() -> None:
    kind = pa.list_(pa.field("item", pa.struct([pa.field("x", pa.int8(), nullable=False)]), False))
    stored = normalise_type(kind, "c")
    assert not stored.value_field.nullable
    assert not stored.value_type.field("x").nullable


def test_paths_are_those_of_parquet_columns() -> None:
    schema = pa.schema(
        [
            ("a", pa.int32()),
            ("s", pa.struct([("x", pa.int32()), ("l", ELEMENT)])),
            ("m", pa.map_(pa.string(), pa.struct([("y", pa.int32())]))),
        ]
    )
    assert [path for path, _ in leaves(schema)] == [
        "a",
        "s.x",
        "s.l.list.element",
        "m.key_value.key",
        "m.key_value.value.y",
    ]
    assert [path for path, _ in walk(schema)][:3] == ["a", "s", "s.x"]
