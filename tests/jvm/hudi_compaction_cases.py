"""Compactions of tables that Hudi-Spark and this project share.

Each compacts the logs of the other, also into one log, and runs the plans that the other has made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

import hudi_core as hudi
from tests.foreign import by_hudi_rs
from tests.jvm.engines import Engine
from tests.jvm.hudi_clustering_cases import (
    HUDI_OPTIONS,
    INDEXED,
    WAYS,
    Values,
    valued_rows,
    versions,
)
from tests.tables import new_table

OPTIONS: Final = {
    "hoodie.fs.fsync": "false",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}
FEW_BLOCKS: Final = {"hoodie.log.compaction.blocks.threshold": "2"}
indexes = pytest.mark.parametrize("index", [{}, INDEXED], ids=["simple", "record index"])


class Shared:
    """A table that both write, and the rows that it has to have."""

    def __init__(self, engine: Engine, path: Path, version: str, more: Mapping[str, str]) -> None:
        self.engine, self.path, self.more = engine, path, more
        options = {**OPTIONS, **more, "hoodie.write.table.version": version}
        schema = valued_rows({1: ("A", 0.0)}, 0).schema
        self.held: Values = {one: ("AB"[one % 2], 1.0 / (1 + one)) for one in range(12)}
        self.ts = 0
        new_table(path, schema, options, name="t").insert(valued_rows(self.held, 0))

    @property
    def table(self) -> hudi.Table:
        return hudi.Table.open(str(self.path), {**OPTIONS, **self.more})

    @property
    def logs(self) -> int:
        return sum(len(one.log_files) for one in self.table.file_slices())

    def ours(self, *changed: int, gone: int | None = None) -> None:
        """Update rows, and delete one."""
        self.table.upsert(self._next(changed))
        if gone is not None:
            self.ts += 1
            self.table.delete(valued_rows({gone: self.held.pop(gone)}, self.ts))

    @property
    def log_compactions(self) -> list[str]:
        return [one.instant for one in self.table.history() if one.operation == "LOG_COMPACT"]

    def theirs(self, *changed: int, more: Mapping[str, str] | None = None) -> None:
        """Let Hudi-Spark update rows."""
        given = {
            **HUDI_OPTIONS,
            **OPTIONS,
            **({"hoodie.index.type": "RECORD_INDEX"} if self.more else {}),
            "hoodie.datasource.write.operation": "upsert",
            **(more or {}),
        }
        self.engine.save(self._next(changed), self.path, given)

    def call(self, op: str, options: str = "") -> None:
        """Let Hudi-Spark schedule or run a compaction."""
        more = f", options => '{options}'" if options else ""
        self.engine.sql(f"call run_compaction(op => '{op}', path => '{self.path}'{more})")

    def _next(self, changed: tuple[int, ...]) -> object:
        self.ts += 1
        found = {
            one: (self.held.get(one, ("AB"[one % 2], 0.0))[0], self.ts + one / 100)
            for one in changed
        }
        self.held |= found
        return valued_rows(found, self.ts)

    def agree(self) -> None:
        """Compare what all readers find, with and without a filter."""
        wanted = [(key, *self.held[key]) for key in sorted(self.held)]
        own = self.table.to_arrow(["id", "city", "v"]).sort_by("id").to_pylist()
        assert [(one["id"], one["city"], one["v"]) for one in own] == wanted
        judged = sorted((one["id"], one["city"], one["v"]) for one in by_hudi_rs(self.path))
        assert judged == wanted
        for way, options in WAYS.items():
            found = self.engine.values(self.path, ["id", "city", "v"], None, options)
            assert sorted(tuple(one) for one in found) == wanted, way
        near = [key for key in sorted(self.held) if self.held[key][1] > 0.3]
        skipped = self.engine.values(self.path, ["id"], "v > 0.3", {})
        assert sorted(one[0] for one in skipped) == near
        assert self.table.validate(keys=True).is_valid


@versions
@indexes
def test_each_compacts_logs_of_the_other(
    hudi_spark: Engine, tmp_path: Path, version: str, index: dict[str, str]
) -> None:
    shared = Shared(hudi_spark, tmp_path / "t", version, index)
    shared.ours(1, 2, 20, gone=4)
    assert shared.logs
    shared.agree()
    shared.table.compact()
    assert not shared.logs
    shared.agree()
    shared.theirs(2, 3, 21)
    shared.ours(3, gone=5)
    shared.agree()
    assert shared.table.compact().result is not None
    shared.agree()
    shared.ours(6, 7, gone=8)
    shared.call("run", "hoodie.compact.inline.max.delta.commits=1")
    assert not shared.logs
    shared.agree()
    shared.ours(7, 9)
    shared.theirs(9, 22)
    shared.agree()


@versions
def test_hudi_runs_our_plan(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    shared = Shared(hudi_spark, tmp_path / "t", version, {})
    shared.ours(1, 2, gone=4)
    planned = shared.table.compact(schedule_only=True)
    shared.ours(2, 3, gone=6)
    shared.agree()
    shared.call("execute")
    done = [one.requested_time for one in shared.table.timeline.completed_writes()]
    assert planned.instant in done
    assert shared.logs  # those that came after the plan
    shared.agree()
    shared.theirs(1, 5)
    shared.table.compact()
    shared.agree()


@versions
def test_we_run_the_plan_of_hudi(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    shared = Shared(hudi_spark, tmp_path / "t", version, {})
    shared.ours(1, 2, gone=4)
    shared.theirs(2, 3)
    shared.call("schedule", "hoodie.compact.inline.max.delta.commits=1")
    shared.ours(3, 5, gone=6)
    shared.agree()
    [done] = shared.table.run_compactions()
    assert done.logs
    assert shared.logs
    shared.agree()
    shared.theirs(1, 7)
    shared.agree()
    shared.table.compact()
    assert not shared.logs
    shared.agree()


@versions
@indexes
def test_each_merges_logs_of_the_other_into_one(
    hudi_spark: Engine, tmp_path: Path, version: str, index: dict[str, str]
) -> None:
    shared = Shared(hudi_spark, tmp_path / "t", version, index)
    shared.ours(1, 2, gone=4)
    shared.theirs(2, 3)
    assert shared.table.compact(log_compaction=True, options=FEW_BLOCKS).result is not None
    shared.agree()
    shared.theirs(3, 5)
    shared.ours(1, 5, gone=6)
    shared.agree()
    # of these two one is a log that takes the place of others
    assert shared.table.compact(log_compaction=True, options=FEW_BLOCKS).result is not None
    shared.agree()
    # Hudi counts deltacommits since the last one
    shared.theirs(2, 7)
    shared.theirs(7, 23, more={**FEW_BLOCKS, "hoodie.log.compaction.inline": "true"})
    assert len(shared.log_compactions) == 3
    shared.agree()
    shared.ours(7, 8, gone=9)
    assert shared.table.compact(log_compaction=True, options=FEW_BLOCKS).result is not None
    shared.agree()
    shared.call("run", "hoodie.compact.inline.max.delta.commits=1")
    assert not shared.logs
    shared.agree()
