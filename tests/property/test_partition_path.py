"""Whatever the values: a path is refused, or is safe, and reads back as the values."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import PartitionValueError
from hudi_core.storage.partition_path import PartitionPathCodec

FIELDS = ("a", "b=c", "d.é")
HOSTILE = [
    "..",
    ".",
    "/",
    "../x",
    ".hoodie",
    "_x",
    "%2E",
    "%",
    "a=b",
    "a/b",
    "__HIVE_DEFAULT_PARTITION__",
    "a\\b",
    "\x00",
    "é",
    "e\N{COMBINING ACUTE ACCENT}",
]
VALUES = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.text(alphabet="./%_=2EF\\a", max_size=8),
    st.sampled_from(HOSTILE),
    st.text(min_size=80, max_size=300),
)
TUPLES = st.integers(1, 3).flatmap(lambda size: st.tuples(*[VALUES] * size))


def encoded(values: tuple[str | None, ...], hive: bool, url: bool) -> str | None:
    try:
        return PartitionPathCodec(FIELDS[: len(values)], hive, url).encode(values)
    except PartitionValueError:
        return None


@given(values=TUPLES, hive=st.booleans(), url=st.booleans())
def test_a_path_is_safe_and_reads_back(
    values: tuple[str | None, ...], hive: bool, url: bool
) -> None:
    path = encoded(values, hive, url)
    if path is None:
        return
    read = tuple(value or None for value in values)
    assert PartitionPathCodec(FIELDS[: len(values)], hive, url).decode(path) == read
    full = os.path.normpath(f"/base/table/{path}")
    assert full == f"/base/table/{path}"
    assert not path.startswith("_") or not values[0]
    for segment in path.split("/"):
        assert segment
        assert not segment.startswith(".")
        assert len(segment.encode()) <= 255
        assert not any(character < " " for character in segment)
    if url or (len(values) > 1 and not hive):
        assert len(path.split("/")) == len(values)


@given(first=TUPLES, second=TUPLES, hive=st.booleans(), url=st.booleans())
def test_no_two_tuples_share_a_path(
    first: tuple[str | None, ...], second: tuple[str | None, ...], hive: bool, url: bool
) -> None:
    told = ([value or None for value in values] for values in (first, second))
    if len(first) == len(second) and next(told) != next(told):
        one, other = encoded(first, hive, url), encoded(second, hive, url)
        assert one is None or one != other


@given(value=st.text(min_size=1, max_size=20), hive=st.booleans())
def test_with_url_encoding_only_what_nobody_can_store_is_refused(value: str, hive: bool) -> None:
    hopeless = "\0" in value or value == "__HIVE_DEFAULT_PARTITION__"
    if not hopeless and len(value.encode("utf-8", "surrogatepass")) <= 80:
        surrogate = any("\ud800" <= character <= "\udfff" for character in value)
        assert (encoded((value,), hive, True) is None) is surrogate


@pytest.mark.parametrize("hive", [False, True])
def test_the_strategies_reach_both_outcomes(hive: bool) -> None:
    # keeps the tests above from passing because everything is refused
    outcomes = {encoded((value,), hive, False) is None for value in HOSTILE}
    assert outcomes == {False, True}
