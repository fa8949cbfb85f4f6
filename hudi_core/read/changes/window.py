"""Windows of time: the completed writes in them, with their metadata.

A window is over completion times, begin exclusive and end inclusive, so that consecutive windows
see every write once whatever order writers finished in (tables of layout 1 record no completion
times; there it is over requested times).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hudi_core.errors import HistoryExpiredError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import (
    MOVES_ROWS,
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteStat,
)
from hudi_core.model.files import FileGroupId, FileId, PartitionPath
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import (
    EARLIEST,
    InstantTime,
    instant_time_of,
    to_datetime,
)
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.serde import decode_commit, decode_replace_commit

FROM_THE_BEGINNING: Final = frozenset({"earliest", "0", "000"})
"""What users of Hudi write for a window without a begin."""
_LONGEST_WRITE: Final = timedelta(days=1)
"""How long before the window an archived write may have been requested and still be found."""


@dataclass(frozen=True, slots=True)
class WindowWrite:
    """One completed write of a window."""

    instant: Instant
    metadata: CommitMetadata

    @property
    def clusters(self) -> bool:
        """Whether it arranged rows in other files, and changed none."""
        return self.metadata.operation_type in MOVES_ROWS

    def replaced(self) -> Iterable[FileGroupId]:
        """File groups that it took out of the table."""
        if isinstance(self.metadata, ReplaceCommitMetadata):
            for partition, file_ids in self.metadata.partition_to_replace_file_ids.items():
                for file_id in file_ids:
                    yield FileGroupId(PartitionPath(partition), FileId(file_id))

    def written(self) -> Iterable[tuple[FileGroupId, WriteStat]]:
        """File groups that it wrote a file of."""
        for partition, stats in self.metadata.partition_to_write_stats.items():
            for stat in stats:
                if stat.path and stat.file_id:
                    yield FileGroupId(PartitionPath(partition), FileId(stat.file_id)), stat

    def groups(self) -> frozenset[FileGroupId]:
        """File groups that it replaced or wrote."""
        return frozenset(self.replaced()) | {group for group, _ in self.written()}


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one table."""

    client: TableMetaClient
    timeline: TimelineView

    def writes(self, begin: str | None, end: str | None) -> tuple[WindowWrite, ...]:
        """Return the writes of a window by requested time.

        Two writes never change one file group at the same time, so that requested times order the
        versions of a group as completion times do. A write that clusters files which no other
        write of the window touches is left out: it changes no row.

        ``begin`` is exclusive, ``end`` inclusive; the requested time of a write means its
        completion; ``None`` is no bound. ``HistoryExpiredError``: the metadata of an archived write
        is out of reach.
        """
        found = self._completed(self._bound(begin), self._bound(end, end_of_second=True))
        return tuple(write for write in found if not _stands_alone(write, found))

    def _bound(self, text: str | None, *, end_of_second: bool = False) -> InstantTime | None:
        if text is None or text in FROM_THE_BEGINNING:
            return None
        time = self.client.instant_time(text, end_of_second=end_of_second)
        if time == EARLIEST:
            return time
        writes = self.timeline.completed_writes()
        if writes and time < writes[0].requested_time:
            just_before = instant_time_of(to_datetime(time) - timedelta(milliseconds=1))
            archived = self.client.archived.load(just_before, time)
            writes = tuple(one.instant for one in archived if one.instant.action in WRITE_ACTIONS)
        named = (one for one in writes if one.is_completed and one.requested_time == time)
        return next((one.effective_completion_time for one in named), time)

    def _completed(self, begin: InstantTime | None, end: InstantTime | None) -> list[WindowWrite]:
        active = {instant.requested_time: instant for instant in self.timeline.completed_writes()}
        found = [
            write
            for write in self._archived(begin, active.keys())
            if _completed_in(write.instant, begin, end)
        ]
        found += [
            WindowWrite(instant, self.client.read_commit(instant))
            for instant in active.values()
            if _completed_in(instant, begin, end)
        ]
        return sorted(found, key=lambda write: write.instant.requested_time)

    def _archived(
        self, begin: InstantTime | None, active: Iterable[InstantTime]
    ) -> list[WindowWrite]:
        """Return archived writes that may have completed after ``begin``, with their metadata."""
        after = None
        if begin is not None and begin > EARLIEST:
            after = instant_time_of(to_datetime(begin) - _LONGEST_WRITE)
        known = set(active)
        found = []
        for archived in self.client.archived.load(after, bodies=True):
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
            path = f"{self.client.archived.folder}:{instant}"
            decode = (
                decode_replace_commit if instant.action is Action.REPLACECOMMIT else decode_commit
            )
            found.append(WindowWrite(instant, decode(archived.metadata, path)))
        return found


def _stands_alone(write: WindowWrite, others: Iterable[WindowWrite]) -> bool:
    """Whether a write clusters files that no other one touches."""
    if not write.clusters:
        return False
    groups = write.groups()
    return all(other is write or groups.isdisjoint(other.groups()) for other in others)


def _completed_in(instant: Instant, begin: InstantTime | None, end: InstantTime | None) -> bool:
    time = instant.effective_completion_time
    return (begin is None or time > begin) and (end is None or time <= end)
