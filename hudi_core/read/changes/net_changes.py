"""Net changes: rows inserted, updated and deleted between two times.

A row is the one with its record key in its partition. What several writes of the window did to it
comes once, as the difference between before the first and after the last of them, wherever within
the partition its file is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.base import thread_pool
from hudi_core.errors import SchemaError
from hudi_core.model.files import PartitionPath
from hudi_core.read.changes.file_changes import GroupChange
from hudi_core.read.filters import Filter
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.scan import FileScan
from hudi_core.schema.table_schema import COMMIT_TIME, RECORD_KEY

# --- rows that a file group gained and lost, by comparing base files ------------------------------
# Rows that a write did not touch are copied: they keep their commit time. So a write's own rows are
# known by theirs, and what was there before and is not among the copied rows was updated or
# deleted.


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


# --- net changes ----------------------------------------------------------------------------------


CHANGE_TYPE: Final = "_change_type"
"""The column that says what happened to a row; see :class:`ChangeType`."""


class ChangeType(StrEnum):
    """What happened to a row within a window."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


def require_no_change_column(schema: pa.Schema) -> None:
    """Refuse a table with a column of the name that changes need."""
    if CHANGE_TYPE in schema.names:
        raise SchemaError(
            f"The table has a column {CHANGE_TYPE}, which would say what changed",
            "Rename the column, or read the change feed with Table.changes.",
            column=CHANGE_TYPE,
        )


@dataclass(frozen=True, slots=True)
class NetPartitionChange:
    """What a window did to the file groups of one partition."""

    partition_path: PartitionPath
    changes: tuple[GroupChange, ...]

    @property
    def size(self) -> int:
        """Bytes of the files, where known."""
        return sum(change.size for change in self.changes)

    @classmethod
    def of(cls, changes: Iterable[GroupChange]) -> tuple[NetPartitionChange, ...]:
        """Changes by partition; they are in the order of their groups."""
        by_path = groupby(changes, key=lambda change: change.group.partition_path)
        return tuple(cls(path, tuple(some)) for path, some in by_path)


@dataclass(frozen=True, slots=True)
class NetChanges:
    """Reads net changes, here or in tasks.

    ``condition`` applies to rows as they are after the window, and to deleted ones as they were
    before.
    """

    comparison: SliceComparison
    columns: tuple[str, ...]
    condition: Filter | None

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches."""
        schema = self.comparison.scan.schema
        fields = [schema.field(name) for name in self.columns]
        return pa.schema([*fields, pa.field(CHANGE_TYPE, pa.string(), nullable=False)])

    def read(self, partitions: Sequence[NetPartitionChange]) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows, partition by partition."""
        for partition in partitions:
            yield from self._of_partition(partition.changes)

    def _of_partition(self, changes: Sequence[GroupChange]) -> Iterator[pa.RecordBatch]:
        inserted: list[pa.Table] = []
        deleted: list[pa.Table] = []
        moved: list[pa.Array] = []
        of_keys: list[RowChanges] = []
        # where nothing was there before, nothing can have been deleted
        is_new = all(change.before is None for change in changes)
        for change, rows in self.comparison.each(changes):
            if not change.whole:
                of_keys.append(rows)
                continue
            if is_new:
                yield from self._rows(rows.written, ChangeType.INSERT)
                continue
            yield from self._rows(rows.written.filter(pc.invert(rows.is_new)), ChangeType.UPDATE)
            inserted.append(rows.written.filter(rows.is_new))
            deleted.append(rows.gone.filter(rows.is_deleted))
            moved += [rows.copied] if rows.copied is not None else []
        here = [*_keys(inserted), *moved]
        before = _keys(deleted)
        for rows in of_keys:
            here += _keys([rows.written.filter(rows.is_new)])
            here += [rows.copied] if rows.copied is not None else []
            before += _keys([rows.gone.filter(rows.is_deleted)])
        # a row may have been deleted from one file and written to another
        for rows in inserted:
            known = keys_among(rows[RECORD_KEY], before)
            yield from self._rows(rows.filter(known), ChangeType.UPDATE)
            yield from self._rows(rows.filter(pc.invert(known)), ChangeType.INSERT)
        for rows in deleted:
            known = keys_among(rows[RECORD_KEY], here)
            yield from self._rows(rows.filter(pc.invert(known)), ChangeType.DELETE)

    def _rows(self, rows: pa.Table, kind: ChangeType) -> Iterator[pa.RecordBatch]:
        rows = self.comparison.scan.as_shown(rows)
        if self.condition is not None:
            rows = rows.filter(self.condition.expression)
        if not rows.num_rows:
            return
        kinds = pa.repeat(pa.scalar(kind.value), rows.num_rows)
        shown = rows.select(list(self.columns)).append_column(CHANGE_TYPE, kinds)
        yield from shown.cast(self.output_schema).to_batches()


def _keys(tables: Sequence[pa.Table]) -> list[pa.Array]:
    return [chunk for rows in tables for chunk in rows[RECORD_KEY].chunks]
