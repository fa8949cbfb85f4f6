"""Partitions and checks of the metadata table, for the command line.

Nothing of the library is imported here: help is shown without it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

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
