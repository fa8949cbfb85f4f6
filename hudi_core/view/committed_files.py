"""Which files the completed writes of a table name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from hudi_core.meta_client import TableMetaClient, run_serially
from hudi_core.model.client import RunMap
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    BaseFile,
    BaseFileName,
    FileGroupId,
    FileId,
    FileStatus,
    LogFileName,
    PartitionPath,
)
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.storage.federated import FederatedStorage
from hudi_core.view.file_system import FileSystemView, ReadCommit
from hudi_core.view.storage_lister import files_in_prefixes, folders_below

# --- listings of a table -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """Lists one folder; a value, which engines can send away."""

    storage: Storage
    is_partition: bool = False
    is_elsewhere: bool = False

    def __call__(self, folder: str) -> tuple[tuple[FileStatus, ...] | None, tuple[str, ...]]:
        """Return the files of a partition, and folders that may be partitions."""
        files = tuple(self.storage.list(folder))
        names = [file.name for file in files]
        if self.is_partition or PARTITION_METADATA_FILE in names:
            return () if self.is_elsewhere else files, ()
        is_unmarked = not self.is_elsewhere and any(
            BaseFileName.parse(name) is not None for name in names
        )
        return files if is_unmarked else None, folders_below(self.storage, folder)


class TableListing(FileIndex):
    """A table's data files by partition, from one walk over its folders.

    What counts as a partition is what :class:`~hudi_core.view.storage_lister.StorageLister` says.
    Each folder of a partition is listed once, when anything is first asked for, and its files are
    kept: for who needs all of them. One call per partition, and two per folder above them. Where a
    storage strategy places data files, one call more for each of its folders.
    """

    def __init__(self, storage: Storage, partitioned: bool, run_map: RunMap = run_serially) -> None:
        self._storage = storage
        self._prefixed = storage if isinstance(storage, FederatedStorage) else None
        self._partitioned = partitioned
        self._run_map = run_map

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions."""
        return sorted(self._walked)

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition, in-flight and old ones included."""
        others = [one for one in partitions if one not in self._walked]
        listed = self._walked | self._of_partitions(others) if others else self._walked
        return {one: listed[one] for one in partitions}

    @cached_property
    def _walked(self) -> dict[PartitionPath, Sequence[FileStatus]]:
        if not self._partitioned:
            return self._of_partitions([PartitionPath("")])
        if self._prefixed is None:
            return self._below(_Look(self._storage))
        # marks of partitions stay in the table's folder
        marked = self._below(_Look(self._prefixed.table_storage, is_elsewhere=True))
        return marked | files_in_prefixes(self._prefixed, None, self._run_map)

    def _below(self, look: _Look) -> dict[PartitionPath, Sequence[FileStatus]]:
        found = dict[PartitionPath, Sequence[FileStatus]]()
        # the root of a partitioned table is no partition, whatever lies in it
        level = folders_below(look.storage, "")
        while level:
            answers = list(self._run_map(look, level))
            for folder, (files, _) in zip(level, answers, strict=True):
                if files is not None:
                    found[PartitionPath(folder)] = files
            level = tuple(path for _, below in answers for path in below)
        return found

    def _of_partitions(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, Sequence[FileStatus]]:
        if self._prefixed is not None:
            return files_in_prefixes(self._prefixed, partitions, self._run_map)
        answers = self._run_map(_Look(self._storage, is_partition=True), list(partitions))
        return {one: files or () for one, (files, _) in zip(partitions, answers, strict=True)}


# --- committed files -----------------------------------------------------------------------------


class MissingFile(NamedTuple):
    """A file that a write names, and its size as listed."""

    path: str
    size: int
    listed: int | None

    def __str__(self) -> str:
        found = "is not listed" if self.listed is None else f"is listed with {self.listed}"
        return f"{self.path} of {self.size} bytes {found}"


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """Data files by the metadata of completed writes.

    ``written`` has the paths by the write's requested time; ``present`` is what the newest write of
    each file group says of its base file, without replaced groups; ``logs`` is what the newest
    write to each log says of it, by the log's path.
    """

    written: Mapping[InstantTime, frozenset[str]]
    present: Mapping[FileGroupId, WriteStat]
    logs: Mapping[str, WriteStat] = field(default_factory=dict)

    @classmethod
    def of(cls, writes: Iterable[tuple[InstantTime, CommitMetadata]]) -> CommittedFiles:
        """The files of some writes, by their requested times."""
        written: dict[InstantTime, frozenset[str]] = {}
        newest: dict[FileGroupId, WriteStat] = {}
        logs: dict[str, WriteStat] = {}
        replaced: set[FileGroupId] = set()
        for time, metadata in sorted(writes, key=lambda one: one[0]):
            written[time] = frozenset(stat.path for stat in metadata.stats if stat.path)
            for stat in metadata.stats:
                if not stat.path or not stat.file_id:
                    continue
                if BaseFileName.parse(stat.path.split("/")[-1]):
                    newest[_group_of(stat)] = stat
                else:
                    logs[stat.path] = stat
            if isinstance(metadata, ReplaceCommitMetadata):
                replaced.update(
                    FileGroupId(PartitionPath(partition), FileId(file_id))
                    for partition, file_ids in metadata.partition_to_replace_file_ids.items()
                    for file_id in file_ids
                )
        present = {group: stat for group, stat in newest.items() if group not in replaced}
        logs = {path: stat for path, stat in logs.items() if _group_of(stat) not in replaced}
        return cls(written, present, logs)

    @classmethod
    def of_timeline(cls, client: TableMetaClient, timeline: TimelineView) -> CommittedFiles:
        """The files of the completed writes of a timeline."""
        writes = list(timeline.completed_writes())
        found = client.run_map(client.read_commit, writes)
        times = [one.requested_time for one in writes]
        return cls.of(zip(times, found, strict=True))

    @classmethod
    def of_history(cls, client: TableMetaClient, timeline: TimelineView) -> CommittedFiles:
        """The same with archived writes whose metadata the archive has."""
        writes = {
            archived.instant.requested_time: client.read_archived_commit(archived)
            for archived in client.archived.load(bodies=True)
            if archived.instant.action in WRITE_ACTIONS and archived.metadata is not None
        }
        for instant in timeline.completed_writes():
            writes[instant.requested_time] = client.read_commit(instant)
        return cls.of(writes.items())

    def is_orphan(self, file: FileStatus) -> bool:
        """Whether no write names a file, not even its own.

        Another write may name a log: one that wrote it under the instant of its slice.
        """
        name = BaseFileName.parse(file.name) or LogFileName.parse(file.name)
        named = None if name is None else self.written.get(name.instant)
        if name is None or named is None or file.path in named:
            return False
        return not (isinstance(name, LogFileName) and (name.is_cdc or self._is_written(file.path)))

    def _is_written(self, path: str) -> bool:
        return any(path in some for some in self.written.values())

    def missing_from(self, sizes: Mapping[str, int]) -> list[MissingFile]:
        """Present files that a listing lacks, or has with other sizes."""
        missing = []
        for stat in self.present.values():
            path, size = stat.path or "", stat.file_size_in_bytes or 0
            listed = sizes.get(path)
            if listed is None or (size and listed != size):
                missing.append(MissingFile(path, size, listed))
        return missing


def _group_of(stat: WriteStat) -> FileGroupId:
    return FileGroupId(PartitionPath(stat.partition_path or ""), FileId(stat.file_id or ""))


class CommittedListing(FileIndex):
    """A listing without the base files and logs that no write names.

    A task that was given up, and wrote its file when the write was complete, leaves one behind. Its
    rows are in the table already. Files of writes that are not known here stay.
    """

    def __init__(self, listing: FileIndex, committed: CommittedFiles) -> None:
        self._listing = listing
        self._committed = committed

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions."""
        return self._listing.list_partitions()

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition, in-flight and old ones included."""
        is_orphan = self._committed.is_orphan
        return {
            partition: [file for file in files if not is_orphan(file)]
            for partition, files in self._listing.list_files(partitions).items()
        }


# --- orphans: files in a table's folder that belong to nothing ------------------------------------
# Other engines began and left them.


_DATA: Final = (".parquet", ".orc")
_HIDDEN: Final = (".", "_")
"""How the names of folders begin that hold no rows: metadata of Hudi, of formats, of engines."""


def foreign_data_files(storage: Storage) -> Iterator[str]:
    """Yield data files without a Hudi name, in order; one listing.

    Files that have one are distinguished by the timeline.
    """
    for status in storage.list("", recursive=True):
        if _is_data(status.path) and BaseFileName.parse(status.name) is None:
            yield status.path
    if isinstance(storage, FederatedStorage):
        # no reader looks for them where they lie, whatever their names
        yield from filter(_is_data, storage.strays())


def _is_data(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith(_DATA) and not any(folder.startswith(_HIDDEN) for folder in folders)


# --- base files that the write in their name does not record -------------------------------------


def unnamed_files(
    view: FileSystemView, timeline: TimelineView, read_commit: ReadCommit
) -> Iterator[tuple[BaseFile, Instant]]:
    """Yield base files that their write's metadata does not name.

    Who lists folders takes such a file for a part of the table. Files of archived writes are left
    out, as their commit metadata is not read any more; so are those that the view ignores, which
    are among its duplicates.
    """
    writes = {one.requested_time: one for one in timeline.completed_writes()}
    named: dict[Instant, set[str]] = {}
    for found in view.all_slices():
        file, instant = found.base_file, writes.get(found.base_instant)
        if file is None or instant is None:
            continue
        if instant not in named:
            named[instant] = {stat.path for stat in read_commit(instant).stats if stat.path}
        if file.path not in named[instant]:
            yield file, instant
