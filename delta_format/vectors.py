"""Deletion vectors of a Delta log: positions of deleted rows.

An action that adds a file may name one. It is in the action itself, of other writers, or in a file
that begins with the byte 1 and has any number of them, each in a frame. Files of vectors that are
made here lie in a folder of their own, hidden from the vacuums of other engines, and their names
begin with the instant that they were made for: a version names a vector for ever, but those of a
write that has died can be found.

A file and its vector are one thing to readers: a version that changes the vector of a file removes
it with the former one, and adds it with the new one. deltalake does not give vectors by the files'
names, so they are read from the log.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from delta_format.handles import tag_of_version
from delta_format.library import translated
from delta_format.location import LOG_FOLDER, root_of
from delta_format.log_actions import LogAction
from delta_format.log_files import CHECKPOINT, VERSION, file_of, number_of
from delta_format.paths import is_below
from hudi_core.spi import (
    CorruptMetadataError,
    Instant,
    MetaClientView,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.spi.files import (
    Positions,
    decode_vector,
    encode_vector,
    frame_vector,
    unframe_vector,
)

FEATURE: Final = "deletionVectors"
"""What a protocol calls them."""
PROPERTY: Final = "delta.enableDeletionVectors"
"""The property by which engines may make them."""
FOLDER: Final = "_delta_vectors"
"""Folder of the files of vectors, in the root: a name that vacuums pass over."""
_MERGE_ON_READ: Final = "MERGE_ON_READ"
_INLINE: Final = "i"
_IN_FILE: Final = "u"
_VERSION: Final = b"\x01"
_ID_CHARACTERS: Final = 20
"""Of the 16 bytes of a file's id."""
_INSTANT_BYTES: Final = 8
_FRAME_BYTES: Final = 8
_NAMES_ONE: Final = b'"deletionVector"'
_COLUMNS: Final = ("add.path", "add.deletionVector")
_LOGS: Final = 4
"""Logs whose vectors are kept in memory."""
_DIGITS: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
"""Those of Z85."""
_OF_PYTHON: Final = (
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
"""The same digits in :func:`base64.b85encode`."""
_TO_Z85: Final = str.maketrans(_OF_PYTHON, _DIGITS)
_FROM_Z85: Final = str.maketrans(_DIGITS, _OF_PYTHON)


def is_split(meta_client: MetaClientView) -> bool:
    """Whether commits of a table delete rows by their positions."""
    # tables whose log files have rows are none of this format
    return meta_client.config.table_type == _MERGE_ON_READ


@dataclass(frozen=True, slots=True)
class Vector:
    """A deletion vector, as an action names it.

    ``storage`` is the letter of its place, ``place`` the vector itself or its file's id, ``size``
    its bytes without a frame, ``cardinality`` the number of its positions.
    """

    storage: str
    place: str
    offset: int | None
    size: int
    cardinality: int

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Vector | None:
        """The vector of an action that adds or removes a file."""
        found = action.get("deletionVector")
        if found is None:
            return None
        return cls(
            found["storageType"],
            found["pathOrInlineDv"],
            found.get("offset"),
            found["sizeInBytes"],
            found["cardinality"],
        )

    @property
    def identity(self) -> str:
        """What is another one in another vector."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage}{self.place}{at}"

    @property
    def action(self) -> LogAction:
        """The member of an action that names it."""
        offset = {} if self.offset is None else {"offset": self.offset}
        return {
            "deletionVector": {
                "storageType": self.storage,
                "pathOrInlineDv": self.place,
                **offset,
                "sizeInBytes": self.size,
                "cardinality": self.cardinality,
            }
        }

    @property
    def path(self) -> str | None:
        """Its file, below the root; ``None`` for one that has none there."""
        if self.storage != _IN_FILE:
            return None
        folder = self.place[:-_ID_CHARACTERS]
        name = f"deletion_vector_{uuid.UUID(bytes=_from_z85(self.place[-_ID_CHARACTERS:]))}.bin"
        return f"{folder}/{name}" if folder else name


def identity_of(vector: Vector | None) -> str | None:
    """What identifies a file beside its path."""
    return None if vector is None else vector.identity


# --- contents -------------------------------------------------------------------------------------


def positions(meta_client: MetaClientView, vector: Vector) -> Positions:
    """The positions of a vector, in ascending order."""
    where = f"{root_of(meta_client)}/{vector.path or LOG_FOLDER}"
    if vector.storage == _INLINE:
        data = _inline(vector, where)
    else:
        data = unframe_vector(_framed(meta_client, vector, where), where)
    found = decode_vector(data, where)
    if len(data) != vector.size or len(found) != vector.cardinality:
        raise CorruptMetadataError(where, "a deletion vector has another size than its action says")
    return found


def _inline(vector: Vector, where: str) -> bytes:
    try:
        return _from_z85(vector.place)[: vector.size]
    except ValueError as error:
        raise CorruptMetadataError(where, f"a deletion vector is no Z85 ({error})") from error


def _framed(meta_client: MetaClientView, vector: Vector, where: str) -> bytes:
    try:
        path = vector.path
    except ValueError as error:
        raise CorruptMetadataError(
            where, f"a deletion vector has no id of a file ({error})"
        ) from error
    if path is None or not is_below(path):
        raise UnsupportedTableError(
            root_of(meta_client),
            f"has a deletion vector outside of its folder: {vector.place}",
            "Have its engine rewrite the file without the rows that are deleted.",
        )
    return meta_client.root.read_range(path, vector.offset or 0, vector.size + _FRAME_BYTES)


def require_vectors(meta_client: MetaClientView, vectors: Iterable[Vector | None]) -> None:
    """Refuse vectors whose files are gone: no reader could open the table."""
    paths = sorted({one.path for one in vectors if one is not None and one.path is not None})
    found = zip(paths, meta_client.run_map(meta_client.root.head, paths), strict=True)
    gone = next((path for path, status in found if status is None), None)
    if gone is not None:
        raise TableServiceError(
            f"{gone} is gone, the deletion vectors of a state of the Delta log of "
            f"{root_of(meta_client)}",
            "Nothing was changed. Restore the file from a backup of the table.",
            path=gone,
        )


def new_vectors(
    meta_client: MetaClientView, instant: Instant, dead: Mapping[str, Positions]
) -> dict[str, Vector]:
    """Make the vectors of some files.

    ``dead`` are distinct, ascending positions by path. Files without any get none. All share a
    file: where one is in an action, Delta-Spark's vacuum ends with an error.
    """
    found: dict[str, Vector] = {}
    name = _name(instant)
    content = bytearray(_VERSION)
    for path, own in dead.items():
        data = encode_vector(own)
        if not len(own):
            continue
        place = f"{FOLDER}{_z85(name)}"
        found[path] = Vector(_IN_FILE, place, len(content), len(data), len(own))
        content += frame_vector(data)
    file = next((one.path for one in found.values() if one.path is not None), None)
    if file is not None:
        meta_client.root.put_if_absent(file, bytes(content))
    return found


def joined(parts: Iterable[Positions]) -> Positions:
    """All of some positions, once each, in ascending order."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))


# --- files of vectors -----------------------------------------------------------------------------


def forget_vectors(meta_client: MetaClientView, instant: Instant) -> None:
    """Delete the files of vectors of an instant that is taken out."""
    if not is_split(meta_client):
        return
    begin = _of_time(instant.requested_time)
    meta_client.root.discard(
        [path for path, name in _stored(meta_client).items() if name.startswith(begin)]
    )


def prune_vectors(meta_client: MetaClientView, active: Iterable[str]) -> None:
    """Delete files of vectors that no version names which can be read.

    ``active`` are the times of instants that may be about to name theirs.
    """
    if not is_split(meta_client):
        return
    kept = {_of_time(one) for one in active}
    named = {one.path for one in _ever_named(meta_client)}
    meta_client.root.discard(
        [
            path
            for path, name in _stored(meta_client).items()
            if path not in named and name[:_INSTANT_BYTES] not in kept
        ]
    )


def _ever_named(meta_client: MetaClientView) -> Iterator[Vector]:
    """Vectors that a version names, of all that the log still has."""
    storage = meta_client.root
    for one in storage.list(LOG_FOLDER):
        if CHECKPOINT.fullmatch(one.name):
            yield from dict(checkpointed(storage.read(one.path))).values()
        elif VERSION.fullmatch(one.name):
            found = (
                Vector.of(action) for _, action in actions_with_vectors(storage.read(one.path))
            )
            yield from filter(None, found)


def _stored(meta_client: MetaClientView) -> dict[str, bytes]:
    """The ids of the files of vectors made here, by their paths."""
    found: dict[str, bytes] = {}
    for one in meta_client.root.list(FOLDER):
        text = one.name.removeprefix("deletion_vector_").removesuffix(".bin")
        try:
            found[one.path] = uuid.UUID(text).bytes
        except ValueError:
            continue  # not made here
    return found


def _name(instant: Instant) -> bytes:
    return _of_time(instant.requested_time) + secrets.token_bytes(16 - _INSTANT_BYTES)


def _of_time(time: str) -> bytes:
    return int(time).to_bytes(_INSTANT_BYTES, "big")


# --- the vectors of a version ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """The vectors of a version, and what proves its log."""

    version: int
    tag: str
    vectors: Mapping[str, Vector]


_known: Final[OrderedDict[str, _Known]] = OrderedDict()
_lock: Final = threading.Lock()


class LogVectors:
    """The vectors of a version's files, read when they are asked for."""

    def __init__(self, meta_client: MetaClientView, table: DeltaTable) -> None:
        self._client, self._table = meta_client, table
        self._version = int(table.version())

    @cached_property
    def by_file(self) -> Mapping[str, Vector]:
        """The vectors, by the paths of files as the log spells them."""
        with translated(root_of(self._client)):
            features = self._table.protocol().reader_features
        if FEATURE not in (features or ()):
            return {}
        root = root_of(self._client)
        with _lock:
            known = _known.get(root)
        if (
            known is not None
            and known.version <= self._version
            and tag_of_version(self._client, known.version) == known.tag
        ):
            found, since = dict(known.vectors), known.version
        else:
            found, since = self._of_checkpoint()
        for number in range(since + 1, self._version + 1):
            self._take(found, self._client.root.read(file_of(number)))
        self._keep(found)
        return found

    def _of_checkpoint(self) -> tuple[dict[str, Vector], int]:
        """The vectors of the last checkpoint, and its version."""
        numbers = {
            one.path: number_of(one.name, CHECKPOINT) for one in self._client.root.list(LOG_FOLDER)
        }
        last = max(
            (path for path, number in numbers.items() if 0 <= number <= self._version),
            key=lambda path: numbers[path],
            default=None,
        )
        if last is None:
            return {}, -1
        with translated(root_of(self._client)):
            return dict(checkpointed(self._client.root.read(last))), numbers[last]

    def _take(self, found: dict[str, Vector], data: bytes) -> None:
        with translated(root_of(self._client)):
            added = {}
            for name, action in actions_with_vectors(data):
                path, vector = action["path"], Vector.of(action)
                if name == "add" and vector is not None:
                    added[path] = vector
                elif path in found and found[path].identity == identity_of(vector):
                    del found[path]
            found |= added

    def _keep(self, found: Mapping[str, Vector]) -> None:
        tag = tag_of_version(self._client, self._version)
        if tag is None:
            return
        with _lock:
            root = root_of(self._client)
            known = _known.pop(root, None)
            if known is None or known.version <= self._version:
                known = _Known(self._version, tag, found)
            _known[root] = known
            if len(_known) > _LOGS:
                _known.popitem(last=False)


def checkpointed(data: bytes) -> Iterator[tuple[str, Vector]]:
    """Yield the files of a checkpoint that have vectors."""
    file = pq.ParquetFile(pa.BufferReader(data))
    if not has_vectors(file.schema_arrow, "add"):
        return
    adds = file.read(columns=[*_COLUMNS])["add"]
    vectors = pc.struct_field(adds, ["deletionVector", "storageType"])
    for row in adds.filter(pc.is_valid(vectors)).to_pylist():
        vector = Vector.of(row)
        if vector is not None:
            yield row["path"], vector


def has_vectors(checkpoint: pa.Schema, action: str) -> bool:
    """Whether a checkpoint has a column for the vectors of its files."""
    return action in checkpoint.names and any(
        one.name == "deletionVector" for one in checkpoint.field(action).type
    )


def actions_with_vectors(data: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the actions of a version that name a vector."""
    for line in data.splitlines():
        if _NAMES_ONE in line:
            for name, action in json.loads(line).items():
                if name in ("add", "remove"):
                    yield name, action


def _z85(data: bytes) -> str:
    return base64.b85encode(data).decode().translate(_TO_Z85)


def _from_z85(text: str) -> bytes:
    try:
        return base64.b85decode(text.translate(_FROM_Z85))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from error
