"""Short random histories of a table, that hypothesis makes shorter where they break a promise."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.crash.counting_storage import Fault
from tests.crash.kinds import KINDS, LOGGED_KINDS, is_possible
from tests.crash.log_acts import CONDITIONAL, SERVING
from tests.crash.random_table import (
    FOREIGN,
    LIMITED,
    PARTS,
    REPLACING,
    SERVICES,
    TIGHT,
    WRITES,
    WRITES_WIN,
    RandomTable,
)
from tests.crash.tables import ALL_FORMATS

KEYS: Final = st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True)
WHICH: Final = st.integers(0, 5)
DEATH: Final = (
    st.none()
    | st.none()
    | st.builds(Fault, st.integers(1, 90), st.sampled_from(("before", "torn")))
)


class TableStates(RuleBasedStateMachine):
    """Operations, services, savepoints, conversions and deaths on one table, in any order.

    ``ran``: how many histories there were, and how often each thing was done in all of them.
    ``kinds``: what kinds of table there are.
    """

    ran: ClassVar[Counter[str]] = Counter()
    kinds: ClassVar[Sequence[str]] = KINDS

    @initialize(
        format_name=st.sampled_from(ALL_FORMATS),
        which=WHICH,
        writes_win=st.booleans(),
        keys=KEYS,
        retained=WHICH,
    )
    def create(
        self, format_name: str, which: int, writes_win: bool, keys: list[int], retained: int
    ) -> None:
        kind = self.kinds[which % len(self.kinds)]
        format_name = format_name if is_possible(kind, format_name) else "native"
        self.folder = tempfile.mkdtemp(prefix="states-")
        options = dict(TIGHT) | (WRITES_WIN if writes_win else {})
        options |= {"hoodie.cleaner.commits.retained": str(1 + retained % 3)}
        options |= {"hoodie.compact.inline.max.delta.commits": str(2 + retained)}
        self.table = RandomTable(Path(self.folder) / "t", format_name, options, kind)
        self.table.write("insert", keys)

    @rule(name=st.sampled_from([*WRITES, "upsert", "upsert", REPLACING[0]]), keys=KEYS, death=DEATH)
    def write(self, name: str, keys: list[int], death: Fault | None) -> None:
        self.table.write(name, keys, death)

    @rule(name=st.sampled_from(CONDITIONAL), keys=KEYS, death=DEATH)
    def write_if(self, name: str, keys: list[int], death: Fault | None) -> None:
        self.table.write_if(name, keys, death)

    @rule(name=st.sampled_from(SERVING), death=DEATH)
    def serve_logs(self, name: str, death: Fault | None) -> None:
        """Compact, change the type or the columns; elsewhere nothing is done."""
        if self.table.kind in LOGGED_KINDS:
            self.table.serve(name, "", death)

    @rule(keys=KEYS, commits=st.integers(2, 6))
    def write_on(self, keys: list[int], commits: int) -> None:
        """Let services become due."""
        for _ in range(commits):
            self.table.write("upsert", keys)

    @rule(part=st.sampled_from(PARTS), death=DEATH)
    def delete_partition(self, part: str, death: Fault | None) -> None:
        self.table.delete_partition(part, death)

    @rule(name=st.sampled_from([*SERVICES, *LIMITED, *FOREIGN]), death=DEATH)
    def serve(self, name: str, death: Fault | None) -> None:
        self.table.serve(name, "linear" if name == "cluster" else "", death)

    @rule(death=DEATH)
    def purge(self, death: Fault | None) -> None:
        self.table.purge(death)

    @rule(which=WHICH, death=DEATH)
    def save(self, which: int, death: Fault | None) -> None:
        self.table.save(which, death)

    @rule(which=WHICH, death=DEATH)
    def delete_savepoint(self, which: int, death: Fault | None) -> None:
        self.table.delete_savepoint(which, death)

    @rule(which=WHICH, death=DEATH)
    def restore(self, which: int, death: Fault | None) -> None:
        self.table.restore(which, death)

    @rule(death=DEATH)
    def roll_back(self, death: Fault | None) -> None:
        self.table.roll_back(death)

    @rule(to=st.sampled_from(ALL_FORMATS), death=DEATH)
    def convert(self, to: str, death: Fault | None) -> None:
        self.table.convert(to, death)

    @rule()
    def reopen(self) -> None:
        self.table.reopen()

    @invariant()
    def look_back(self) -> None:
        """Read every state that there was, or hear by name that it is gone."""
        if hasattr(self, "table"):
            self.table.look_back(sorted(self.table.past))

    @rule()
    def check(self) -> None:
        self.table.check()

    def teardown(self) -> None:
        if hasattr(self, "table"):
            try:
                self.table.check()
                self.ran.update(self.table.done)
                self.ran["histories"] += 1
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)


def run_histories(
    number: int, *, is_new: bool = False, kinds: Sequence[str] = KINDS
) -> Counter[str]:
    """Run histories; return what was done in them.

    ``is_new``: whether others are drawn than the last time. ``kinds``: of tables.
    """
    machine: type[TableStates] = type("TableStates", (TableStates,), {"kinds": kinds})
    TableStates.ran.clear()
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=number,
            stateful_step_count=15,
            derandomize=not is_new,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return TableStates.ran
