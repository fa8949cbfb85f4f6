"""Services of tables, and what a format makes of the hooks that they call.

Other checks call these hooks by hand, to repeat them or to name what is not there. Here the service
itself calls them, with what it has found out, and its result is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

import hudi_core as hudi
from hudi_conformance.formats.checks import check
from hudi_conformance.formats.tables import (
    OverFormat,
    base_files,
    contents,
    create,
    declares,
    files_of,
    open_at,
    ours,
    rows,
)
from hudi_conformance.formats.trace import TRACE, Call
from hudi_conformance.formats.under_test import FormatUnderTest
from hudi_core.spi import Capability, UnsupportedCapabilityError
from hudi_core.spi.testing import WriterDied, dies_before, load_format

EVERY: Final = (0, 1, 2, 3, 4)
"""Keys of the table that the checks begin with."""
ONE_STATE: Final = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
SHORT: Final = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **ONE_STATE}
IN_LOGS: Final = {
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
"""Compactions only where they are asked for."""
MODE: Final = "hoodie.table.merge-on-read.mode"
FEW_BLOCKS: Final = {**IN_LOGS, "hoodie.log.compaction.blocks.threshold": "2"}
ROLLBACK: Final = ("before_rollback", "complete_rollback")
UNDECLARED: Final[Mapping[Capability, Callable[[hudi.Table], object]]] = {
    Capability.CLUSTERING: lambda table: table.cluster(),
    Capability.SAVEPOINT: lambda table: table.savepoint(),
    Capability.RESTORE: lambda table: table.restore(table.timeline.completed_writes()[0]),
}


def require_refused(table: hudi.Table, path: Path, ability: Capability) -> None:
    """Make sure that a service is refused before it changes anything."""
    before = files_of(path)
    TRACE.refused()
    with pytest.raises(UnsupportedCapabilityError):
        UNDECLARED[ability](table)
    assert files_of(path) == before


def logs_of(table: hudi.Table) -> set[str]:
    """Return the log files of the present state."""
    return {log.status.path for one in table.file_slices() for log in one.log_files}


def pending_of(path: Path) -> list[str]:
    """Return the instants that are not complete."""
    return [str(one) for one in open_at(path).timeline().instants if not one.is_completed]


class OverServices(OverFormat):
    """What suites make sure of after a service, or a write that services follow."""

    def same_everywhere(
        self, path: Path, expected: Any, format_under_test: FormatUnderTest
    ) -> None:
        """Both readers see some rows, and all metadata agree."""
        table = hudi.Table.open(str(path))
        assert format_under_test.rows(path) == ours(path) == expected
        report = table.validate()
        assert report.differences == ()
        assert report.orphans == ()

    def records(
        self,
        path: Path,
        format_under_test: FormatUnderTest,
        act: Callable[[], Any],
        expected: Counter[str],
        *hooks: str,
    ) -> str:
        """Make sure of what an action calls, of its receipt, and of the rows; its instant."""
        TRACE.calls.clear()
        done = act()
        done = getattr(done, "result", done)
        assert tuple(TRACE.hooks()) == hooks
        opened, instant = open_at(path), getattr(done, "instant", done)
        held = opened.host.find_publication(opened.client, instant)
        assert held is not None, instant
        assert held.version == TRACE.calls[-1].receipt.version
        self.same_everywhere(path, expected, format_under_test)
        return str(instant.requested_time)

    def require_no_logs(
        self, mode: str, ability: Capability, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        """Make sure that the format gets no table of log files."""
        TRACE.refused()
        more = {MODE: mode}
        with pytest.raises(UnsupportedCapabilityError, match=ability.words):
            create(path, format_under_test, table_type="MERGE_ON_READ", more=more)
        assert not files_of(path)
        native = replace(format_under_test, name="native")
        table = create(path, native, table_type="MERGE_ON_READ", more=more)
        table.insert(rows(*EVERY))
        before = files_of(path)
        with pytest.raises(UnsupportedCapabilityError, match=ability.words):
            table.convert(format_under_test.name, options=format_under_test.options)
        assert files_of(path) == before


class ServiceConformance(OverServices):
    """What becomes of a table and of its format by services."""

    @check("F47", "A clean has the format stop naming files before it deletes them.")
    def test_a_clean(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        old = base_files(table)
        for ts in (2, 3, 4):
            table.upsert(rows(*EVERY, ts=ts), options=ONE_STATE)
        seen: list[bool] = []

        def look(call: Call) -> None:
            if call.hook == "before_clean":
                seen.append(all((path / one).exists() for one in old))

        TRACE.calls.clear()
        TRACE.ended = look
        table.clean(options=ONE_STATE)
        assert TRACE.hooks() == ["before_clean", "complete_clean"]
        assert seen == [True]
        assert not any((path / one).exists() for one in old)
        self.same_everywhere(path, contents(rows(*EVERY, ts=4)), format_under_test)
        table.upsert(rows(0, ts=5))
        expected = contents(rows(0, ts=5), rows(1, 2, 3, 4, ts=4))
        self.same_everywhere(path, expected, format_under_test)

    @check("F48", "An archived instant stays complete, and readers see what they saw.")
    def test_an_archival(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        for ts in range(2, 9):
            table.upsert(rows(*EVERY, ts=ts), options=ONE_STATE)
        before = open_at(path).timeline().completed_writes()
        table.clean(options=ONE_STATE)
        TRACE.calls.clear()
        table.archive(options=SHORT)
        assert "archive_instants" in TRACE.hooks()
        [call] = [one for one in TRACE.calls if one.hook == "archive_instants"]
        archived = {one.requested_time for one in call.arguments["archived_instants"]}
        after = open_at(path)
        for one in before:
            assert after.host.find_publication(after.client, one) is not None, one
        left = {one.requested_time for one in after.timeline().completed_writes()}
        assert archived
        assert not archived & left
        assert {one.requested_time for one in before} <= archived | left
        self.same_everywhere(path, contents(rows(*EVERY, ts=8)), format_under_test)
        table.upsert(rows(0, ts=9))
        expected = contents(rows(0, ts=9), rows(1, 2, 3, 4, ts=8))
        self.same_everywhere(path, expected, format_under_test)

    @check("F49", "A clustering replaces files and changes no row.")
    def test_a_clustering(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        if not declares(path, Capability.CLUSTERING):
            require_refused(table, path, Capability.CLUSTERING)
            return
        # an insert would go into the small files
        table.bulk_insert(rows(6, 7, 8))
        before = base_files(table)
        expected = ours(path)
        TRACE.calls.clear()
        table.cluster()
        assert TRACE.hooks() == ["complete_clustering"]
        assert not before & base_files(table)
        self.same_everywhere(path, expected, format_under_test)
        table.upsert(rows(0, 6, ts=2))
        expected = contents(rows(1, 2, 3, 4, 7, 8), rows(0, 6, ts=2))
        self.same_everywhere(path, expected, format_under_test)

    @check("F63", "Logs, compactions and rollbacks of all are recorded, and readers see the rows.")
    def test_logs_and_compactions(self, path: Path, format_under_test: FormatUnderTest) -> None:
        if Capability.MERGE_ON_READ not in load_format(format_under_test.name).capabilities:
            self.require_no_logs("logs", Capability.MERGE_ON_READ, path, format_under_test)
            return
        table = create(path, format_under_test, table_type="MERGE_ON_READ", more={MODE: "logs"})
        records = partial(self.records, path, format_under_test)
        write = ("complete_write",)
        first = contents(rows(*EVERY))
        records(lambda: table.insert(rows(*EVERY), options=IN_LOGS), first, *write)
        updated = contents(rows(0, 1, ts=2), rows(2, 3, 4))
        records(lambda: table.upsert(rows(0, 1, ts=2), options=IN_LOGS), updated, *write)
        deleted = contents(rows(0, 1, ts=2), rows(3, 4))
        last = records(lambda: table.delete(rows(2, ts=2), options=IN_LOGS), deleted, *write)
        assert logs_of(table)
        records(lambda: table.rollback(last), updated, *ROLLBACK)
        records(lambda: table.delete(rows(2, ts=2), options=IN_LOGS), deleted, *write)
        records(lambda: table.upsert(rows(0, 1, ts=2), options=IN_LOGS), deleted, *write)
        logged = len(logs_of(table))
        joined = records(
            lambda: table.compact(log_compaction=True, options=FEW_BLOCKS),
            deleted,
            "complete_log_compaction",
        )
        assert len(logs_of(table)) > logged
        records(lambda: table.rollback(joined), deleted, *ROLLBACK)
        assert len(logs_of(table)) == logged
        table.compact(log_compaction=True, options=FEW_BLOCKS)
        merged = records(lambda: table.compact(options=IN_LOGS), deleted, "complete_compaction")
        assert not logs_of(table)
        records(lambda: table.rollback(merged), deleted, *ROLLBACK)
        assert logs_of(table)
        # a log that is complete between the plan and the base file belongs to the base file
        table.compact(schedule_only=True, options=IN_LOGS)
        later = contents(rows(0, ts=2), rows(1, 3, ts=3), rows(4))
        records(lambda: table.upsert(rows(1, 3, ts=3), options=IN_LOGS), later, *write)
        [compacted] = table.run_compactions(options=IN_LOGS)
        self.same_everywhere(path, later, format_under_test)
        assert compacted.result is not None
        assert logs_of(table)
        # and one that only step 1 holds is published by the next write
        with dies_before("complete_compaction"), pytest.raises(WriterDied):
            table.compact(options=IN_LOGS)
        assert format_under_test.rows(path) == ours(path) == later
        end = contents(rows(0, ts=4), rows(1, 3, ts=3), rows(4))
        table.upsert(rows(0, ts=4), options=IN_LOGS)
        self.same_everywhere(path, end, format_under_test)
        assert pending_of(path) == []

    @check("F50", "What a savepoint holds outlasts cleans, until it is deleted.")
    def test_a_savepoint(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        if not declares(path, Capability.SAVEPOINT):
            require_refused(table, path, Capability.SAVEPOINT)
            return
        [saved] = table.timeline.completed_writes()
        old = base_files(table)
        TRACE.calls.clear()
        table.savepoint(saved)
        assert TRACE.hooks() == ["complete_savepoint"]
        self.same_everywhere(path, contents(rows(*EVERY)), format_under_test)
        for ts in (2, 3, 4):
            table.upsert(rows(*EVERY, ts=ts), options=ONE_STATE)
        table.clean(options=ONE_STATE)
        assert all((path / one).exists() for one in old)
        self.same_everywhere(path, contents(rows(*EVERY, ts=4)), format_under_test)
        assert contents(table.to_arrow(as_of=saved).select(rows().column_names)) == contents(
            rows(*EVERY)
        )
        TRACE.calls.clear()
        table.delete_savepoint(saved)
        assert TRACE.hooks() == ["complete_delete_savepoint"]
        table.clean(options=ONE_STATE)
        assert not any((path / one).exists() for one in old)
        self.same_everywhere(path, contents(rows(*EVERY, ts=4)), format_under_test)

    @check("F51", "A restore goes back to a state, and leaves nothing of what came after it.")
    def test_a_restore(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        if not declares(path, Capability.RESTORE):
            require_refused(table, path, Capability.RESTORE)
            return
        [first] = table.timeline.completed_writes()
        old = base_files(table)
        gone = [table.upsert(rows(*EVERY, 6, ts=ts)).instant for ts in (2, 3)]
        new = base_files(table)
        seen: list[bool] = []

        def look(call: Call) -> None:
            if call.hook == "before_restore":
                seen.append(all((path / one).exists() for one in new))

        TRACE.calls.clear()
        TRACE.ended = look
        table.restore(first)
        assert [one for one in TRACE.hooks() if "restore" in one] == [
            "before_restore",
            "complete_restore",
        ]
        assert seen == [True]
        assert base_files(table) == old
        assert not any((path / one).exists() for one in new - old)
        self.same_everywhere(path, contents(rows(*EVERY)), format_under_test)
        opened = open_at(path)
        for one in gone:
            assert opened.host.find_publication(opened.client, one) is None
        table.upsert(rows(0, ts=4))
        expected = contents(rows(0, ts=4), rows(1, 2, 3, 4))
        self.same_everywhere(path, expected, format_under_test)
