"""What every table format must do, as tests over any format.

Nothing but the public interface of tables, the hooks and the format's own reader is used, but for
two doors of :mod:`hudi_core.spi.testing`: a table that is open, to call its hooks again, and the
middle of a commit, for writers that meet or die there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_conformance.formats.checks import check
from hudi_conformance.formats.tables import (
    ACTIONS,
    FAST,
    WRITES,
    OverFormat,
    after_all,
    base_files,
    can,
    cleaning,
    contents,
    create,
    declares,
    die_before_step_2,
    done_or_refused,
    files_of,
    head,
    open_at,
    ours,
    replay,
    rows,
    same_receipt,
)
from hudi_conformance.formats.trace import TRACE, Call
from hudi_conformance.formats.under_test import FormatUnderTest, TwoStepFormat, bag
from hudi_core.spi import (
    Action,
    Capability,
    CommitConflictError,
    HudiError,
    Instant,
    InstantTime,
    LockProvider,
    State,
    outgoing_groups,
    written_files,
)
from hudi_core.spi.testing import meets, without_format

SHARED: Final = {**FAST, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


class FormatConformance(OverFormat):
    """What any format must do."""

    # --- hooks and what they answer --------------------------------------------------------------

    @pytest.mark.parametrize("name", WRITES)
    @check("F01", "A write calls complete_write once.")
    def test_a_write_calls_its_hook_once(self, table: hudi.Table, name: str) -> None:
        result = done_or_refused(table, name)
        told = [(call.hook, call.arguments["instant"], call.receipt) for call in TRACE.calls]
        assert told == ([("complete_write", result.instant, result.receipt)] if result else [])

    @check("F02", "A rollback calls its hooks before and after the deletion, once each.")
    def test_a_rollback_calls_its_hooks_once_each(self, table: hudi.Table) -> None:
        result = table.upsert(rows(0, 6, ts=2))
        TRACE.calls.clear()
        rollback = table.rollback(result.instant)
        assert TRACE.hooks() == ["before_rollback", "complete_rollback"]
        before, after = TRACE.calls
        assert before.arguments["instant"].requested_time == result.instant.requested_time
        assert after.arguments["instant"] == rollback

    @pytest.mark.parametrize("name", WRITES)
    @check("F46", "What a write's metadata names is what it brought, and what it took out.")
    def test_what_a_write_names(self, table: hudi.Table, path: Path, name: str) -> None:
        before = base_files(table)
        if done_or_refused(table, name) is None:
            return
        [call] = TRACE.calls
        metadata, now = call.arguments["commit_metadata"], base_files(table)
        written = {str(one.path): one for one in written_files(metadata)}
        assert written.keys() <= now - before
        for file in now - before:
            with_rows = written.get(file)
            size, rows_ = (path / file).stat().st_size, pq.read_metadata(path / file).num_rows
            assert rows_ == (0 if with_rows is None else with_rows.num_writes)
            assert with_rows is None or with_rows.file_size_in_bytes == size
        gone = {(one.partition_path, one.file_id) for one in outgoing_groups(metadata)}
        parts = {file: file.rpartition("/") for file in before}
        assert before - now == {
            file
            for file, (folder, _, name) in parts.items()
            if (folder, name.partition("_")[0]) in gone
        }

    @check("F03", "What a receipt names is where find_publication finds the instant.")
    def test_receipts_and_publications_agree(self, table: hudi.Table, path: Path) -> None:
        for write in [write for name, write in WRITES.items() if can(path, name)]:
            result = write(table)
            opened = open_at(path)
            found = opened.host.find_publication(opened.client, result.instant)
            assert found is not None
            assert found.version == result.receipt.version
            assert found.requested_time == result.instant.requested_time
            assert found.completion_time in (None, result.instant.completion_time)

    @pytest.mark.parametrize("name", ACTIONS)
    @check("F04", "Any complete_* hook may be called again, and changes nothing then.")
    def test_hooks_can_be_replayed(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, name: str
    ) -> None:
        result = done_or_refused(table, name)
        told = [call for call in TRACE.calls if call.hook.startswith("complete_")]
        assert bool(told) == bool(result)
        before = head(path), format_under_test.rows(path)
        for call in told:
            assert same_receipt(replay(path, call), call.receipt)
        assert (head(path), format_under_test.rows(path)) == before

    @check("F05", "A replay long after changes nothing either.")
    def test_old_hooks_can_be_replayed(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        table.upsert(rows(0, ts=2))
        [call] = TRACE.calls
        table.upsert(rows(0, ts=3))
        table.insert(rows(6))
        before = head(path), format_under_test.rows(path)
        assert same_receipt(replay(path, call), call.receipt)
        assert (head(path), format_under_test.rows(path)) == before

    @check("F06", "No instant is published that was never completed.")
    def test_only_completed_instants_are_published(self, table: hudi.Table, path: Path) -> None:
        opened = open_at(path)
        [write] = opened.timeline().completed_writes()
        for stranger in (
            Instant(write.requested_time, Action.SAVEPOINT, State.INFLIGHT),
            Instant(InstantTime("20991231000000000"), Action.COMMIT, State.REQUESTED),
        ):
            assert opened.host.find_publication(opened.client, stranger) is None

    @check("F07", "To open the metadata changes nothing, however often that is done.")
    def test_opening_can_be_repeated(self, table: hudi.Table, path: Path) -> None:
        before = files_of(path)
        opened = open_at(path)
        receipts = [opened.host.open(opened.client) for _ in range(3)]
        assert all(same_receipt(receipts[0], one) for one in receipts)
        assert files_of(path) == before

    @check("F08", "Tables that are open at once are not mixed up.")
    def test_two_tables_at_once(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, tmp_path: Path
    ) -> None:
        other = create(tmp_path / "other", format_under_test)
        other.insert(rows(0, ts=9))
        table.upsert(rows(0, ts=2))
        other.upsert(rows(6))
        assert format_under_test.rows(path) == contents(rows(0, ts=2), rows(1, 2, 3, 4))
        assert format_under_test.rows(tmp_path / "other") == contents(rows(0, ts=9), rows(6))

    @check("F09", "The name of the format is compared without regard to case.")
    def test_names_have_no_case(self, path: Path, format_under_test: FormatUnderTest) -> None:
        shouted = replace(format_under_test, name=format_under_test.name.upper())
        create(path, shouted).insert(rows(0))
        assert hudi.Table.open(str(path)).config.table_format == format_under_test.name

    # --- the rows --------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", WRITES)
    @check("F10", "After every operation the format's own reader sees the rows of the table.")
    def test_the_rows_are_the_same(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, name: str
    ) -> None:
        result = done_or_refused(table, name)
        assert format_under_test.rows(path) == ours(path)
        assert (ours(path) == contents(rows(0, 1, 2, 3, 4))) == (result is None)

    @check("F11", "Time travel finds at each instant the rows that there were.")
    def test_time_travel(self, table: hudi.Table, path: Path) -> None:
        states = {}
        for ts in (2, 3, 4):
            instant = table.upsert(rows(0, ts, ts=ts)).instant
            states[instant] = ours(path)
        assert len({repr(sorted(state)) for state in states.values()}) == 3
        for instant, state in states.items():
            then = hudi.Table.open(str(path)).to_arrow(as_of=instant)
            assert bag(then.to_pylist()) == state

    # --- rollback --------------------------------------------------------------------------------

    @check("F13", "What is rolled back leaves the lineage, and what comes after it is in it.")
    def test_the_lineage_after_a_rollback(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        gone = table.upsert(rows(0, 6, ts=2)).instant
        rollback = table.rollback(gone)
        opened = open_at(path)
        assert opened.host.find_publication(opened.client, gone) is None
        assert opened.host.find_publication(opened.client, rollback) is not None
        assert format_under_test.rows(path) == contents(rows(0, 1, 2, 3, 4)) == ours(path)
        later = table.upsert(rows(0, ts=3)).instant
        assert open_at(path).host.find_publication(opened.client, later) is not None
        assert format_under_test.rows(path) == contents(rows(0, ts=3), rows(1, 2, 3, 4))
        assert gone not in hudi.Table.open(str(path)).timeline.completed_writes()

    @check("F14", "A rollback calls its first hook while all files are there, and leaves none.")
    def test_rollbacks_call_before_files_are_deleted(self, table: hudi.Table, path: Path) -> None:
        result = table.upsert(rows(0, 6, ts=2))
        files = [path / str(status.stat.path) for status in result.statuses]
        seen: list[object] = []

        def look(call: Call) -> None:
            if call.hook == "before_rollback":
                seen.append(all(file.exists() for file in files))

        TRACE.ended = look
        table.rollback(result.instant)
        assert seen == [True]
        assert not any(file.exists() for file in files)

    @check("F57", "The last instant is rolled back, then the one before it, and both are gone.")
    def test_two_rollbacks_in_a_row(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        states = [ours(path)]
        gone: list[hudi.Instant] = []
        for keys in ((0, 6), (0, 1, 7)):
            gone.append(table.upsert(rows(*keys, ts=2 + len(gone))).instant)
            states.append(ours(path))
        for instant, before in ((gone[1], states[1]), (gone[0], states[0])):
            hudi.Table.open(str(path)).rollback(instant)
            assert format_under_test.rows(path) == ours(path) == before
        opened = open_at(path)
        for instant in gone:
            assert opened.host.find_publication(opened.client, instant) is None
        assert not {*gone} & {*opened.timeline().completed_writes()}
        later = hudi.Table.open(str(path)).upsert(rows(0, ts=4)).instant
        assert opened.host.find_publication(opened.client, later) is not None
        expected = contents(rows(0, ts=4), rows(1, 2, 3, 4))
        assert format_under_test.rows(path) == ours(path) == expected

    # --- clean and archive -----------------------------------------------------------------------

    @check("F20", "Instants that were archived stay complete, however often that is said.")
    def test_archived_instants_are_complete(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        table.upsert(rows(0, ts=2))
        table.upsert(rows(0, ts=3))
        opened = open_at(path)
        first, second, last = opened.timeline().completed_writes()
        for _ in range(2):
            opened.host.archive_instants(opened.client, [first, second])
        now = open_at(path)
        for instant in (first, second, last):
            assert now.host.find_publication(now.client, instant) is not None
        assert [*now.timeline().completed_writes()] == [first, second, last]
        table.upsert(rows(0, ts=4))
        assert format_under_test.rows(path) == contents(rows(0, ts=4), rows(1, 2, 3, 4))

    # --- writers that meet or die ----------------------------------------------------------------

    @check("F26", "After a writer that died between the steps all see one state, and go on.")
    def test_readers_agree_after_a_writer_that_died(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        old, new = contents(rows(0, 1, 2, 3, 4)), contents(rows(0, 6, ts=2), rows(1, 2, 3, 4))
        die_before_step_2(lambda: table.upsert(rows(0, 6, ts=2)))
        seen = ours(path)
        assert seen in (old, new)
        assert format_under_test.rows(path) == seen
        table.insert(rows(7))
        assert format_under_test.rows(path) == ours(path) == new + contents(rows(7))

    @check("F27", "Of two writes of one file group that go on at once, the second is given up.")
    def test_concurrent_writes_of_one_file_group(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        mine, other = (hudi.Table.open(str(path), SHARED) for _ in range(2))
        with meets(lambda: other.upsert(rows(0, ts=3))), pytest.raises(CommitConflictError):
            mine.upsert(rows(0, ts=2))
        expected = contents(rows(0, ts=3), rows(1, 2, 3, 4))
        assert format_under_test.rows(path) == ours(path) == expected

    @check("F28", "The format offers its lock to all or none, and it excludes a second holder.")
    def test_locks_exclude(self, table: hudi.Table, path: Path) -> None:
        def offered() -> LockProvider | None:
            opened = open_at(path)
            return opened.host.get_lock_provider(opened.client, {})

        first, second = offered(), offered()
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert first.try_lock(1)
            assert not second.try_lock(0.1)
            first.unlock()
            assert second.try_lock(1)
            second.unlock()

    # --- the files -------------------------------------------------------------------------------

    @check("F29", "The format lists every file of the present state, with its size.")
    def test_listings_hold_the_present_files(self, table: hudi.Table, path: Path) -> None:
        table.upsert(rows(0, 7, ts=2))
        opened = open_at(path)
        lister = opened.host.get_metadata_factory().create(opened.client)
        listed = lister.list_files(lister.list_partitions())
        sizes = {one.path: one.size for files in listed.values() for one in files}
        present = base_files(table)
        assert len(present) == 3
        assert {name: sizes.get(name) for name in present} == {
            name: (path / name).stat().st_size for name in present
        }
        named = lister.named_files()
        assert named is None or present == {one.path for one in named}

    @check("F30", "Where old files are cleaned, what is complete stays so, with its rows.")
    def test_old_files_are_cleaned(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        old = base_files(table)
        table.upsert(rows(0, ts=2))
        gone = old - base_files(table)
        assert gone
        complete = open_at(path).timeline().completed_writes()
        clean = after_all(path, Action.CLEAN, State.INFLIGHT)
        for exists in (True, False):  # the plan is given again after a crash, its files gone
            opened = open_at(path)
            assert all((path / one).exists() == exists for one in gone)
            opened.host.before_clean(opened.client, cleaning(path, *gone), clean)
            for one in gone:
                (path / one).unlink(missing_ok=True)
        assert open_at(path).timeline().completed_writes() == complete
        table.upsert(rows(1, ts=3))
        expected = contents(rows(0, ts=2), rows(1, ts=3), rows(2, 3, 4))
        assert format_under_test.rows(path) == ours(path) == expected

    # --- the plugin ------------------------------------------------------------------------------

    @check("F31", "What says that it has a second step is tested for it, and nothing else is.")
    def test_formats_are_tested_as_what_they_are(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        single = declares(path, Capability.SINGLE_STEP)
        assert isinstance(format_under_test, TwoStepFormat) != single

    @check("F25", "Without the plugin its tables fail, naming the package, and others go on.")
    def test_a_plugin_that_is_not_installed(
        self, table: hudi.Table, path: Path, tmp_path: Path, format_under_test: FormatUnderTest
    ) -> None:
        native = replace(format_under_test, name="native")
        create(tmp_path / "native", native).insert(rows(0))
        name, before = format_under_test.name, files_of(path)
        package = "hudi-core" if name == "native" else f"hudi-{name}-format"
        with without_format(name):
            for use in (
                lambda: hudi.Table.open(str(path)).to_arrow(),
                lambda: create(tmp_path / "new", format_under_test),
            ):
                with pytest.raises(HudiError, match=package):
                    use()
            assert files_of(path) == before
            assert not files_of(tmp_path / "new")
            if name != "native":
                hudi.Table.open(str(tmp_path / "native")).upsert(rows(0, 6, ts=2))
                assert ours(tmp_path / "native") == contents(rows(0, 6, ts=2))
