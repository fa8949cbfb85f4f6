"""What the parts of a table disagree about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hudi_core.model.difference import Difference
from hudi_core.services.repeated_keys import RepeatedKeys


class Source(StrEnum):
    """The part that is wrong."""

    STORAGE = "storage"
    FOOTER = "footer"
    TIMELINE = "timeline"
    METADATA_TABLE = "metadata table"
    FORMAT = "format"
    DATA_FILE = "data file"
    CHECKSUM = "checksum file"
    METASTORE = "metastore"


@dataclass(frozen=True, slots=True)
class TableValidation:
    """What a validation found.

    Attributes
    ----------
    path, table_format
        The table, and its format.
    differences
        What is wrong.
    files, rows
        Of the table's present state; the rows only where footers were read.
    checked
        What was compared: how many things of which kind.
    skipped
        What was not, and why.
    orphans
        Paths of files in the table's folder that belong to nothing, such as those of a write that
        another engine began and gave up. They take room, and are no difference.
    repeated_keys
        The record keys that several rows have; ``None`` where they were not looked for.
    old_lists
        Paths of data files that a format's readers fail on, as lists have two levels in them.
    """

    path: str
    table_format: str
    differences: tuple[Difference, ...]
    files: int
    rows: int | None
    checked: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    orphans: tuple[str, ...] = ()
    repeated_keys: RepeatedKeys | None = None
    old_lists: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing was found."""
        return not self.differences

    def of(self, source: Source) -> tuple[Difference, ...]:
        """Return the differences caused by one part of the table."""
        return tuple(one for one in self.differences if one.source == source)
