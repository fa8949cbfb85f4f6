"""Texts of values can be read back, and are told apart."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.keygen.base import to_text
from hudi_core.schema.java_float import double_text, float_text


@given(st.floats(), st.booleans())
def test_doubles_survive(value: float, old: bool) -> None:
    back = np.float64(double_text(value, old=old).replace("Infinity", "inf"))
    assert back.tobytes() == np.float64(value).tobytes() or np.isnan(value)


@given(st.floats(width=32), st.booleans())
def test_floats_survive(value: float, old: bool) -> None:
    back = np.float32(float_text(np.float32(value), old=old).replace("Infinity", "inf"))
    assert back.tobytes() == np.float32(value).tobytes() or np.isnan(value)


@given(st.lists(st.decimals(-(10**20), 10**20, places=9)))
def test_decimals_are_spelled_as_by_big_decimal(values: list[Decimal]) -> None:
    # Python's Decimal and Java's BigDecimal share the rule for exponents
    texts = to_text(pa.array(values, pa.decimal128(38, 9))).to_pylist()
    assert texts == [str(value).replace("-0E-9", "0E-9") for value in values]


@given(st.lists(st.none() | st.binary(max_size=20)))
def test_bytes_are_hexadecimal(values: list[bytes | None]) -> None:
    texts = to_text(pa.array(values, pa.binary())).to_pylist()
    assert texts == [None if value is None else value.hex() for value in values]
