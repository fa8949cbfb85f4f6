"""Keys of the metadata table's records (``hudi-format`` section 5)."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.model.files import PartitionPath

ID64_LETTERS: Final = 12
"""Length of an :func:`id64`."""
ALL_PARTITIONS: Final = "__all_partitions__"
"""Key of the record of the partition ``files`` that lists the partitions."""
NO_PARTITION: Final = "."
"""The name, in keys, of the one partition of a table without partitions."""

_SEED: Final = 0xFFFFFFFFDABADABA
"""A negative int of Java's, widened to 64 bits."""
_SEPARATOR: Final = "$"
_NULL: Final = "\0"
_ESCAPED: Final = re.compile(r"[\\$\x00]")
_PART: Final = re.compile(r"(?:[^\\$]|\\.)*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=4096)
def id64(text: str) -> str:
    """Return the short id of a column or partition: 12 letters."""
    return base64.b64encode(xxhash.xxh64_digest(text.encode(), _SEED)).decode()


def id64_of_many(texts: pa.StringArray) -> pa.StringArray:
    """Return :func:`id64` of very many partitions, none of which is remembered."""
    digest, values = xxhash.xxh64_digest, texts.cast(pa.binary()).to_pylist()
    # nine bytes are twelve letters, of which the last is of the ninth
    together = b"\0".join([*[digest(one, _SEED) for one in values], b""])
    letters = np.frombuffer(base64.b64encode(together), np.uint8).reshape(-1, ID64_LETTERS).copy()
    letters[:, -1] = ord("=")
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(ID64_LETTERS), len(values), [None, pa.py_buffer(letters)]
    ).cast(pa.string())


def id128(text: str) -> str:
    """Return the long id of a file name: 24 letters."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def partition_name(partition: PartitionPath) -> str:
    """Return a partition path as the metadata table spells it.

    In keys and values.
    """
    return partition or NO_PARTITION


def partition_path(name: str) -> PartitionPath:
    """Return the partition path of a name; see :func:`partition_name`."""
    return PartitionPath("" if name == NO_PARTITION else name)


def column_stats_key(column: str, partition: PartitionPath, file_name: str) -> str:
    """Return the key of a column's statistics in a file.

    Those of a column begin with its :func:`id64`, and those of a column in a partition with
    :func:`partition_stats_key`.
    """
    return id64(column) + id64(partition or NO_PARTITION) + id128(file_name)


def partition_stats_key(column: str, partition: PartitionPath) -> str:
    """Return the key of a column's statistics in a partition."""
    return id64(column) + id64(partition or NO_PARTITION)


def bloom_filter_key(partition: PartitionPath, file_name: str) -> str:
    """Return the key of a file's bloom filter."""
    return id64(partition_name(partition)) + id128(file_name)


def secondary_prefix(value: str | None) -> str:
    """Prefix of a value's keys in a secondary index.

    ``None`` is null.

    In tables of version 9 this part of the key decides about the shard, in version 8 the whole key.
    """
    text = _NULL if value is None else _escaped(value)
    return text + _SEPARATOR


def secondary_key(value: str | None, record_key: str) -> str:
    """Return the key of an entry of a secondary index."""
    return secondary_prefix(value) + _escaped(record_key)


def split_secondary_key(key: str, path: str) -> tuple[str | None, str]:
    """Return value and record key of a secondary index entry."""
    match = _PART.match(key)
    end = match.end() if match else 0
    rest = key[end + 1 :]
    if key[end : end + 1] != _SEPARATOR or not _PART.fullmatch(rest):
        raise CorruptMetadataError(path, f"{key!r} is no key of a secondary index", REBUILD)
    value = key[:end]
    return None if value == _NULL else _ESCAPE.sub(r"\1", value), _ESCAPE.sub(r"\1", rest)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: "\\" + match[0], text)
