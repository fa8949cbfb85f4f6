"""Partitions and checks of the metadata table, for the command line.

Nothing of the library is imported here: help is shown without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from hudi_core.errors import TableServiceError
from hudi_core.metadata.partition_types import RECORD_INDEX

BUILDABLE: Final = (
    "column_stats",
    "partition_stats",
    "bloom_filters",
    "record_index",
    "secondary_index_<name>",
    "expr_index_<name>",
)
"""Partitions that are added on request."""


_OF_COLUMNS: Final = ("secondary_index_", "expr_index_")


def full_name(name: str, *, is_of_function: bool) -> str:
    """The partition of an index that users name."""
    is_full = any(name.startswith(prefix) for prefix in _OF_COLUMNS)
    return name if is_full else _OF_COLUMNS[is_of_function] + name


class Check(Enum):
    """A comparison of the metadata table with the files of its table.

    ``option`` is Hudi's name for it without ``validate-``; ``is_part`` is whether another check
    includes it.
    """

    FILES = "all-file-groups", "All files and sizes."
    LATEST_FILES = "latest-base-files", "The newest base file of every file group.", True
    COLUMN_STATS = "all-column-stats", "Ranges of columns, with the footers of the files."
    PARTITION_STATS = "partition-stats", "Ranges of partitions."
    BLOOM_FILTERS = "bloom-filters", "Bloom filters."
    RECORD_INDEX_COUNT = "record-index-count", "The number of record keys.", True
    RECORD_INDEX = "record-index-content", "The file group of every record key."
    SECONDARY_INDEX = "secondary-index", "Secondary indexes."
    EXPRESSION_INDEX = "expression-index", "Expression indexes."

    def __init__(self, option: str, about: str, is_part: bool = False) -> None:
        self.option = option
        self.about = about
        self.is_part = is_part


ALL_CHECKS: Final = frozenset(one for one in Check if not one.is_part)
"""All that are not part of another."""


# --- which partition an index is that a user names -----------------------------------------------


_OF_COLUMN: Final = "secondary_index"


class AskedPartition(NamedTuple):
    """A partition that an index makes."""

    name: str
    column: str | None
    kind: str | None


def asked_partition(
    name: str,
    columns: Sequence[str],
    using: str | None,
    keys: Sequence[str],
    *,
    has_options: bool,
) -> AskedPartition:
    """The partition of an index, as Hudi's ``CREATE INDEX`` chooses it."""
    is_of_keys = not has_options and set(columns) == set(keys)
    if using == RECORD_INDEX or (using in (None, _OF_COLUMN) and is_of_keys):
        if not is_of_keys:
            raise TableServiceError(
                f"The record index is of the record key, and not of {', '.join(columns)}",
                f"The record key is {', '.join(keys) or 'generated'}.",
            )
        return AskedPartition(RECORD_INDEX, None, None)
    if len(columns) != 1:
        raise TableServiceError(
            f"The index {name} would be of {len(columns)} columns: {', '.join(columns)}",
            "Name one column; the record index alone is of several.",
        )
    kind = None if using == _OF_COLUMN else using
    is_of_function = bool(kind) or has_options
    return AskedPartition(full_name(name, is_of_function=is_of_function), columns[0], kind)
