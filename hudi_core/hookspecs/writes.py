"""Hooks that record completed writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from hudi_core.hookspecs.marks import Called, hook
from hudi_core.model.capability import SCHEMA_EVOLUTION, Capability
from hudi_core.model.client import FileSystemViewManager, MetaClientView
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStatus
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import Instant

B_contra = TypeVar("B_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class WriteHooks:
    """Step 2 of writes."""

    @hook(is_required=True)
    def complete_write(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a completed write. Required.

        Called once per commit, under the lock, after conflict check, metadata-table commit and step
        1. A crash before it leaves the write pending publication: readers see the old state in
        every view, and the next writer replays it. A crash after it leaves a complete write that
        was not acknowledged. RFC-93 ``completeWrite``.

        Parameters
        ----------
        commit_metadata
            The body of the completed instant: files with rows and bytes, the schema it leaves, and
            for insert_overwrite and delete_partition (``ReplaceCommitMetadata``) the groups it
            removes. :func:`~hudi_core.model.conflicts.written_files` are the stats of the files
            that become live, :func:`~hudi_core.model.conflicts.outgoing_groups` the groups whose
            present files go.
        instant
            Completed; ``commit``, ``deltacommit`` or ``replacecommit``.
        write_statuses
            The same files with column statistics, so that no footer is read again. Empty in a
            replay: the format then takes the statistics from the footers.
        """
        raise NotImplementedError

    @hook(needed_by=[Capability.CLUSTERING])
    def complete_clustering(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        replace_commit_metadata: ReplaceCommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a completed clustering. Required by ``clustering``.

        It puts the same rows into other files.

        When, lock, crash and arguments as for :meth:`complete_write`, with operation ``CLUSTER``.
        The groups that the metadata names as replaced stay visible until this hook returns: the
        format makes one replacement, and does not count it as a change of data. RFC-93
        ``completeClustering``.
        """
        raise NotImplementedError

    @hook(needed_by=[Capability.MERGE_ON_READ, Capability.DELETION_VECTORS], since="1.0")
    def complete_compaction(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a completed compaction. Required by ``merge_on_read`` or ``deletion_vectors``.

        It merges the log files of file slices into their next base files.

        When, lock, crash and arguments as for :meth:`complete_write`, with operation ``COMPACT``
        and a ``commit`` as instant. No row changes: the format puts the new base file of a group in
        the place of the base file and the logs that it merges, and does not count it as a change of
        data. Log files of other writes that were requested before the compaction and completed
        after its plan belong to the new base file, and stay; rows that these delete there are found
        by :func:`hudi_core.spi.files.deleted_positions`. RFC-93 ``completeCompaction``.
        """
        raise NotImplementedError

    @hook(needed_by=[Capability.MERGE_ON_READ], since="1.0")
    def complete_log_compaction(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
        write_statuses: Sequence[WriteStatus],
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a completed log compaction. Required by ``merge_on_read``.

        It merges log files of a file slice into one log file.

        When, lock, crash and arguments as for :meth:`complete_compaction`, with operation
        ``LOG_COMPACT`` and a ``deltacommit`` as instant. The base files stay. RFC-93
        ``completeLogCompaction``.
        """
        raise NotImplementedError

    @hook(needed_by=[*SCHEMA_EVOLUTION])
    def complete_schema_change(
        self,
        *,
        meta_client: MetaClientView,
        view_manager: FileSystemViewManager,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
    ) -> FormatCommit:
        """Record a schema change without rows. Required by any schema evolution.

        When, lock and crashes as for :meth:`complete_write`. Columns are matched by field id, never
        by name. Added to RFC-93, where such a change reaches the format with the next write.

        ``commit_metadata`` names no files; its ``schema_json`` is the new Avro schema with field
        ids. ``instant`` is a completed ``commit``.
        """
        raise NotImplementedError


class Publishes(Protocol[B_contra]):
    """Records what an instant has written."""

    def __call__(
        self,
        meta_client: MetaClientView,
        body: B_contra,
        instant: Instant,
        /,
        write_statuses: Sequence[WriteStatus] = (),
        expected_version: str | None = None,
    ) -> FormatCommit: ...


class ChangesFormat(Protocol[B_contra, R_co]):
    """Makes a change of an instant, or before it."""

    def __call__(
        self,
        meta_client: MetaClientView,
        body: B_contra,
        instant: Instant,
        expected_version: str | None = None,
        /,
    ) -> R_co: ...


class WriteCalls:
    """Step 2 of writes, as the host has it."""

    complete_write: Called[Publishes[CommitMetadata]]
    complete_clustering: Called[Publishes[ReplaceCommitMetadata]]
    complete_compaction: Called[Publishes[CommitMetadata]]
    complete_log_compaction: Called[Publishes[CommitMetadata]]
    complete_schema_change: Called[ChangesFormat[CommitMetadata, FormatCommit]]
