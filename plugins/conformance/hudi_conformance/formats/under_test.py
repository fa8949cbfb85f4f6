"""What the conformance suite must know of a format, and the promises that it checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class FormatUnderTest:
    """A format, and what only its author can do to its tables.

    Attributes
    ----------
    name
        As tables name it.
    read
        Reads the rows of a table with a reader of the format that is not this project's.
    options
        Options for every table.
    """

    name: str
    read: Callable[[Path], Iterable[Row]]
    options: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def rows(self, path: Path) -> Counter[str]:
        """Return the rows of a table as the foreign reader sees them."""
        return bag(self.read(path))


@dataclass(frozen=True)
class TwoStepFormat(FormatUnderTest):
    """A format that has metadata of its own, which others may lose or write.

    Attributes
    ----------
    lose
        Takes the format's metadata of a table away.
    intrude
        Commits to a table as a writer that knows nothing of Hudi.
    commits
        What makes a commit for the format, where that is not the storage of the table: a class,
        the name of its method, and what that raises where a store does not answer.
    """

    lose: Callable[[Path], object]
    intrude: Callable[[Path], object]
    commits: tuple[type, str, Exception] | None = field(default=None, kw_only=True)


def bag(rows: Iterable[Row]) -> Counter[str]:
    """Return rows as they compare, without meta columns; what is null may as well be missing."""
    return Counter(
        repr(
            sorted(
                (name, value)
                for name, value in row.items()
                if value is not None and not name.startswith("_hoodie_")
            )
        )
        for row in rows
    )
