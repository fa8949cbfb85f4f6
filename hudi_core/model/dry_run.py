"""The plan of a write, without writing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hudi_core.model.commit import WriteOperation
from hudi_core.model.files import FileId, PartitionPath


class FileChange(StrEnum):
    """What a write does to a file group."""

    CREATE = "create"
    """A new file group gets its first file."""
    REWRITE = "rewrite"
    """The file is read, and written again as the group's next version."""
    APPEND = "append"
    """Changed rows and deletes go into a new log file; the base file stays. Where they cannot, the
    write rewrites the group all the same."""
    REPLACE = "replace"
    """The group leaves the table; its file is neither read nor written."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file group that a write would touch.

    Attributes
    ----------
    change
        What would happen to it.
    partition_path
        Its partition.
    file_id, path
        The group and its present file, relative to the table; ``None`` for a new group, which has
        no name before the write has its time.
    inserted, updated, deleted
        Rows it would gain, replace and lose. Whether an incoming row is late is only known to the
        write itself, so that ``updated`` is an upper bound where an ordering field decides. The
        rows of a replaced group are not counted.
    bytes_written
        Expected size of the new file or log; 0 for a group that is replaced.
    """

    change: FileChange
    partition_path: PartitionPath
    file_id: FileId | None
    path: str | None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True)
class StorageRequests:
    """Storage requests of a write, as an object store bills them.

    Attributes
    ----------
    reads
        Files looked up and opened for reading; a store counts several ranges of a large file as
        several requests.
    writes
        Files put: data, markers, partition metadata, timeline, heartbeat.
    lists
        Folders listed.
    deletes
        Files deleted.
    """

    reads: int
    writes: int
    lists: int
    deletes: int

    @property
    def total(self) -> int:
        return self.reads + self.writes + self.lists + self.deletes

    def __add__(self, other: StorageRequests) -> StorageRequests:
        return StorageRequests(
            self.reads + other.reads,
            self.writes + other.writes,
            self.lists + other.lists,
            self.deletes + other.deletes,
        )


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a write would do; nothing was written, no lock was taken.

    Attributes
    ----------
    operation
        The planned operation.
    files
        The file groups it would touch, by partition.
    requests
        Requests it would make of the store.
    """

    operation: WriteOperation
    files: tuple[PlannedFile, ...]
    requests: StorageRequests

    @property
    def inserted(self) -> int:
        """Rows the table would gain."""
        return sum(file.inserted for file in self.files)

    @property
    def updated(self) -> int:
        """Rows that would be replaced, late incoming rows included."""
        return sum(file.updated for file in self.files)

    @property
    def deleted(self) -> int:
        """Rows that would be deleted, apart from overwritten partitions."""
        return sum(file.deleted for file in self.files)

    @property
    def bytes_written(self) -> int:
        """Expected bytes of data files."""
        return sum(file.bytes_written for file in self.files)

    @property
    def partitions(self) -> tuple[PartitionPath, ...]:
        """The partitions it would touch, sorted."""
        return tuple(sorted({file.partition_path for file in self.files}))

    def __str__(self) -> str:
        counts = dict.fromkeys(FileChange, 0)
        for file in self.files:
            counts[file.change] += 1
        changes = ", ".join(f"{change} {count}" for change, count in counts.items() if count)
        return (
            f"{self.operation.value.lower()} (dry run): {self.inserted:,} to insert, "
            f"{self.updated:,} to update, {self.deleted:,} to delete; "
            f"files: {changes or 'none'}; about {self.bytes_written / 1e6:.1f} MB and "
            f"{self.requests.total:,} requests"
        )
