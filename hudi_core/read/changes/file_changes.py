"""File groups before and after the writes of a window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property, partial

from hudi_core.actions.clean import Cleaned
from hudi_core.errors import CorruptMetadataError, HistoryExpiredError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import MERGES_LOGS, NO_PREVIOUS_COMMIT, WriteStat
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    BaseFileName,
    FileGroupId,
    FileSlice,
    FileStatus,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime, just_before
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.read.changes.window import WindowWrite
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.read.plan import PlannedSlice, planned_file, planned_slice
from hudi_core.read.scan import may_have_logs
from hudi_core.view.file_system import FileSystemView, slice_at, written_files


class ChangeSource(Enum):
    """What a change is read from."""

    FILES = auto()
    """The files before and after, which are compared."""
    LOGS_OR_FILES = auto()
    """Logs of changes; the files where the logs do not hold all."""
    LOGS = auto()
    """Logs of changes alone."""
    LOGS_AND_AFTER = auto()
    """The rows before from logs of changes, and the file after."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """One file group before and after a write, or several writes.

    Rows with one of ``times`` as ``_hoodie_commit_time`` are of these writes. ``before`` and
    ``after`` are ``None`` where the group had no file yet or is replaced. ``whole`` is ``False``
    where none of its rows can be wanted, and only its keys decide what became of rows of other
    groups. ``source`` says what is read; ``expired`` is why ``before`` is not known, where a write
    names logs.

    As :class:`FileChanges` finds them, ``logs`` are all that the write names, whatever they are.
    """

    group: FileGroupId
    times: frozenset[InstantTime]
    before: PlannedSlice | None
    after: PlannedSlice | None
    whole: bool = True
    logs: tuple[FileStatus, ...] = ()
    source: ChangeSource = ChangeSource.FILES
    expired: HistoryExpiredError | None = None

    @property
    def files(self) -> tuple[PlannedSlice, ...]:
        """Its base files."""
        return tuple(file for file in (self.before, self.after) if file is not None)

    @property
    def needed(self) -> tuple[PlannedSlice, ...]:
        """The base files that have to be there."""
        match self.source:
            case ChangeSource.LOGS:
                return ()
            case ChangeSource.LOGS_AND_AFTER:
                return tuple(file for file in (self.after,) if file is not None)
            case _:
                return self.files

    @property
    def size(self) -> int:
        """Bytes to read, where known."""
        if self.source is ChangeSource.FILES:
            return sum(file.size for file in self.files)
        logs = sum(log.size for log in self.logs)
        if self.source is ChangeSource.LOGS_AND_AFTER:
            return logs + sum(file.size for file in self.needed)
        return logs


@dataclass(frozen=True)
class FileChanges:
    """What writes did to the file groups of one table.

    ``timeline`` is fenced by the table's format; ``index`` knows the files of replaced groups too.
    """

    client: TableMetaClient
    timeline: TimelineView
    index: FileIndex
    pruner: PartitionPruner

    def each(self, writes: Sequence[WindowWrite]) -> list[GroupChange]:
        """The changes write by write, in their order; clustering gives none.

        They have the logs that the writes name.
        """
        present: dict[FileGroupId, PlannedSlice | None] = {}
        found = []
        for write in writes:
            for change in self._of(write, present):
                present[change.group] = change.after
                if not write.clusters:
                    found.append(change)
        return found

    def net(self, writes: Sequence[WindowWrite]) -> list[GroupChange]:
        """One change per file group, from the first write to the last.

        A group that a compaction has rewritten since ends in its file.
        """
        times = frozenset(write.instant.requested_time for write in writes)
        present: dict[FileGroupId, PlannedSlice | None] = {}
        found: dict[FileGroupId, GroupChange] = {}
        last: dict[FileGroupId, InstantTime] = {}
        for write in writes:
            time = write.instant.requested_time
            for change in self._of(write, present):
                if change.expired is not None:
                    raise change.expired
                present[change.group] = change.after
                first = found.get(change.group, change)
                found[change.group] = replace(first, times=times, after=change.after)
                last[change.group] = time
            for group, stat in self._compacted(write):
                if time > last.get(group, time):
                    present[group] = after = self._planned(group, write, stat)
                    found[group] = replace(found[group], after=after)
        return [found[group] for group in sorted(found) if found[group].files]

    def latest(self, writes: Sequence[WindowWrite]) -> list[PlannedSlice]:
        """The files of the groups after the last write."""
        files: dict[FileGroupId, tuple[WindowWrite, WriteStat]] = {}
        for write in writes:
            for group in write.replaced():
                files.pop(group, None)
            for group, stat in write.written():
                files[group] = (write, stat)
        return [self._planned(group, *files[group]) for group in sorted(files)]

    def require_stored(self, files: Sequence[PlannedSlice]) -> None:
        """Refuse files that were cleaned."""
        missing = self.missing(path for file in files for path in file.paths)
        for file in files:
            gone = next((path for path in file.paths if path in missing), None)
            if gone is not None:
                raise HistoryExpiredError(file.instant, gone)

    def missing(self, paths: Iterable[str]) -> frozenset[str]:
        """The files that were cleaned.

        Storage is asked of those that a clean can have deleted.
        """
        # only versions that a later write of the group superseded are ever cleaned, but which ones
        # are superseded is not known without reading the commits after the window
        probe = partial(_is_stored, self.client.data)
        asked = [path for path in dict.fromkeys(paths) if self._cleaned.may_lack(path)]
        stored = self.client.run_map(probe, asked)
        return frozenset(path for path, there in zip(asked, stored, strict=True) if not there)

    def _of(
        self, write: WindowWrite, present: dict[FileGroupId, PlannedSlice | None]
    ) -> Iterable[GroupChange]:
        """Yield what one write did.

        ``present`` holds the files of the groups that earlier writes touched. A compaction does
        nothing: what was there before its plan may be cleaned, and lacks later writes.
        """
        if write.metadata.operation_type in MERGES_LOGS:
            return
        times = frozenset({write.instant.requested_time})
        for group in sorted(write.replaced()):
            before = present[group] if group in present else self._replaced(group, write.instant)
            yield GroupChange(group, times, before, None)
        for group, stat in write.written():
            after = self._planned(group, write, stat)
            logs = tuple(FileStatus(*each) for each in (stat.cdc_stats or {}).items())
            before, expired = None, None
            try:
                before = present[group] if group in present else self._previous(group, write, stat)
            except HistoryExpiredError as error:
                if not logs:
                    raise
                expired = error
            yield GroupChange(group, times, before, after, logs=logs, expired=expired)

    def _compacted(self, write: WindowWrite) -> Iterable[tuple[FileGroupId, WriteStat]]:
        """What a compaction wrote; nothing for other writes."""
        return write.written() if write.metadata.operation_type in MERGES_LOGS else ()

    def _previous(
        self, group: FileGroupId, write: WindowWrite, stat: WriteStat
    ) -> PlannedSlice | None:
        """The file or slice that a write changed."""
        if self._has_logs(write):
            return self._slice_at(group, just_before(write.instant.requested_time))
        if stat.prev_commit in (None, "", NO_PREVIOUS_COMMIT):
            return None
        name = (stat.prev_base_file or "").rpartition("/")[2]
        parsed = BaseFileName.parse(name)
        if parsed is None or parsed.file_id != group.file_id:  # early releases do not name it
            return self._replaced(group, write.instant)
        return self._file(group, join_path(group.partition_path, name), 0, parsed.instant)

    def _replaced(self, group: FileGroupId, instant: Instant) -> PlannedSlice:
        """The slice of a group just before an instant, by a listing."""
        time = instant.requested_time
        found = self._slice_at(group, just_before(time))
        if found is None:
            missing = f"the file of group {group.file_id} in {group.partition_path!r} before it"
            raise HistoryExpiredError(time, missing)
        return found

    def _slices(self, group: FileGroupId) -> Sequence[FileSlice]:
        """The slices of a group, newest first; its partition is listed once."""
        known = self._listed.get(group.partition_path)
        if known is None:
            groups = self._view.file_groups([group.partition_path])
            known = self._listed[group.partition_path] = {one.id: one.slices for one in groups}
        return known.get(group, ())

    @cached_property
    def _listed(self) -> dict[PartitionPath, dict[FileGroupId, Sequence[FileSlice]]]:
        return {}

    @cached_property
    def _cleaned(self) -> Cleaned:
        return Cleaned(self.client, self.timeline)

    @cached_property
    def _view(self) -> FileSystemView:
        # groups that were replaced are wanted as well
        written = written_files(self.timeline, self.client.read_commit)
        return FileSystemView(self.index, self.timeline, {}, written)

    def _has_logs(self, write: WindowWrite) -> bool:
        """Whether a write may have found logs, or made some."""
        action = write.instant.action
        compacts = write.clusters and action is Action.COMMIT
        return compacts or action is Action.DELTACOMMIT or may_have_logs(self.client.config, ())

    def _slice_at(self, group: FileGroupId, time: InstantTime) -> PlannedSlice | None:
        """The slice of a group at an instant, with its logs."""
        newest = slice_at(self._slices(group), time)
        # a savepoint may have kept a file that is older than what was there
        deleted = self._cleaned.since(time).get(group)
        if deleted is not None and deleted.was_after("" if newest is None else newest.base_instant):
            raise HistoryExpiredError(deleted.instant, deleted.path)
        if newest is None:
            return None
        values = self.pruner.values(group.partition_path)
        return planned_slice(self.client, newest, values, time)

    def _planned(self, group: FileGroupId, write: WindowWrite, stat: WriteStat) -> PlannedSlice:
        instant = write.instant
        if self._has_logs(write):
            found = self._slice_at(group, instant.requested_time)
            if found is None:
                raise HistoryExpiredError(instant.requested_time, stat.path or group.file_id)
            return found
        path = stat.path or ""
        name = BaseFileName.parse(path.rpartition("/")[2])
        # the path comes from a file that anybody who writes the bucket can write
        if name is None or path != join_path(group.partition_path, str(name)):
            raise CorruptMetadataError(
                f"{self.client.base_path}: instant {instant}",
                f"it names {path!r}, which is no base file of partition {group.partition_path!r}",
            )
        return self._file(group, path, stat.file_size_in_bytes or 0, instant.requested_time)

    def _file(self, group: FileGroupId, path: str, size: int, instant: InstantTime) -> PlannedSlice:
        return planned_file(
            self.client,
            group,
            path=path,
            size=size,
            instant=instant,
            partition_values=self.pruner.values(group.partition_path),
        )


def _is_stored(storage: Storage, path: str) -> bool:
    return storage.head(path) is not None
