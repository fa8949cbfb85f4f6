"""What takes a table back to a former state."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, overload

from hudi_core.config.resolve import options_as_strings
from hudi_core.config.write import WriteConfig
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.query_times import QueryTime, requested_time
from hudi_core.services.opening import open_table
from hudi_core.services.progress import CountedMap, Progress, no_progress
from hudi_core.services.restore import RestoreResult, plan_restore, restore_table
from hudi_core.services.rollback import RollbackPreview, plan_rollback, roll_back_instant
from hudi_core.services.savepoint import (
    Savepoint,
    create_savepoint,
    delete_savepoint,
    savepoints_of,
)
from hudi_core.sync.after_commit import require_syncable
from hudi_core.table.altering import TableAltering
from hudi_core.table.arguments import Options, commit_time
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import table_lock


class TableRestoring(TableAltering):
    """A table with its savepoints, restores and rollbacks."""

    def savepoint(
        self, instant: QueryTime | None = None, *, user: str = "", comment: str = ""
    ) -> Savepoint:
        """Keep the files of a commit, to be restored.

        Parameters
        ----------
        instant
            The commit; by default the last one.
        user, comment
            Texts that the savepoint keeps.

        Raises
        ------
        InstantNotFoundError, HistoryExpiredError
            No such commit is on the active timeline, or a clean has deleted a file of its state.
        UnsupportedCapabilityError
            The table's format cannot keep a state.
        """
        opened, config = self._for_service(None)
        lock, of = table_lock(opened, config), commit_time(instant)
        return create_savepoint(opened, lock, config, of=of, user=user, comment=comment)

    @property
    def savepoints(self) -> tuple[Savepoint, ...]:
        """The savepoints, the oldest first."""
        return savepoints_of(self._present())

    def delete_savepoint(self, instant: QueryTime) -> Instant:
        """Let the files of a savepoint be cleaned again.

        Raises
        ------
        InstantNotFoundError
            There is no such savepoint.
        """
        opened, config = self._for_service(None)
        time = commit_time(instant) or InstantTime("")
        return delete_savepoint(opened, table_lock(opened, config), config, time)

    def restore(
        self, instant: QueryTime, *, dry_run: bool = False, progress: Progress = no_progress
    ) -> RestoreResult:
        """Take the table back to the state after a commit.

        What came later is gone: its rows, its files, and its instants. In the table's format the
        state becomes the current one in one change. A restore that died is finished by the next
        writer.

        Parameters
        ----------
        instant
            The commit, or its savepoint.
        dry_run
            Whether to say only which commits would be taken out. What would be refused is.
        progress
            Called with the number of files dealt with so far, and of all, in each of its steps.

        Raises
        ------
        InstantNotFoundError, HistoryExpiredError
            No such commit is on the active timeline, or a clean has deleted a file of its state.
        TableServiceError
            A later commit has a savepoint, or the format has forgotten the state.
        UnsupportedCapabilityError
            The table's format cannot go back.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(None, progress)
        time = commit_time(instant) or InstantTime("")
        if dry_run:
            return plan_restore(opened, time)
        require_syncable(opened, self._options)
        done = restore_table(opened, table_lock(opened, config), config, time)
        self._opened = open_table(self._open_path, self._options)
        return self._synced(done)

    @overload
    def rollback(
        self,
        instant: QueryTime,
        *,
        dry_run: Literal[False] = False,
        progress: Progress = no_progress,
    ) -> Instant: ...
    @overload
    def rollback(
        self, instant: QueryTime, *, dry_run: Literal[True], progress: Progress = no_progress
    ) -> RollbackPreview: ...
    def rollback(
        self, instant: QueryTime, *, dry_run: bool = False, progress: Progress = no_progress
    ) -> Instant | RollbackPreview:
        """Undo the last completed write, or a dead writer's pending one.

        Parameters
        ----------
        instant
            The write.
        dry_run
            Whether to say only which files would go.
        progress
            Called with the number of files dealt with so far, and of all, in each of its steps.

        Returns
        -------
        Instant or RollbackPreview
            The completed rollback, or what it would delete.

        Raises
        ------
        InstantNotFoundError
            No write of that time is on the active timeline.
        TableServiceError
            Later writes build on it, a savepoint holds it, or files it took the place of are gone.
        ConcurrentWriterError, LockError
            Its writer, or another one, is alive.
        """
        # by the table's options, whatever the last write was given
        opened, config = self._for_service(None)
        time = requested_time(instant) or ""
        if dry_run:
            return plan_rollback(_counted(opened, progress), config, time)
        require_syncable(opened, self._options)
        lock = table_lock(opened, config)
        done = roll_back_instant(_counted(opened, progress), lock, config, time)
        self._opened = opened
        return self._synced(done)

    def _for_service(
        self, options: Options | None, progress: Progress = no_progress
    ) -> tuple[OpenTable, WriteConfig]:
        merged = self._options | options_as_strings(options)
        opened = _counted(open_table(self._open_path, merged), progress)
        return opened, WriteConfig.from_options(merged)


def _counted(opened: OpenTable, progress: Progress) -> OpenTable:
    """The table as one that reports what it does with many files."""
    if progress is no_progress:
        return opened
    run_map = CountedMap(opened.client.run_map, progress)
    return replace(opened, client=replace(opened.client, run_map=run_map))
