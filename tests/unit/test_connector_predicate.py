"""Predicates by column: what ranges mean, from and to filters, and as JSON."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import SchemaError
from hudi_core.model.ranges import ValueRanges
from hudi_core.read.connector.domain import EVERYTHING, Domain, Range
from hudi_core.read.connector.predicate import ALL, NONE, TupleDomain
from hudi_core.read.filters import to_filter

KIND = pa.int64()
NUMBERS = range(-1, 7)
TYPED_COLUMNS = pa.schema(
    {
        "i": pa.int32(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "m": pa.decimal128(9, 2),
        "x": pa.binary(),
        "c": pa.time64("us"),
        "l": pa.list_(pa.int32()),
    }
)
AT = dt.datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=dt.UTC)
ROWS = pa.Table.from_pylist(
    [
        {},
        {"i": 1, "f": float("nan"), "s": "", "b": True, "m": Decimal("1.50"), "x": b"\0\xff"},
        {"i": 2, "f": -0.0, "s": "a", "b": False, "d": dt.date(2026, 1, 31), "t": AT, "l": [1]},
        {"i": 3, "f": float("inf"), "s": "é", "c": dt.time(1, 2, 3), "x": b"", "l": []},
        {"i": -5, "f": 2.5, "s": "ab", "d": dt.date(1969, 7, 20), "m": Decimal("-3.25")},
        {"i": 7, "f": float("-inf"), "s": "\U0001f600", "t": AT + dt.timedelta(microseconds=1)},
    ],
    TYPED_COLUMNS,
)

bounds = st.none() | st.integers(0, 5)
ranges = st.builds(
    lambda low, high, has_low, has_high: Range(
        low, high, has_low and low is not None, has_high and high is not None
    ),
    *(bounds, bounds, st.booleans(), st.booleans()),
)
domains = st.builds(
    lambda some, nulls: Domain.of(KIND, some, nulls=nulls),
    *(st.lists(ranges, max_size=4), st.booleans()),
)


def holds(one: Range, value: float) -> bool:
    above = one.low is None or value > one.low or (one.has_low and value == one.low)
    below = one.high is None or value < one.high or (one.has_high and value == one.high)
    return above and below


def members(domain: Domain) -> set[int | None]:
    # halves stand for what is between two whole numbers
    found: set[Any] = {n for n in EVERY if any(holds(one, n) for one in domain.ranges)}
    return found | {None} if domain.nulls else found


EVERY = {n / 2 for n in range(-3, 14)}


class TestDomains:
    @given(st.lists(ranges, max_size=5))
    def test_ranges_are_ascending_and_apart(self, some: list[Range]) -> None:
        made = Domain.of(KIND, some).ranges
        expected = {n for n in EVERY if any(holds(one, n) for one in some)}
        assert members(Domain(KIND, made, nulls=False)) == expected
        assert all(not one.meets(two) for one, two in pairwise(made))

    @given(domains, domains)
    def test_both_and_either(self, one: Domain, two: Domain) -> None:
        assert members(one.intersect(two)) == members(one) & members(two)
        assert members(one.union(two)) == members(one) | members(two)
        assert one.intersect(two) == two.intersect(one)

    @given(domains)
    def test_the_other_values(self, one: Domain) -> None:
        assert members(one.other_values(nulls=False)) == EVERY - members(one)
        assert one.other_values(nulls=one.nulls).other_values(nulls=one.nulls) == one

    @given(domains)
    def test_json(self, one: Domain) -> None:
        assert Domain.from_json(one.to_json(), KIND) == one

    def test_words(self) -> None:
        assert Domain.all(KIND).is_all
        assert Domain(KIND, (EVERYTHING,), nulls=False).has_all_values
        assert Domain.of(KIND, [Range(3, 3)]).is_none
        assert Domain.of(KIND, [Range.of(2), Range.of(1)]).singles == (1, 2)
        assert Domain.of(KIND, [Range(1, 2)]).singles is None


EXACT: list[Any] = [
    None,
    *([("i", op, 2)] for op in ("=", "==", "!=", "<", "<=", ">", ">=")),
    [("i", "in", [1, 7, 3])],
    [("i", "not in", [1, 7])],
    [("i", ">", 0), ("i", "<", 7), ("s", "is not null", None)],
    [("s", "is null", None)],
    [("s", ">=", "a"), ("s", "<", "é")],
    [("s", "in", ["", "\U0001f600"])],
    [("b", "=", True)],
    [("b", "!=", True)],
    [("d", "<", "2000-01-01")],
    [("t", "=", AT)],
    [("t", ">", AT)],
    [("m", "<=", Decimal("1.5"))],
    [("x", ">", b"")],
    [("c", "=", dt.time(1, 2, 3))],
    [("f", "<", 3.0)],
    [("f", ">", float("-inf"))],
    [("f", "=", 0.0)],
    [("f", "is not null", None)],
    [("f", "in", [2.5, float("inf")])],
    [("l", "is null", None)],
    [("l", "is not null", None)],
    ~(pc.field("i") < 2),
    ~pc.field("i").isin([1, 2]),
    (pc.field("i") < 0) | (pc.field("i") == 3) | pc.field("i").is_null(),
    (pc.field("i") > 1) & ((pc.field("s") == "a") | (pc.field("s") > "b")),
    ~((pc.field("i") < 2) | (pc.field("s") == "a")),
    ~((pc.field("i") > 2) & (pc.field("i") < 5)),
]


@pytest.mark.parametrize("row_filter", EXACT, ids=str)
def test_a_predicate_accepts_the_rows_of_its_filter(row_filter: Any) -> None:
    wanted = to_filter(row_filter, TYPED_COLUMNS)
    expected = ROWS if wanted is None else ROWS.filter(wanted.expression)
    predicate = TupleDomain.of(row_filter, TYPED_COLUMNS)
    again = TupleDomain.from_json(predicate.to_json(), TYPED_COLUMNS)
    assert again == predicate
    found = again.to_filter(TYPED_COLUMNS)
    rows = ROWS if found is None else ROWS.filter(found.expression)
    # NaN is not equal to itself
    assert str(rows.to_pylist()) == str(expected.to_pylist())


@pytest.mark.parametrize(
    ("row_filter", "reason"),
    [
        ((pc.field("i") == 1) | (pc.field("s") == "a"), "'or' of i, s"),
        ([("f", "!=", 2.5)], "NaN"),
        ([("f", "not in", [2.5])], "NaN"),
        (~(pc.field("f") < 2.5), "NaN"),
        ([("f", "in", [float("nan")])], "NaN"),
        (pc.field("i") + 1 == 2, "no comparison"),
        ([("nothing", "=", 1)], "no column"),
    ],
    ids=str,
)
def test_what_is_none_of_columns_is_refused(row_filter: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        TupleDomain.of(row_filter, TYPED_COLUMNS)


def test_what_contradicts_itself_wants_nothing() -> None:
    one, two = (TupleDomain.of([("i", "=", n)], TYPED_COLUMNS) for n in (1, 2))
    assert one.intersect(two) == NONE
    assert NONE.intersect(ALL).is_none
    assert TupleDomain.from_json(NONE.to_json(), TYPED_COLUMNS).is_none
    assert one.intersect(ALL) == one
    assert not NONE.overlaps({}, 2).any()
    with pytest.raises(ValueError, match="no row"):
        NONE.to_filter(TYPED_COLUMNS)


def test_predicates_meet_ranges() -> None:
    lows, highs = pa.array([0, 5, None], pa.int32()), pa.array([4, 9, None], pa.int32())
    known = ValueRanges(lows, highs, np.zeros(3, np.bool_), np.ones(3, np.bool_))
    predicate = TupleDomain.of([("i", "in", [1, 2])], TYPED_COLUMNS)
    assert predicate.overlaps({"i": known}, 3).tolist() == [True, False, True]
    assert predicate.overlaps({}, 3).all()
    assert ALL.overlaps({"i": known}, 3).all()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"i":{}}', '{"i":{"nulls":1,"values":[1]}}'),
        *('{"i":{"nulls":true,"values":["a"]}}', '{"i":{"nulls":true,"ranges":[[1]]}}'),
        *('{"x":{"nulls":true,"values":["%"]}}', '{"l":{"nulls":true,"values":[[1]]}}'),
        *(
            '{"nothing":{"nulls":true,"ranges":[]}}',
            '{"m":{"nulls":true,"values":["12345678901.5"]}}',
        ),
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        TupleDomain.from_json(text, TYPED_COLUMNS)
