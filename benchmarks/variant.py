"""What is compared: something that loads and upserts a table, and says how it does so."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from workload import BEGAN, CHANGED, KEY, ORDERING, Batch


@dataclass(frozen=True)
class Traits:
    """What makes two variants differ beside their speed; printed with every result.

    ``layout``: how rows are spread over files, and the columns that were added to them. ``index``:
    how an upsert finds the rows that it replaces. ``ordering``: whether an upsert compares the
    ordering field of old and new rows. ``codec``: compression of the files written. ``statistics``:
    what is kept about the columns for readers. ``fsync``: what is on the disk for sure when the
    call returns.
    """

    layout: str
    index: str
    ordering: str
    codec: str
    statistics: str
    fsync: str


class Variant(Protocol):
    """One way to write a table. Paths of tables are folders that nothing else uses."""

    @property
    def name(self) -> str: ...

    @property
    def traits(self) -> Traits: ...

    @property
    def slow(self) -> bool:
        """Whether an upsert takes so long that large batches are left out."""
        ...

    @property
    def loads(self) -> bool:
        """Whether the load of a new table is measured."""
        ...

    @property
    def upserts(self) -> bool:
        """Whether an upsert is measured."""
        ...

    def load(self, rows: Batch, table: Path) -> None:
        """Create the table and write all rows to it; this call is measured."""
        ...

    def upsert(self, rows: Batch, table: Path) -> None:
        """Change and add rows of a loaded table; this call is measured."""
        ...

    def files(self, table: Path) -> Sequence[Path]:
        """Return the data files of the table as a reader that did not write it finds them."""
        ...


_COUNTED = pa.schema([(KEY, pa.string()), (ORDERING, pa.timestamp("us", "UTC"))])


@dataclass(frozen=True)
class Contents:
    """What a table holds.

    ``rows``, ``keys``: rows, and distinct keys among them. ``changed``: rows that come from an
    upsert batch. ``late``: rows that are older than the ones they replaced. ``files``, ``bytes``:
    data files and their size.
    """

    rows: int
    keys: int
    changed: int
    late: int
    files: int
    bytes: int


class WrongRowsError(Exception):
    """A variant was quick, but its table does not hold the rows it should."""


def inspect(files: Sequence[Path]) -> Contents:
    """Count what the files of a table hold, read with pyarrow alone."""
    size = sum(path.stat().st_size for path in files)
    # a schema of our own: some writers store string views, which pyarrow cannot count
    stored = ds.dataset([str(path) for path in files], schema=_COUNTED, format="parquet")
    found = stored.to_table()
    changed = pc.sum(pc.greater_equal(found.column(ORDERING), CHANGED)).as_py() or 0
    late = pc.sum(pc.less(found.column(ORDERING), BEGAN)).as_py() or 0
    keys = pc.count_distinct(found.column(KEY)).as_py()
    return Contents(found.num_rows, keys, changed, late, len(files), size)


def verify(variant: Variant, table: Path, rows: int, changed: int) -> Contents:
    """Contents of a table: ``rows`` keys, each once, ``changed`` of them by the newest version of
    the batch and none by a late one.

    ``WrongRowsError``: It holds something else.
    """
    contents = inspect(variant.files(table))
    found = (contents.rows, contents.keys, contents.changed, contents.late)
    if found != (rows, rows, changed, 0):
        raise WrongRowsError(
            f"{variant.name}: expected {rows:,} rows and keys, {changed:,} of them changed; "
            f"found {contents.rows:,} rows, {contents.keys:,} keys, {contents.changed:,} changed, "
            f"{contents.late:,} late"
        )
    return contents


def restore(pristine: Path, table: Path) -> None:
    """Bring a table back to the state of a copy; data files, which no write changes, are linked."""
    shutil.rmtree(table, ignore_errors=True)
    shutil.copytree(pristine, table, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    if source.endswith(".parquet"):
        Path(target).hardlink_to(source)
    else:
        shutil.copy2(source, target)
