"""Rows brought to the order and the types of a table's schema."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import SchemaError
from hudi_core.schema.table_schema import TableSchema

SMALL = TableSchema.create(
    pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("x", pa.float64()),
            ("at", pa.timestamp("us", "UTC")),
            ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
            ("price", pa.decimal128(10, 2)),
        ]
    )
)


def test_rows_are_brought_to_the_order_and_types_of_the_table() -> None:
    batch = pa.record_batch(
        {
            "at": pa.array([1_000_000_000], pa.timestamp("ns", "Asia/Tokyo")),
            "id": pa.array([7], pa.uint64()),
            "_hoodie_commit_time": ["20260101000000000"],
            "price": pa.array([3], pa.int64()),
            "x": pa.array([2], pa.int8()),
        }
    )
    cast = SMALL.cast_batch(batch)
    assert cast.schema.equals(SMALL.arrow, check_metadata=True)
    assert cast.to_pylist() == [
        {
            "id": 7,
            "x": 2.0,
            "at": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
            "s": None,
            "price": Decimal("3.00"),
        }
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1], "y": [2], "z": [3]}, "The table lacks the columns y, z"),
        ({"x": [1.0]}, "Column id is required, and the rows do not have it"),
        ({"id": [1, None]}, "Column id is required, and 1 of 2 rows have no value"),
        ({"id": ["1"]}, "Column id has the type string, and the table has int32"),
        ({"id": [1.0]}, "Column id has the type double, and the table has int32"),
        ({"id": [2**31]}, "Column id holds values that int32 cannot represent"),
        ({"id": [1], "x": [2**53 + 1]}, "Column x holds values that double cannot represent"),
        ({"id": [1], "price": [10**9]}, "Column price holds values that decimal128"),
        ({"id": [1], "price": [Decimal("1.005")]}, "Column price holds values that decimal128"),
        ({"id": [1], "at": [dt.datetime(2026, 1, 1)]}, "Column at has the type timestamp"),  # noqa: DTZ001
        ({"id": [1], "s": [{"a": 1, "c": 2}]}, "The struct s of the table lacks the columns c"),
        ({"id": [1], "s": [5]}, "Column s has the type int64, and the table has struct"),
        ({"id": [1], "x": [{"a": 5}]}, "Column x has the type struct"),
    ],
)
def test_rows_that_do_not_fit_are_refused(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        SMALL.cast_batch(pa.record_batch(columns))


def test_nanoseconds_that_would_be_lost_are_refused() -> None:
    batch = pa.record_batch({"id": [1], "at": pa.array([1_001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(SchemaError, match="Column at holds values"):
        SMALL.cast_batch(batch)


def test_a_column_twice_is_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(SchemaError, match="several columns named id"):
        SMALL.cast_batch(batch)


def test_floats_become_narrower_only_when_nothing_is_lost() -> None:
    schema = TableSchema.create(pa.schema([("f", pa.float32())]))
    fits = pa.record_batch({"f": [0.5, float("nan"), float("inf"), None]})
    assert str(schema.cast_batch(fits).column(0).to_pylist()) == "[0.5, nan, inf, None]"
    with pytest.raises(SchemaError, match="Column f holds values"):
        schema.cast_batch(pa.record_batch({"f": [0.1]}))
    with pytest.raises(SchemaError, match="Column f holds values"):
        schema.cast_batch(pa.record_batch({"f": [1e300]}))


def test_columns_of_nulls_become_any_type() -> None:
    batch = pa.record_batch({"id": [1, 2], "s": pa.nulls(2), "x": pa.nulls(2)})
    assert SMALL.cast_batch(batch).column("s").null_count == 2


def encoded_forms(values: list[Any], kind: pa.DataType) -> list[pa.Array]:
    return [
        pa.array(values, kind),
        pa.concat_arrays([pa.array(values, kind), pa.array(values, kind)]).slice(len(values)),
    ]


@pytest.mark.parametrize(
    ("given", "stored", "values"),
    [
        (pa.list_view(pa.int8()), pa.list_(pa.int64()), [[1], None, [], [2, 3]]),
        (pa.large_list_view(pa.string()), pa.list_(pa.string()), [["a", None], ["b"]]),
        (pa.large_list(pa.int32()), pa.list_(pa.int64()), [[1], None, [2, 3]]),
        (pa.list_(pa.int32(), 2), pa.list_(pa.int64()), [[1, 2], None, [3, 4]]),
        (
            pa.map_(pa.large_string(), pa.int8()),
            pa.map_(pa.string(), pa.int32()),
            [[("a", 1)], None, [], [("b", None), ("c", 3)]],
        ),
        (
            pa.struct([("b", pa.large_string()), ("a", pa.int8())]),
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
            [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}],
        ),
        (
            pa.list_(pa.struct([("a", pa.list_view(pa.int8()))])),
            pa.list_(pa.struct([("a", pa.list_(pa.int32()))])),
            [[{"a": [1]}, None], None, [{"a": None}, {"a": [2, 3]}]],
        ),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", None, "b", "a"]),
    ],
    ids=str,
)
def test_nested_values_survive_whatever_their_layout(
    given: pa.DataType, stored: pa.DataType, values: list[Any]
) -> None:
    schema = TableSchema.create(pa.schema([("c", stored)]))
    for array in encoded_forms(values, given):
        cast = schema.cast_batch(pa.record_batch({"c": array})).column(0)
        cast.validate(full=True)
        assert cast.to_pylist() == pa.array(values, stored).to_pylist()


def test_list_views_in_any_order_keep_their_values() -> None:
    views = pa.ListViewArray.from_arrays(
        pa.array([2, 0, 1], pa.int32()), pa.array([1, 2, 2], pa.int32()), pa.array([10, 11, 12])
    )
    schema = TableSchema.create(pa.schema([("c", views.type)]))
    cast = schema.cast_batch(pa.record_batch({"c": views})).column(0)
    assert cast.to_pylist() == [[12], [10, 11], [11, 12]]


def test_run_end_encoded_columns_are_decoded() -> None:
    array = pc.run_end_encode(pa.array(["a", "a", None]))
    schema = TableSchema.create(pa.schema([("c", array.type)]))
    assert schema.cast_batch(pa.record_batch({"c": array})).column(0).to_pylist() == [
        "a",
        "a",
        None,
    ]


def test_required_fields_below_a_null_struct_are_not_missing() -> None:
    inner = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    schema = TableSchema.create(pa.schema([("s", inner)]))
    loose = pa.struct([("a", pa.int64())])
    cast = schema.cast_batch(pa.record_batch({"s": pa.array([{"a": 1}, None], loose)}))
    assert cast.column(0).to_pylist() == [{"a": 1}, None]
    with pytest.raises(SchemaError, match=r"Column s\.a is required, and 1 of 1 rows"):
        schema.cast_batch(pa.record_batch({"s": pa.array([None, {"a": None}], loose)}))
