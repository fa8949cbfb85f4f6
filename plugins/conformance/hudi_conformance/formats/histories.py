"""Random histories of a table, which a state machine draws and makes shorter where one goes wrong.

A few histories, always the same, are drawn by default. ``--conformance-histories 200`` (of the
command: ``--histories 200``) draws as many, others each time, and makes the one that fails as short
as it can, which takes minutes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hudi_conformance.formats.checks import check
from hudi_conformance.formats.faults import AFTER, BEFORE, Death
from hudi_conformance.formats.random_history import CITIES, CLEANS, KEYS, RandomHistory
from hudi_conformance.formats.tables import OverFormat
from hudi_conformance.formats.trace import TRACE
from hudi_conformance.formats.under_test import FormatUnderTest, TwoStepFormat
from hudi_conformance.pytest_plugin import HISTORIES
from hudi_core.spi import Capability
from hudi_core.spi.testing import load_format

FEW: Final = 3
"""How many histories are drawn by default."""
STEPS: Final = 14
SOME_KEYS: Final = st.lists(st.sampled_from(KEYS), min_size=1, max_size=6, unique=True)
WHICH: Final = st.integers(0, 5)
LAYOUTS: Final = st.sampled_from(("linear", "z-order"))
PARTITIONS: Final = (Capability.IDENTITY_PARTITIONS, Capability.UNPARTITIONED)


def death_at(*hooks: str) -> st.SearchStrategy[Death | None]:
    """No death, or one around a hook."""
    some = [Death(hook, when) for hook in hooks for when in (BEFORE, AFTER)]
    return st.none() | st.none() | st.sampled_from(some)


def needs(*abilities: Capability) -> Callable[[Any], Any]:
    """Leave a rule out where the format does not declare what it needs."""

    def can(self: TableHistories) -> bool:
        return self.history.can(*abilities)

    return precondition(can)


class TableHistories(RuleBasedStateMachine):
    """What is done to one table, in any order; a subclass knows the format."""

    format_under_test: ClassVar[FormatUnderTest]
    new_path: ClassVar[Callable[[], Path]]
    done: ClassVar[Counter[str]]
    """How often each thing was done in all of them."""
    history: RandomHistory

    @initialize(data=st.data(), keys=SOME_KEYS)
    def create(self, data: st.DataObject, keys: list[int]) -> None:
        declared = load_format(self.format_under_test.name).capabilities
        kinds = [one for one in PARTITIONS if one in declared]
        is_partitioned = data.draw(st.sampled_from(kinds)) is Capability.IDENTITY_PARTITIONS
        modes = [False, True] if Capability.DELETION_VECTORS in declared else [False]
        is_split = data.draw(st.sampled_from(modes))
        TRACE.calls.clear()
        self.history = RandomHistory(
            type(self).new_path(),
            self.format_under_test,
            is_partitioned=is_partitioned,
            is_split=is_split,
        )
        self.history.write("insert", keys)

    @rule(
        name=st.sampled_from(("insert", "bulk_insert", "upsert", "upsert", "delete")),
        keys=SOME_KEYS,
        death=death_at("complete_write"),
    )
    def write(self, name: str, keys: list[int], death: Death | None) -> None:
        self.history.write(name, keys, death)

    @needs(Capability.REPLACE)
    @rule(
        name=st.sampled_from(("insert_overwrite", "insert_overwrite_table")),
        keys=SOME_KEYS,
        death=death_at("complete_write"),
    )
    def overwrite(self, name: str, keys: list[int], death: Death | None) -> None:
        self.history.write(name, keys, death)

    @precondition(lambda self: self.history.is_partitioned)
    @needs(Capability.REPLACE)
    @rule(city=st.sampled_from(CITIES), death=death_at("complete_write"))
    def delete_partition(self, city: str | None, death: Death | None) -> None:
        self.history.delete_partition(city, death)

    @rule(mine=SOME_KEYS, theirs=SOME_KEYS)
    def two_writers_meet(self, mine: list[int], theirs: list[int]) -> None:
        self.history.meet(mine, theirs)

    @precondition(lambda self: self.history.is_known and self.history.changes)
    @rule(change=WHICH, which=WHICH)
    def alter(self, change: int, which: int) -> None:
        """Change columns, as long as it is clear which there are."""
        changes = self.history.changes
        changes[change % len(changes)](which)

    # --- services --------------------------------------------------------------------------------

    @precondition(lambda self: self.history.is_split)
    @rule(death=death_at("complete_compaction"))
    def compact(self, death: Death | None) -> None:
        self.history.compact(death)

    @rule(limits=st.sampled_from(CLEANS), death=death_at("before_clean", "complete_clean"))
    def clean(self, limits: Mapping[str, str], death: Death | None) -> None:
        self.history.clean(death, limits)

    @rule(death=death_at("archive_instants"))
    def archive(self, death: Death | None) -> None:
        self.history.archive(death)

    @needs(Capability.CLUSTERING)
    @rule(layout=LAYOUTS, death=death_at("complete_clustering"))
    def cluster(self, layout: str, death: Death | None) -> None:
        self.history.cluster(layout, death)

    @precondition(lambda self: self.history.can_save)
    @needs(Capability.SAVEPOINT)
    @rule(death=death_at("complete_savepoint"))
    def save(self, death: Death | None) -> None:
        self.history.save(death)

    @precondition(lambda self: self.history.saved)
    @needs(Capability.SAVEPOINT)
    @rule(which=WHICH, death=death_at("complete_delete_savepoint"))
    def delete_savepoint(self, which: int, death: Death | None) -> None:
        self.history.delete_savepoint(which, death)

    @precondition(lambda self: self.history.can_restore)
    @needs(Capability.SAVEPOINT, Capability.RESTORE)
    @rule(death=death_at("before_restore", "complete_restore"))
    def restore(self, death: Death | None) -> None:
        self.history.restore(death)

    @precondition(lambda self: self.history.can_roll_back)
    @rule(death=death_at("before_rollback", "complete_rollback"))
    def roll_back(self, death: Death | None) -> None:
        self.history.roll_back(death)

    # --- what happens to a table -----------------------------------------------------------------

    @precondition(lambda self: isinstance(self.format_under_test, TwoStepFormat))
    @needs(Capability.CONVERSION)
    @rule()
    def lose_and_rebuild(self) -> None:
        assert isinstance(self.format_under_test, TwoStepFormat)
        self.history.lose_and_rebuild(self.format_under_test.lose)

    @rule(is_new=st.booleans())
    def change_hands(self, is_new: bool) -> None:
        """Go on with another handle, which may not have seen what was done meanwhile."""
        if is_new:
            self.history.reopen()
        else:
            self.history.change_hands()

    @rule()
    def look_back(self) -> None:
        self.history.look_back()

    def teardown(self) -> None:
        # what has failed may fail again, and would hide how it did at first
        if hasattr(self, "history") and sys.exc_info()[0] is None:
            self.history.finish()
            self.done.update(self.history.done)


def run_histories(
    format_under_test: FormatUnderTest, folder: Path, number: int | None = None
) -> Counter[str]:
    """Run random histories of tables; return what was done in them.

    Parameters
    ----------
    folder
        Where tables are made.
    number
        How many; by default a few that are always the same.
    """
    numbers = count()
    done: Counter[str] = Counter()
    machine = type(
        f"{format_under_test.name.title()}Histories",
        (TableHistories,),
        {
            "format_under_test": format_under_test,
            "new_path": staticmethod(lambda: folder / f"t{next(numbers)}"),
            "done": done,
        },
    )
    phases = [Phase.generate] if number is None else [Phase.generate, Phase.shrink]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=number or FEW,
            stateful_step_count=STEPS,
            derandomize=number is None,
            phases=phases,
            deadline=None,
            database=None,
            verbosity=Verbosity.normal,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return done


class HistoryConformance(OverFormat):
    """What becomes of a table by everything that a format declares, in any order."""

    @check("F52", "Whatever is done in whatever order, readers see the rows that there should be.")
    def test_random_histories(
        self, pytestconfig: pytest.Config, tmp_path: Path, format_under_test: FormatUnderTest
    ) -> None:
        run_histories(format_under_test, tmp_path, pytestconfig.getoption(HISTORIES))
