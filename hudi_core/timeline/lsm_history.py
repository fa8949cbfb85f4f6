"""The archive of layout 2: parquet files listed in a manifest, ``.hoodie/timeline/history``.

``_version_`` holds the number N of the current ``manifest_N``, which is JSON, ``{"files":
[{"fileName": "<first>_<last>_<level>.parquet", "fileLen": 123}]}``. Each row of a file is one
completed instant. Compaction rewrites files of one level into the next one, and old manifests and
their files are deleted after a while.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
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
_FILE: Final = re.compile(r"(?P<first>[0-9]+)_(?P<last>[0-9]+)_[0-9]\.parquet")


class HistoryRow(NamedTuple):
    """One archived instant; the bodies are ``None`` unless they were asked for and are there."""

    instant_time: str | None
    completion_time: str | None
    action: str | None
    metadata: bytes | None
    plan: bytes | None


_COLUMNS: Final = ("instantTime", "completionTime", "action", "metadata", "plan")
_SMALL_COLUMNS: Final = _COLUMNS[:3]


class _Entry(NamedTuple):
    path: str
    size: int


def read_history(
    storage: Storage, folder: str, after: str | None, until: str | None, bodies: bool
) -> list[HistoryRow]:
    """Return the rows of every history file that may hold instants of a range of requested times.

    Parameters
    ----------
    storage, folder
        Where the history is; a folder without manifests is an empty history.
    after, until
        Exclusive and inclusive bound; rows outside may be among those returned.
    bodies
        Whether to read metadata and plans, which are most of the bytes.

    Raises
    ------
    CorruptMetadataError
        A file is damaged or missing; it is named.
    """
    version = _version(storage, folder)
    while version is not None:
        try:
            entries = _manifest(storage, join_path(folder, f"{MANIFEST_PREFIX}{version}"))
            wanted = [entry for entry in entries if _overlaps(entry, after, until)]
            return [row for entry in wanted for row in _rows(storage, entry, bodies)]
        except PathNotFoundError as error:
            # deleted since the version was read, by a compaction of the history: then it has a new
            # one
            newer = _version(storage, folder)
            if newer == version:
                raise CorruptMetadataError(
                    f"{storage.root}/{folder}", f"its version {version} lacks {error.path}"
                ) from error
            version = newer
    return []


def _version(storage: Storage, folder: str) -> int | None:
    try:
        text = storage.read(join_path(folder, VERSION_FILE), MAX_MANIFEST_BYTES)
    except PathNotFoundError:
        text = b""
    if re.fullmatch(rb"[0-9]{1,18}", text.strip()):
        return int(text)
    # the file is deleted and written anew, so it may be absent for a moment
    names = (status.name for status in storage.list(folder))
    numbers = (
        name.removeprefix(MANIFEST_PREFIX) for name in names if name.startswith(MANIFEST_PREFIX)
    )
    return max((int(text) for text in numbers if re.fullmatch("[0-9]{1,18}", text)), default=None)


def _manifest(storage: Storage, path: str) -> Sequence[_Entry]:
    where = f"{storage.root}/{path}"
    try:
        manifest = json.loads(storage.read(path, MAX_MANIFEST_BYTES))
    except (ValueError, RecursionError) as error:
        raise CorruptMetadataError(where, "it is not JSON") from error
    match manifest:
        case {"files": [*files]}:
            return [_entry(file, path.rpartition("/")[0], where) for file in files]
        case _:
            raise CorruptMetadataError(where, "it lists no files")


def _entry(file: object, folder: str, where: str) -> _Entry:
    match file:
        # the name is checked before it becomes a path: a manifest can name anything
        case {"fileName": str(name), "fileLen": int(size)} if _FILE.fullmatch(name):
            return _Entry(join_path(folder, name), size)
        case _:
            raise CorruptMetadataError(where, f"{file!r:.200} is not an entry of a history file")


def _overlaps(entry: _Entry, after: str | None, until: str | None) -> bool:
    match = _FILE.fullmatch(entry.path.rpartition("/")[2])
    return match is None or (
        (after is None or match["last"] > after) and (until is None or match["first"] <= until)
    )


def _rows(storage: Storage, entry: _Entry, bodies: bool) -> Iterator[HistoryRow]:
    where = f"{storage.root}/{entry.path}"
    if entry.size > MAX_HISTORY_BYTES:
        raise CorruptMetadataError(where, f"{entry.size} bytes are more than {MAX_HISTORY_BYTES}")
    data = storage.read(entry.path, MAX_HISTORY_BYTES)
    if len(data) != entry.size:
        raise CorruptMetadataError(
            where, f"it has {len(data)} bytes and its manifest says {entry.size}"
        )
    wanted = _COLUMNS if bodies else _SMALL_COLUMNS
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        names = [name for name in wanted if name in file.schema_arrow.names]
        columns = file.read(columns=names).to_pydict()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorruptMetadataError(where, f"it is not a readable parquet file ({error})") from error
    if not set(_SMALL_COLUMNS) <= columns.keys():
        raise CorruptMetadataError(where, f"it lacks one of the columns {_SMALL_COLUMNS}")
    rows = len(columns[_SMALL_COLUMNS[0]])
    empty: list[None] = [None] * rows
    for values in zip(*(columns.get(name, empty) for name in _COLUMNS), strict=True):
        yield HistoryRow(*values)
