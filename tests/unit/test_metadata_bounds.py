"""Bounds of columns in the metadata table, for every type and both versions."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.avro.wrappers import ARRAY, Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.bound_forms import bound_form, in_form
from hudi_core.metadata.bounds import BoundType, bound_type, unwrap_bound, wrap_bound
from hudi_core.metadata.records import ColumnRange, ValueType
from hudi_core.model.stats import Scalar

PATH = "/table/.hoodie/metadata/column_stats/f.hfile"
UTC = "UTC"
CASES: list[tuple[pa.DataType, Scalar, ValueType, Wrapped, Wrapped]] = [
    # type, internal form, type of version 2, wrapped in version 1, wrapped in version 2
    (
        pa.bool_(),
        True,
        ValueType(2),
        Wrapped("BooleanWrapper", True),
        Wrapped("BooleanWrapper", True),
    ),
    (pa.int8(), -3, ValueType(3), Wrapped("IntWrapper", -3), Wrapped("IntWrapper", -3)),
    (pa.int32(), 7, ValueType(3), Wrapped("IntWrapper", 7), Wrapped("IntWrapper", 7)),
    (pa.int64(), 7, ValueType(4), Wrapped("LongWrapper", 7), Wrapped("LongWrapper", 7)),
    (pa.float32(), 0.5, ValueType(5), Wrapped("FloatWrapper", 0.5), Wrapped("FloatWrapper", 0.5)),
    (pa.float64(), 0.1, ValueType(6), Wrapped("DoubleWrapper", 0.1), Wrapped("DoubleWrapper", 0.1)),
    (pa.string(), "é", ValueType(7), Wrapped("StringWrapper", "é"), Wrapped("StringWrapper", "é")),
    (
        pa.binary(),
        b"\0\1",
        ValueType(8),
        Wrapped("BytesWrapper", b"\0\1"),
        Wrapped("BytesWrapper", b"\0\1"),
    ),
    (
        pa.binary(2),
        b"ab",
        ValueType(9),
        Wrapped("BytesWrapper", b"ab"),
        Wrapped("BytesWrapper", b"ab"),
    ),
    (
        pa.decimal128(15, 2),
        Decimal("-1.28"),
        ValueType(10, "15,2"),
        Wrapped("DecimalWrapper", (-128 * 10**13).to_bytes(7, "big", signed=True)),
        Wrapped("BytesWrapper", b"\x80"),
    ),
    (
        pa.decimal128(10, 0),
        Decimal(128),
        ValueType(10, "10,0"),
        Wrapped("DecimalWrapper", (128 * 10**15).to_bytes(8, "big", signed=True)),
        Wrapped("BytesWrapper", b"\0\x80"),
    ),
    (
        pa.date32(),
        20_000,
        ValueType(12),
        Wrapped("DateWrapper", 20_000),
        Wrapped("IntWrapper", 20_000),
    ),
    (pa.time32("ms"), 5000, ValueType(13), Wrapped("IntWrapper", 5), Wrapped("IntWrapper", 5)),
    (
        pa.time64("us"),
        5001,
        ValueType(14),
        Wrapped("LongWrapper", 5001),
        Wrapped("LongWrapper", 5001),
    ),
    (
        pa.timestamp("ms", UTC),
        -7000,
        ValueType(15),
        Wrapped("LongWrapper", -7),
        Wrapped("LongWrapper", -7),
    ),
    (
        pa.timestamp("us", UTC),
        77,
        ValueType(16),
        Wrapped("LongWrapper", 77),
        Wrapped("LongWrapper", 77),
    ),
    (pa.timestamp("ms"), 7000, ValueType(18), Wrapped("LongWrapper", 7), Wrapped("LongWrapper", 7)),
    (pa.timestamp("us"), 77, ValueType(19), Wrapped("LongWrapper", 77), Wrapped("LongWrapper", 77)),
]


@pytest.mark.parametrize(("kind", "value", "value_type", "first", "second"), CASES)
def test_bounds_of_every_type(
    kind: pa.DataType, value: Scalar, value_type: ValueType, first: Wrapped, second: Wrapped
) -> None:
    assert bound_type(kind) == value_type
    assert wrap_bound(value, kind, has_value_types=False) == first
    assert wrap_bound(value, kind, has_value_types=True) == second
    assert unwrap_bound(first, None, kind, PATH) == value
    assert unwrap_bound(first, ValueType(0), kind, PATH) == value
    # version 2 says its type, whatever the column has become
    assert unwrap_bound(second, value_type, pa.null(), PATH) == value


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.struct([]), pa.null(), pa.uint8()])
def test_other_types_have_no_bounds(kind: pa.DataType) -> None:
    assert bound_type(kind) is None
    assert wrap_bound(1, kind, has_value_types=True) is None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5), st.booleans())
def test_decimals(value: Decimal, has_value_types: bool) -> None:
    kind = pa.decimal128(38, 5)
    wrapped = wrap_bound(value, kind, has_value_types)
    value_type = bound_type(kind) if has_value_types else None
    if wrapped is None:
        # more digits before the point than the one wrapper of version 1 has room for
        assert not has_value_types
        assert abs(value) >= 10**15
    else:
        assert unwrap_bound(wrapped, value_type, kind, PATH) == value


def test_nanoseconds_are_bounds_where_they_are_whole_microseconds() -> None:
    kind = pa.timestamp("ns", UTC)
    wrapped = wrap_bound(7, kind, has_value_types=True)
    assert wrapped == Wrapped("LongWrapper", 7000)
    assert unwrap_bound(wrapped, ValueType(17), kind, PATH) == 7
    assert unwrap_bound(Wrapped("LongWrapper", 7001), ValueType(17), kind, PATH) is None
    assert unwrap_bound(wrapped, None, kind, PATH) is None


@pytest.mark.parametrize(
    ("bound", "value_type"),
    [
        (Wrapped("LongWrapper", 1), ValueType(99)),
        (Wrapped("LongWrapper", 1), ValueType(BoundType.NULL)),
        (Wrapped(ARRAY, ()), None),
    ],
)
def test_nothing_is_concluded_from_what_is_not_known(
    bound: Wrapped, value_type: ValueType | None
) -> None:
    assert unwrap_bound(bound, value_type, pa.int64(), PATH) is None


def test_decimals_of_version_1_are_bounds_of_decimals_only() -> None:
    assert unwrap_bound(Wrapped("DecimalWrapper", b"\1"), None, pa.int64(), PATH) is None


@pytest.mark.parametrize(
    ("bound", "value_type"),
    [
        (Wrapped("StringWrapper", "1"), ValueType(BoundType.LONG)),
        (Wrapped("LongWrapper", 1), ValueType(BoundType.DATE)),
        (Wrapped("DecimalWrapper", b"\1"), ValueType(BoundType.DECIMAL, "5,2")),
        (Wrapped("BytesWrapper", b"\1"), ValueType(BoundType.DECIMAL)),
        (Wrapped("BytesWrapper", b"\1"), ValueType(BoundType.DECIMAL, "5")),
        (Wrapped("BytesWrapper", b"\1"), ValueType(BoundType.DECIMAL, "5,-2")),
        (Wrapped("BytesWrapper", b"\1"), ValueType(BoundType.DECIMAL, "5,999999999")),
    ],
)
def test_contradictions_are_damage(bound: Wrapped, value_type: ValueType) -> None:
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata"):
        unwrap_bound(bound, value_type, pa.int64(), PATH)


@pytest.mark.parametrize("said", [None, ValueType(0)])
def test_times_of_version_1_stay_bounds_in_version_2(said: ValueType | None) -> None:
    """As Hudi's own upgrade of a table leaves them: numbers that the column's type explains."""
    form = bound_form(pa.timestamp("us", "UTC"), has_value_types=True)
    assert form is not None
    low, high = Wrapped("LongWrapper", 5), Wrapped("LongWrapper", 7)
    found = in_form(ColumnRange("f.parquet", "at", low, high, 2, 0, value_type=said), form)
    assert (found.min_value, found.max_value, found.value_type) == (low, high, form.value_type)
