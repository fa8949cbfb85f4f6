"""Checksum files that Hadoop's local file system keeps beside its files.

``.name.crc`` is that of ``name``: four bytes ``crc\\0``, the number of bytes that a checksum is of,
and the CRC-32 of each such part, all big-endian. Hadoop's readers refuse a file that is not as its
checksum file says, and take one without for right. Object stores have none.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

from hudi_core.errors import PathNotFoundError
from hudi_core.model.protocols import Storage

_MAGIC: Final = b"crc\0"
_HEADER: Final = struct.Struct(">4si")
_ENDING: Final = ".crc"
_MAX_READ: Final = 16 << 20
"""Of longer files only the length is compared."""


def checksum_path(path: str) -> str:
    """The path of a file's checksum file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}{_ENDING}"


def checked_path(path: str) -> str | None:
    """The file that a checksum file is of; ``None`` for other files."""
    folder, slash, name = path.rpartition("/")
    if not name.startswith(".") or not name.endswith(_ENDING) or len(name) < len(_ENDING) + 2:
        return None
    return f"{folder}{slash}{name[1 : -len(_ENDING)]}"


def stale_checksums(storage: Storage, *folders: str) -> tuple[str, ...]:
    """Checksum files below some folders that do not fit their files."""
    sizes = {
        one.path: one.size for folder in folders for one in storage.list(folder, recursive=True)
    }
    pairs = ((path, checked_path(path)) for path in sizes)
    return tuple(
        path
        for path, checked in pairs
        if checked in sizes and _is_stale(storage, path, checked, sizes[checked])
    )


def _is_stale(storage: Storage, path: str, checked: str, size: int) -> bool:
    try:
        checksums = storage.read(path, _MAX_READ)
        if len(checksums) < _HEADER.size:
            return True
        magic, part = _HEADER.unpack_from(checksums)
        if magic != _MAGIC or part < 1:
            return True
        stored = checksums[_HEADER.size :]
        if len(stored) != 4 * -(-size // part):
            return True
        return size <= _MAX_READ and stored != _checksums(storage.read(checked, _MAX_READ), part)
    except PathNotFoundError:
        return False  # deleted since


def _checksums(data: bytes, part: int) -> bytes:
    sums: Sequence[int] = [
        zlib.crc32(data[place : place + part]) for place in range(0, len(data), part)
    ]
    return struct.pack(f">{len(sums)}I", *sums)
