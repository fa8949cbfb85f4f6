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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.table import TableConfig
from hudi_core.engine.base import thread_pool
from hudi_core.errors import SchemaError
from hudi_core.model.files import PartitionPath
from hudi_core.read.changes.file_changes import GroupChange
from hudi_core.read.filters import Filter
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.scan import FileScan
from hudi_core.rows.equality import differing_rows
from hudi_core.rows.gathering import take
from hudi_core.rows.sorting import values_of
from hudi_core.schema.table_schema import COMMIT_TIME, META_COLUMNS, RECORD_KEY

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


# --- the rows in which two states of a table differ -----------------------------------------------
# Files that both states have are not read. A row is the one with its record key in its partition,
# as in net changes; here its values decide, not which commit wrote it: a row that was written again
# as it was, or moved to another file, is no difference. So any two states can be compared, the
# later with the earlier one, too.


Places = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class StateDiff:
    """Reads the differences of two states.

    ``keys`` identify a row within its partition only; ``compared`` are the columns that decide
    whether a row differs; ``has_times`` is whether rows have the time of the commit that wrote
    them.
    """

    scan: FileScan
    keys: tuple[str, ...]
    compared: tuple[str, ...]
    has_times: bool

    @classmethod
    def of(cls, scan: FileScan, config: TableConfig) -> StateDiff:
        """Differences in all columns of a scan but the meta columns."""
        compared = tuple(name for name in scan.columns if name not in META_COLUMNS)
        has_meta = config.populate_meta_fields
        return cls(
            scan, (RECORD_KEY,) if has_meta else config.record_key_fields, compared, has_meta
        )

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the rows: the columns, and what happened."""
        return self.scan.output_schema.append(pa.field(CHANGE_TYPE, pa.string(), nullable=False))

    def table(self, before: Sequence[PlannedSlice], after: Sequence[PlannedSlice]) -> pa.Table:
        """Rows inserted, updated and deleted from one state to the other.

        Updated rows are as they are after it, deleted ones as they were before.
        """
        found = [self.output_schema.empty_table()]
        with thread_pool(2) as pool:
            for files in _by_partition(before, after):
                old, new = pool.map(self._read, files)
                found += self._differences(old, new)
        return pa.concat_tables(found)

    def _read(self, files: Sequence[PlannedSlice]) -> pa.Table:
        times = (COMMIT_TIME,) if self.has_times else ()
        tops = (key.partition(".")[0] for key in self.keys)
        columns = dict.fromkeys((*self.scan.columns, *tops, *times))
        return replace(self.scan, columns=tuple(columns), shows_keys=True).table(files)

    def _differences(self, old: pa.Table, new: pa.Table) -> Iterator[pa.Table]:
        each = ({key: values_of(rows, key) for key in self.keys} for rows in (new, old))
        places = _places(*map(pa.table, each))
        is_known = places >= 0
        is_gone = np.ones(old.num_rows, bool)
        is_gone[places[is_known]] = False
        updated = self._updated(old, new, places)
        yield self._rows(old.filter(pa.array(is_gone)), ChangeType.DELETE)
        yield self._rows(take(new, updated), ChangeType.UPDATE)
        yield self._rows(new.filter(pa.array(~is_known)), ChangeType.INSERT)

    def _updated(self, old: pa.Table, new: pa.Table, places: Places) -> Places:
        """Rows of ``new`` that differ from those at their places."""
        rows = np.flatnonzero(places >= 0)
        if self.has_times:
            # a row of the same commit is a copy
            chunks = [*old[COMMIT_TIME].chunks, *new[COMMIT_TIME].chunks]
            times = _codes(pa.chunked_array(chunks, old[COMMIT_TIME].type))
            was, now = times[: len(old)], times[len(old) :]
            rows = rows[was[places[rows]] != now[rows]]
        columns = list(self.compared)
        before = take(old.select(columns), places[rows])
        found: Places = rows[differing_rows(before, take(new.select(columns), rows))]
        return found

    def _rows(self, rows: pa.Table, kind: ChangeType) -> pa.Table:
        kinds = pa.repeat(pa.scalar(kind.value), rows.num_rows)
        seen = self.scan.as_shown(rows.select(list(self.scan.columns)))
        shown = seen.append_column(CHANGE_TYPE, kinds)
        return shown.cast(self.output_schema)


def _by_partition(
    before: Sequence[PlannedSlice], after: Sequence[PlannedSlice]
) -> Iterator[tuple[list[PlannedSlice], list[PlannedSlice]]]:
    """Yield files that one of the states alone has, by partition."""
    both = {_version(file) for file in before} & {_version(file) for file in after}
    found: dict[PartitionPath, tuple[list[PlannedSlice], list[PlannedSlice]]] = {}
    for number, files in enumerate((before, after)):
        for file in files:
            if _version(file) not in both:
                found.setdefault(file.partition_path, ([], []))[number].append(file)
    yield from (found[partition] for partition in sorted(found))


def _version(file: PlannedSlice) -> tuple[object, ...]:
    """What makes two slices the same rows."""
    return (*file.paths, file.until if file.logs else None)


def _places(keys: pa.Table, among: pa.Table) -> Places:
    """Place of each key among others, or -1.

    The first of several rows with one key is that of the first there, and so on.
    """
    every = pa.concat_tables([among, keys])
    codes = _distinct([_codes(column) for column in every.columns])
    theirs, mine = codes[: len(among)], codes[len(among) :]
    if any(np.bincount(some).max(initial=0) > 1 for some in (theirs, mine)):
        numbered = np.concatenate([_numbered(some) for some in (theirs, mine)])
        codes = _distinct([codes, numbered])
        theirs, mine = codes[: len(among)], codes[len(among) :]
    places = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    places[theirs] = np.arange(len(theirs))
    found: Places = places[mine]
    return found


def _codes(column: pa.ChunkedArray) -> Places:
    """Numbers that are equal where the values are."""
    # all chunks get one dictionary
    coded = column.dictionary_encode(null_encoding="encode")
    chunks = [chunk.indices.to_numpy() for chunk in coded.chunks]
    found: Places = np.concatenate([np.zeros(0, np.int64), *chunks]).astype(np.int64)
    return found


def _distinct(codes: Sequence[Places]) -> Places:
    """Small numbers that are equal where all of some numbers are."""
    if len(codes) == 1:
        return codes[0]
    found: Places = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
    return found


def _numbered(codes: Places) -> Places:
    """How many rows before each one have its code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    starts = np.repeat(first, np.diff(np.append(first, len(ordered))))
    found = np.empty(len(codes), np.int64)
    found[order] = np.arange(len(codes)) - starts
    return found
