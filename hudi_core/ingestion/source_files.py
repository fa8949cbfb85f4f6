"""Files of a folder that may be ingested."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import xxhash

from hudi_core.config.ingestion import SourceFormat
from hudi_core.errors import CorruptMetadataError, PathNotFoundError, SchemaError
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Storage
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.location import PathLike, location_of, parse_location
from hudi_core.storage.open import open_storage
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.safe_path import require_safe_path

_UNFINISHED: Final = (".tmp", ".temp", ".part", ".crdownload", "._COPYING_", ".inprogress")
"""Ends of names that programs give to files while they write them."""
_FIRST_LOAD: Final = "LOAD"
_LARGEST_SCHEMA: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder of files, and how it is reached."""

    location: str
    options: StorageOptions

    def list(self) -> Sequence[FileStatus]:
        """The files in it and below, but for hidden and unfinished ones."""
        found = [one for one in self._storage.list("", recursive=True) if _is_data(one)]
        if not found and parse_location(self.location).is_local and self.is_missing:
            raise PathNotFoundError(self.location)
        return found

    def open(self, path: str, *, is_seekable: bool = False) -> pa.NativeFile:
        """Open a file; what its name says is compressed is decompressed.

        With ``is_seekable`` it is opened as it is, compressed or not.
        """
        filesystem, root = data_filesystem(self.location, self.options)
        self._storage.head(path)  # a link that leads out of the folder is refused
        full = f"{root}/{require_safe_path(path)}"
        if is_seekable:
            return filesystem.open_input_file(full)
        return filesystem.open_input_stream(full, compression="detect")

    def is_unchanged(self, file: FileStatus) -> bool:
        """Whether a file is still the one that was listed."""
        now = self._storage.head(file.path)
        return now is not None and (now.size, now.modified_ms) == (file.size, file.modified_ms)

    @property
    def _storage(self) -> Storage:
        return open_storage(self.location, self.options)

    @property
    def is_missing(self) -> bool:
        """Whether there is no such folder; object stores have no empty ones."""
        above, _, name = self.location.rpartition("/")
        return name not in open_storage(above, self.options).list_folders() if above else False


def source_folder(source: PathLike, options: StorageOptions) -> SourceFolder:
    """The folder at a path or URI that a user gives."""
    return SourceFolder(location_of(source), options)


def read_schema(place: PathLike, options: StorageOptions) -> pa.Schema:
    """The columns of an Avro schema in JSON, by its place."""
    path = location_of(place)
    above, _, name = path.rpartition("/")
    try:
        with source_folder(above or "/", options).open(name) as file:
            text = file.read(_LARGEST_SCHEMA).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(
            f"{path} cannot be used as a schema: {error}",
            "Name an Avro schema in JSON.",
            path=path,
        ) from error
    return TableSchema.from_avro(text).arrow


def in_order(files: Iterable[FileStatus], source_format: SourceFormat) -> Sequence[FileStatus]:
    """Files in the order of their rows, the oldest first.

    By modification times, and of equal ones by names. DMS names files by the times of their
    changes, which copies of them keep; first comes what it has loaded at the start.
    """
    if source_format is SourceFormat.DMS:
        return sorted(files, key=lambda one: (not is_first_load(one.path), one.name, one.path))
    return sorted(files, key=lambda one: (one.modified_ms, one.path))


def is_first_load(path: str) -> bool:
    """Whether DMS wrote a file before it captured changes."""
    return path.rpartition("/")[2].startswith(_FIRST_LOAD)


def _is_data(file: FileStatus) -> bool:
    hidden = any(part.startswith((".", "_")) for part in file.path.split("/"))
    # some programs put an empty object where a file system would have a folder
    stands_for_folder = not file.size and "." not in file.name
    return not hidden and not stands_for_folder and not file.path.endswith(_UNFINISHED)


# --- how far an ingestion has come, as its newest commit keeps it ---------------------------------


CHECKPOINT_KEY: Final = "ingest.checkpoint"
"""Key of extra metadata: JSON, see :meth:`Checkpoint.encode`."""
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The files that an ingestion has read.

    ``commits`` is also the number of the newest one. Files not modified after ``since``
    (milliseconds since the epoch) count as read; ``passed`` is how many of those it has read.
    ``read`` are the files modified later: modification times by digests.
    """

    commits: int = 0
    since: int = -1
    passed: int = 0
    read: Mapping[str, int] = field(default_factory=dict)

    def unread(self, listed: Sequence[FileStatus]) -> Sequence[FileStatus]:
        """The listed files that are still to be read."""
        return [one for one in listed if one.modified_ms > self.since and not self._has(one)]

    def missed(self, listed: Sequence[FileStatus]) -> int:
        """The least number of listed files that came too late.

        Files that were read and deleted since hide as many.
        """
        return max(0, sum(one.modified_ms <= self.since for one in listed) - self.passed)

    def after(
        self,
        files: Sequence[FileStatus],
        listed: Sequence[FileStatus],
        memory_days: int,
        now_ms: int,
    ) -> Checkpoint:
        """The checkpoint of the commit that brings files.

        Files that are not listed are remembered like others: another run may have seen more, and a
        folder that was away may come back.

        ``files`` are those of the commit, ``listed`` all. Files are kept for ``memory_days`` before
        the newest that was read; ``now_ms`` keeps a file from the future from making others late.
        """
        read = {**self.read, **{digest(one): one.modified_ms for one in files}}
        pending = [one.modified_ms for one in self.unread(listed) if digest(one) not in read]
        newest = min(max(read.values(), default=self.since), now_ms)
        horizon = newest - memory_days * _DAY_MS
        since = max(self.since, min([horizon, *(time - 1 for time in pending)]))
        kept = {name: time for name, time in read.items() if time > since}
        return Checkpoint(self.commits + 1, since, self.passed + len(read) - len(kept), kept)

    def encode(self) -> str:
        """The text that a commit keeps."""
        stated = {
            "commits": self.commits,
            "since": self.since,
            "passed": self.passed,
            "read": dict(sorted(self.read.items())),
        }
        return json.dumps(stated, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str, where: str) -> Checkpoint:
        """The checkpoint of a commit."""
        try:
            stated: Any = json.loads(text)
            commits, since, passed = (stated[name] for name in ("commits", "since", "passed"))
            read = stated["read"]
            if {type(one) for one in (commits, since, passed, *read.values())} != {int}:
                raise ValueError(text)
            return cls(commits, since, passed, read)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptMetadataError(where, f"its {CHECKPOINT_KEY} cannot be read") from error

    def _has(self, file: FileStatus) -> bool:
        return digest(file) in self.read


def digest(file: FileStatus) -> str:
    """A short text for a file's path, size and modification time.

    64 bits: among a million files two are alike with a chance of 3 in 10 millions.
    """
    text = f"{file.path}\0{file.size}\0{file.modified_ms}"
    return xxhash.xxh64_hexdigest(text.encode())
