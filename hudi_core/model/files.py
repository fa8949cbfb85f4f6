"""Names of data files; file groups and file slices.

Source: ``hudi-format`` section 4. A base file is ``<fileId>_<writeToken>_<instant>.<extension>``; a
log file is ``.<fileId>_<instant>.log.<version>_<writeToken>``.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NewType

from hudi_core.errors import InvalidInstantTimeError
from hudi_core.model.instant_time import DIGITS, InstantTime, parse_instant_time

BasePath = NewType("BasePath", str)
"""Absolute path or URI of a table, without a trailing slash."""
PartitionPath = NewType("PartitionPath", str)
"""Path of a partition relative to the table; empty for a table without partitions."""
FileId = NewType("FileId", str)
"""Identity of a file group within its partition, ``<uuid>-<n>``."""

PARTITION_METADATA_FILE: Final = ".hoodie_partition_metadata"
_NAMESPACE: Final = uuid.UUID("4f1d3a52-3b0a-5d55-9f6c-0a6a2a4be0d7")


def derive_file_id(instant: InstantTime, task: int, n: int) -> FileId:
    """Return the id of the ``n``-th new file group of a task.

    Derived, not drawn, so that a retried or speculative task makes the same file groups as its
    first attempt.

    Parameters
    ----------
    instant
        Requested time of the writing instant.
    task
        Index of the task within the instant, unique over all stages that create file groups.
    n
        Ordinal of the file group within the task.
    """
    return FileId(f"{uuid.uuid5(_NAMESPACE, f'{instant}/{task}/{n}')}-0")


@dataclass(frozen=True, slots=True)
class WriteToken:
    """Three integers that distinguish the attempts at one file."""

    task: int
    stage: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.task}-{self.stage}-{self.attempt}"


_BASE: Final = re.compile(
    rf"(?P<id>[^_/]+)_(?P<token>[0-9]+-[0-9]+-[0-9]+)_(?P<time>{DIGITS})(?P<ext>\.[a-z]+)"
)
_LOG: Final = re.compile(
    rf"\.(?P<id>[^_/]+)_(?P<time>{DIGITS})\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+))?(?P<suffix>\.cdc)?"
)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One stored file in a listing.

    Attributes
    ----------
    path
        Path relative to the table's base path, with ``/``.
    size
        Bytes.
    modified_ms
        Last change, milliseconds since the epoch; 0 where the listing does not know.
    """

    path: str
    size: int
    modified_ms: int = 0

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """The parts of a base file's name.

    Attributes
    ----------
    file_id
        Of the file group.
    write_token
        Of the task that wrote it, so that no two attempts have one name.
    instant
        Requested time of the write.
    extension
        The format of the file.
    """

    file_id: FileId
    write_token: str
    instant: InstantTime
    extension: str = ".parquet"

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}{self.extension}"

    @classmethod
    def parse(cls, name: str) -> BaseFileName | None:
        """Return the parts of a base file's name; ``None`` for another file."""
        return _parsed_base(name)


@lru_cache(maxsize=32_768)
def _parsed_base(name: str) -> BaseFileName | None:
    # every write lists the same names again: 0.2 instead of 1.6 ms for 800 of them
    match = _BASE.fullmatch(name)
    if match is None:
        return None
    file_id, token, text, extension = match.groups()
    try:
        time = parse_instant_time(text)
    except InvalidInstantTimeError:
        return None
    return BaseFileName(FileId(file_id), token, time, extension)


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The parts of a log file's name.

    Attributes
    ----------
    is_cdc
        Whether it holds changes that a base file of the same instant has in it already.
    """

    file_id: FileId
    instant: InstantTime
    version: int
    write_token: str | None = None
    is_cdc: bool = False

    def __str__(self) -> str:
        token = f"_{self.write_token}" if self.write_token else ""
        cdc = ".cdc" if self.is_cdc else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{cdc}"

    @classmethod
    def parse(cls, name: str) -> LogFileName | None:
        """Return the parts of a log file's name; ``None`` for another file."""
        match = _LOG.fullmatch(name)
        if match is None:
            return None
        try:
            time = parse_instant_time(match["time"])
        except InvalidInstantTimeError:
            return None
        return cls(
            FileId(match["id"]), time, int(match["version"]), match["token"], bool(match["suffix"])
        )


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """A file group: all versions of one set of a partition's rows.

    Attributes
    ----------
    partition_path
        Relative to the table.
    file_id
        Its id, which the names of its files begin with.
    """

    partition_path: PartitionPath
    file_id: FileId


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A base file of a file group.

    Attributes
    ----------
    status
        Its path and size.
    name
        The parts of its name.
    logs
        The log files of its slice, where a write has to see them.
    adds_keys
        Whether these may have rows of keys that the base file lacks.
    is_stored
        False for a slice of logs alone: it is written as one whose base file has no rows, and its
        first log is named instead.
    """

    status: FileStatus
    name: BaseFileName
    logs: tuple[FileStatus, ...] = ()
    adds_keys: bool = False
    is_stored: bool = True

    @property
    def path(self) -> str:
        return self.status.path

    @property
    def size(self) -> int:
        return self.status.size

    @property
    def total_size(self) -> int:
        """Bytes of the file and of its logs."""
        return self.size + sum(log.size for log in self.logs)

    @property
    def instant(self) -> InstantTime:
        return self.name.instant


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file of a file group.

    Attributes
    ----------
    status
        Its path and size.
    name
        The parts of its name.
    """

    status: FileStatus
    name: LogFileName


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: base file and log files.

    Attributes
    ----------
    group
        The file group.
    base_instant
        Requested time of the base file, or of the first log file where there is no base file.
    base_file
        ``None`` only for slices that hold nothing but log files.
    log_files
        In the order of instant and version; always empty for copy-on-write tables.
    """

    group: FileGroupId
    base_instant: InstantTime
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()

    @property
    def partition_path(self) -> PartitionPath:
        return self.group.partition_path

    @property
    def file_id(self) -> FileId:
        return self.group.file_id

    @property
    def last_instant(self) -> InstantTime:
        """The last instant in the names of its files."""
        return max((self.base_instant, *(log.name.instant for log in self.log_files)))

    @property
    def base_with_logs(self) -> BaseFile | None:
        """The base file, if any, with the logs of the slice."""
        if self.base_file is None or not self.log_files:
            return self.base_file
        return replace(self.base_file, logs=tuple(log.status for log in self.log_files))

    @property
    def of_logs_alone(self) -> BaseFile:
        """A base file without rows, with the logs of the slice."""
        logs = tuple(log.status for log in self.log_files)
        status = FileStatus(logs[0].path, 0)
        name = BaseFileName(self.file_id, "", self.base_instant)
        return BaseFile(status, name, logs, adds_keys=True, is_stored=False)

    @property
    def files(self) -> tuple[FileStatus, ...]:
        """All files of the slice, the base file first."""
        base = () if self.base_file is None else (self.base_file.status,)
        return (*base, *(log.status for log in self.log_files))

    @property
    def total_size(self) -> int:
        """Bytes of all files of the slice."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """A file group with its slices.

    Attributes
    ----------
    id
        Its partition path and file id.
    slices
        The newest first.
    """

    id: FileGroupId
    slices: tuple[FileSlice, ...]

    @property
    def latest(self) -> FileSlice:
        return self.slices[0]


def join_path(partition_path: str, name: str) -> str:
    """Return a partition file's path relative to the base path."""
    return f"{partition_path}/{name}" if partition_path else name
