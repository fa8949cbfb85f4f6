"""Logs merged into a base file: rows that go and come.

Log rows are folded first, from the oldest to the newest; what is left of each key then meets the
row of the base file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.config.merge_rules import MergeRules
from hudi_core.errors import CorruptMetadataError
from hudi_core.file_slice.blocks import blocks_of_slice
from hudi_core.file_slice.log_rows import LogRows, has_positions, read_logs
from hudi_core.model.files import FileStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.rows.combine import Positions, distinct, existing_is_newer, order_ranks
from hudi_core.rows.deciding import Mask, deciding_names, order_values
from hudi_core.rows.filling import filled, folded_by, lacks_values, with_stored
from hudi_core.rows.staging import true_mask
from hudi_core.schema.absence import ABSENT, absent_values
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY
from hudi_core.storage.data_files import DataFiles

_NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class BaseRows:
    """Rows of a slice's base file, read where they are needed.

    ``keys`` reads the record keys, ``columns`` some columns of the table.
    """

    path: str
    instant: InstantTime
    keys: Callable[[], pa.ChunkedArray]
    columns: Callable[[Sequence[str]], pa.Table]

    def taken(self, names: Sequence[str], positions: Positions) -> pa.Table:
        """Some columns of the rows at some positions."""
        rows = self.columns(names)
        if positions.max(initial=-1) >= rows.num_rows:
            raise beyond_last_row(self.path)
        return rows.take(pa.array(positions))


def beyond_last_row(path: str) -> CorruptMetadataError:
    """The error of record positions that a base file does not have."""
    return CorruptMetadataError(path, "its logs have record positions beyond its last row")


@dataclass(frozen=True, slots=True)
class MergedLogs:
    """The rows of a slice: its base file without ``dead``, and ``tail``.

    ``dead`` are positions in the base file, ascending.
    """

    dead: Positions
    tail: pa.Table


@dataclass(frozen=True, slots=True)
class SliceMerging:
    """Merges log files into base files.

    ``schema`` has all columns of the table, meta columns first. ``skips``: every row is returned as
    it was written, and deletes are left out of account.
    """

    files: DataFiles
    schema: pa.Schema
    rules: MergeRules
    keys: FileKeys
    timeline: TimelineView | None
    skips: bool = False

    def plan(
        self,
        logs: Sequence[FileStatus],
        until: InstantTime | None,
        base: BaseRows | None,
        columns: Collection[str],
    ) -> MergedLogs | None:
        """Merge the logs of a slice; ``None`` where none counts.

        ``until`` is the requested time of the state that is read, ``None`` for the latest;
        ``columns`` are what the rows are to have, at least.
        """
        blocks = blocks_of_slice(self.files, logs, self.timeline, until)
        if not blocks:
            return None
        by_positions = base is not None and has_positions(blocks, base.instant)
        needed = {*columns, *deciding_names(self.rules)}
        if not by_positions:
            needed |= {RECORD_KEY, *(self.keys.made_of if self.keys.are_made else ())}
        schema = pa.schema([field for field in self.schema if field.name in needed])
        if RECORD_KEY in needed and RECORD_KEY not in schema.names:
            schema = schema.append(pa.field(RECORD_KEY, pa.string()))
        found = read_logs(self.files, blocks, schema, self.rules, by_positions=by_positions)
        if self.skips:
            return MergedLogs(np.empty(0, np.int64), found.rows.filter(pa.array(~found.deletes)))
        path = logs[0].path
        keys = None if by_positions else self._keys(found.rows, path)
        return merged_logs(found, keys, base, self.rules)

    def _keys(self, rows: pa.Table, path: str) -> pa.ChunkedArray:
        """Record keys of log rows, stored or made of columns."""
        stored = rows.column(RECORD_KEY)
        if not stored.null_count:
            return stored
        if not self.keys.are_made:
            raise CorruptMetadataError(path, "a log row has no record key")
        made = self.keys.made(rows.filter(stored.is_null()), path)
        return pa.chunked_array(
            pc.replace_with_mask(
                stored.combine_chunks(), stored.is_null().combine_chunks(), made.combine_chunks()
            )
        )


def merged_logs(
    logs: LogRows, keys: pa.ChunkedArray | None, base: BaseRows | None, rules: MergeRules
) -> MergedLogs:
    """Merge the logs of a slice into its base file.

    ``keys`` are the record keys of the log rows, ``None`` where these have positions.
    """
    codes, uniques = _codes(logs, keys)
    tail, winner = _folded(logs, codes, rules)
    lives, always = ~logs.deletes[winner], logs.always[winner]
    # what a partial update behind a delete lacks comes from the base file, or else is null
    needs = lives.copy()
    needs[codes[logs.deletes]] = False
    met, stored = _meetings(logs, uniques, base)
    late = np.zeros(len(met), bool)
    if base is not None and rules.stored_order and len(met):
        late = _late(tail.take(pa.array(met)), stored, base, rules) & ~always[met]
    if base is not None and (rules.fill is not None or ABSENT in tail.column_names):
        return _completed(tail, lives, _Met(met, stored, late, needs), base, rules)
    if ABSENT in tail.column_names:
        _require_whole(tail.filter(pa.array(needs)), "its file group")
        tail = tail.drop_columns(ABSENT)
    lives[met[late]] = False
    return MergedLogs(distinct(stored[~late]), tail.filter(pa.array(lives)))


@dataclass(frozen=True, slots=True)
class _Met:
    """Folded rows that meet rows of the base file, pair by pair.

    ``late``: the row of the base file is the later version. ``needs``: of all folded rows those
    that have to be whole where they meet none.
    """

    rows: Positions
    stored: Positions
    late: Mask
    needs: Mask


def _codes(logs: LogRows, keys: pa.ChunkedArray | None) -> tuple[Positions, pa.Array]:
    """Ordinals of keys or positions, and what they stand for."""
    found = pa.array(logs.positions) if keys is None else keys.combine_chunks()
    encoded = found.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def _folded(logs: LogRows, codes: Positions, rules: MergeRules) -> tuple[pa.Table, Positions]:
    """One row for each key in the order of the codes.

    And which of the log rows counts."""
    count = len(codes)
    order = np.argsort(codes, kind="stable")
    ranks = np.zeros(count, np.int64)
    if rules.stored_order:
        ranks = order_ranks(order_values(logs.rows, rules.stored_order, rules), count)
        if logs.always.any():
            ranks[order] = _since_deletes(ranks[order], codes[order], logs, order)
    if rules.fill is not None or ABSENT in logs.rows.column_names:
        return folded_by(logs.rows, codes, ranks, logs.deletes, rules, deletes_end=False)
    sorted_codes = codes[order]
    ends = np.flatnonzero(np.append(sorted_codes[1:] != sorted_codes[:-1], True))
    if rules.stored_order:
        scaled = sorted_codes * (count + 1) + ranks[order]
        numbers = np.where(scaled == np.maximum.accumulate(scaled), np.arange(count), -1)
        ends = np.maximum.accumulate(numbers)[ends]
    winner: Positions = order[ends]
    return logs.rows.take(pa.array(winner)), winner


def _since_deletes(
    ranks: Positions, codes: Positions, logs: LogRows, order: Positions
) -> Positions:
    """Ranks by which an unconditional delete ends what was before it.

    Nothing before it counts against what comes after it; and further deletes say nothing until
    there is a row again. All arguments are in the order of the codes.
    """
    always, deletes = logs.always[order], logs.deletes[order]
    count = len(codes)
    resets = np.cumsum(always)
    begins = np.append(True, (codes[1:] != codes[:-1]) | always[1:])
    starts = np.maximum.accumulate(np.where(begins, np.arange(count), 0))
    rows = np.cumsum(~deletes)
    has_row = rows - rows[starts] > 0
    is_ignored = deletes & ~always & always[starts] & ~has_row
    _, found = np.unique(
        resets * (count + 1) + np.where(is_ignored | always, 0, ranks), return_inverse=True
    )
    # of equal ranks the later one counts, and what is ignored must not
    return np.where(is_ignored, -1, found)


def _meetings(
    logs: LogRows, uniques: pa.Array, base: BaseRows | None
) -> tuple[Positions, Positions]:
    """Pairs of a folded row and a position in the base file."""
    if base is None:
        return _NONE, _NONE
    if logs.positions is not None:
        return np.arange(len(uniques)), uniques.to_numpy().astype(np.int64)
    found = pc.index_in(base.keys(), value_set=uniques).combine_chunks()
    stored = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    met = found.take(pa.array(stored)).to_numpy().astype(np.int64)
    # of several rows of one key logs change the first, as in Hudi's own readers
    firsts = np.sort(np.unique(met, return_index=True)[1])
    return met[firsts], stored[firsts]


def _late(tail: pa.Table, stored: Positions, base: BaseRows, rules: MergeRules) -> Mask:
    """Which folded rows are earlier than the row of the base file."""
    tops = sorted({name.partition(".")[0] for name in rules.stored_order})
    had = base.taken(tops, stored)
    found: Mask = true_mask(
        existing_is_newer(
            order_values(had, rules.stored_order, rules),
            order_values(tail, rules.stored_order, rules),
        )
    )
    return found


def _completed(
    tail: pa.Table, lives: Mask, met: _Met, base: BaseRows, rules: MergeRules
) -> MergedLogs:
    """The outcome where rows take what they lack from stored ones."""
    names = [name for name in tail.column_names if name != ABSENT]
    had = base.taken(names, met.stored)
    written = ~met.late
    if rules.fills_stored and rules.fill is not None:
        candidates = np.flatnonzero(met.late & lives[met.rows])
        if not rules.late_is_written:
            candidates = candidates[lacks_values(had.take(pa.array(candidates)), rules)]
        written[candidates] = True
    updates = np.flatnonzero(written & lives[met.rows])
    is_new = lives.copy()
    is_new[met.rows] = False
    parts = [tail.take(pa.array(met.rows[updates])), tail.filter(pa.array(is_new))]
    _require_whole(tail.filter(pa.array(is_new & met.needs)), base.path)
    rows = pa.concat_tables(parts).combine_chunks()
    had, late = had.take(pa.array(updates)), met.late[updates]
    count = len(updates)
    for name, absent in absent_values(rows).items():
        at = rows.schema.get_field_index(name)
        rows = with_stored(rows, at, absent[:count], had.column(name))
    rows = filled(rows, np.arange(count), late, had, rules)
    is_stored = late.any() and not rules.late_is_written
    for name in META_COLUMNS if is_stored else ():
        if name in names:  # a stored row that is filled is still the stored row
            rows = with_stored(rows, rows.schema.get_field_index(name), late, had.column(name))
    return MergedLogs(distinct(met.stored[written]), rows.select(names))


def _require_whole(rows: pa.Table, path: str) -> None:
    """Refuse new rows that lack columns."""
    if any(absent.any() for absent in absent_values(rows).values()):
        raise CorruptMetadataError(path, "a partial update in its logs has no row to update")
