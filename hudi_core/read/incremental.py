"""Incremental queries: the rows that changed in a window of time.

The window is over completion times, begin exclusive and end inclusive, so that consecutive windows
see every write once whatever order writers finished in (tables of layout 1 record no completion
times; there it is over requested times). Which files hold the changes is in the commit metadata;
nothing is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import cached_property, partial
from typing import Final

import pyarrow as pa

from hudi_core.config.support import require_readable_table
from hudi_core.errors import CorruptMetadataError, HistoryExpiredError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.files import BaseFileName, FileGroupId, FileId, PartitionPath, join_path
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import (
    EARLIEST,
    InstantTime,
    instant_time_of,
    to_datetime,
)
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.read.filters import Filter, RowFilter, to_filter
from hudi_core.read.plan import PlannedFile, ReadPlan, planned_file, read_schema
from hudi_core.read.pruning import PartitionPruner
from hudi_core.read.scan import scan
from hudi_core.timeline.serde import decode_commit, decode_replace_commit

FROM_THE_BEGINNING: Final = frozenset({"earliest", "0", "000"})
"""What users of Hudi write for a window without a begin."""
_LONGEST_WRITE: Final = timedelta(days=1)
"""How long before the window an archived write may have been requested and still be found."""


class IncrementalQuery:
    """Reads what completed writes changed in one table.

    Parameters
    ----------
    client
        The table.
    timeline
        The instants that count, fenced by the table's format.

    Raises
    ------
    UnsupportedTableError
        The table cannot be read rightly, or has no meta columns, which tell which rows a write
        changed.
    """

    def __init__(self, client: TableMetaClient, timeline: TimelineView) -> None:
        require_readable_table(client.config, client.base_path)
        if not client.config.populate_meta_fields:
            raise UnsupportedTableError(
                client.base_path,
                "keeps no meta columns (hoodie.populate.meta.fields=false), so its rows do not say "
                "when they changed",
                "Compare two snapshots instead.",
            )
        self._client = client
        self._timeline = timeline

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's latest schema, meta columns first."""
        return read_schema(self._client, self._timeline)

    def plan(
        self,
        begin: str | None = None,
        end: str | None = None,
        row_filter: RowFilter | Filter | None = None,
    ) -> ReadPlan:
        """Return files and commit times of the changed rows.

        A row that several writes of the window changed comes once, as the last of them left it; a
        row that was deleted or replaced again within the window does not come.

        Parameters
        ----------
        begin, end
            Query times (see :func:`hudi_core.model.instant_time.parse_query_time`); exclusive and
            inclusive. The requested time of a write, as rows have it in ``_hoodie_commit_time``,
            stands for the completion of that write. Without ``begin`` (or with ``"earliest"``) the
            window has no begin, without ``end`` no end.
        row_filter
            Partitions that cannot hold a row it accepts are not read.

        Raises
        ------
        InvalidInstantTimeError
            ``begin`` or ``end`` is no time.
        TimelineError
            See :meth:`~hudi_core.meta_client.TableMetaClient.instant_time`.
        SchemaError
            The filter does not fit the table.
        HistoryExpiredError
            A file of the window has been removed by clean, or its commit's metadata is out of
            reach.
        """
        wanted = to_filter(row_filter, self.schema)
        window = self._window(self._bound(begin), self._bound(end, end_of_second=True))
        latest: dict[FileGroupId, tuple[Instant, WriteStat]] = {}
        for instant, metadata in window:
            for group in _replaced(metadata):
                latest.pop(group, None)
            for group, stat in _written(metadata):
                latest[group] = (instant, stat)
        pruner = PartitionPruner(self._client.config, self.schema)
        partitions = sorted({group.partition_path for group in latest})
        kept = set(pruner.keep(partitions, wanted))
        files = tuple(
            self._planned(pruner, group, *latest[group])
            for group in sorted(latest)
            if group.partition_path in kept
        )
        self._require_stored(files)
        times = frozenset(instant.requested_time for instant, _ in window)
        return ReadPlan(files, self.schema, times)

    def to_arrow(
        self,
        begin: str | None = None,
        end: str | None = None,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | Filter | None = None,
        batch_rows: int | None = None,
    ) -> pa.RecordBatchReader:
        """Return the changed rows; see :meth:`plan` and :func:`hudi_core.read.scan.scan`."""
        wanted = to_filter(row_filter, self.schema)
        return scan(self._client, self.plan(begin, end, wanted), columns, wanted, batch_rows)

    def _bound(self, text: str | None, *, end_of_second: bool = False) -> InstantTime | None:
        if text is None or text in FROM_THE_BEGINNING:
            return None
        time = self._client.instant_time(text, end_of_second=end_of_second)
        if time == EARLIEST:
            return time
        writes = self._timeline.completed_writes()
        if writes and time < writes[0].requested_time:
            just_before = instant_time_of(to_datetime(time) - timedelta(milliseconds=1))
            archived = self._client.archived.load(just_before, time)
            writes = tuple(one.instant for one in archived if one.instant.action in WRITE_ACTIONS)
        named = (one for one in writes if one.is_completed and one.requested_time == time)
        return next((one.effective_completion_time for one in named), time)

    def _window(
        self, begin: InstantTime | None, end: InstantTime | None
    ) -> list[tuple[Instant, CommitMetadata]]:
        """Return the window's writes with metadata, by requested time.

        Two writes never change one file group at the same time, so that requested times order the
        versions of a group as completion times do.
        """
        active = {instant.requested_time: instant for instant in self._timeline.completed_writes()}
        found = [
            (instant, metadata)
            for instant, metadata in self._archived(begin, active.keys())
            if _completed_in(instant, begin, end)
        ]
        found += [
            (instant, self._client.read_commit(instant))
            for instant in active.values()
            if _completed_in(instant, begin, end)
        ]
        return sorted(found, key=lambda pair: pair[0].requested_time)

    def _archived(
        self, begin: InstantTime | None, active: Iterable[InstantTime]
    ) -> list[tuple[Instant, CommitMetadata]]:
        """Return archived writes that may have completed after ``begin``, with their metadata."""
        after = None
        if begin is not None and begin > EARLIEST:
            after = instant_time_of(to_datetime(begin) - _LONGEST_WRITE)
        known = set(active)
        found = []
        for archived in self._client.archived.load(after, bodies=True):
            instant = archived.instant
            if (
                not instant.is_completed
                or instant.action not in WRITE_ACTIONS
                or instant.requested_time in known
                or not _completed_in(instant, begin, None)
            ):
                continue
            if archived.metadata is None:
                raise HistoryExpiredError(instant.requested_time, "the metadata of its commit")
            path = f"{self._client.archived.folder}:{instant}"
            decode = (
                decode_replace_commit if instant.action is Action.REPLACECOMMIT else decode_commit
            )
            found.append((instant, decode(archived.metadata, path)))
        return found

    def _planned(
        self, pruner: PartitionPruner, group: FileGroupId, instant: Instant, stat: WriteStat
    ) -> PlannedFile:
        path = stat.path or ""
        name = BaseFileName.parse(path.rpartition("/")[2])
        # the path comes from a file that anybody who writes the bucket can write
        if name is None or path != join_path(group.partition_path, str(name)):
            raise CorruptMetadataError(
                f"{self._client.base_path}: instant {instant}",
                f"it names {path!r}, which is no base file of partition {group.partition_path!r}",
            )
        return planned_file(
            self._client,
            group,
            path=path,
            size=stat.file_size_in_bytes or 0,
            instant=instant.requested_time,
            partition_values=pruner.values(group.partition_path),
        )

    def _require_stored(self, files: Sequence[PlannedFile]) -> None:
        """Refuse a window whose files were cleaned.

        Storage is listed only after a clean.
        """
        cleaned = any(
            instant.action is Action.CLEAN and instant.is_completed
            for instant in self._timeline.instants
        )
        if not cleaned:
            return
        # only versions that a later write of the group superseded are ever cleaned, but which ones
        # are superseded is not known without reading the commits after the window
        probe = partial(_is_stored, self._client.storage)
        stored = self._client.run_map(
            probe, [self._client.layout.physical(file.path) for file in files]
        )
        for file, there in zip(files, stored, strict=True):
            if not there:
                raise HistoryExpiredError(file.instant, file.path)


def _completed_in(instant: Instant, begin: InstantTime | None, end: InstantTime | None) -> bool:
    time = instant.effective_completion_time
    return (begin is None or time > begin) and (end is None or time <= end)


def _replaced(metadata: CommitMetadata) -> Iterable[FileGroupId]:
    if isinstance(metadata, ReplaceCommitMetadata):
        for partition, file_ids in metadata.partition_to_replace_file_ids.items():
            for file_id in file_ids:
                yield FileGroupId(PartitionPath(partition), FileId(file_id))


def _written(metadata: CommitMetadata) -> Iterable[tuple[FileGroupId, WriteStat]]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path and stat.file_id:
                yield FileGroupId(PartitionPath(partition), FileId(stat.file_id)), stat


def _is_stored(storage: Storage, path: str) -> bool:
    return storage.head(path) is not None
