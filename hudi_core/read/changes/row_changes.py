"""Rows that a file group gained and lost, by comparing base files.

Rows that a write did not touch are copied: they keep their commit time. So a write's own rows are
known by theirs, and what was there before and is not among the copied rows was updated or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.base import thread_pool
from hudi_core.read.changes.file_changes import GroupChange
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.scan import FileScan
from hudi_core.schema.table_schema import COMMIT_TIME, RECORD_KEY


@dataclass(frozen=True)
class RowChanges:
    """The rows of one file group before and after.

    ``gone`` are rows of before that were updated or deleted, ``written`` those of after that the
    writes wrote; ``copied`` are the keys of the other rows of after, ``None`` where all of them
    come from before.
    """

    gone: pa.Table
    written: pa.Table
    copied: pa.Array | None

    @cached_property
    def is_deleted(self) -> pa.Array:
        """Mask of the rows of :attr:`gone` that were not written again."""
        return pc.invert(_among(self.gone, self.written))

    @cached_property
    def is_new(self) -> pa.Array:
        """Mask of the rows of :attr:`written` that were not there before."""
        return pc.invert(_among(self.written, self.gone))


@dataclass(frozen=True, slots=True)
class SliceComparison:
    """Compares base files, here or in tasks."""

    scan: FileScan

    def each(self, changes: Iterable[GroupChange]) -> Iterator[tuple[GroupChange, RowChanges]]:
        """Yield every change with its rows.

        A file that one change ends with and the next one begins with is read once.
        """
        last: PlannedSlice | None = None
        after = self.scan.table(())
        # Arrow reads a file with a single row group in one thread
        with thread_pool(2) as pool:
            for change in changes:
                if change.before is not None and last == change.before:
                    before, after = after, self._read(change.after, change)
                else:
                    read = pool.submit(self._read, change.before, change)
                    after = self._read(change.after, change)
                    before = read.result()
                last = change.after
                yield change, self._compared(change, before, after)

    def with_gone(self, change: GroupChange, gone: pa.Table) -> RowChanges:
        """The rows of a change, where those that are gone are known."""
        after = self._read(change.after, change)
        return RowChanges(gone, after.filter(_is_written(after, change)), None)

    def _compared(self, change: GroupChange, before: pa.Table, after: pa.Table) -> RowChanges:
        is_written = _is_written(after, change)
        written = after.filter(is_written)
        if change.before is None:
            copied = after.filter(pc.invert(is_written))[RECORD_KEY].combine_chunks()
            return RowChanges(before, written, copied if len(copied) else None)
        copied = after[RECORD_KEY].filter(pc.invert(is_written))
        return RowChanges(before.filter(_is_gone(before, written, copied)), written, None)

    def _read(self, file: PlannedSlice | None, change: GroupChange) -> pa.Table:
        scan = self.scan
        if not change.whole:
            scan = replace(scan, columns=(RECORD_KEY, COMMIT_TIME))
        return scan.table(() if file is None else (file,))


def _is_written(after: pa.Table, change: GroupChange) -> pa.ChunkedArray:
    """Mask of the rows that the writes wrote."""
    return pc.is_in(after[COMMIT_TIME], value_set=pa.array(sorted(change.times)))


def keys_among(keys: pa.ChunkedArray | pa.Array, others: Sequence[pa.Array]) -> pa.Array:
    """Mask of the keys that some others have as well."""
    known = pa.chunked_array(list(others), keys.type)
    found = pc.is_in(keys, value_set=known)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _is_gone(before: pa.Table, written: pa.Table, copied: pa.ChunkedArray) -> pa.Array:
    """Mask of the rows that are not among the copied ones.

    Where as many rows are missing as were written again, these are the ones: to look for a few keys
    takes a tenth of the time of looking for nearly all of them.
    """
    if not len(copied):
        return pa.repeat(True, before.num_rows)
    rewritten = _among(before, written)
    missing = before.num_rows - len(copied)
    if pc.sum(rewritten, min_count=0).as_py() == missing:
        repeats = keys_among(copied, written[RECORD_KEY].chunks)
        if not pc.any(repeats, min_count=0).as_py():
            return rewritten
    return pc.invert(keys_among(before[RECORD_KEY], copied.chunks))


def _among(rows: pa.Table, others: pa.Table) -> pa.Array:
    return keys_among(rows[RECORD_KEY], others[RECORD_KEY].chunks)
