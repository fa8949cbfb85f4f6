"""Incremental queries: what changed in a window of time.

Which files hold the changes is in the commit metadata; storage is listed only for file groups that
a write of the window replaced and no other one touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.footer import read_statistics
from hudi_core.config.kinds import ChangeLogging
from hudi_core.config.support import require_readable_table
from hudi_core.errors import CorruptMetadataError, HistoryExpiredError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import MetadataLister
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileStatus, LogFileName, join_path
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.read.changes.feed import (
    AFTER,
    BEFORE,
    ChangeFeed,
    ChangeLogs,
    FeedPart,
)
from hudi_core.read.changes.file_changes import ChangeSource, FileChanges, GroupChange
from hudi_core.read.changes.net_changes import (
    CHANGE_TYPE,
    NetChanges,
    NetPartitionChange,
    SliceComparison,
    require_no_change_column,
)
from hudi_core.read.changes.window import Windows, WindowWrite
from hudi_core.read.file_pruning import prune_named
from hudi_core.read.filters import Filter, RowFilter, require_columns, to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.read.plan import PlannedSlice, ReadPlan, ScanPlan, read_schema
from hudi_core.read.scan import FileScan, may_have_logs, scan, slice_merging, virtual_keys
from hudi_core.schema.table_schema import COMMIT_TIME, META_COLUMNS, RECORD_KEY
from hudi_core.txn.recovery.lost_completion import is_tidied, require_none_lost

# --- where changes are read from -----------------------------------------------------------------

# The files before and after a write are compared. Where clean has removed the file before, the log
# that the write left gives the same, if it holds the rows before. One of operations and keys alone
# (``OP_KEY_ONLY``) does not: what an update or a delete took away is in no other file. Where few
# rows of large files changed, the log is read though the files are there, for it is sooner read.


SMALL_LOG: Final = 32
"""How many times smaller than the file after a log has to be to be read though files are there.

From there on it takes less than half of the time. Medians of 15 runs on two busy cores, of 200,000
rows in 20 columns (a file of 21 MB):

=========  ============  =========  ===================
updated    smaller by    log        files, compared
=========  ============  =========  ===================
0.1%       274           14 ms      168 ms
0.5%       56            55 ms      193 ms
1%         28            95 ms      183 ms
2%         14            244 ms     237 ms
5%         6             515 ms     249 ms
=========  ============  =========  ===================

In 6 columns, 0.5% is smaller by 45 and takes 18 ms, not 66; 1% by 22, and takes 35 ms, not 72.
"""


@dataclass(frozen=True, slots=True)
class ChangeSources:
    """Chooses what the changes of one table are read from."""

    client: TableMetaClient
    changes: FileChanges
    logs: ChangeLogs

    def chosen(self, changes: Sequence[GroupChange], columns: int) -> list[GroupChange]:
        """Return changes with what is read of each.

        ``columns`` is the number of columns of the table. ``HistoryExpiredError`` means that a
        needed file was cleaned and no log has its rows.
        """
        missing = self.changes.missing(
            path for change in changes for file in change.files for path in file.paths
        )
        found, lost = list(changes), {}
        for number, change in enumerate(changes):
            gone = next((one for one in change.files if not missing.isdisjoint(one.paths)), None)
            if change.expired is not None:
                lost[number] = change.expired
            elif gone is not None:
                lost[number] = HistoryExpiredError(gone.instant, gone.path)
            elif self._is_small(change, columns):
                logs = _in_order(change)
                found[number] = replace(change, logs=logs, source=ChangeSource.LOGS_OR_FILES)
        read = self.client.run_map(
            lambda number: self._logged(changes[number], lost[number], missing), list(lost)
        )
        for number, change in zip(lost, read, strict=True):
            found[number] = change
        return found

    def _is_small(self, change: GroupChange, columns: int) -> bool:
        """Whether a log is sooner read than two files are compared."""
        if (
            not change.logs
            or change.before is None
            or change.after is None
            or self._needs_meta
            or self.client.config.change_logging is not ChangeLogging.DATA_BEFORE_AFTER
            or not all(_is_own(log, change) for log in change.logs)
        ):
            return False
        # a log is read whole, of files the columns that are asked for
        share = len(self.logs.columns) / max(columns, 1)
        return sum(log.size for log in change.logs) * SMALL_LOG <= change.after.base_size * share

    def _logged(
        self, change: GroupChange, error: HistoryExpiredError, missing: Collection[str]
    ) -> GroupChange:
        """A change to be read from logs."""
        if not change.logs or self._needs_meta:
            raise error
        for log in change.logs:
            # the path comes from a file that anybody who writes the bucket can write
            if not _is_own(log, change):
                raise CorruptMetadataError(
                    f"{self.client.base_path}: the write of {min(change.times)}",
                    f"it names {log.path!r}, which is no log of changes of file group "
                    f"{change.group.file_id} in {change.group.partition_path!r}",
                )
        if any(self.client.data.head(log.path) is None for log in change.logs):
            raise error
        logs = _in_order(change)
        [time] = change.times
        held = self.logs.read(logs, time, whole=False)
        if held.holds(BEFORE, AFTER):
            source = ChangeSource.LOGS
        elif held.holds(BEFORE) and not any(
            file.path in missing for file in (change.after,) if file is not None
        ):
            source = ChangeSource.LOGS_AND_AFTER
        else:
            raise error
        return replace(change, logs=logs, source=source, expired=None)

    @property
    def _needs_meta(self) -> bool:
        """Whether meta columns are needed, which logs do not hold."""
        return not set(META_COLUMNS).isdisjoint(self.logs.columns.names)


def _is_own(log: FileStatus, change: GroupChange) -> bool:
    """Whether a file is, by its path, a log of a change."""
    name = LogFileName.parse(log.path.rpartition("/")[2])
    return (
        name is not None
        and name.is_cdc
        and name.file_id == change.group.file_id
        and name.instant in change.times
        and log.path == join_path(change.group.partition_path, str(name))
    )


def _in_order(change: GroupChange) -> tuple[FileStatus, ...]:
    """The logs of a change, the oldest first."""

    def version(log: FileStatus) -> int:
        name = LogFileName.parse(log.path.rpartition("/")[2])
        return 0 if name is None else name.version

    return tuple(sorted(change.logs, key=version))


# --- queries -------------------------------------------------------------------------------------


class IncrementalQuery:
    """Reads what completed writes changed in one table.

    Its methods take a window: ``begin`` and ``end`` are query times (see
    :func:`hudi_core.model.instant_time.parse_query_time`), exclusive and inclusive. The requested
    time of a write, as rows have it in ``_hoodie_commit_time``, means the completion of that
    write. Without ``begin`` (or with ``"earliest"``) the window has no begin, without ``end`` no
    end. All of them raise

    * ``InvalidInstantTimeError``, where ``begin`` or ``end`` is no time;
    * ``TimelineError``, see :meth:`~hudi_core.meta_client.TableMetaClient.instant_time`;
    * ``SchemaError``, where a column or the filter does not fit the table;
    * ``HistoryExpiredError``, where a file of the window has been removed by clean, or the metadata
      of a commit is out of reach;
    * ``CorruptMetadataError``, where the metadata of a commit, or a log of changes that is needed,
      is damaged.

    ``timeline`` is fenced by the table's format. A table without meta columns is refused: they say
    which rows a write changed.
    """

    def __init__(self, client: TableMetaClient, timeline: TimelineView, index: FileIndex) -> None:
        require_readable_table(client.config, client.base_path)
        if not client.config.populate_meta_fields:
            raise UnsupportedTableError(
                client.base_path,
                "keeps no meta columns (hoodie.populate.meta.fields=false), so its rows do not say "
                "when they changed",
                "Compare two snapshots instead.",
            )
        self.client = client
        self._timeline = timeline
        self._index = index

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's latest schema, meta columns first."""
        return read_schema(self.client, self._timeline)

    @cached_property
    def pruner(self) -> PartitionPruner:
        """What partition paths say about the rows."""
        return PartitionPruner(self.client.config, self.schema)

    @cached_property
    def _windows(self) -> Windows:
        index, client = self._index, self.client
        if isinstance(index, MetadataLister):
            require_none_lost(
                client,
                self._timeline,
                lambda one: (
                    is_tidied(client, one) and index.snapshot.has_recorded(one.requested_time)
                ),
            )
        return Windows(client, self._timeline)

    @cached_property
    def _changes(self) -> FileChanges:
        return FileChanges(self.client, self._timeline, self._index, self.pruner)

    def plan(
        self,
        begin: str | None = None,
        end: str | None = None,
        row_filter: RowFilter | Filter | None = None,
    ) -> ReadPlan:
        """Return files and commit times of the changed rows.

        A row that several writes of the window changed comes once, as the last of them left it; a
        row that was deleted or replaced again within the window does not come.
        """
        wanted = to_filter(row_filter, self.schema)
        writes = self._windows.writes(begin, end)
        files = tuple(self._changes.latest(writes))
        if wanted is not None:
            may_match = self._may_match(files, wanted)
            files = tuple(file for file in files if file.path in may_match)
        self._require_stored(files)
        return ReadPlan(files, self.schema, _times(writes), self._timeline)

    def times(self, begin: str | None = None, end: str | None = None) -> frozenset[InstantTime]:
        """Requested times of the writes of a window."""
        return _times(self._windows.writes(begin, end))

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
        return scan(self.client, self.plan(begin, end, wanted), columns, wanted, batch_rows)

    def net(
        self,
        begin: str | None = None,
        end: str | None = None,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | Filter | None = None,
    ) -> ScanPlan[NetPartitionChange]:
        """Return the plan of rows inserted, updated and deleted; see :class:`NetChanges`.

        ``row_filter`` applies to rows as they are, and to deleted ones as they were.
        """
        require_no_change_column(self.schema)
        names = None if columns is None else [name for name in columns if name != CHANGE_TYPE]
        shown, wanted = self._shown(names, self.schema.names), to_filter(row_filter, self.schema)
        changes = self._changes.net(self._windows.writes(begin, end))
        if wanted is not None:
            may_match = self._may_match(_files(changes), wanted)
            changes = [
                replace(change, whole=any(file.path in may_match for file in change.files))
                for change in changes
            ]
        # the keys of one file decide about rows of the others of its partition
        parts = tuple(
            part
            for part in NetPartitionChange.of(changes)
            if any(change.whole for change in part.changes)
        )
        self._require_stored([file for part in parts for file in _files(part.changes)])
        net = NetChanges(self._comparison(shown, wanted, _files(changes)), shown, wanted)
        return ScanPlan(net, parts)

    def feed(
        self,
        begin: str | None = None,
        end: str | None = None,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | Filter | None = None,
        *,
        as_text: bool = True,
    ) -> ScanPlan[FeedPart]:
        """Return the plan of all changes, write by write; see :class:`ChangeFeed`.

        Without ``columns`` images have all but the meta columns. ``row_filter`` applies to the
        image before or after. With ``as_text`` images are JSON strings, else structs.
        """
        data = [name for name in self.schema.names if name not in META_COLUMNS]
        shown, wanted = self._shown(columns, data), to_filter(row_filter, self.schema)
        changes = self._changes.each(self._windows.writes(begin, end))
        is_split = self.client.config.is_split
        if wanted is not None and not is_split:  # else another file has the other image
            may_match = self._may_match(_files(changes), wanted)
            changes = [
                change
                for change in changes
                # of files that are not known nothing excludes their rows
                if change.expired is not None or any(one.path in may_match for one in change.files)
            ]
        logs = self._logs(shown, wanted)
        changes = ChangeSources(self.client, self._changes, logs).chosen(changes, len(data))
        self._require_times([file for change in changes for file in change.needed])
        comparison = self._comparison(shown, wanted, _files(changes))
        feed = ChangeFeed(comparison, logs, shown, wanted, as_text, pairs=is_split)
        return ScanPlan(feed, FeedPart.of(changes, pairs=is_split))

    def _require_stored(self, files: Sequence[PlannedSlice]) -> None:
        """Refuse windows with missing files, or without commit times.

        Engines that know no virtual keys but those without any meta column write such files to a
        table whose record key alone is virtual.
        """
        self._changes.require_stored(files)
        self._require_times(files)

    def _require_times(self, files: Sequence[PlannedSlice]) -> None:
        client = self.client
        if not client.config.virtual_keys:
            return

        def has_times(file: PlannedSlice) -> bool:
            found = read_statistics(client, file.path, self.schema).get(COMMIT_TIME)
            return found is not None and found.null_count == 0

        once = list({file.path: file for file in files if file.has_base}.values())
        for file, is_complete in zip(once, client.run_map(has_times, once), strict=True):
            if not is_complete and file.base_size:
                raise UnsupportedTableError(
                    client.base_path,
                    f"has rows of another engine in {file.path} that do not say when they changed",
                    "Compare two snapshots instead (Table.diff), or write them again: "
                    "insert_overwrite.",
                )

    def _shown(self, columns: Sequence[str] | None, by_default: Sequence[str]) -> tuple[str, ...]:
        require_columns(columns, self.schema)
        return tuple(by_default if columns is None else columns)

    def _logs(self, columns: Sequence[str], wanted: Filter | None) -> ChangeLogs:
        needed = _needed(columns, wanted)
        fields = [field for field in self.schema if field.name in needed]
        # without any column there would be no rows
        return ChangeLogs(self.client.files, pa.schema(fields or [self.schema[-1]]))

    def _comparison(
        self, columns: Sequence[str], wanted: Filter | None, files: Sequence[PlannedSlice]
    ) -> SliceComparison:
        needed = {RECORD_KEY, COMMIT_TIME, *_needed(columns, wanted)}
        names = tuple(name for name in self.schema.names if name in needed)
        client, merging = self.client, None
        if may_have_logs(client.config, files):
            merging = slice_merging(client, self.schema, self._timeline)
        return SliceComparison(
            FileScan(
                client.files,
                self.schema,
                names,
                None,
                None,
                virtual_keys(client, self.schema, ()),
                shows_keys=True,
                merging=merging,
            )
        )

    def _may_match(self, files: Sequence[PlannedSlice], wanted: Filter) -> frozenset[str]:
        """Paths of the files that may hold a wanted row."""
        partitions = sorted({file.partition_path for file in files})
        kept = set(self.pruner.keep(partitions, wanted))
        logged = frozenset(file.path for file in files if file.logs)
        some = [file for file in files if file.partition_path in kept and not file.logs]
        # of columns known from paths, ranges say no more
        known = self.pruner.identity | self.client.config.former_names
        listed = [FileStatus(file.path, file.base_size) for file in some]
        mask = prune_named(self._index, listed, wanted, self.schema, known)
        return logged | frozenset(some[place].path for place in np.flatnonzero(mask))


def _needed(columns: Sequence[str], wanted: Filter | None) -> set[str]:
    """Names of the columns that are shown, or that the filter asks."""
    return {*columns, *(() if wanted is None else wanted.columns)}


def _files(changes: Iterable[GroupChange]) -> list[PlannedSlice]:
    return [file for change in changes for file in change.files]


def _times(writes: Iterable[WindowWrite]) -> frozenset[InstantTime]:
    return frozenset(write.instant.requested_time for write in writes)
