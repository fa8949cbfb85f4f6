"""Bounds of many statistics at once: the same as one by one, and nothing from the wrong family."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.avro.wrappers import SCALARS, Wrapped
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.bound_arrays import bound_arrays
from hudi_core.metadata.bounds import bound_type, unwrap_bound, wrap_bound
from hudi_core.metadata.column_ranges import as_table
from hudi_core.metadata.records import ColumnRange, ValueType

KINDS: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int32(): [-(2**31), 0, 2**31 - 1],
    pa.int64(): [-(2**63), 0, 2**63 - 1],
    pa.float32(): [-1.5, 0.0, float("inf")],
    pa.float64(): [-1e300, 0.1, 1e300],
    pa.string(): ["", "é", "x" * 5000],
    pa.binary(): [b"", b"\xff\xfe"],
    pa.decimal128(9, 2): [Decimal("-9999999.99"), Decimal("0.10"), Decimal("12.30")],
    pa.decimal128(38, 0): [Decimal(-(10**37)), Decimal(10**38 - 1)],
    pa.decimal128(20, 10): [Decimal("-0.0000000001"), Decimal("1234567890.0123456789")],
    pa.date32(): [-719162, 0, 2932896],
    pa.timestamp("us", "UTC"): [-1, 0, 10**15],
    pa.timestamp("us"): [-1, 0, 10**15],
    pa.timestamp("ms"): [-1000, 0, 10**15],
    pa.time64("us"): [0, 86_399_999_999],
    pa.time32("ms"): [0, 86_399_999_000],
}


def internal(value: pa.Scalar) -> Any:
    """Return a value in the internal form of bounds."""
    kind = value.type
    if pa.types.is_date(kind):
        return value.cast(pa.int32()).as_py()
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        raw = value.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).as_py()
        return raw * (1000 if kind.unit == "ms" else 1)
    return value.as_py()


def table_of(*bounds: tuple[Wrapped | None, ValueType | None]) -> pa.Table:
    return as_table(
        [ColumnRange("f", "c", bound, bound, 2, 1, value_type=kind) for bound, kind in bounds]
    )


@pytest.mark.parametrize("typed", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_many_bounds_are_what_each_is(kind: pa.DataType, typed: bool) -> None:
    value_type = bound_type(kind) if typed else None
    wrapped = [wrap_bound(value, kind, typed) for value in KINDS[kind]]
    table = table_of(*[(bound, value_type) for bound in wrapped], (None, value_type))
    one_by_one = [
        None if bound is None else unwrap_bound(bound, value_type, kind, "f") for bound in wrapped
    ]
    for side in ("min", "max"):
        found = bound_arrays(table, side, kind, "f")
        assert found.type == kind
        assert not found[-1].is_valid
        many = [internal(value) if value.is_valid else None for value in found][:-1]
        assert many == one_by_one
    # version 1 has 30 digits for a decimal
    assert one_by_one[1] is not None or (not typed and kind == pa.decimal128(38, 0))


def test_bounds_of_another_family_tell_nothing() -> None:
    texts = (Wrapped("StringWrapper", "x"), ValueType(7))
    numbers = (Wrapped("LongWrapper", 5), ValueType(4))
    for first, second in ((texts, numbers), ((texts[0], None), (numbers[0], None))):
        table = table_of(first, second, first)
        assert bound_arrays(table, "min", pa.string(), "f").to_pylist() == ["x", None, "x"]
        assert bound_arrays(table, "min", pa.int64(), "f").to_pylist() == [None, 5, None]
        assert bound_arrays(table, "min", pa.bool_(), "f").to_pylist() == [None, None, None]
        assert bound_arrays(table, "min", pa.date32(), "f").to_pylist() == [None, None, None]


@pytest.mark.parametrize("wrapper", SCALARS)
def test_no_wrapper_is_forgotten(wrapper: str) -> None:
    value = {"StringWrapper": "5", "BytesWrapper": b"5", "DecimalWrapper": b"5"}.get(wrapper, 5)
    table = table_of((Wrapped(wrapper, value), None))
    held = [form for form in ("int", "float", "bytes") if table[f"max_{form}"][0].is_valid]
    assert len(held) == 1


def test_narrower_numbers_fit_wider_columns() -> None:
    ints = (Wrapped("IntWrapper", -7), ValueType(3))
    floats = (Wrapped("FloatWrapper", 0.1), ValueType(5))
    cents = (Wrapped("BytesWrapper", b"\x04\xd2"), ValueType(10, "5,2"))
    table = table_of(ints, floats, cents)
    assert bound_arrays(table, "min", pa.int64(), "f").to_pylist() == [-7, None, None]
    assert bound_arrays(table, "min", pa.float64(), "f").to_pylist() == [-7.0, 0.1, None]
    kind = pa.decimal128(12, 4)
    found = bound_arrays(table, "min", kind, "f").to_pylist()
    assert found == [Decimal(-7), None, Decimal("12.34")]
    # a bound that the type would round is none
    assert bound_arrays(table, "min", pa.decimal128(5, 1), "f").to_pylist()[2] is None
    assert bound_arrays(table, "min", pa.decimal128(3, 2), "f").to_pylist()[2] is None


def test_forms_of_real_and_of_odd_tables() -> None:
    nan = (Wrapped("DoubleWrapper", float("nan")), ValueType(6))
    assert bound_arrays(table_of(nan), "max", pa.float64(), "f").to_pylist() == [None]
    for wrapper in ("DateWrapper", "LocalDateWrapper"):
        day = table_of((Wrapped(wrapper, 3), None))
        assert bound_arrays(day, "max", pa.date32(), "f").to_pylist() == [date(1970, 1, 4)]
    moment = (Wrapped("TimestampMicrosWrapper", 1_000_000), None)
    kind = pa.timestamp("us")
    assert bound_arrays(table_of(moment), "max", kind, "f").to_pylist() == [
        datetime.fromisoformat("1970-01-01T00:00:01")
    ]
    later = (Wrapped("LongWrapper", 5), ValueType(99))
    assert bound_arrays(table_of(later), "max", pa.int64(), "f").to_pylist() == [None]
    huge = (Wrapped("BytesWrapper", b"\x01" * 20), ValueType(10, "38,2"))
    assert bound_arrays(table_of(huge), "max", pa.decimal128(38, 2), "f").to_pylist() == [None]


@pytest.mark.parametrize(
    ("bound", "kind", "reason"),
    [
        (Wrapped("StringWrapper", "x"), ValueType(4), "LONG is a StringWrapper"),
        (Wrapped("BytesWrapper", b"x"), ValueType(10, "many"), "'many' is not precision and scale"),
        (Wrapped("BytesWrapper", b"x"), ValueType(10, None), "None is not precision and scale"),
    ],
)
def test_contradictions_are_damage(bound: Wrapped, kind: ValueType, reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason):
        bound_arrays(table_of((bound, kind)), "min", pa.int64(), "f")


def test_texts_that_are_not_utf8_are_damage() -> None:
    table = table_of((Wrapped("StringWrapper", "x"), ValueType(7)))
    place = table.schema.get_field_index("min_bytes")
    table = table.set_column(place, "min_bytes", pa.array([b"\xff"], pa.binary()))
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata"):
        bound_arrays(table, "min", pa.string(), "f")
