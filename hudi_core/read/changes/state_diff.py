"""The rows in which two states of a table differ.

Files that both states have are not read. A row is the one with its record key in its partition, as
in :mod:`hudi_core.read.changes.net_changes`; here its values decide, not which commit wrote it: a
row that was written again as it was, or moved to another file, is no difference. So any two states
can be compared, the later with the earlier one, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.engine.base import thread_pool
from hudi_core.model.files import PartitionPath
from hudi_core.read.changes.net_changes import CHANGE_TYPE, ChangeType
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.scan import FileScan
from hudi_core.rows.equality import differing_rows
from hudi_core.rows.sorting import values_of
from hudi_core.schema.table_schema import COMMIT_TIME, META_COLUMNS, RECORD_KEY

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
        yield self._rows(new.take(pa.array(updated)), ChangeType.UPDATE)
        yield self._rows(new.filter(pa.array(~is_known)), ChangeType.INSERT)

    def _updated(self, old: pa.Table, new: pa.Table, places: Places) -> Places:
        """Rows of ``new`` that differ from those at their places."""
        rows = np.flatnonzero(places >= 0)
        if self.has_times:
            # a row of the same commit is a copy
            times = _codes(pa.chunked_array([*old[COMMIT_TIME].chunks, *new[COMMIT_TIME].chunks]))
            was, now = times[: len(old)], times[len(old) :]
            rows = rows[was[places[rows]] != now[rows]]
        columns = list(self.compared)
        before = old.select(columns).take(pa.array(places[rows]))
        found: Places = rows[differing_rows(before, new.select(columns).take(pa.array(rows)))]
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
