"""Rows that are deleted by their positions, and what a format makes of them.

A file and the positions of its dead rows are one thing: they come and go together, and in one state
of a format no file has two sets of them. Each check is about one way to lose some, or to keep them
too long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import hudi_core as hudi
from hudi_conformance.formats.checks import check
from hudi_conformance.formats.table_services import (
    IN_LOGS,
    MODE,
    ROLLBACK,
    OverServices,
    logs_of,
    pending_of,
)
from hudi_conformance.formats.tables import (
    contents,
    create,
    declares,
    die_before_step_2,
    open_at,
    ours,
    replay,
    rows,
    same_receipt,
)
from hudi_conformance.formats.trace import TRACE
from hudi_conformance.formats.under_test import FormatUnderTest
from hudi_core.spi import Capability
from hudi_core.spi.testing import load_format

NINE: Final = range(9)
"""Keys of the table, three for each partition."""
WRITE: Final = "complete_write"
MERGE: Final = "complete_compaction"


class DeletionVectorConformance(OverServices):
    """What becomes of dead rows, in tables of the mode ``split``."""

    @check("F64", "Rows that are deleted by their positions are gone, whatever went before them.")
    def test_deletions_by_position(self, path: Path, format_under_test: FormatUnderTest) -> None:
        if not has_vectors(format_under_test):
            self.require_no_logs("split", Capability.DELETION_VECTORS, path, format_under_test)
            return
        table = split_table(path, format_under_test)
        records = partial(self.records, path, format_under_test)
        updated = contents(rows(0, 1, ts=2), rows(*NINE[2:]))
        records(lambda: table.upsert(rows(0, 1, ts=2), options=IN_LOGS), updated, WRITE)
        assert logs_of(table)
        # of a file that has lost rows before, and of one that has not
        fewer = contents(rows(0, 1, ts=2), rows(2, 4, 6, 7, 8))
        records(lambda: table.delete(rows(3, 5), options=IN_LOGS), fewer, WRITE)
        # the last row of a file
        without = contents(rows(0, 1, ts=2), rows(2, 4, 7, 8))
        records(lambda: table.delete(rows(6), options=IN_LOGS), without, WRITE)
        # and what only step 1 holds is published by the next write
        die_before_step_2(lambda: table.upsert(rows(1, 4, ts=3), options=IN_LOGS))
        if not declares(path, Capability.SINGLE_STEP):
            assert format_under_test.rows(path) == ours(path) == without
        table.delete(rows(7), options=IN_LOGS)
        end = contents(rows(0, ts=2), rows(1, 4, ts=3), rows(2, 8))
        self.same_everywhere(path, end, format_under_test)

    @check("F65", "A format counts each dead row once, and as one that is not there.")
    def test_counts_of_dead_rows(self, path: Path, format_under_test: FormatUnderTest) -> None:
        table = split_table_or_none(path, format_under_test)
        if table is None:
            return
        table.upsert(rows(0, 1, ts=2), options=IN_LOGS)
        require_dead(path, 2, 9)
        table.delete(rows(3), options=IN_LOGS)
        require_dead(path, 3, 8)
        TRACE.calls.clear()
        table.upsert(rows(0, 6, ts=3), options=IN_LOGS)
        require_dead(path, 5, 8)
        # a replay adds none
        [call] = TRACE.calls
        assert same_receipt(replay(path, call), call.receipt)
        require_dead(path, 5, 8)
        end = contents(rows(1, ts=2), rows(0, 6, ts=3), rows(2, 4, 5, 7, 8))
        self.same_everywhere(path, end, format_under_test)

    @check("F66", "A rollback or a restore brings back the rows that it undoes, and no others.")
    def test_dead_rows_undone(self, path: Path, format_under_test: FormatUnderTest) -> None:
        table = split_table_or_none(path, format_under_test)
        if table is None:
            return
        records = partial(self.records, path, format_under_test)
        updated = contents(rows(0, 1, ts=2), rows(*NINE[2:]))
        first = records(lambda: table.upsert(rows(0, 1, ts=2), options=IN_LOGS), updated, WRITE)
        fewer = contents(rows(0, 1, ts=2), rows(2, 4, 5, 6, 7, 8))
        deleted = records(lambda: table.delete(rows(3), options=IN_LOGS), fewer, WRITE)
        records(lambda: table.rollback(deleted), updated, *ROLLBACK)
        # what comes after it goes on from there
        other = contents(rows(0, 1, ts=2), rows(2, 3, 4, 5, 7, 8))
        records(lambda: table.delete(rows(6), options=IN_LOGS), other, WRITE)
        if not declares(path, Capability.RESTORE):
            return
        table.upsert(rows(0, 4, ts=3), options=IN_LOGS)
        table.restore(first)
        self.same_everywhere(path, updated, format_under_test)
        records(lambda: table.delete(rows(3), options=IN_LOGS), fewer, WRITE)

    @check("F67", "Where files are replaced their dead rows go, and those of other files stay.")
    def test_dead_rows_of_replaced_files(
        self, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        table = split_table_or_none(path, format_under_test)
        if table is None:
            return
        records = partial(self.records, path, format_under_test)
        table.upsert(rows(0, 1, ts=2), options=IN_LOGS)
        table.delete(rows(3), options=IN_LOGS)
        state = contents(rows(0, 1, ts=2), rows(2, 4, 5, 6, 7, 8))
        merged = records(lambda: table.compact(options=IN_LOGS), state, MERGE)
        assert not logs_of(table)
        require_dead(path, 0, 8)
        records(lambda: table.rollback(merged), state, *ROLLBACK)
        assert logs_of(table)
        require_dead(path, 3, 8)
        if declares(path, Capability.CLUSTERING):
            table.cluster(partitions=["rome"], options=IN_LOGS)
            self.same_everywhere(path, state, format_under_test)
            require_dead(path, 1, 8)
        if declares(path, Capability.REPLACE):
            table.insert_overwrite(rows(3, ts=3), options=IN_LOGS)
            state = contents(rows(1, ts=2), rows(2, 4, 5, 7, 8), rows(3, ts=3))
            self.same_everywhere(path, state, format_under_test)
        records(lambda: table.compact(options=IN_LOGS), state, MERGE)
        require_dead(path, 0, sum(state.values()))
        assert pending_of(path) == []

    @check("F68", "A row that is deleted while a compaction is pending stays deleted.")
    def test_deletions_beside_a_compaction(
        self, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        table = split_table_or_none(path, format_under_test)
        if table is None:
            return
        records = partial(self.records, path, format_under_test)
        table.delete(rows(2), options=IN_LOGS)
        # before the file of the compaction is there, and after it
        table.compact(schedule_only=True, options=IN_LOGS)
        fewer = contents(rows(0, 1, 3, 4, 6, 7, 8))
        records(lambda: table.delete(rows(5), options=IN_LOGS), fewer, WRITE)
        [compacted] = table.run_compactions(options=IN_LOGS)
        assert compacted.result is not None
        self.same_everywhere(path, fewer, format_under_test)
        assert logs_of(table)
        require_dead(path, 1, 7)
        least = contents(rows(0, 1, 3, 4, 6, 7), rows(8, ts=2))
        records(lambda: table.upsert(rows(8, ts=2), options=IN_LOGS), least, WRITE)
        require_dead(path, 2, 7)

    @check("F69", "Former states have the rows that were deleted later.")
    def test_former_states_of_dead_rows(
        self, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        table = split_table_or_none(path, format_under_test)
        if table is None:
            return
        states = {table.timeline.completed_writes()[-1]: contents(rows(*NINE))}

        def done(act: Callable[[], Any]) -> None:
            instant = act().instant
            states[instant] = ours(path)
            for one, expected in states.items():
                then = hudi.Table.open(str(path)).to_arrow(rows().column_names, as_of=one)
                assert contents(then) == expected, one

        done(lambda: table.upsert(rows(0, 1, ts=2), options=IN_LOGS))
        done(lambda: table.delete(rows(3, 5), options=IN_LOGS))
        done(lambda: table.compact(options=IN_LOGS).result)
        done(lambda: table.delete(rows(0, 7), options=IN_LOGS))
        found = [sum(one.values()) for one in states.values()]
        assert found == [9, 9, 7, 7, 5]
        self.same_everywhere(path, ours(path), format_under_test)


def has_vectors(format_under_test: FormatUnderTest) -> bool:
    """Whether the format declares that rows are deleted by their positions."""
    return Capability.DELETION_VECTORS in load_format(format_under_test.name).capabilities


def split_table(path: Path, format_under_test: FormatUnderTest) -> hudi.Table:
    """A table of the mode ``split``, with a file of three rows in each partition."""
    made = create(path, format_under_test, table_type="MERGE_ON_READ", more={MODE: "split"})
    made.insert(rows(*NINE), options=IN_LOGS)
    return made


def split_table_or_none(path: Path, format_under_test: FormatUnderTest) -> hudi.Table | None:
    """Such a table; ``None`` where the format declares none, as F64 makes sure of."""
    if has_vectors(format_under_test):
        return split_table(path, format_under_test)
    TRACE.refused()
    return None


def require_dead(path: Path, dead: int, live: int) -> None:
    """Make sure of the numbers of rows by the format's metadata, where it keeps a list of files."""
    assert hudi.Table.open(str(path)).count() == live
    lister = open_at(path).lister()
    named = lister.named_files()
    if named is None:
        return
    files = list(named)
    assert sum(one.deleted_rows or 0 for one in files) == dead
    stated = lister.deleted_positions([one.path for one in files])
    if stated is not None:
        assert sum(map(len, stated.values())) == dead
    if all(one.rows is not None for one in files):
        assert sum(one.rows or 0 for one in files) == live + dead
