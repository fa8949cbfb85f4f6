"""File groups and file slices over any lister of files.

A listing shows everything that lies in a partition: files of running writes, of failed ones, and
every old version. The view keeps what the timeline calls committed and sorts it into file groups
and slices.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    BaseFile,
    BaseFileName,
    FileGroup,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView

_log = logging.getLogger(__name__)

WrittenFiles = Callable[[InstantTime], Collection[str] | None]
"""Paths, relative to the base path, that the metadata of an instant names.

``None`` where the metadata is not loaded.
"""


@dataclass(frozen=True, slots=True)
class DuplicateBaseFile:
    """An anomaly: several base files of one file group and instant.

    A task that was retried, or run twice, and whose first file was not removed leaves this behind.
    Reading all of them would double rows.
    """

    group: FileGroupId
    instant: InstantTime
    kept: str
    ignored: tuple[str, ...]


class FileSystemView:
    """The file groups of one table at one state of its timeline.

    Partitions are listed when they are first needed, and kept; the view of a later timeline is
    another view. Of several base files of one group and instant the one that the instant's metadata
    names is used; where the metadata names none, the one with the highest attempt, stage and
    task of its write token.

    ``replaced`` has the instant that took each file group out. ``written_files`` is called only
    when a group and instant have several base files. ``listed`` are partitions that were listed
    already.
    """

    def __init__(
        self,
        index: FileIndex,
        timeline: TimelineView,
        replaced: Mapping[FileGroupId, Instant],
        written_files: WrittenFiles | None = None,
        listed: Mapping[PartitionPath, Sequence[FileStatus]] | None = None,
    ) -> None:
        self._index = index
        self._timeline = timeline
        self._replaced = replaced
        self._written_files = written_files
        self._partitions: tuple[PartitionPath, ...] | None = None
        self._groups: dict[PartitionPath, tuple[FileGroup, ...]] = {}
        self._duplicates: list[DuplicateBaseFile] = []
        self._completed = {
            instant.requested_time: instant.effective_completion_time
            for instant in timeline.completed_writes()
        }
        # before version 8, writers named logs after the slice that a pending compaction makes
        self._planned = frozenset(
            instant.requested_time
            for instant in timeline.instants
            if instant.action is Action.COMPACTION and not instant.is_completed
        )
        self._listed: dict[PartitionPath, Sequence[FileStatus]] = {}
        self._keep(listed or {})

    @property
    def replaced(self) -> Mapping[FileGroupId, Instant]:
        """The replaced file groups the view was made with."""
        return self._replaced

    @property
    def duplicates(self) -> tuple[DuplicateBaseFile, ...]:
        """The anomalies found in the partitions listed so far."""
        return tuple(self._duplicates)

    def has_listed(self, partitions: Iterable[PartitionPath]) -> bool:
        """Whether the files of all these partitions are loaded."""
        return self._groups.keys() >= set(partitions)

    @property
    def listed(self) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """The files of the partitions listed so far, uncommitted ones too."""
        return self._listed

    def partitions(self) -> tuple[PartitionPath, ...]:
        """Return every partition path, sorted."""
        if self._partitions is None:
            self._partitions = tuple(self._index.list_partitions())
        return self._partitions

    def file_groups(
        self, partitions: Sequence[PartitionPath] | None = None
    ) -> tuple[FileGroup, ...]:
        """Return file groups with a committed file, replaced groups included.

        Sorted by partition path and file id, the slices of a group newest first. Partitions without
        files give no groups.
        """
        wanted = self.partitions() if partitions is None else partitions
        missing = [path for path in dict.fromkeys(wanted) if path not in self._groups]
        if missing:
            self._keep(self._index.list_files(missing))
        return tuple(
            chain.from_iterable(self._groups.get(path, ()) for path in sorted(set(wanted)))
        )

    def latest_slices(
        self,
        partitions: Sequence[PartitionPath] | None = None,
        as_of: InstantTime | None = None,
    ) -> tuple[FileSlice, ...]:
        """Return the slice of every file group that a reader sees.

        ``as_of`` is a requested time and inclusive; logs of later writes are left out. A group is
        gone from the requested time of the instant that replaced it.
        """
        return tuple(
            found
            for group in self.file_groups(partitions)
            if not self._is_gone(group.id, as_of) and (found := _newest(group, as_of)) is not None
        )

    def all_slices(
        self, partitions: Sequence[PartitionPath] | None = None
    ) -> tuple[FileSlice, ...]:
        """Return every committed file slice, replaced groups included.

        Group by group, newest first.
        """
        return tuple(chain.from_iterable(group.slices for group in self.file_groups(partitions)))

    def _keep(self, listed: Mapping[PartitionPath, Sequence[FileStatus]]) -> None:
        self._listed.update(listed)
        for path, files in listed.items():
            self._groups[path] = tuple(self._build(path, files))

    def _is_gone(self, group: FileGroupId, as_of: InstantTime | None) -> bool:
        by = self._replaced.get(group) if self._replaced else None
        return by is not None and (as_of is None or by.requested_time <= as_of)

    def _build(self, partition: PartitionPath, files: Iterable[FileStatus]) -> Iterable[FileGroup]:
        bases: dict[FileId, list[BaseFile]] = defaultdict(list)
        logs: dict[FileId, list[LogFile]] = defaultdict(list)
        is_committed = self._timeline.is_committed
        for status in files:
            name = status.name
            if (base := BaseFileName.parse(name)) is not None:
                if is_committed(base.instant):
                    bases[base.file_id].append(BaseFile(status, base))
            elif (
                (log := LogFileName.parse(name)) is not None
                and not log.is_cdc
                and (is_committed(log.instant) or log.instant in self._planned)
            ):
                logs[log.file_id].append(LogFile(status, log))
        for file_id in sorted(bases.keys() | logs.keys()):
            group = FileGroupId(partition, file_id)
            chosen = self._chosen(group, bases.get(file_id, ()))
            yield FileGroup(group, self._slices(group, chosen, logs.get(file_id, ())))

    def _chosen(self, group: FileGroupId, files: Sequence[BaseFile]) -> Sequence[BaseFile]:
        """Return one base file for each instant of a file group."""
        if len({file.name.instant for file in files}) == len(files):
            return files
        versions: dict[InstantTime, list[BaseFile]] = {}
        for file in files:
            versions.setdefault(file.name.instant, []).append(file)
        return [self._one(group, some) for some in versions.values()]

    def _one(self, group: FileGroupId, versions: list[BaseFile]) -> BaseFile:
        if len(versions) == 1:
            return versions[0]
        instant = versions[0].instant
        named = self._written_files(instant) if self._written_files else None
        ranked = sorted(
            versions,
            key=lambda file: (named is not None and file.path in named, _attempt(file), file.path),
        )
        found = DuplicateBaseFile(
            group, instant, ranked[-1].path, tuple(sorted(file.path for file in ranked[:-1]))
        )
        self._duplicates.append(found)
        _log.warning(
            "instant %s left %d base files of file group %s; using %s and ignoring %s",
            instant,
            len(versions),
            group.file_id,
            found.kept,
            ", ".join(found.ignored),
        )
        return ranked[-1]

    def _slices(
        self, group: FileGroupId, bases: Sequence[BaseFile], logs: Sequence[LogFile]
    ) -> tuple[FileSlice, ...]:
        if not logs:
            slices = [FileSlice(group, base.name.instant, base) for base in bases]
            return tuple(sorted(slices, key=lambda one: one.base_instant, reverse=True))
        starts = sorted([base.name.instant for base in bases])
        attached: dict[InstantTime, list[LogFile]] = defaultdict(list)
        orphans: list[LogFile] = []
        for log in logs:
            # a log belongs to the newest base file that was requested before the log was complete,
            # so that logs written while a compaction ran go to the slice the compaction makes
            done = self._completed.get(log.name.instant, log.name.instant)
            if log.name.instant in starts:
                done = log.name.instant  # before version 8, Hudi named log files after their slice
            home = [start for start in starts if start <= done]  # guard homes-by-completion
            (attached[home[-1]] if home else orphans).append(log)
        slices = [
            FileSlice(group, instant, base, _in_order(attached.get(instant, [])))
            for base, instant in [(base, base.name.instant) for base in bases]
        ]
        if orphans:
            first = min(log.name.instant for log in orphans)
            slices.append(FileSlice(group, first, None, _in_order(orphans)))
        return tuple(sorted(slices, key=lambda one: one.base_instant, reverse=True))


def _newest(group: FileGroup, as_of: InstantTime | None) -> FileSlice | None:
    return group.latest if as_of is None else slice_at(group.slices, as_of)


def slice_at(slices: Sequence[FileSlice], time: InstantTime) -> FileSlice | None:
    """Return the slice of a file group as of a requested time.

    Its logs are those of writes up to then; ``slices`` are the group's, newest first. A log of a
    write that a compaction crossed is of the slice that the compaction made, and of the slice
    before as of the write: that state stays what it was before the compaction was run.
    """
    place = next((at for at, one in enumerate(slices) if one.base_instant <= time), None)
    if place is None:
        return None
    found = slices[place]
    logs = [log for one in slices[: place + 1] for log in one.log_files]  # guard counts-crossed
    counted = [log for log in logs if log.name.instant <= time]
    if len(counted) == len(found.log_files) == len(logs):
        return found
    return replace(found, log_files=_in_order(counted))


def _attempt(file: BaseFile) -> tuple[int, int, int]:
    task, stage, attempt = (int(part) for part in file.name.write_token.split("-"))
    return attempt, stage, task


def _in_order(logs: list[LogFile]) -> tuple[LogFile, ...]:
    if not logs:
        return ()
    return tuple(sorted(logs, key=lambda log: (log.name.instant, log.name.version)))


# --- views of one table --------------------------------------------------------------------------


class ViewManager:
    """Makes views of one table, read on demand.

    ``timeline`` loads the fenced timeline, for views that are given none.
    """

    def __init__(
        self, read_commit: ReadCommit, index: FileIndex, timeline: Callable[[], TimelineView]
    ) -> None:
        self._read_commit = read_commit
        self._index = index
        self._timeline = timeline

    def view(
        self,
        timeline: TimelineView | None = None,
        listed: Mapping[PartitionPath, Sequence[FileStatus]] | None = None,
    ) -> FileSystemView:
        """Return the view as of ``timeline``, by default as of now.

        ``listed`` are partitions of which all committed files are known.
        """
        seen = self._timeline() if timeline is None else timeline
        return FileSystemView(
            self._index,
            seen,
            replaced_groups(seen, self._read_commit),
            written_files(seen, self._read_commit),
            listed,
        )


# --- replaced file groups and written files, by instants' metadata --------------------------------


ReadCommit = Callable[[Instant], CommitMetadata]
"""Reads the metadata of a completed write."""


def replaced_groups(timeline: TimelineView, read_commit: ReadCommit) -> dict[FileGroupId, Instant]:
    """Return replaced file groups, each with its first replacecommit.

    Only replacecommits are read. Archived ones are not needed: they are archived after the files
    they replaced were removed.

    A replacecommit that cannot be read is an error: left out, it would bring deleted rows back.
    """
    found: dict[FileGroupId, Instant] = {}
    for instant in timeline.completed_writes():
        if instant.action is not Action.REPLACECOMMIT:
            continue
        metadata = read_commit(instant)
        if not isinstance(metadata, ReplaceCommitMetadata):
            continue
        for partition, file_ids in metadata.partition_to_replace_file_ids.items():
            for file_id in file_ids:
                found.setdefault(FileGroupId(PartitionPath(partition), FileId(file_id)), instant)
    return found


def written_files(
    timeline: TimelineView, read_commit: ReadCommit
) -> Callable[[InstantTime], Collection[str] | None]:
    """Lookup of the paths of a write's files, by its time.

    The answer is ``None`` for a time whose write is not on the timeline (any more).
    """

    def named(time: InstantTime) -> Collection[str] | None:
        for instant in timeline.completed_writes():
            if instant.requested_time == time:
                return {stat.path for stat in read_commit(instant).stats if stat.path}
        return None

    return named
