"""What a feed is read from: base files or logs.

The files before and after a write are compared. Where clean has removed the file before, the log
that the write left gives the same, if it holds the rows before. One of operations and keys alone
(``OP_KEY_ONLY``) does not: what an update or a delete took away is in no other file. Where few rows
of large files changed, the log is read though the files are there, for it is sooner read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.config.kinds import ChangeLogging
from hudi_core.errors import CorruptMetadataError, HistoryExpiredError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import FileStatus, LogFileName, join_path
from hudi_core.read.change_log import AFTER, BEFORE, ChangeLogs
from hudi_core.read.file_changes import ChangeSource, FileChanges, GroupChange
from hudi_core.schema.table_schema import META_COLUMNS

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
        missing = self.changes.missing(file.path for change in changes for file in change.files)
        found, lost = list(changes), {}
        for number, change in enumerate(changes):
            gone = next((file for file in change.files if file.path in missing), None)
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
        return sum(log.size for log in change.logs) * SMALL_LOG <= change.after.size * share

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
