"""A disagreement between the parts of a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing about which the parts of a table disagree.

    Attributes
    ----------
    source
        Whose word is wrong: a part of the table, or a partition of its metadata table.
    subject
        What it is said of: a file, a column of a file or of a partition, a key, an instant.
    expected
        What it is; ``None``: there is no such thing.
    found
        What is said instead; ``None``: nothing.
    is_pending
        Whether the next write repairs it.
    """

    source: str
    subject: str
    expected: str | None
    found: str | None
    is_pending: bool = False

    def __str__(self) -> str:
        stated = "not known" if self.found is None else self.found
        actual = "no such thing" if self.expected is None else self.expected
        return f"{self.source}: {self.subject}: {stated}; expected: {actual}"
