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

    ``rows`` is known only where footers were read; ``checked`` counts what was compared by kind;
    ``skipped`` is what was not, and why. ``repeated_keys`` is ``None`` where they were not looked
    for.

    ``orphans`` belong to nothing, such as files of a write that another engine began and gave up:
    they take room, and are no difference. ``old_lists`` are data files that a format's readers fail
    on, as lists have two levels in them.
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
