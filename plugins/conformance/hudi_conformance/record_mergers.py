"""What a record merger must do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

import hudi_core as hudi

_MOST = 4
"""Versions of which every order of arrival is tried."""


class RecordMergerSuite:
    """Tests of a record merger.

    Attributes
    ----------
    name
        Its name among the entry points.
    versions
        Versions of one row, two or more, each of a greater rank than those before.
    record_key, ordering
        The columns that hold the key, which is the same in all versions, and the ordering fields.
    options
        Options of its own, and of the table.
    """

    name: ClassVar[str]
    versions: ClassVar[pa.Table]
    ordering: ClassVar[Sequence[str]]
    record_key: ClassVar[Sequence[str]] = ("id",)
    options: ClassVar[Mapping[str, str]] = {}

    def table(self, path: Path) -> hudi.Table:
        """A new table with the record merger."""
        return hudi.Table.create(
            str(path),
            self.versions.schema,
            options={
                "hoodie.table.name": "versions",
                "hoodie.write.record.merge.strategy.id": self.name,
                "hoodie.datasource.write.recordkey.field": ",".join(self.record_key),
                "hoodie.datasource.write.precombine.field": ",".join(self.ordering),
                **self.options,
            },
        )

    def survivor(self, table: hudi.Table) -> dict[str, Any]:
        """The one row of a table."""
        [row] = table.to_arrow(columns=self.versions.column_names).to_pylist()
        return dict(row)

    def orders(self) -> list[tuple[int, ...]]:
        """Orders in which versions may arrive."""
        count = self.versions.num_rows
        assert count >= 2, "give two versions or more"
        if count <= _MOST:
            return list(permutations(range(count)))
        forwards = tuple(range(count))
        return [forwards, forwards[::-1], forwards[1::2] + forwards[::2]]

    def test_the_last_version_survives_in_one_batch(self, tmp_path: Path) -> None:
        last = self.versions.to_pylist()[-1]
        for number, order in enumerate(self.orders()):
            table = self.table(tmp_path / str(number))
            table.upsert(self.versions.take(pa.array(order)))
            assert self.survivor(table) == last, order

    def test_the_last_version_survives_one_by_one(self, tmp_path: Path) -> None:
        last = self.versions.to_pylist()[-1]
        for number, order in enumerate(self.orders()):
            table = self.table(tmp_path / str(number))
            for position in order:
                table.upsert(self.versions.slice(position, 1))
            assert self.survivor(table) == last, order

    def test_an_equal_version_replaces_the_one_before(self, tmp_path: Path) -> None:
        table = self.table(tmp_path / "table")
        table.upsert(self.versions.slice(self.versions.num_rows - 1))
        before = table.to_arrow().column("_hoodie_commit_time").to_pylist()
        table.upsert(self.versions.slice(self.versions.num_rows - 1))
        assert table.to_arrow().column("_hoodie_commit_time").to_pylist() != before
