"""What keeps a table small, fast and repairable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.key import GivenOptions
from hudi_core.config.resolve import given_options
from hudi_core.config.ttl import TtlConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine, engine_for
from hudi_core.errors import InvalidOptionError
from hudi_core.read.query_times import QueryTime, requested_time
from hudi_core.services.archive import ArchiveResult, archive_table, plan_table_archive
from hudi_core.services.clean import CleanResult, clean_table, plan_table_clean
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.services.opening import open_table
from hudi_core.services.partition_ttl import Expiry, expire_partitions
from hudi_core.services.progress import Progress, no_progress
from hudi_core.services.purge import PurgeResult, plan_purge, purge_table
from hudi_core.services.rewrite_keys import (
    KeyRewrite,
    KeyRewriting,
    KeyStorage,
    without_key_storage,
)
from hudi_core.sync.after_commit import require_syncable
from hudi_core.table.arguments import Columns, Options, commit_time
from hudi_core.table.restoring import TableRestoring
from hudi_core.txn.table_lock import table_lock

_ALL_GROUPS: Final = 1_000_000_000


class TableServing(TableRestoring):
    """A table with its services."""

    def clean(
        self,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> CleanResult:
        """Delete file slices that no retained state of the table needs.

        A clean that died is finished first.

        Parameters
        ----------
        options
            Hudi options, such as ``hoodie.cleaner.commits.retained``.
        dry_run
            Whether to say only what would be deleted.
        progress
            Called with the number of files dealt with so far, and of all, in each of its steps.

        Raises
        ------
        CorruptMetadataError, TableServiceError
            A plan on the timeline names what must stay; nothing was deleted.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(options, progress)
        if dry_run:
            return plan_table_clean(opened, config)
        require_syncable(opened, opened.client.options)
        done = clean_table(opened, table_lock(opened, config), config)
        return done if done.instant is None else self._pointed(opened, done)

    def expire_partitions(
        self,
        days: int | None = None,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Expiry:
        """Delete partitions that nobody wrote to for some days.

        One commit deletes all of them; past states stay readable until a clean. A partition that
        somebody writes to meanwhile stays.

        Parameters
        ----------
        days
            How many; ``hoodie.partition.ttl.strategy.days.retain`` by default.
        options
            Hudi options ``hoodie.partition.ttl.*``: from when on the age of a partition counts, and
            which partitions may expire.
        dry_run
            Whether to say only which would be deleted.
        progress
            Called with the number of partitions looked at, and then deleted, so far, and of all.

        Raises
        ------
        InvalidOptionError
            No number of days is given.
        PartitionValueError
            The table has no partitions.
        CommitConflictError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        given = {} if days is None else {TtlConfig.days_retained.key: days}
        writer = self._writer({**given_options(options), **given}, engine_for(None))
        try:
            done = expire_partitions(writer, writer.config.ttl, dry_run=dry_run, progress=progress)
        finally:
            self._opened = writer.table
        return done if done.commit is None or dry_run else self._synced(done)

    def archive(
        self,
        *,
        options: Options | None = None,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> ArchiveResult:
        """Move old instants from the active timeline to its history.

        Parameters
        ----------
        options
            Hudi options, such as ``hoodie.keep.max.commits``.
        dry_run
            Whether to say only what would be moved.
        progress
            See :meth:`clean`.

        Raises
        ------
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(options, progress)
        if dry_run:
            return plan_table_archive(opened, config)
        return archive_table(opened, table_lock(opened, config), config)

    def purge(
        self,
        older_than: QueryTime | None = None,
        *,
        savepoints: Sequence[QueryTime] = (),
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> PurgeResult:
        """Make rows that were deleted leave the disk.

        After it no file under the table holds them: data files, logs of changes, indexes,
        statistics and the format's metadata of past states are gone or rebuilt. Time travel starts
        there, in the format's view in any case.

        Parameters
        ----------
        older_than
            Only rows that went before this time; states since then stay readable in Hudi's view.
        savepoints
            Savepoints to be deleted first.
        dry_run
            Whether to say only which files with rows would be deleted.
        progress
            Called with the number of files whose footers are read so far, and of all.

        Raises
        ------
        TableServiceError
            A savepoint that is not given keeps past files; it is named. Nothing was deleted.
        ConcurrentWriterError, LockError
            Another writer is at work.
        """
        opened, config = self._for_service(None)
        since, given = commit_time(older_than), [commit_time(one) for one in savepoints]
        named = [one for one in given if one is not None]
        if dry_run:
            return plan_purge(opened, older_than=since, savepoints=named)
        require_syncable(opened, self._options)
        done = purge_table(
            opened,
            table_lock(opened, config),
            config,
            older_than=since,
            savepoints=named,
            progress=progress,
        )
        self._opened = open_table(self._open_path, self._options)
        return self._pointed(self._opened, done)

    def cluster(
        self,
        *,
        sort_by: Columns | None = None,
        layout: str | None = None,
        partitions: Columns | None = None,
        schedule_only: bool = False,
        dry_run: bool = False,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> Clustering:
        """Rewrite small files into larger ones, their rows in another order.

        Which files, options say (``hoodie.clustering.*``). Rows stay what they are, with the times
        of their commits; readers see the old files until the new ones are complete.

        Parameters
        ----------
        sort_by
            Columns by which the rows of the new files are sorted; as options say by default.
        layout
            How several columns sort: ``linear``, ``z-order`` or ``hilbert``.
        partitions
            Paths of the partitions to look at; all by default.
        schedule_only
            Whether only the plan is put on the timeline, for :meth:`run_clusterings` in any
            process. Until then other writes go round its files: see
            ``hoodie.clustering.updates.strategy``.
        dry_run
            Whether to say only what would be rewritten.
        progress
            Called with the number of groups of files done so far, and of all.

        Raises
        ------
        SchemaError, UnknownPartitionError
            A column or partition is not there. Nothing has changed.
        TableServiceError
            The table has buckets, whose files cannot be rewritten together.
        CommitConflictError
            Another write changed one of the files meanwhile, and it stands.
        ConcurrentWriterError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        wanted = {
            ClusteringConfig.sort_columns.key: sort_by,
            ClusteringConfig.layout.key: layout,
            ClusteringConfig.partitions.key: partitions,
        }
        given = {key: value for key, value in wanted.items() if value is not None}
        with self._clusterings({**given_options(options), **given}, engine, progress) as service:
            if dry_run:
                return service.plan()
            if schedule_only:
                return service.schedule()
            done = service.cluster()
        return done if done.result is None else self._pointed(self._opened, done)

    def run_clusterings(
        self,
        instant: QueryTime | None = None,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> list[Clustering]:
        """Run clusterings that are scheduled, by whomever, oldest first.

        Parameters
        ----------
        instant
            Which one; all by default.
        progress
            Called with the number of groups of files done so far, and of all.

        Raises
        ------
        InstantNotFoundError
            No clustering of that time is scheduled.
        CommitConflictError
            Another write changed one of its files since. It stands, and the clustering is given up.
        CorruptMetadataError
            A plan names something else than files of the table. Nothing has changed.
        """
        with self._clusterings(options, engine, progress) as service:
            done = service.run(requested_time(instant))
        return self._pointed(self._opened, done) if done else done

    def optimize(
        self,
        partitions: Columns | None = None,
        *,
        dry_run: bool = False,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> Clustering:
        """Rewrite all small files into larger ones; rows stay in their order.

        A clustering without sort columns and without a limit of groups: see :meth:`cluster`.
        """
        limits = {ClusteringConfig.max_groups.key: _ALL_GROUPS, **given_options(options)}
        return self.cluster(
            sort_by="",
            partitions=partitions,
            dry_run=dry_run,
            options=limits,
            engine=engine,
            progress=progress,
        )

    def rewrite_keys(
        self,
        *,
        materialise: bool = False,
        transition: bool = False,
        keep_files: bool = False,
        dry_run: bool = False,
        options: Options | None = None,
        engine: Engine | None = None,
        progress: Progress = no_progress,
    ) -> KeyRewrite:
        """Take stored record keys out of the files, or back.

        Nothing but the keys changes; see docs/virtual_keys.md. Interrupted, it is run again.

        Parameters
        ----------
        materialise
            Whether to put them back.
        transition
            Whether new files go on holding them, while everything here makes them.
        keep_files
            Whether present files stay as they are until a write changes them.
        dry_run
            Whether to say only what would be done; stored keys are compared in any case.

        Raises
        ------
        TableServiceError
            The table cannot have such keys, or its stored keys are others than its columns make.
            Nothing has changed.
        InvalidOptionError
            It has no record key, or keys are to be materialised and in transition at once.
        RecordKeyError, DataFileError
            The keys of a file cannot be made, or not be read.
        CommitConflictError, ConcurrentWriterError, CommitStateUnknownError, LockError
            See :meth:`cluster`.
        """
        if materialise and transition:
            raise InvalidOptionError(
                "transition", "true", "keys are materialised, or in transition", "Give one of them."
            )
        to = KeyStorage.STORED if materialise else KeyStorage.VIRTUAL
        to = KeyStorage.TRANSITION if transition else to
        with self._clusterings(options, engine, progress) as service:
            rewriting = KeyRewriting(service, to, keep_files)
            if dry_run:
                return rewriting.plan()
            try:
                done = rewriting.run()
            finally:
                # where the keys are is what the table says from now on
                self._options = GivenOptions(without_key_storage(self._options))
        return self._pointed(self._opened, done) if done.instants else done

    @contextmanager
    def _clusterings(
        self, options: Options | None, engine: Engine | None, progress: Progress
    ) -> Iterator[ClusteringService]:
        """The service of a call; later reads use its table."""
        writer = self._writer(options, chosen_engine(engine))
        service = ClusteringService(
            writer.table, writer.lock, writer.engine, writer.config, progress
        )
        try:
            yield service
        finally:
            self._opened = service.table
