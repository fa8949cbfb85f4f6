"""How far back a write looks for the size of a record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hudi_core.config.write import WriteConfig
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.write.planning import average_record_size

CONFIG = WriteConfig.from_options({})
LARGE = CommitMetadata({"": (WriteStat(total_write_bytes=200_000_001, num_writes=2_000_000),)})
SMALL = CommitMetadata({"": (WriteStat(total_write_bytes=500_000, num_writes=1),)})
EMPTY = CommitMetadata()


@pytest.mark.parametrize(
    ("newest_first", "size", "reads"),
    [
        ([LARGE, SMALL], 101, 1),
        ([SMALL, EMPTY, LARGE, SMALL], 101, 3),
        ([SMALL] * 4 + [LARGE], 101, 5),
        ([SMALL] * 5 + [LARGE], CONFIG.record_size_estimate, 5),
        ([SMALL] * 1000, CONFIG.record_size_estimate, 5),
        ([], CONFIG.record_size_estimate, 0),
    ],
)
def test_few_commits_are_read(newest_first: list[CommitMetadata], size: int, reads: int) -> None:
    read = 0

    def commits() -> Iterator[CommitMetadata]:
        nonlocal read
        for commit in newest_first:
            read += 1
            yield commit

    assert average_record_size(commits(), CONFIG) == size
    assert read == reads
