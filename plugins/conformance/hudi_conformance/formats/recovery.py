"""Processes that die amid a service or a write, answers that get lost, and what comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import hudi_core as hudi
from hudi_conformance.formats.checks import check
from hudi_conformance.formats.faults import AFTER, BEFORE, Death, is_killed, lost_answers
from hudi_conformance.formats.table_services import (
    EVERY,
    ONE_STATE,
    SHORT,
    require_refused,
)
from hudi_conformance.formats.tables import (
    OverFormat,
    contents,
    declares,
    open_at,
    ours,
    rows,
)
from hudi_conformance.formats.trace import TRACE
from hudi_conformance.formats.under_test import FormatUnderTest
from hudi_core.spi import Capability

Act = Callable[[], object]
SOURCE: Final = "hudi_core.hookspecs, RFC-93 (Commit Protocol)"


@dataclass(frozen=True)
class Service:
    """A service with something to do.

    Attributes
    ----------
    prepare
        Writes to the table of the tests, and returns what calls the service.
    needs
        What a format must declare.
    goes_back
        Whether it takes out what ``prepare`` has written.
    """

    prepare: Callable[[hudi.Table], Act]
    needs: Capability | None = None
    goes_back: bool = False


def _upserts(table: hudi.Table, number: int) -> None:
    for ts in range(2, 2 + number):
        table.upsert(rows(*EVERY, ts=ts), options=ONE_STATE)


def _clean(table: hudi.Table) -> Act:
    _upserts(table, 3)
    return lambda: table.clean(options=ONE_STATE)


def _archive(table: hudi.Table) -> Act:
    _upserts(table, 6)
    table.clean(options=ONE_STATE)
    return lambda: table.archive(options=SHORT)


def _cluster(table: hudi.Table) -> Act:
    table.bulk_insert(rows(6, 7, 8))
    return table.cluster


def _savepoint(table: hudi.Table) -> Act:
    return table.savepoint


def _delete_savepoint(table: hudi.Table) -> Act:
    saved = table.savepoint().instant
    _upserts(table, 1)
    return lambda: table.delete_savepoint(saved.requested_time)


def _restore(table: hudi.Table) -> Act:
    [first] = table.timeline.completed_writes()
    _upserts(table, 2)
    return lambda: table.restore(first)


def _rollback(table: hudi.Table) -> Act:
    instant = table.upsert(rows(*EVERY, 6, ts=2)).instant
    return lambda: table.rollback(instant)


SERVICES: Final[Mapping[str, Service]] = {
    "clean": Service(_clean),
    "archive": Service(_archive),
    "cluster": Service(_cluster, Capability.CLUSTERING),
    "savepoint": Service(_savepoint, Capability.SAVEPOINT),
    "delete_savepoint": Service(_delete_savepoint, Capability.SAVEPOINT),
    "restore": Service(_restore, Capability.RESTORE, goes_back=True),
    "rollback": Service(_rollback, goes_back=True),
}
DEATHS: Final[Sequence[tuple[str, Death]]] = (
    ("clean", Death("before_clean", AFTER)),
    ("clean", Death("complete_clean", BEFORE)),
    ("archive", Death("archive_instants", BEFORE)),
    ("cluster", Death("complete_clustering", BEFORE)),
    ("savepoint", Death("complete_savepoint", BEFORE)),
    ("delete_savepoint", Death("complete_delete_savepoint", BEFORE)),
    ("delete_savepoint", Death("complete_delete_savepoint", AFTER)),
    ("restore", Death("before_restore", AFTER)),
    ("restore", Death("complete_restore", BEFORE)),
    ("rollback", Death("before_rollback", AFTER)),
    ("rollback", Death("complete_rollback", BEFORE)),
)
"""Moments at which one of the two steps of a service, or half of its work, is done."""
ANSWERS: Final[Mapping[str, str]] = {
    "clean": "complete_clean",
    "cluster": "complete_clustering",
    "savepoint": "complete_savepoint",
    "restore": "complete_restore",
    "rollback": "complete_rollback",
}


class RecoveryConformance(OverFormat):
    """What the next write makes of what was left, and who hears what."""

    @pytest.mark.parametrize(("name", "death"), DEATHS, ids=lambda one: str(one).replace(" ", "-"))
    @check(
        "F53",
        "A service whose process died amid it is finished or undone by the next write.",
        SOURCE,
    )
    def test_a_service_that_died(
        self,
        table: hudi.Table,
        path: Path,
        format_under_test: FormatUnderTest,
        name: str,
        death: Death,
    ) -> None:
        first = ours(path)
        act = self.prepared(table, path, name)
        if act is None:
            return
        expected = first if SERVICES[name].goes_back else ours(path)
        assert is_killed(death, act), f"a {name} does not get to {death.hook}"
        assert format_under_test.rows(path) == ours(path), f"readers differ after a dead {name}"
        hudi.Table.open(str(path)).insert(rows(9))
        self.all_is_finished(path, expected + contents(rows(9)), format_under_test)
        assert len(hudi.Table.open(str(path)).savepoints) == (name == "savepoint")

    @pytest.mark.parametrize("name", ANSWERS)
    @check("F54", "A service whose answer got lost has been done, and is done once.", SOURCE)
    def test_a_service_whose_answer_was_lost(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, name: str
    ) -> None:
        first = ours(path)
        act = self.prepared(table, path, name)
        if act is None:
            return
        expected = first if SERVICES[name].goes_back else ours(path)
        with lost_answers(ANSWERS[name]) as lost:
            act()
        assert len(lost) == 1
        answers = {call.receipt.version for call in TRACE.calls if call.hook == ANSWERS[name]}
        assert len(answers) == 1, f"another answer the second time: {answers}"
        self.all_is_finished(path, expected, format_under_test)

    def prepared(self, table: hudi.Table, path: Path, name: str) -> Act | None:
        """A service that is ready to be called; ``None`` after one that is refused."""
        service = SERVICES[name]
        if service.needs is None or declares(path, service.needs):
            act = service.prepare(table)
            TRACE.calls.clear()
            return act
        require_refused(table, path, service.needs)
        return None

    def all_is_finished(
        self, path: Path, expected: Counter[str], format_under_test: FormatUnderTest
    ) -> None:
        """Nothing is pending, and all agree."""
        opened = open_at(path)
        for one in opened.client.timeline().instants:
            assert one.is_completed, f"{one} is left over"
            found = opened.host.find_publication(opened.client, one)
            assert found is not None, f"{one} is not complete in the format"
        assert format_under_test.rows(path) == ours(path) == expected
        assert hudi.Table.open(str(path)).validate().differences == ()
