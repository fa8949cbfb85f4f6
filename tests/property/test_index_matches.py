"""Indexes find the same matches: BLOOM those of SIMPLE, and reads fewer key columns for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given

from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.index import base
from hudi_core.index.base import Index, SimpleIndex
from hudi_core.index.bloom import BloomIndex
from hudi_core.index.bucket import BucketIndex, bucket_numbers
from hudi_core.model.buckets import Buckets, bucket_file_id
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant_time import parse_instant_time

INSTANT = parse_instant_time("20260101000000000")


@dataclass
class Files:
    """Files in memory, which count what is read of them."""

    stored: list[list[str]]
    blooms: bool = True
    ranges: bool = True
    keys_read: list[int] = field(default_factory=list)
    footers_read: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.stored)

    def file_id(self, ordinal: int) -> FileId:
        return bucket_file_id(INSTANT, PartitionPath(""), ordinal)

    def footer(self, ordinal: int) -> KeyFooter:
        self.footers_read.append(ordinal)
        keys = self.stored[ordinal]
        low = high = bloom = None
        if self.ranges and keys:
            low, high = min(keys, key=java_order), max(keys, key=java_order)
        if self.blooms:
            bloom = DynamicBloom.build(pa.array(keys, pa.string()), max(1, len(keys)), 1e-3)
        return KeyFooter(low, high, bloom, len(keys))

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        self.keys_read.append(ordinal)
        keys = self.stored[ordinal]
        return pa.chunked_array([keys[:1], keys[1:]], pa.string())


def java_order(text: str) -> bytes:
    return text.encode("utf-16-be")


def matches(index: Index, keys: Sequence[str], files: Files) -> list[tuple[int, str, int]]:
    incoming = pa.array(keys, pa.string())
    return sorted(
        (match.candidate, keys[one], position)
        for match in index.tag(incoming, files)
        for one, position in zip(match.incoming.tolist(), match.stored.tolist(), strict=True)
    )


def by_hand(keys: Sequence[str], files: Files) -> list[tuple[int, str, int]]:
    return sorted(
        (number, key, position)
        for number, stored in enumerate(files.stored)
        for position, key in enumerate(stored)
        if key in keys
    )


TEXTS = st.text("ab~\u00e9\ue000\uffff\U0001f600", min_size=1, max_size=3)


@given(
    keys=st.lists(TEXTS, unique=True, max_size=12),
    stored=st.lists(st.lists(TEXTS, max_size=6), max_size=4),
    blooms=st.booleans(),
    ranges=st.booleans(),
)
# the order of UTF-8 and that of UTF-16 differ here
@example(keys=["\ue000"], stored=[["a", "\ue000", "\U0001f600"]], blooms=False, ranges=True)
@example(keys=["\U0001f600"], stored=[["a", "\U0001f600", "\uffff"]], blooms=False, ranges=True)
def test_bloom_and_simple_find_the_same(
    keys: list[str], stored: list[list[str]], blooms: bool, ranges: bool
) -> None:
    simple, bloom = Files(stored, blooms, ranges), Files(stored, blooms, ranges)
    expected = by_hand(keys, simple)
    assert matches(SimpleIndex(), keys, simple) == expected
    assert matches(BloomIndex(), keys, bloom) == expected
    assert set(bloom.keys_read) <= set(simple.keys_read)


@given(keys=st.lists(TEXTS, unique=True, max_size=12), number=st.integers(1, 5))
def test_buckets_find_what_is_in_them(keys: list[str], number: int) -> None:
    buckets = Buckets(number, ("id",))
    of_keys = bucket_numbers(pa.array(keys, pa.string()), buckets).tolist()
    stored = [
        [key for key, bucket in zip(keys[::2], of_keys[::2], strict=True) if bucket == one]
        for one in range(number)
    ]
    files = Files(stored)
    assert matches(BucketIndex(buckets), keys, files) == by_hand(keys, files)
    assert set(files.keys_read) <= set(of_keys)


@pytest.mark.parametrize(("held", "probes"), [(1 << 20, 1), (1, 3)])
def test_small_files_are_looked_into_together(
    monkeypatch: pytest.MonkeyPatch, held: int, probes: int
) -> None:
    made: list[pa.ChunkedArray] = []

    def index_in(stored: pa.ChunkedArray, value_set: pa.Array) -> pa.ChunkedArray:
        made.append(stored)
        return found_in(stored, value_set=value_set)

    found_in = pc.index_in
    monkeypatch.setattr(pc, "index_in", index_in)
    monkeypatch.setattr(base, "_HELD_BYTES", held)
    files = Files([["a", "b"], ["c"], ["d", "b"]])
    assert matches(SimpleIndex(), ["b", "d"], files) == by_hand(["b", "d"], files)
    assert len(made) == probes


def test_files_are_ruled_out_before_their_keys_are_read() -> None:
    stored = [[f"{letter}{number:03d}" for number in range(0, 200, 2)] for letter in "abcd"]
    files = Files(stored)
    found = matches(BloomIndex(), ["b010", "b011", "d500"], files)
    assert found == [(1, "b010", 5)]
    assert files.footers_read == [0, 1, 2, 3]
    assert files.keys_read == [1]
    # by its filter alone
    files = Files(stored, ranges=False)
    assert matches(BloomIndex(), ["b011"], files) == []
    assert files.keys_read == []
    # by its range alone
    files = Files(stored, blooms=False)
    assert matches(BloomIndex(), ["c011"], files) == []
    assert files.keys_read == [2]


@pytest.mark.parametrize("index", [SimpleIndex(), BloomIndex(), BucketIndex(Buckets(2, ("id",)))])
def test_nothing_in_nothing(index: Index) -> None:
    assert matches(index, [], Files([["a"], []])) == []
    assert matches(index, ["a"], Files([])) == []
