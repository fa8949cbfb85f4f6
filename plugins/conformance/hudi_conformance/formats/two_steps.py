"""What a table format with metadata of its own must do: the second step of every action."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import ClassVar, Final

import pytest

import hudi_core as hudi
from hudi_conformance.formats.checks import check
from hudi_conformance.formats.faults import lost_commit
from hudi_conformance.formats.tables import (
    FAST,
    OverFormat,
    after_all,
    base_files,
    cleaning,
    contents,
    data_files,
    declares,
    die_before_step_2,
    files_of,
    head,
    open_at,
    ours,
    pending,
    rows,
)
from hudi_conformance.formats.trace import TRACE, Call
from hudi_conformance.formats.under_test import TwoStepFormat
from hudi_core.spi import (
    PARENT_KEY,
    Action,
    Capability,
    CleanMetadata,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptMetadataError,
    ForeignCommitError,
    HudiError,
    IncompleteCommitError,
    InstantInfo,
    InstantTime,
    PluginError,
    ReplaceCommitMetadata,
    RestoreMetadata,
    RestorePlan,
    SavepointMetadata,
    State,
    StorageError,
    TableServiceError,
    UnsupportedCapabilityError,
)

NO_ANSWER: Final = StorageError("The store does not answer", "Ask what has happened.")


class TwoStepConformance(OverFormat):
    """What a format must do whose metadata is a second step of every commit."""

    format: ClassVar[TwoStepFormat]

    @pytest.fixture
    def format_under_test(self) -> TwoStepFormat:
        return type(self).format

    # --- two steps -------------------------------------------------------------------------------

    @check("F15", "What only step 1 holds no reader sees, and the next write publishes it first.")
    def test_a_writer_that_dies_between_the_steps(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        old, new = contents(rows(0, 1, 2, 3, 4)), contents(rows(0, 6, ts=2), rows(1, 2, 3, 4))
        die_before_step_2(lambda: table.upsert(rows(0, 6, ts=2)))
        assert ours(path) == old == format_under_test.rows(path)
        table.insert(rows(7))
        assert format_under_test.rows(path) == ours(path) == new + contents(rows(7))
        replayed, own = [call for call in TRACE.calls if call.hook == "complete_write"]
        done = [call.arguments["instant"].completion_time for call in (replayed, own)]
        assert done == sorted(done)

    @check("F16", "Step 2 is refused where the format is not in the state recorded as parent.")
    def test_step_2_is_compared_and_set_on_its_parent(self, table: hudi.Table, path: Path) -> None:
        die_before_step_2(lambda: table.upsert(rows(0, ts=2)))
        opened, instant, metadata = pending(path)
        before = head(path)
        assert metadata.extra_metadata[PARENT_KEY] == before
        with pytest.raises(CommitConflictError):
            opened.host.complete_write(opened.client, metadata, instant, expected_version="4711")
        assert head(path) == before
        assert opened.host.find_publication(opened.client, instant) is None
        done = opened.host.complete_write(opened.client, metadata, instant, expected_version=before)
        assert done.version != before

    @check("F56", "A commit that raises is not taken for one that has not happened.")
    def test_an_exception_is_not_believed(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        """Each put, or whatever else the format commits by, lands and raises, one after another."""
        by_storage = type(open_at(path).client.storage), "put_if_absent", NO_ANSWER
        owner, method, error = format_under_test.commits or by_storage
        for number in count(1):
            ts = 1 + number
            # that the outcome is open may be said
            losing = lost_commit(owner, method, error, number)
            with losing as lost, suppress(CommitStateUnknownError):
                table.upsert(rows(0, ts=ts))
            if not lost:
                break
            table = hudi.Table.open(str(path), FAST)
            table.upsert(rows(1, ts=ts))
            expected = contents(rows(0, 1, ts=ts), rows(2, 3, 4))
            found = format_under_test.rows(path)
            assert found == expected, "what has landed and raised is not there once"
            assert ours(path) == expected
        if number == 1:
            # it commits by something else, which nothing records
            TRACE.refused()

    @check("F44", "No change is made on another state than the one that it was decided on.")
    def test_changes_are_compared_with_the_expected_state(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        last = table.upsert(rows(0, ts=2)).instant
        opened, clean = open_at(path), after_all(path, Action.CLEAN)
        host, client = opened.host, opened.client
        first = opened.timeline().completed_writes()[0]
        before = head(path), format_under_test.rows(path)
        body = CleanMetadata(clean.requested_time, 0, 0, "")
        for change in (
            lambda: host.complete_clean(client, body, clean, "4711"),
            lambda: host.before_rollback(client, last, "4711"),
        ):
            with pytest.raises(CommitConflictError):
                change()
            assert (head(path), format_under_test.rows(path)) == before
        # a format may keep what is archived, and change nothing
        with suppress(CommitConflictError):
            host.archive_instants(client, [first], "4711")
        assert (head(path), format_under_test.rows(path)) == before
        host.complete_clean(client, body, clean, before[0])
        assert host.find_publication(client, clean) is not None

    @check("F17", "An instant that was fenced off is never taken again.")
    def test_what_is_fenced_off_stays_out(self, table: hudi.Table, path: Path) -> None:
        die_before_step_2(lambda: table.upsert(rows(0, ts=2)))
        opened, instant, metadata = pending(path)
        before = head(path)
        fenced = replace(instant, state=State.INFLIGHT)
        opened.host.before_rollback(opened.client, fenced)
        now = head(path)
        assert now != before
        opened.host.before_rollback(opened.client, fenced)
        assert head(path) == now
        for parent in (before, now):
            with pytest.raises(IncompleteCommitError):
                opened.host.complete_write(
                    opened.client, metadata, instant, expected_version=parent
                )
        assert opened.host.find_publication(opened.client, instant) is None

    @check("F18", "A format that is only to fence an instant off leaves one that it holds alone.")
    def test_what_is_held_is_not_fenced_off(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        instant = table.upsert(rows(0, ts=2)).instant
        opened, before = open_at(path), (head(path), format_under_test.rows(path))
        opened.host.before_rollback(opened.client, replace(instant, state=State.INFLIGHT))
        assert (head(path), format_under_test.rows(path)) == before
        assert opened.host.find_publication(opened.client, instant) is not None

    @check("F32", "Once before_rollback has returned, the format names no file of the instant.")
    def test_the_format_goes_back_before_files_are_deleted(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        instant = table.upsert(rows(0, 6, ts=2)).instant
        seen: list[object] = []

        def look(call: Call) -> None:
            if call.hook == "before_rollback":
                seen.append(format_under_test.rows(path))

        TRACE.ended = look
        table.rollback(instant)
        assert seen == [contents(rows(0, 1, 2, 3, 4))]

    @check("F33", "What only step 1 holds is inflight in the format's timeline.")
    def test_the_fence(self, table: hudi.Table, path: Path) -> None:
        die_before_step_2(lambda: table.upsert(rows(0, ts=2)))
        self.require_fenced(path)

    @pytest.mark.parametrize("what", ["archived", "rebuilt"])
    @check("F61", "What is forgotten makes nothing complete that only step 1 holds later on.")
    def test_the_fence_behind_a_watermark(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat, what: str
    ) -> None:
        table.upsert(rows(0, ts=2))
        if what == "archived":
            opened = open_at(path)
            opened.host.archive_instants(opened.client, opened.timeline().completed_writes()[:1])
        elif declares(path, Capability.CONVERSION):
            format_under_test.lose(path)
            table.repair()
        else:
            TRACE.refused()
            return
        before = contents(rows(0, ts=2), rows(1, 2, 3, 4))
        # another handle knows nothing of before
        die_before_step_2(lambda: hudi.Table.open(str(path), FAST).upsert(rows(0, 6, ts=3)))
        assert format_under_test.rows(path) == ours(path) == before
        self.require_fenced(path)
        hudi.Table.open(str(path)).insert(rows(7))
        expected = contents(rows(0, 6, ts=3), rows(1, 2, 3, 4, 7))
        assert format_under_test.rows(path) == ours(path) == expected

    def require_fenced(self, path: Path) -> None:
        """The last write is inflight for the format, and all else is as step 1 has it."""
        opened, instant, _ = pending(path)
        fenced = opened.host.get_timeline_factory().active_timeline(opened.client)
        others = [one for one in opened.client.timeline().instants if one != instant]
        assert fenced.find(instant.requested_time, instant.action) == replace(
            instant, state=State.INFLIGHT
        )
        assert [one for one in fenced.instants if one in others] == others

    # --- services --------------------------------------------------------------------------------

    @pytest.mark.parametrize("by_name", [True, False])
    @check("F19", "A clean that would delete a file of the present state is refused.")
    def test_live_files_are_not_cleaned(self, table: hudi.Table, path: Path, by_name: bool) -> None:
        opened = open_at(path)
        live = min(base_files(table))
        clean = after_all(path, Action.CLEAN, State.INFLIGHT)
        before = head(path)
        with pytest.raises(HudiError) as caught:
            opened.host.before_clean(opened.client, cleaning(path, live, by_name=by_name), clean)
        assert not isinstance(caught.value, PluginError), "a hook that fails refuses nothing"
        assert head(path) == before

    @check("F34", "A clean is recorded once, however often its hook is called, and changes no row.")
    def test_a_clean_is_recorded_once(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        opened, clean = open_at(path), after_all(path, Action.CLEAN)
        body = CleanMetadata(clean.requested_time, 0, 0, "")
        assert opened.host.find_publication(opened.client, clean) is None
        receipt = opened.host.complete_clean(opened.client, body, clean)
        now = head(path)
        assert opened.host.complete_clean(opened.client, body, clean).version == receipt.version
        assert head(path) == now
        found = opened.host.find_publication(opened.client, clean)
        assert found is not None
        assert (found.version, found.action) == (receipt.version, Action.CLEAN)
        assert format_under_test.rows(path) == contents(rows(0, 1, 2, 3, 4))

    @check("F42", "A watermark makes no instant complete that step 1 has not completed.")
    def test_watermarks_tell_of_completed_instants(self, table: hudi.Table, path: Path) -> None:
        opened = open_at(path)
        [write] = opened.timeline().completed_writes()
        early = replace(write, requested_time=InstantTime("20200101000000000"))
        opened.host.archive_instants(opened.client, [write])
        if opened.host.find_publication(opened.client, early) is None:
            return  # it has no watermark
        pending_ = replace(early, state=State.INFLIGHT, completion_time=None)
        assert opened.host.find_publication(opened.client, pending_) is None

    @check("F58", "What the watermark alone covers is not rolled back, or with all its rows.")
    def test_a_rollback_behind_the_watermark(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        """Of a write that was there before the metadata was made."""
        before = ours(path)
        last = table.upsert(rows(0, 6, ts=2)).instant
        after = ours(path)
        format_under_test.lose(path)
        if not declares(path, Capability.CONVERSION):
            TRACE.refused()
            with pytest.raises(UnsupportedCapabilityError):
                hudi.Table.open(str(path)).repair()
            return
        hudi.Table.open(str(path)).repair()
        try:
            hudi.Table.open(str(path)).rollback(last)
        except TableServiceError:
            before = after
        assert format_under_test.rows(path) == ours(path) == before
        hudi.Table.open(str(path)).insert(rows(9))
        assert format_under_test.rows(path) == ours(path) == before + contents(rows(9))

    @check("F62", "A write can be undone although a later clean is archived already.")
    def test_a_clean_is_archived_before_older_writes(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        """As it is where there are many cleans."""
        before = ours(path)
        last = table.upsert(rows(0, 6, ts=2)).instant
        opened, clean = open_at(path), after_all(path, Action.CLEAN)
        body = CleanMetadata(clean.requested_time, 0, 0, "")
        opened.host.complete_clean(opened.client, body, clean)
        opened.host.archive_instants(opened.client, [clean])
        assert opened.host.find_publication(opened.client, last) is not None
        hudi.Table.open(str(path)).rollback(last)
        assert format_under_test.rows(path) == ours(path) == before

    @check("F35", "A clustering puts files in the place of others, and is recorded once.")
    def test_a_clustering_is_recorded_once(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        """The same rows anew, as an overwriting of the table has them written."""
        if not self.declared(path, Capability.CLUSTERING, "complete_clustering"):
            return
        old, everything = base_files(table), rows(0, 1, 2, 3, 4)
        die_before_step_2(lambda: table.insert_overwrite_table(everything))
        opened, instant, written = pending(path)
        assert isinstance(written, ReplaceCommitMetadata)
        metadata = replace(written, operation_type="CLUSTER")
        versions = {
            opened.host.complete_clustering(opened.client, metadata, instant).version
            for _ in range(2)
        }
        assert versions == {head(path)}
        assert opened.host.find_publication(opened.client, instant) is not None
        assert not old & base_files(table)
        assert format_under_test.rows(path) == ours(path) == contents(everything)

    @check("F36", "No file of a savepoint is cleaned, until the savepoint is deleted.")
    def test_savepoints_keep_their_files(self, table: hudi.Table, path: Path) -> None:
        if not self.declared(path, Capability.SAVEPOINT, "complete_savepoint"):
            return
        opened = open_at(path)
        [first] = opened.timeline().completed_writes()
        old = base_files(table)
        saved = replace(after_all(path, Action.SAVEPOINT), requested_time=first.requested_time)
        body = SavepointMetadata("conformance", 0, "", {})
        versions = {
            opened.host.complete_savepoint(opened.client, body, saved).version for _ in range(2)
        }
        assert len(versions) == 1
        table.upsert(rows(0, ts=2))
        plan = cleaning(path, *(old - base_files(table)))
        clean = after_all(path, Action.CLEAN, State.INFLIGHT)
        with pytest.raises(HudiError):
            opened.host.before_clean(opened.client, plan, clean)
        begun = saved.to(State.INFLIGHT)  # it has left the timeline
        for _ in range(2):
            opened.host.complete_delete_savepoint(opened.client, begun)
        assert opened.host.find_publication(opened.client, begun) is None
        opened.host.before_clean(opened.client, plan, clean)

    @check("F37", "A restore goes back to its savepoint in one change, and is recorded once.")
    def test_a_restore_is_one_change(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        if not self.declared(path, Capability.RESTORE, "complete_restore"):
            return
        opened = open_at(path)
        [first] = opened.timeline().completed_writes()
        saved = replace(after_all(path, Action.SAVEPOINT), requested_time=first.requested_time)
        body = SavepointMetadata("conformance", 0, "", {})
        opened.host.complete_savepoint(opened.client, body, saved)
        undone = [table.upsert(rows(0, ts=ts)).instant for ts in (2, 3)]
        plan = RestorePlan(
            instants_to_rollback=tuple(
                InstantInfo(one.requested_time, str(one.action)) for one in reversed(undone)
            )
        )
        pending_ = after_all(path, Action.RESTORE, State.INFLIGHT)
        before = head(path)
        opened.host.check_restore(opened.client, plan)
        assert head(path) == before
        opened.host.before_restore(opened.client, plan, pending_)
        now = head(path)
        assert now != before
        opened.host.before_restore(opened.client, plan, pending_)
        assert head(path) == now
        assert format_under_test.rows(path) == contents(rows(0, 1, 2, 3, 4))
        for one in undone:
            assert opened.host.find_publication(opened.client, one) is None
        done = replace(pending_, state=State.COMPLETED, completion_time=pending_.requested_time)
        versions = {
            opened.host.complete_restore(
                opened.client, RestoreMetadata(done.requested_time, 0, ()), done
            ).version
            for _ in range(2)
        }
        assert len(versions) == 1
        assert opened.host.find_publication(opened.client, done) is not None

    # --- metadata that others lose or write ------------------------------------------------------

    @check("F21", "Metadata that is gone is an error for readers and writers, never no rows.")
    def test_gone_metadata_is_an_error(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        format_under_test.lose(path)
        before = files_of(path)
        with pytest.raises(CorruptMetadataError):
            hudi.Table.open(str(path)).to_arrow()
        with pytest.raises(CorruptMetadataError):
            hudi.Table.open(str(path)).upsert(rows(0, ts=2))
        assert data_files(files_of(path)) == data_files(before)

    @check("F22", "A commit of a writer that does not know Hudi stops writes, not reads.")
    def test_foreign_commits_are_refused(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        format_under_test.intrude(path)
        before = data_files(files_of(path))
        with pytest.raises(ForeignCommitError):
            hudi.Table.open(str(path)).upsert(rows(0, ts=2))
        assert data_files(files_of(path)) == before
        assert ours(path) == contents(rows(0, 1, 2, 3, 4))
        planned = hudi.Table.open(str(path)).repair(dry_run=True)
        changed = any(one.changes_rows for one in planned.foreign)
        if changed and not declares(path, Capability.TAKE_IN):
            TRACE.refused()
            with pytest.raises(HudiError):
                hudi.Table.open(str(path)).repair(take_in=True)
            assert data_files(files_of(path)) == before

    @check("F38", "Metadata that is lost, or of another writer, gives way to rebuilt metadata.")
    def test_metadata_is_rebuilt(
        self, table: hudi.Table, path: Path, format_under_test: TwoStepFormat
    ) -> None:
        expected = contents(rows(0, 1, 2, 3, 4))
        for damage in (format_under_test.intrude, format_under_test.lose):
            damage(path)
            if declares(path, Capability.CONVERSION):
                hudi.Table.open(str(path)).repair(discard=True)
                assert format_under_test.rows(path) == ours(path) == expected
            else:
                TRACE.refused()
                with pytest.raises(UnsupportedCapabilityError):
                    hudi.Table.open(str(path)).repair(discard=True)

    def declared(self, path: Path, capability: Capability, hook: str) -> bool:
        """Whether the format declares an ability; the hook of one it does not is refused."""
        if declares(path, capability):
            return True
        TRACE.refused()
        opened = open_at(path)
        with pytest.raises(UnsupportedCapabilityError):
            getattr(opened.host, hook)(opened.client, object(), after_all(path, Action.COMMIT))
        return False
