"""Constants that the parts of an HFile share, and its error."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD

DATA_MAGIC: Final = b"DATABLK*"
META_MAGIC: Final = b"METABLKc"
ROOT_INDEX_MAGIC: Final = b"IDXROOT2"
MIDDLE_INDEX_MAGIC: Final = b"IDXINTE2"
LEAF_INDEX_MAGIC: Final = b"IDXLEAF2"
FILE_INFO_MAGIC: Final = b"FILEINF2"

KEY_TAIL: Final = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
"""What follows the row in every key: no column family, the latest timestamp, type "put"."""
MAX_KEY_BYTES: Final = 32767
"""Longest row key: its length is an int16."""
MAX_BLOCK_BYTES: Final = 512 * 1024 * 1024
"""Largest block accepted, on disk or uncompressed; a block grows with its largest value only."""


class Codec(IntEnum):
    """Compression of every block of a file, by HBase's numbers."""

    GZIP = 1
    NONE = 2


def damaged(path: str, reason: str) -> CorruptMetadataError:
    """Return the error that says what is wrong with an HFile."""
    return CorruptMetadataError(path, reason, REBUILD)
