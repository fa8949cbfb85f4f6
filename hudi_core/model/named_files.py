"""Files in a format's newest state, and their recorded column bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_core.model.stats import Scalar


@dataclass(frozen=True, slots=True)
class StatedColumn:
    """A format's statistics of one column of one file.

    Attributes
    ----------
    low, high
        In the internal form of :class:`~hudi_core.model.stats.ColumnStats`: no value of the column
        but NaN lies outside of them. ``None`` where no bound is kept.
    null_count
        Number of nulls; ``None`` where none is kept.
    """

    low: Scalar | None = None
    high: Scalar | None = None
    null_count: int | None = None


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a format names.

    Attributes
    ----------
    path
        Relative to the base path.
    size
        Bytes.
    rows
        Number of rows; ``None`` where the format keeps none.
    columns
        By leaf path; columns of which nothing is kept are left out.
    spelling
        The path as the format spells it, where some of its readers do not take that for this file;
        ``None`` where all do.
    deleted_rows
        Rows that the format has deleted without writing a file of the others: of ``path`` itself by
        a vector, or of other files where ``path`` only says which; then its ``rows`` are 0.
        ``None`` where how many these are cannot be known without reading rows.
    """

    path: str
    size: int
    rows: int | None = None
    columns: Mapping[str, StatedColumn] = field(default_factory=dict)
    spelling: str | None = None
    deleted_rows: int | None = 0
