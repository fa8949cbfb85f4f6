"""A bloom filter holds what was added, whatever the keys look like."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.hashing.bloom import DynamicBloom

KEYS = st.lists(st.text(max_size=40), max_size=60)


@given(KEYS, KEYS, st.integers(1, 40), st.integers(0, 100))
def test_added_keys_are_found(
    keys: list[str], others: list[str], entries: int, max_entries: int
) -> None:
    bloom = DynamicBloom.build(pa.array(keys, pa.string()), entries, 1e-6, max_entries)
    text = bloom.to_base64()
    read = DynamicBloom.parse(text, "f")
    assert read.to_base64() == text
    asked = pa.array([*others, *keys], pa.string())
    answers = read.might_contain(asked).to_pylist()
    assert all(answers[len(others) :])
    # each answer is that of the key alone
    assert answers == [
        read.might_contain(asked.slice(n, 1)).to_pylist()[0] for n in range(len(asked))
    ]
