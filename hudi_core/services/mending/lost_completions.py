"""Putting back the completed files of commits that a timeline has lost.

The content of such a file follows from what the commit left: its data files, the operation that its
inflight file names, and the file groups that were there before. Counts of rows come from the key
columns of the files. What no file shows is not made up: a commit that changed columns, or that
deleted partitions of a table whose format cannot be read, is named and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.actions.clean import replaced_by_archived
from hudi_core.actions.clean_of_files import retained_since, savepointed_files
from hudi_core.actions.clean_plan import (
    CleanRules,
    PartitionClean,
    Retention,
    make_clean_plan,
)
from hudi_core.actions.clustering_plan import PlannedGroup
from hudi_core.base_file.footer import read_columns, read_file_metadata
from hudi_core.base_file.key_footer import AVRO_SCHEMA_FOOTER
from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import engine_for
from hudi_core.errors import CorruptMetadataError
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.capability import Capability
from hudi_core.model.commit import (
    MERGES_LOGS,
    NO_PREVIOUS_COMMIT,
    SCHEMA_KEY,
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStat,
)
from hudi_core.model.difference import Difference
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroup,
    FileGroupId,
    FileSlice,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime, next_instant_time
from hudi_core.model.operation import INSERT_OVERWRITE, operation_recorded
from hudi_core.model.protocols import TimelineView
from hudi_core.schema.table_schema import COMMIT_TIME, RECORD_KEY, TableSchema
from hudi_core.services.clustering import ClusteringService
from hudi_core.services.mending.differences import Source
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import decode_requested_replace, encode
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.clean import clean
from hudi_core.txn.recovery.lost_completion import completion_evidence, recorded_at
from hudi_core.txn.recovery.recover import is_writing
from hudi_core.txn.recovery.rollback import files_written
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service
from hudi_core.view.file_system import FileSystemView, replaced_groups, written_files
from hudi_core.view.storage_lister import StorageLister
from hudi_core.write.replacing import replaced_groups as groups_to_replace


@dataclass(frozen=True, slots=True)
class LostCompletion:
    """A commit whose completed file is lost.

    ``instant`` is as the timeline has it: pending. ``evidence`` shows that it was complete.
    """

    instant: Instant
    evidence: str

    @property
    def difference(self) -> Difference:
        """The validation's entry for it."""
        return Difference(
            Source.TIMELINE,
            f"{self.instant.action.completed_action.value} {self.instant.requested_time}",
            f"complete: {self.evidence}",
            "pending; its completed file is lost",
        )


def lost_completions(table: OpenTable, timeline: Timeline) -> list[LostCompletion]:
    """The commits with lost completed files, the oldest first.

    They look pending and were complete.
    """
    config = WriteConfig.from_options(table.client.options)
    state = TableState(table.seeing(timeline))
    found = []
    for pending in timeline.pending():
        if not is_writing(table, pending, config):
            evidence = completion_evidence(state, pending)
            if evidence is not None:
                found.append(LostCompletion(pending, evidence))
    return found


def put_back(table: OpenTable, timeline: Timeline, lost: LostCompletion) -> Instant:
    """Restore a commit's completed file; runs under the table's lock.

    Where what the commit did cannot be known (``CorruptMetadataError``), nothing has changed.
    """
    completed = lost.instant.to(State.COMPLETED, _completion_time(table, timeline, lost.instant))
    assert completed.completion_time is not None  # noqa: S101 - for the type checker
    body = encode(_Commit(table, timeline, lost.instant).metadata())
    return table.client.active.complete(lost.instant, completed.completion_time, body, timeline)


def _completion_time(table: OpenTable, timeline: Timeline, instant: Instant) -> InstantTime:
    """The commit's completion time, by its format or its metadata.

    As its format has it, or right after its metadata was recorded.
    """
    held = table.host.find_publication(table.client, instant)
    if held is not None and held.completion_time is not None:
        return held.completion_time
    after = recorded_at(TableState(table.seeing(timeline)), instant) or instant.requested_time
    return next_instant_time(after, after)


class _Commit:
    """What one commit did, as far as its files show."""

    def __init__(self, table: OpenTable, timeline: Timeline, instant: Instant) -> None:
        self._table, self._client, self._instant = table, table.client, instant
        lister = StorageLister.of(table.client)
        before, read = timeline.as_of(instant.requested_time), table.client.read_commit
        self._before = FileSystemView(
            lister, before, replaced_groups(before, read), written_files(before, read)
        )
        self._files = files_written(table, instant)
        self._slices = StoredSlices(table.client, before)
        self._logs = StoredSlices(table.client, before, instant.requested_time)

    def metadata(self) -> CommitMetadata:
        operation = self._operation()
        if not self._files and operation is not WriteOperation.DELETE_PARTITION:
            raise self._unknown(f"no data file shows what the {operation.value} did")
        stats = {
            str(partition): tuple(self._stat(partition, name) for name in names)
            for partition, names in self._files.items()
        }
        extra = {SCHEMA_KEY: self._schema().to_avro(self._client.config.name)}
        if self._instant.action.completed_action is not Action.REPLACECOMMIT:
            return CommitMetadata(
                stats,
                compacted=operation in MERGES_LOGS,
                extra_metadata=extra,
                operation_type=operation.value,
            )
        return ReplaceCommitMetadata(
            stats,
            extra_metadata=extra,
            operation_type=operation.value,
            partition_to_replace_file_ids=self._replaced(operation),
        )

    def _operation(self) -> WriteOperation:
        planned = {
            Action.CLUSTERING: WriteOperation.CLUSTER,
            Action.COMPACTION: WriteOperation.COMPACT,
            Action.LOGCOMPACTION: WriteOperation.LOG_COMPACT,
        }
        if self._instant.action in planned:
            return planned[self._instant.action]
        operation = self._client.read_commit(self._instant.to(State.INFLIGHT)).operation_type
        if operation in tuple(WriteOperation):
            return WriteOperation(operation)
        if self._instant.action in (Action.COMMIT, Action.DELTACOMMIT):
            return WriteOperation.UPSERT
        raise self._unknown("its inflight file does not name the operation")

    def _stat(self, partition: PartitionPath, name: str) -> WriteStat:
        path, log = join_path(partition, name), LogFileName.parse(name)
        parsed = BaseFileName.parse(name) or log
        if parsed is None or (log is not None and log.is_cdc):
            raise self._unknown(f"{path} is no base file and no log of a file slice")
        group = FileGroupId(partition, parsed.file_id)
        slices = self._before.latest_slices([partition])
        before = next((one for one in slices if one.group == group), None)
        if log is not None:
            return self._log_stat(path, log, before)
        new = read_columns(self._client, path, [RECORD_KEY, COMMIT_TIME])
        keys, old = new.column(RECORD_KEY), self._keys(before)
        has_times = COMMIT_TIME in self._client.config.stored_meta_columns
        if has_times:
            keys = keys.filter(pc.equal(new.column(COMMIT_TIME), self._instant.requested_time))
        known = int(pc.sum(pc.is_in(keys, value_set=old)).as_py() or 0) if len(old) else 0
        inserted = len(keys) - known
        updated = known if has_times else 0  # which rows are copies is unknown
        size = self._client.data.head(path)
        base = None if before is None else before.base_file
        return WriteStat(
            file_id=str(parsed.file_id),
            path=path,
            prev_commit=NO_PREVIOUS_COMMIT if base is None else base.instant,
            num_writes=new.num_rows,
            num_deletes=max(0, len(old) - (new.num_rows - inserted)),
            num_update_writes=updated,
            num_inserts=inserted,
            total_write_bytes=0 if size is None else size.size,
            file_size_in_bytes=0 if size is None else size.size,
            partition_path=str(partition),
            prev_base_file=None if base is None else base.status.name,
        )

    def _log_stat(self, path: str, log: LogFileName, before: FileSlice | None) -> WriteStat:
        """What a log did to its slice, its rows being updates."""
        stored = self._client.data.head(path)
        if stored is None:
            raise self._unknown(f"{path} is gone")
        rows, deletes = self._logs.counts(stored)
        base = None if before is None else before.base_file
        return WriteStat(
            file_id=str(log.file_id),
            path=path,
            prev_commit=self._instant.requested_time,
            num_writes=rows,
            num_deletes=deletes,
            num_update_writes=rows,
            total_write_bytes=stored.size,
            file_size_in_bytes=stored.size,
            partition_path=path.rpartition("/")[0],
            log_version=log.version,
            log_offset=0,
            base_file="" if base is None else base.status.name,
            log_files=(str(log),),
        )

    def _keys(self, before: FileSlice | None) -> pa.ChunkedArray:
        if before is None:
            return pa.chunked_array([], pa.string())
        return self._slices.columns(before, [RECORD_KEY]).column(RECORD_KEY)

    def _schema(self) -> TableSchema:
        """The columns in a file of the commit, else the previous ones."""
        files = (
            join_path(partition, name)
            for partition, names in self._files.items()
            for name in names
            if BaseFileName.parse(name) is not None
        )
        for path in files:
            footer = read_file_metadata(self._client, path).metadata or {}
            text = footer.get(AVRO_SCHEMA_FOOTER.encode())
            if text is not None:
                config = self._client.config
                return TableSchema.from_avro(text.decode(), config.field_ids, config.last_column_id)
        return self._client.schema

    def _replaced(self, operation: WriteOperation) -> Mapping[str, tuple[str, ...]]:
        if operation is WriteOperation.CLUSTER:
            return self._clustered()
        if operation is WriteOperation.DELETE_PARTITION:
            return self._absent_from_format()
        kind = operation_recorded(operation) or INSERT_OVERWRITE
        return groups_to_replace(self._before, kind, sorted(self._files))

    def _clustered(self) -> Mapping[str, tuple[str, ...]]:
        requested = self._instant.to(State.REQUESTED)
        active = self._client.active
        plan = decode_requested_replace(active.read(requested), active.path(requested))
        found: dict[str, list[str]] = {}
        groups = () if plan.clustering_plan is None else plan.clustering_plan.input_groups
        for group in groups or ():
            for one in group.slices or ():
                found.setdefault(one.partition_path or "", []).append(one.file_id or "")
        return {path: tuple(sorted(ids)) for path, ids in sorted(found.items())}

    def _absent_from_format(self) -> Mapping[str, tuple[str, ...]]:
        """Earlier file groups that the format does not name any more."""
        files = self._table.each()[-1].lister().named_files()
        if files is None:
            raise self._unknown("the partitions that it deleted are not recorded")
        named = {one.path for one in files}
        found: dict[str, list[str]] = {}
        for one in self._before.latest_slices():
            if one.base_file is not None and one.base_file.path not in named:
                found.setdefault(str(one.partition_path), []).append(str(one.file_id))
        return {path: tuple(sorted(ids)) for path, ids in sorted(found.items())}

    def _unknown(self, why: str) -> CorruptMetadataError:
        client, instant = self._client, self._instant
        return CorruptMetadataError(
            f"{client.storage.root}/{client.active.folder}",
            f"the completed file of {instant.action.value} {instant.requested_time} is lost, and "
            f"it cannot be put back: {why}",
            "Nothing was changed. Restore the file from a backup of the table; or give the commit "
            f"up: `hudi rollback {client.base_path} {instant.requested_time}`.",
        )


# --- file groups that came back -------------------------------------------------------------------
#
# A write replaced them, and they are the table's again: it left the active timeline while files of
# them were stored. Earlier releases, and other engines, archive it where a savepoint was in the way
# of the clean. Their rows are old versions of others, or were overwritten. What has been written to
# them since stays: a later version of a row counts where no other file group has its key.


@dataclass(frozen=True, slots=True)
class ReturnedGroup:
    """A file group that an archived write replaced, with its stored slices."""

    group: FileGroup
    by: InstantTime

    @property
    def files(self) -> tuple[BaseFile, ...]:
        """Its base files, the newest first."""
        slices = self.group.slices
        return tuple(one.base_file for one in slices if one.base_file is not None)

    @property
    def is_written(self) -> bool:
        """Whether something was written to it since."""
        return self.group.latest.last_instant > self.by

    @property
    def difference(self) -> Difference:
        """The validation's entry for it."""
        since = " and was written to since" if self.is_written else ""
        return Difference(
            Source.TIMELINE,
            f"file group {self.group.id.file_id} in {self.group.id.partition_path!r}",
            f"gone, as replacecommit {self.by} replaced it",
            f"that commit is archived, and the group is the table's again{since}",
        )


def returned_groups(
    client: TableMetaClient, timeline: TimelineView, view: FileSystemView
) -> list[ReturnedGroup]:
    """The present file groups that archived writes replaced.

    ``view`` has the files as storage has them at ``timeline``.
    """
    archived = replaced_by_archived(client, timeline)
    return [
        ReturnedGroup(group, archived[group.id])
        for group in (view.file_groups() if archived else ())
        if group.id in archived and group.id not in view.replaced
    ]


def find_returned(table: OpenTable) -> list[ReturnedGroup]:
    """The groups of :func:`returned_groups`; lists all folders of a table."""
    client = table.client
    timeline = client.timeline()
    lister = StorageLister.of(client)
    view = FileSystemView(lister, timeline, replaced_groups(timeline, client.read_commit))
    return returned_groups(client, timeline, view)


def mend_returned(
    table: OpenTable, lock: TableLock, config: WriteConfig, found: Sequence[ReturnedGroup]
) -> None:
    """Take the rows that came back out of the table again.

    Groups that were not written to lose their files, as by a clean. Others, and those whose files a
    savepoint keeps, are replaced once more, with the rows that count: as by a clustering, which
    needs a table with meta columns. What can be mended in neither way is left.

    Commits of other writers to the format may be there, where it can take them in, and stay what
    they are: until the groups are gone, rows cannot be taken in.
    """
    over_foreign = Capability.TAKE_IN in table.host.capabilities
    with locked_for_service(table, lock, config, over_foreign=over_foreign) as state:
        client, timeline = state.client, state.timeline
        kept = savepointed_files(client, timeline)

        def is_kept(one: ReturnedGroup) -> bool:
            path = one.group.id.partition_path
            return any((path, file.status.name) in kept for file in one.files)

        gone = [one for one in found if not one.is_written and not is_kept(one)]
        partitions: dict[PartitionPath, PartitionClean] = {}
        for one in gone:
            path = one.group.id.partition_path
            known = partitions.get(path, PartitionClean())
            paths = (*known.paths, *(file.path for file in one.files))
            partitions[path] = PartitionClean(
                paths, whole_since=max(one.by, known.whole_since or one.by)
            )
        plan = make_clean_plan(
            client.storage.root,
            Retention(CleanRules(CleanPolicy.KEEP_LATEST_FILE_VERSIONS), None),
            partitions,
            timeline,
            [one.requested_time for one in timeline.completed().of_actions(Action.SAVEPOINT)],
            retained_since=retained_since(client, timeline),
        )
        if plan is not None:
            clean(state, lock, plan, over_foreign=over_foreign)
    left = [one for one in found if one not in gone]
    if left and _can_be_replaced(table):
        quiet = replace(config, services=replace(config.services, enabled=False))
        service = ClusteringService(
            table.as_stored().afresh,
            lock,
            engine_for(None),
            quiet,
            choose=lambda now, _: list(_without_old_rows(now, left)),
        )
        service.cluster()


def _can_be_replaced(table: OpenTable) -> bool:
    """Whether rows have their times, and no format names their files."""
    config = table.client.config
    return (
        Capability.SINGLE_STEP in table.host.capabilities
        and config.populate_meta_fields
        and not config.virtual_keys
        and config.buckets is None
    )


def _without_old_rows(table: OpenTable, left: Sequence[ReturnedGroup]) -> Iterator[PlannedGroup]:
    """Yield groups to rewrite, without the rows that do not count."""
    returned = {one.group.id: one for one in left}
    partitions = sorted({one.partition_path for one in returned})
    others: dict[PartitionPath, list[pa.ChunkedArray]] = {}
    view = table.views().view()
    slices, stored = view.latest_slices(partitions), StoredSlices(table.client, table.timeline())
    for one in slices:
        if one.group not in returned:
            rows = stored.columns(one, [RECORD_KEY])
            others.setdefault(one.partition_path, []).append(rows.column(RECORD_KEY))
    for one in slices:
        # those with logs wait until these are compacted
        if one.group in returned and one.base_file is not None and not one.log_files:
            rows = read_columns(table.client, one.base_file.path, [RECORD_KEY, COMMIT_TIME])
            chunks = [chunk for keys in others.get(one.partition_path, ()) for chunk in keys.chunks]
            elsewhere = pa.chunked_array(chunks, pa.string())
            keys = rows.column(RECORD_KEY)
            is_old = pc.or_(
                pc.less(rows.column(COMMIT_TIME), returned[one.group].by),
                pc.is_in(keys, value_set=elsewhere),
            )
            # of a key that a file has twice, which inserts may add, none is lost
            old = {*keys.filter(is_old).to_pylist()} - {*keys.filter(pc.invert(is_old)).to_pylist()}
            yield PlannedGroup(one.partition_path, (one.base_file,), 1, frozenset(old))
