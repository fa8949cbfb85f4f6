"""Changes of a timeline's LSM history, one new version at a time.

Order within a change: history files, then the manifest that names them (put if absent), then
``_version_`` (compare and set). No file is read before ``_version_`` leads to it. An archiver
that has lost its lock without knowing fails at one of the two conditions, before it takes anything
away.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import CorruptMetadataError, PathNotFoundError
from hudi_core.model.files import join_path
from hudi_core.model.protocols import Storage
from hudi_core.timeline.lsm_history import (
    VERSION_FILE,
    HistoryFile,
    HistoryFileName,
    HistoryRow,
    encode_manifest,
    manifest_path,
    manifest_versions,
    parse_version,
    read_history_file,
    read_manifest,
)

ROW_VERSION: Final = 1
"""Version of the content of a history row."""
_AVRO: Final = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *(
            {"name": name, "type": ["null", kind], "default": None}
            for name, kind in (
                ("instantTime", "string"),
                ("completionTime", "string"),
                ("action", "string"),
                ("metadata", "bytes"),
                ("plan", "bytes"),
            )
        ),
        {"name": "version", "type": "int", "default": ROW_VERSION},
    ],
}
_SCHEMA: Final = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_FOOTER: Final = {"parquet.avro.schema": json.dumps(_AVRO, separators=(",", ":"))}
"""Where readers of parquet files written from Avro records take the records' schema from."""
_CODEC: Final = "gzip"
"""What Hudi compresses with by default, and every parquet reader in Java can undo."""


@dataclass(frozen=True, slots=True)
class HistorySnapshot:
    """One version of a history, and preconditions of its change.

    ``version`` is 0 for a history without one; ``tag`` is the store's tag of ``_version_``,
    ``None`` when the file is absent.
    """

    version: int
    files: tuple[HistoryFile, ...]
    tag: str | None


class HistoryWriter:
    """Writes the history of one timeline; the caller holds the table's lock."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self.storage = storage
        self.folder = folder
        self._version_path = join_path(folder, VERSION_FILE)

    def open(self) -> HistorySnapshot:
        """Return the current version, after recovery of a dead archiver."""
        tag: str | None = None
        try:
            text, tag = self.storage.version(self._version_path)
        except PathNotFoundError:
            text = b""
        version = parse_version(text)
        if version is None:
            version = max(manifest_versions(self.storage, self.folder), default=0)
        snapshot = HistorySnapshot(version, self._files(version), tag)
        while (following := self._following(snapshot)) is not None:  # guard goes-on
            snapshot = self._point_to(snapshot, following)
        return snapshot

    def put_file(
        self,
        snapshot: HistorySnapshot,
        name: HistoryFileName,
        parts: Iterable[Sequence[HistoryRow]],
    ) -> HistoryFile:
        """Store rows as a file that no manifest names yet.

        ``snapshot`` is the version that will be changed: a name that it holds already is not used
        again, its range is widened.
        """
        held = {file.name for file in snapshot.files}
        while name in held:
            later = str(int(name.last) + 1).zfill(len(name.last))
            name = name._replace(last=later)
        data = _parquet(parts)
        self.storage.put(join_path(self.folder, str(name)), data)
        return HistoryFile(name, len(data))

    def publish(self, snapshot: HistorySnapshot, files: Iterable[HistoryFile]) -> HistorySnapshot:
        """Make ``files`` the history, as the version after ``snapshot``.

        ``AlreadyExistsError`` and ``PreconditionFailedError`` mean that another archiver changed
        the history since ``snapshot`` was opened.
        """
        ordered = tuple(sorted(files))
        path = manifest_path(self.folder, snapshot.version + 1)
        self.storage.put_if_absent(path, encode_manifest(ordered))  # archive manifest
        return self._point_to(snapshot, ordered)  # archive version

    def _files(self, version: int) -> tuple[HistoryFile, ...]:
        if not version:
            return ()
        try:
            return read_manifest(self.storage, self.folder, version)
        except PathNotFoundError as error:
            where = f"{self.storage.root}/{self.folder}"
            reason = f"its version {version} lacks {error.path}"
            raise CorruptMetadataError(where, reason) from error

    def _point_to(
        self, snapshot: HistorySnapshot, files: tuple[HistoryFile, ...]
    ) -> HistorySnapshot:
        version = snapshot.version + 1
        text = str(version).encode()
        tag = self.storage.compare_and_set(self._version_path, text, snapshot.tag)
        return HistorySnapshot(version, files, tag)

    def _following(self, snapshot: HistorySnapshot) -> tuple[HistoryFile, ...] | None:
        """Return the files of a manifest not yet in ``_version_``.

        A manifest that is cut off, or names files that are not there, was never read by anybody; it
        is removed, or its number could not be used.
        """
        path = manifest_path(self.folder, snapshot.version + 1)
        if self.storage.head(path) is None:
            return None
        try:
            files = read_manifest(self.storage, self.folder, snapshot.version + 1)
        except CorruptMetadataError:
            files = None
        known = set(snapshot.files)
        if files is not None and all(file in known or self._is_there(file) for file in files):
            return files
        self.storage.delete(path)
        return None

    def _is_there(self, file: HistoryFile) -> bool:
        status = self.storage.head(join_path(self.folder, str(file.name)))
        return status is not None and status.size == file.size

    def read(self, file: HistoryFile, *, bodies: bool) -> list[HistoryRow]:
        """Return the rows of one file."""
        try:
            return list(read_history_file(self.storage, self.folder, file, bodies))
        except PathNotFoundError as error:
            where = f"{self.storage.root}/{self.folder}"
            raise CorruptMetadataError(where, f"its manifest names {error.path}") from error


def _parquet(parts: Iterable[Sequence[HistoryRow]]) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, _SCHEMA, compression=_CODEC, store_schema=False) as writer:
        for rows in parts:
            writer.write_table(_table(rows))
        writer.add_key_value_metadata(_FOOTER)
    return sink.getvalue()


def _table(rows: Sequence[HistoryRow]) -> pa.Table:
    # the fields of a row are the columns, but for the last, in their order
    columns: list[Sequence[object]] = [[row[n] for row in rows] for n in range(len(_SCHEMA) - 1)]
    columns.append([ROW_VERSION] * len(rows))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)
