"""Bounds in internal form, as arrays of a column's type and as texts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.spi.files import bound_from_text, bound_to_text, bounds_to_array

BOUNDS: list[tuple[pa.DataType, Any, Any]] = [
    (pa.bool_(), True, True),
    (pa.int32(), -7, -7),
    (pa.int64(), 1 << 62, 1 << 62),
    (pa.float32(), 0.5, 0.5),
    (pa.float64(), -1e300, -1e300),
    (pa.float64(), float("inf"), float("inf")),
    (pa.decimal128(12, 2), Decimal("-3.50"), Decimal("-3.50")),
    (pa.date32(), 19782, dt.date(2024, 2, 29)),
    (pa.time64("us"), 1_000_001, dt.time(0, 0, 1, 1)),
    (pa.timestamp("us"), 1_000_001, dt.datetime(1970, 1, 1, 0, 0, 1, 1)),  # noqa: DTZ001 - has none
    (pa.timestamp("us", "UTC"), 0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
    (pa.timestamp("ms"), 5_000, dt.datetime(1970, 1, 1, 0, 0, 0, 5_000)),  # noqa: DTZ001 - as above
    (pa.string(), "ä'\n", "ä'\n"),
    (pa.string(), "", ""),
    (pa.binary(), b"\0\xff", b"\0\xff"),
    (pa.binary(2), b"\0\xff", b"\0\xff"),
]


@pytest.mark.parametrize(("kind", "bound", "value"), BOUNDS, ids=str)
def test_both_forms(kind: pa.DataType, bound: Any, value: Any) -> None:
    array = bounds_to_array([bound, None], kind)
    assert array.type == kind
    assert array.to_pylist() == [value, None]
    found = bound_from_text(bound_to_text(bound), kind)
    assert found == bound
    assert type(found) is type(bound)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("yes", pa.bool_()), ("1.5", pa.int64()), ("nan", pa.float64())),
        *(("NaN", pa.decimal128(3, 1)), ("Infinity", pa.decimal128(3, 1))),
        *(("one", pa.decimal128(3, 1)), ("1x", pa.decimal128(3, 1)), ("é", pa.binary())),
        ("1", pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_texts_that_are_no_bound(text: str, kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match=r".+"):
        bound_from_text(text, kind)
