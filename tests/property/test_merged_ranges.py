"""A partition's range after replaced files equals the one made of all its files."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given, settings

from hudi_core.avro.wrappers import Wrapped
from hudi_core.metadata.log.records import ColumnRange
from hudi_core.metadata.statistics.bound_forms import BoundForm, bound_form
from hudi_core.metadata.statistics.column_records import (
    file_ranges,
    may_be_narrow,
    merged_range,
    updated_range,
)
from hudi_core.model.stats import ColumnStats, Scalar
from tests.samples import IS_WHOLE

KINDS = (
    pa.int32(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.decimal128(18, 3),
    pa.decimal128(8, 2),
    pa.date32(),
    pa.timestamp("us", "UTC"),
)
WIDER = {pa.int32(): pa.int64()}


def value_of(kind: pa.DataType, number: int) -> Scalar:
    """Few different values, so that files share bounds."""
    if kind == pa.string():
        return ("", "a", "ab", "b", "\ue000", "\U00010000")[number]
    if kind == pa.binary():
        return (b"", b"\x00", b"a", b"\x7f", b"\x80", b"\xff")[number]
    if pa.types.is_decimal(kind):
        return Decimal(number - 3) / 2
    return float(number - 3) if kind == pa.float64() else number - 3


@st.composite
def stats_of(draw: st.DrawFn, kind: pa.DataType) -> ColumnStats:
    values = draw(st.integers(1, 3))
    nulls = draw(st.integers(0, values))
    some = st.integers(0, 5)
    low, high = sorted((draw(some), draw(some))) if nulls < values else (None, None)
    return ColumnStats(
        value_count=values,
        null_count=nulls,
        nan_count=0,
        compressed_size=draw(st.integers(0, 9)),
        uncompressed_size=draw(st.integers(0, 9)),
        min_value=None if low is None else value_of(kind, low),
        max_value=None if high is None else value_of(kind, high),
        has_unbounded=kind == pa.float64() and nulls < values and draw(st.integers(0, 4)) == 0,
    )


def range_of(stats: ColumnStats, form: BoundForm) -> ColumnRange | None:
    return file_ranges("name", {"x": stats}, {"x": form}).get("x")


def form_of(kind: pa.DataType, has_value_types: bool) -> BoundForm:
    form = bound_form(kind, has_value_types=has_value_types)
    assert form is not None
    return form


def is_held(bound: str, whole: ColumnRange, files: list[ColumnRange]) -> bool:
    value = getattr(whole, bound)
    return value is not None and any(getattr(one, bound) == value for one in files)


@given(data=st.data(), kind=st.sampled_from(KINDS), has_value_types=st.booleans())
@settings(max_examples=300 if IS_WHOLE else 120, deadline=None)
def test_a_history_of_replaced_files(
    data: st.DataObject, kind: pa.DataType, has_value_types: bool
) -> None:
    form = now = form_of(kind, has_value_types)
    if kind in WIDER and data.draw(st.booleans()):
        now = form_of(WIDER[kind], has_value_types)
    files = [range_of(one, form) for one in data.draw(st.lists(stats_of(kind), min_size=3))]
    stored = merged_range(files, now)
    for _ in range(data.draw(st.integers(1, 4))):
        if stored is None:
            break
        assert stored.is_tight_bound
        number = data.draw(st.integers(0, min(3, len(files) - 1)))
        gone, staying = files[:number], files[number:]
        came = [range_of(one, now) for one in data.draw(st.lists(stats_of(now.kind), max_size=3))]
        files = data.draw(st.permutations([*staying, *came]))
        left, new = ([one for one in some if one is not None] for some in (gone, came))
        found, rebuilt = updated_range(stored, left, new, now), merged_range(files, now)
        assert rebuilt is not None
        before, stored = stored, rebuilt
        if found is None:
            if may_be_narrow(before, now.kind):
                continue
            # what would be a bound went, and no new file has it
            old = [merged_range([one], now) or one for one in left]
            wide = merged_range([before, *new], now)
            assert wide is not None
            assert any(
                is_held(bound, wide, old) and not is_held(bound, wide, new)
                for bound in ("min_value", "max_value")
            )
        else:
            assert found == rebuilt


LONG = form_of(pa.int64(), has_value_types=True)
WHOLE = ColumnRange(
    "name",
    "x",
    Wrapped("LongWrapper", 1),
    Wrapped("LongWrapper", 9),
    *(10, 1, 100, 200),
    is_tight_bound=True,
    value_type=LONG.value_type,
)
PART = replace(WHOLE, min_value=Wrapped("LongWrapper", 5), value_count=2, null_count=0)
INNER = replace(PART, max_value=Wrapped("LongWrapper", 5), total_size=1, total_uncompressed_size=1)


def test_what_is_stored_is_not_built_upon_where_it_may_be_wrong() -> None:
    assert updated_range(WHOLE, [INNER], [INNER], LONG) == WHOLE
    int_form = form_of(pa.int32(), has_value_types=True)
    for wrong in (
        replace(WHOLE, is_tight_bound=False),
        replace(WHOLE, null_count=None),
        replace(WHOLE, min_value=None),
        replace(WHOLE, value_type=int_form.value_type),
        replace(WHOLE, null_count=10),
        # the replaced file is outside of it, or has more
        replace(WHOLE, min_value=Wrapped("LongWrapper", 6)),
        replace(WHOLE, value_count=1, null_count=0),
        replace(WHOLE, total_size=0),
    ):
        assert updated_range(wrong, [INNER], [], LONG) is None
    assert updated_range(WHOLE, [PART], [], LONG) is None
    assert updated_range(WHOLE, [PART], [PART], LONG) == WHOLE


def test_what_hudi_makes_too_narrow_is_not_built_upon() -> None:
    """Bytes in another order, texts in that of UTF-16, and zeros that stand for NaN."""
    for kind, low, high, is_narrow in (
        (pa.binary(), b"a", b"b", True),
        (pa.string(), "a", "\ue000", True),
        (pa.string(), "a", "\ud7ff", False),
        (pa.float64(), -1.0, 1.0, True),
        (pa.float64(), 0.5, 1.0, False),
        (pa.decimal128(8, 2), Decimal(-1), Decimal(1), False),
    ):
        form = form_of(kind, has_value_types=True)
        whole = range_of(ColumnStats(low, high, 9, 0, 0, 9, 9), form)
        assert whole is not None
        whole = replace(whole, is_tight_bound=True)
        assert (updated_range(whole, [], [], form) is None) is is_narrow
