"""Safe paths inside a table, and bounds for sizes of metadata."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import CorruptMetadataError, StorageError, UnsafePathError

_UNSAFE: Final = r"(^|/)\.{0,2}(/|$)|\x00"
_ODD: Final = (b"//", b"/.", b"\0")


def require_safe_path(path: str) -> str:
    """Return ``path`` if it names something below a root.

    Whatever the root is.

    A table's own metadata names paths, and anybody who can write the table can write its metadata;
    every path is checked here before a store sees it.

    Refused are empty and absolute paths, empty, ``.`` and ``..`` segments, and NUL characters.
    """
    if not path:
        raise UnsafePathError(path, "it is empty", "Name a file or folder below the root.")
    if "\0" in path:
        raise UnsafePathError(path, "it has a NUL character")
    if path.startswith("/"):
        raise UnsafePathError(path, "it is absolute", "Paths are relative to the table.")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise UnsafePathError(path, f"it has a segment {segment!r}", "Paths go downwards only.")
    return path


def are_unsafe(paths: pa.StringArray) -> pa.BooleanArray:
    """Mask of the paths that :func:`require_safe_path` refuses."""
    if _may_be_unsafe(paths.cast(pa.large_binary())):
        return pc.match_substring_regex(paths, _UNSAFE)
    return pa.array(np.zeros(len(paths), np.bool_))


def _may_be_unsafe(paths: pa.LargeBinaryArray) -> bool:
    """Whether a path may be refused, by all their bytes together."""
    _, ends, content = paths.buffers()
    places = np.frombuffer(ends, np.int64)[paths.offset :][: len(paths) + 1]
    if not len(paths) or paths.null_count or (places[1:] == places[:-1]).any():
        return True
    text = content[int(places[0]) : int(places[-1])].to_pybytes()
    letters = np.frombuffer(text, np.uint8)
    first, last = letters[places[:-1] - places[0]], letters[places[1:] - places[0] - 1]
    is_odd = np.isin(first, (ord("."), ord("/"))).any() or (last == ord("/")).any()
    return bool(is_odd) or any(one in text for one in _ODD)


def require_safe_folder(path: str) -> str:
    """Return ``path`` if it is safe, or empty for the root itself."""
    return require_safe_path(path) if path else path


def require_size(location: str, size: int, max_bytes: int | None) -> None:
    """Refuse a file larger than its reader accepts, before reading."""
    if max_bytes is not None and size > max_bytes:
        raise CorruptMetadataError(
            location, f"its {size} bytes are more than the {max_bytes} accepted"
        )


def require_range(path: str, offset: int, length: int) -> None:
    """Refuse a part of a file that no file has."""
    if offset < 0 or length < 0:
        raise StorageError(
            f"{path} has no {length} bytes from byte {offset} on",
            "Ask for bytes from the beginning of the file on.",
            path=path,
        )
