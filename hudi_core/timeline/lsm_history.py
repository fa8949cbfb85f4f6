"""The archive of layout 2: parquet files listed in a manifest, ``.hoodie/timeline/history``.

``_version_`` holds the number N of the current ``manifest_N``, which is JSON, ``{"files":
[{"fileName": "<first>_<last>_<level>.parquet", "fileLen": 123}]}``. Each row of a file is one
completed instant. Compaction rewrites files of one level into the next one, and old manifests and
their files are deleted after a while. What writes all this is in :mod:`hudi_core.actions.archive`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import CorruptMetadataError, PathNotFoundError
from hudi_core.model.files import join_path
from hudi_core.model.protocols import Storage

VERSION_FILE: Final = "_version_"
MANIFEST_PREFIX: Final = "manifest_"
MAX_MANIFEST_BYTES: Final = 16 * 1024 * 1024
MAX_HISTORY_BYTES: Final = 1024 * 1024 * 1024
"""Largest history file that is read."""
_FILE: Final = re.compile(r"(?P<first>[0-9]+)_(?P<last>[0-9]+)_(?P<level>[0-9])\.parquet")
_NUMBER: Final = re.compile("[0-9]{1,18}")


class HistoryRow(NamedTuple):
    """One archived instant, with its bodies if requested and present."""

    instant_time: str | None
    completion_time: str | None
    action: str | None
    metadata: bytes | None
    plan: bytes | None


_COLUMNS: Final = ("instantTime", "completionTime", "action", "metadata", "plan")
_SMALL_COLUMNS: Final = _COLUMNS[:3]


class HistoryFileName(NamedTuple):
    """A history file's name: earliest and latest requested time, level.

    Readers skip files by the two times, so these may lie further apart than the instants do.
    """

    first: str
    last: str
    level: int

    def __str__(self) -> str:
        return f"{self.first}_{self.last}_{self.level}.parquet"

    @classmethod
    def parse(cls, name: str) -> HistoryFileName | None:
        """Return the parts of a history file's name, else ``None``."""
        match = _FILE.fullmatch(name)
        return cls(match["first"], match["last"], int(match["level"])) if match else None

    def overlaps(self, after: str | None, until: str | None) -> bool:
        """Whether the file may hold instants later than ``after``, up to ``until``."""
        return (after is None or self.last > after) and (until is None or self.first <= until)


class HistoryFile(NamedTuple):
    """A manifest entry: a history file and its size in bytes."""

    name: HistoryFileName
    size: int


def read_history(
    storage: Storage, folder: str, after: str | None, until: str | None, bodies: bool
) -> list[HistoryRow]:
    """Return the rows of history files that overlap a time range.

    The range is of requested times.

    ``after`` is exclusive and ``until`` inclusive, but rows outside may be returned. ``bodies`` are
    most of the bytes. A folder without manifests is an empty history.
    """

    def read(files: Iterable[HistoryFile]) -> list[HistoryRow]:
        wanted = [file for file in files if file.name.overlaps(after, until)]
        return [row for file in wanted for row in read_history_file(storage, folder, file, bodies)]

    return _of_present_version(storage, folder, read)


def read_newest_history(
    storage: Storage, folder: str, count: int, after: str | None, bodies: bool
) -> list[HistoryRow]:
    """Return the rows of the newest history files.

    Among them are the ``count`` newest by requested time; older files are not read.
    """

    def read(files: Iterable[HistoryFile]) -> list[HistoryRow]:
        wanted = [file for file in files if file.name.overlaps(after, None)]
        rows: list[HistoryRow] = []
        found: set[tuple[str, str | None]] = set()
        for file in sorted(wanted, key=lambda one: one.name.last, reverse=True):
            newest = sorted((time for time, _ in found), reverse=True)[:count]
            if len(newest) == count and newest[-1] > file.name.last:
                break
            rows += read_history_file(storage, folder, file, bodies)
            found |= {(row.instant_time or "", row.action) for row in rows}
        return rows

    return _of_present_version(storage, folder, read)


def _of_present_version(
    storage: Storage, folder: str, read: Callable[[Iterable[HistoryFile]], list[HistoryRow]]
) -> list[HistoryRow]:
    """Return rows that are read from the files of the present version."""
    version = history_version(storage, folder)
    while version is not None:
        try:
            return read(read_manifest(storage, folder, version))
        except PathNotFoundError as error:
            # deleted since the version was read, by a compaction of the history: then it has a new
            # one
            newer = history_version(storage, folder)
            if newer == version:
                raise CorruptMetadataError(
                    f"{storage.root}/{folder}", f"its version {version} lacks {error.path}"
                ) from error
            version = newer
    return []


def history_version(storage: Storage, folder: str) -> int | None:
    """Return the number of the current manifest; ``None`` for an empty history."""
    try:
        text = storage.read(join_path(folder, VERSION_FILE), MAX_MANIFEST_BYTES)
    except PathNotFoundError:
        text = b""
    version = parse_version(text)
    if version is not None:
        return version
    # Hudi deletes the file and rewrites it, so it may be absent meanwhile
    return max(manifest_versions(storage, folder), default=None)


def parse_version(text: bytes) -> int | None:
    """Return the number in ``_version_``'s bytes, else ``None``."""
    stripped = text.strip()
    return int(stripped) if re.fullmatch(rb"[0-9]{1,18}", stripped) else None


def manifest_versions(storage: Storage, folder: str) -> list[int]:
    """Return the existing manifests' numbers, unordered; one listing."""
    found = (manifest_number(status.name) for status in storage.list(folder))
    return [number for number in found if number is not None]


def manifest_number(name: str) -> int | None:
    """Return the number in a manifest's name; ``None`` for any other file."""
    number = name.removeprefix(MANIFEST_PREFIX)
    return int(number) if number != name and _NUMBER.fullmatch(number) else None


def manifest_path(folder: str, version: int) -> str:
    """Return the path of a manifest."""
    return join_path(folder, f"{MANIFEST_PREFIX}{version}")


def read_manifest(storage: Storage, folder: str, version: int) -> tuple[HistoryFile, ...]:
    """Return the files that make up one version of the history."""
    path = manifest_path(folder, version)
    where = f"{storage.root}/{path}"
    try:
        manifest = json.loads(storage.read(path, MAX_MANIFEST_BYTES))
    except (ValueError, RecursionError) as error:
        raise CorruptMetadataError(where, "it is not JSON") from error
    match manifest:
        case {"files": [*files]}:
            return tuple(_entry(file, where) for file in files)
        case _:
            raise CorruptMetadataError(where, "it lists no files")


def encode_manifest(files: Iterable[HistoryFile]) -> bytes:
    """Return the bytes of a manifest."""
    entries = [{"fileName": str(file.name), "fileLen": file.size} for file in files]
    return json.dumps({"files": entries}, indent=2).encode()


def _entry(file: object, where: str) -> HistoryFile:
    match file:
        # the name is checked before it becomes a path: a manifest can name anything
        case {"fileName": str(text), "fileLen": int(size)}:
            name = HistoryFileName.parse(text)
            if name is not None:
                return HistoryFile(name, size)
    raise CorruptMetadataError(where, f"{file!r:.200} is not an entry of a history file")


def read_history_file(
    storage: Storage, folder: str, file: HistoryFile, bodies: bool
) -> Iterator[HistoryRow]:
    """Yield the rows of one history file."""
    path = join_path(folder, str(file.name))
    where = f"{storage.root}/{path}"
    if file.size > MAX_HISTORY_BYTES:
        raise CorruptMetadataError(where, f"{file.size} bytes are more than {MAX_HISTORY_BYTES}")
    data = storage.read(path, MAX_HISTORY_BYTES)
    if len(data) != file.size:
        raise CorruptMetadataError(
            where, f"it has {len(data)} bytes and its manifest says {file.size}"
        )
    wanted = _COLUMNS if bodies else _SMALL_COLUMNS
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
        names = [name for name in wanted if name in parquet.schema_arrow.names]
        columns = parquet.read(columns=names).to_pydict()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorruptMetadataError(where, f"it is not a readable parquet file ({error})") from error
    if not set(_SMALL_COLUMNS) <= columns.keys():
        raise CorruptMetadataError(where, f"it lacks one of the columns {_SMALL_COLUMNS}")
    rows = len(columns[_SMALL_COLUMNS[0]])
    empty: list[None] = [None] * rows
    for values in zip(*(columns.get(name, empty) for name in _COLUMNS), strict=True):
        yield HistoryRow(*values)
