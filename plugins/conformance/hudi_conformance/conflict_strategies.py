"""What a conflict strategy must do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

import hudi_core as hudi
from hudi_core.spi import BaseConflictStrategy, CommitMetadata, Granularity, load_extension

Pair = tuple[CommitMetadata, CommitMetadata]


class ConflictStrategySuite:
    """Tests of a conflict strategy.

    Attributes
    ----------
    name
        Its name among the entry points.
    conflicting, compatible
        Pairs of commits that it refuses, and that it lets pass; one or more of each.
    """

    name: ClassVar[str]
    conflicting: ClassVar[Sequence[Pair]]
    compatible: ClassVar[Sequence[Pair]]

    def strategy(self) -> BaseConflictStrategy:
        """A new strategy."""
        kind = load_extension("hudi.conflict_strategies", self.name)
        assert issubclass(kind, BaseConflictStrategy)
        return kind()

    def test_pairs_conflict_both_ways_round(self) -> None:
        assert self.conflicting, "give a pair that conflicts"
        for mine, theirs in self.conflicting:
            for reason in (
                self.strategy().conflict(mine, theirs),
                self.strategy().conflict(theirs, mine),
            ):
                assert isinstance(reason, str)
                assert reason

    def test_others_do_not(self) -> None:
        assert self.compatible, "give a pair that does not conflict"
        for mine, theirs in self.compatible:
            assert self.strategy().conflict(mine, theirs) is None
            assert self.strategy().conflict(theirs, mine) is None

    def test_it_says_what_its_answers_are_about(self) -> None:
        assert isinstance(self.strategy().granularity, Granularity)

    def test_a_table_is_written_with_it(self, tmp_path: Path) -> None:
        rows = pa.table({"id": ["a"], "value": [1]})
        option = {"hoodie.write.lock.conflict.resolution.strategy": self.name}
        table = hudi.Table.create(
            str(tmp_path / "t"), rows.schema, name="t", record_key="id", options=option
        )
        table.upsert(rows)
        assert table.to_arrow().num_rows == 1
