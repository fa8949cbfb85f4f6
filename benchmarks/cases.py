"""The cases: which table, what is done to it, and who is measured doing it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from workload import Change, Source

BIG_ROWS_PER_CITY = 4_800_000
"""Four files of about 120 MB, the size at which this project starts the next one."""
ONE_FILE = Source("one-file", 100_000, cities=1)
"""A single file group of about 10 MB."""


@dataclass(frozen=True)
class Case:
    """One operation on one batch.

    ``name``: ``bulk_insert``, ``upsert_1``, ... ``share``: rows that the batch changes, as a share
    of the table; ``None`` for the load of a new table and for the change of a single row.
    ``one_city``: whether all of these rows are in one city. ``single``: whether one row of a table
    of one file is changed. ``big``: whether the table has large files and the batch several
    versions of a key. ``variants``: names of those that are measured; ``None`` for all who can do
    it. ``rounds``: rounds are made this many times as often: short calls need more of them.
    """

    name: str
    share: float | None = None
    one_city: bool = False
    single: bool = False
    big: bool = False
    variants: tuple[str, ...] | None = None
    rounds: int = 1

    @property
    def loads(self) -> bool:
        """Whether a new table is loaded."""
        return self.share is None and not self.single

    def source(self, rows: int) -> Source:
        """Rows that the table of a run begins with."""
        if self.single:
            return ONE_FILE
        if self.big:
            return Source("big", rows, cities=min(20, max(1, rows // BIG_ROWS_PER_CITY)))
        return Source("base", rows)

    def change(self, source: Source) -> Change:
        """The change that the batch makes to the table."""
        if self.single:
            return Change(1, inserts=0)
        changed = round(source.rows * (self.share or 0))
        return Change(changed, city=0 if self.one_city else None, versions=self.big)


_ONE_ROW = ("limit", "hudi-core-local", "deltalake", "pyiceberg")
# the others have no answer to several versions of a key
_VERSIONS = ("limit", "hudi-core-local", "hudi-core-spark", "deltalake")

CASES = (
    Case("bulk_insert"),
    Case("upsert_1", 0.01),
    Case("upsert_10", 0.10),
    Case("upsert_50", 0.50),
    Case("upsert_skew", 0.01, one_city=True),
    Case("upsert_one_row", single=True, variants=_ONE_ROW, rounds=5),
    Case("big_files_1", 0.01, big=True, variants=_VERSIONS),
    Case("big_files_10", 0.10, big=True, variants=_VERSIONS),
)

MEMORY = "memory"
"""The case that measures memory, each time in a process of its own; see :mod:`memory`."""

SUITES = {
    "short": ("bulk_insert", "upsert_1", "upsert_10"),
    "all": ("bulk_insert", "upsert_*", MEMORY),
    "big": ("big_files_*",),
}
"""Names for several cases at once."""


def names_of(wanted: str) -> list[str]:
    """Return the cases that a list of suites, names and patterns, separated by commas, means."""
    patterns = [
        pattern for part in wanted.split(",") for pattern in SUITES.get(part.strip(), (part,))
    ]
    known = [*(case.name for case in CASES), MEMORY]
    return [name for name in known if any(fnmatchcase(name, one.strip()) for one in patterns)]
