"""Rows of MERGE_ON_READ tables, compared with those of COPY_ON_WRITE ones.

In each merge mode and with each index, by ours and by hudi-rs, after each step of a random history.
``make campaigns`` takes 216 histories, and 180 of split tables, which have no buckets.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from hudi_core.write import steps
from tests.merge_on_read_histories import INDEXES, MERGING, History
from tests.samples import sampled

_CASES = [
    (*pair, seed) for seed in range(6) for pair in product(range(len(MERGING)), range(len(INDEXES)))
]


@pytest.mark.parametrize(("merging", "index", "seed"), sampled(_CASES, 30))
def test_both_types_hold_the_same_rows(tmp_path: Path, merging: int, index: int, seed: int) -> None:
    history = History(tmp_path, seed, MERGING[merging], INDEXES[index])

    history.run(12)
    history.end()


@pytest.mark.parametrize(
    ("merging", "index", "seed"),
    sampled([case for case in _CASES if "BUCKET" not in INDEXES[case[1]].values()], 30),
)
def test_so_does_a_split_table(
    tmp_path: Path, merging: int, index: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # with partitions of unlike sizes, groups are tasks instead of partitions
        monkeypatch.setattr(steps, "_SHORT_TASK", 0)
    history = History(tmp_path, seed, MERGING[merging], INDEXES[index], "split")

    history.run(12)
    history.end()
