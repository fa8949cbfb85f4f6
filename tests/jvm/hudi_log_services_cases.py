"""Services on merge-on-read tables that Hudi-Spark and this project write in turns.

Rollbacks of deltacommits, savepoints and restores, cleans, archives, compactions that one plans and
the other runs, new columns, and conversions to the other type and back, in a random order. Either
writes before and after each, and all readers find the same rows, with data skipping and without.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

import hudi_core as hudi
from tests.jvm.engines import Engine
from tests.jvm.hudi_alternating_logs_cases import (
    COMMIT,
    EVENT,
    INDEXES,
    OURS,
    THEIRS,
    Alternating,
    Alternation,
    alternation,
    is_read_alike,
    named_steps,
)

COUNT: Final = 2 * len(INDEXES)
SERVICES: Final = ("roll_back", "restore", "clean", "archive", "compact", "add_column", "convert")
TIGHT: Final = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"


@dataclass(frozen=True)
class Convertible(Alternation):
    """A kind of table whose type may change."""

    type: str = MERGE_ON_READ

    @property
    def options(self) -> dict[str, str]:
        """Options of every write."""
        return {**super().options, "hoodie.datasource.write.table.type": self.type}


def convertible(number: int) -> Convertible:
    """The kind of table of a history."""
    drawn = alternation(number)
    return Convertible(
        **{
            **vars(drawn),
            "index": INDEXES[number // 2],
            "ordering": "ts",
            "payload": None,
            "mode": (EVENT, COMMIT)[number // 2 % 2],
            "metadata": True,
            "nulls": False,
        }
    )


class Serviced(Alternating):
    """A history of services, with writes around them."""

    kind: Convertible

    def service(self, name: str) -> None:
        """Write, run a service, and write on, with a look at the table after each."""
        acts: dict[str, Callable[[], object]] = {
            "restore": self._restore,
            "archive": self._archive,
            "convert": self._convert,
        }
        self.write()
        self.taken.append(name)
        self.by = self.drawn.choice([OURS, THEIRS])
        self.signed.append(f"{self.by} {name}")
        acts.get(name, getattr(self, f"_{name}"))()
        is_read_alike(self)
        self.write(THEIRS if self.by == OURS else OURS)

    def write(self, by: str = "") -> None:
        """Change rows, by either, and add some."""
        self.by = by or self.drawn.choice([OURS, THEIRS])
        name = self.drawn.choice(["upsert", "upsert", "insert", "delete", "merge_into", "update"])
        if name == "merge_into" and self.kind.deletes:
            name = "update"  # Hudi-Spark could not read what it writes
        self.taken.append(name)
        self.signed.append(f"{self.by} {name}")
        getattr(self, f"_{name}")()
        is_read_alike(self)

    def _restore(self) -> None:
        [*_, kept] = [one.requested_time for one in self.table.timeline.completed_writes()]
        by = self.by
        if by == OURS:
            self.table.savepoint()
        else:
            self.sql(f"call create_savepoint(table => '{{t}}', commit_time => '{kept}')")
        before = (deepcopy(self.model), self.schema)
        self.write(OURS)
        self.write(THEIRS)
        if self.drawn.random() < 0.5:
            self._compact()
        if self.drawn.random() < 0.5:
            self._clean()
        self.signed.append(f"{by} restore of {kept}")
        if by == OURS:
            self.table.restore(kept)
            self.table.delete_savepoint(kept)
        else:
            self.sql(f"call rollback_to_savepoint(table => '{{t}}', instant_time => '{kept}')")
            self.sql(f"call delete_savepoint(table => '{{t}}', instant_time => '{kept}')")
        self.model, self.schema = before

    def _archive(self) -> None:
        if self.by == OURS:
            self.table.clean(options=TIGHT)
            self.table.archive(options=TIGHT)
        else:
            super()._archive()

    def _convert(self) -> None:
        for kind in (COPY_ON_WRITE, MERGE_ON_READ):
            self.convert(kind)
            is_read_alike(self)
            self.write(OURS)
            self.write(THEIRS)

    def convert(self, kind: str) -> None:
        """Give the table another type."""
        self.signed.append(f"convert to {kind}")
        self.table.convert_type(kind)
        self.kind = replace(self.kind, type=kind)
        self.name += "_"  # a name keeps the type that the table had


@pytest.mark.parametrize(
    "number", range(COUNT), ids=lambda number: f"{number:02}-{convertible(number)}"
)
def test_services(hudi_spark: Engine, number: int, tmp_path: Path) -> None:
    history = Serviced(number, convertible(number), hudi_spark, tmp_path / "table")
    services = list(SERVICES)
    history.drawn.shuffle(services)
    with named_steps(history):
        history.begin()
        for name in services:
            history.service(name)
    found: Any = hudi.Table.open(history.path).validate(keys=True)
    assert found.is_valid, found


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("compacts", [True, False])
def test_base_files_of_deltacommits_in_a_converted_table(
    hudi_spark: Engine, tmp_path: Path, version: int, compacts: bool
) -> None:
    """Of them Hudi-Spark sees only those from before the first commit."""
    kind = replace(convertible(0), version=version, small_files=False)
    history = Serviced(0, kind, hudi_spark, tmp_path / "t")
    history.begin(OURS)
    if compacts:
        history.save("upsert", history.rows([0], deletes=False))
        history.table.compact()
    for by in (OURS, THEIRS):
        history.by = by
        history.insert(3, "insert")
    history.convert(COPY_ON_WRITE)
    is_read_alike(history)
    history.save("upsert", history.rows([1, *history.new(2)], deletes=False))
    is_read_alike(history)
