"""Logs merged into a base file: rows that go and come.

Log rows are folded first, from the oldest to the newest; what is left of each key then meets the
row of the base file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.config.merge_rules import MergeRules
from hudi_core.errors import CorruptMetadataError
from hudi_core.file_slice.blocks import (
    CommittedInstants,
    SliceBlock,
    blocks_of_slice,
    content_of,
)
from hudi_core.file_slice.log_rows import (
    BlockRows,
    LogRows,
    has_positions,
    joined,
    positions_of,
    read_block,
)
from hudi_core.file_slice.spilling import MergeMemory, Shards, StoredRows
from hudi_core.hashing.java_hash import shards_of
from hudi_core.log_format.block import BlockType, are_natural
from hudi_core.model.files import FileStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.combine import Positions, distinct, existing_is_newer, order_ranks
from hudi_core.rows.deciding import Mask, deciding_names, order_values
from hudi_core.rows.filling import filled, folded_by, with_stored
from hudi_core.rows.gathering import take
from hudi_core.rows.staging import true_mask
from hudi_core.schema.absence import ABSENT, absent_values
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY
from hudi_core.storage.data_files import DataFiles, FetchedFiles

_NONE: Final = np.empty(0, dtype=np.int64)
_BATCH_ROWS: Final = 1 << 17


class BaseRows(Protocol):
    """Rows of a slice's base file, read part by part.

    Parts are in the order of the file and come with the position of their first row.
    ``can_match``: whether some of them may be wanted.
    """

    @property
    def path(self) -> str:
        """The file."""
        ...

    @property
    def instant(self) -> InstantTime:
        """The instant that wrote it."""
        ...

    @property
    def can_match(self) -> bool:
        """Whether statistics leave rows that a reader wants."""
        ...

    def record_keys(self) -> Iterator[tuple[int, pa.ChunkedArray]]:
        """Yield the record keys."""
        ...

    def columns(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield some columns of the table."""
        ...


def beyond_last_row(path: str) -> CorruptMetadataError:
    """The error of record positions that a base file does not have."""
    return CorruptMetadataError(path, "its logs have record positions beyond its last row")


@dataclass(frozen=True, slots=True)
class MergedLogs:
    """The rows of a slice: its base file without ``dead``, and ``tail``.

    ``dead`` are positions in the base file, ascending; ``tail`` can be read once, and is on the
    disk where it is not ``held``. ``replaced`` has for each of its rows the position of the dead
    one that it takes the place of, -1 for none. ``records`` is how many rows and deletes the
    ``blocks`` have.
    """

    dead: Positions
    tail: Iterator[pa.Table]
    replaced: Positions = field(default_factory=lambda: _NONE)
    held: bool = True
    blocks: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True)
class FoldedLogs:
    """Log rows merged without their base file: one for each key.

    ``deletes`` are those of delete blocks, of which only record key and ordering values are known.
    ``positions`` are those in the base file, ``None`` where they are not known.
    """

    rows: pa.Table
    deletes: Mask
    positions: Positions | None


@dataclass(frozen=True, slots=True)
class SliceMerging:
    """Merges log files into base files.

    ``schema`` has all columns of the table, meta columns first. ``skips``: every row is returned as
    it was written, and deletes are left out of account. ``fetched`` keeps small logs of an object
    store while their blocks are read.
    """

    files: DataFiles
    schema: pa.Schema
    rules: MergeRules
    keys: FileKeys
    timeline: CommittedInstants | None
    memory: MergeMemory
    skips: bool = False
    fetched: FetchedFiles = field(default_factory=FetchedFiles)

    @contextmanager
    def merged(
        self,
        logs: Sequence[FileStatus],
        until: InstantTime | None,
        base: BaseRows | None,
        columns: Collection[str],
        condition: pc.Expression | None = None,
    ) -> Iterator[MergedLogs | None]:
        """Merge the logs of a slice; ``None`` where none counts.

        ``until`` is the requested time of the state that is read, ``None`` for the latest;
        ``columns`` are what the rows are to have, at least. Rows that do not meet the condition may
        be missing.
        """
        blocks = blocks_of_slice(self.files, logs, self.timeline, until, self.fetched)
        if not blocks:
            yield None
            return
        by_positions = base is not None and has_positions(blocks, base.instant)
        schema = self._needed(columns, by_positions=by_positions)
        parts = (self._part(block, schema, by_positions=by_positions) for block in blocks)
        with ExitStack() as files:
            for log in logs:
                files.callback(self.fetched.take, log.path)
            deletes = self._deletes(blocks) if by_positions and not self.skips else None
            if deletes is not None:
                gone = distinct(np.concatenate(deletes))
                records = sum(len(some) for some in deletes)
                yield MergedLogs(gone, iter(()), blocks=len(blocks), records=records)
                return
            if self.skips:
                lived = (part.rows.filter(pa.array(~part.deletes)) for part in parts)
                yield MergedLogs(_NONE, lived)
                return
            held, shards = self._held(blocks, parts, files)
            if shards is None:
                records = sum(part.rows.num_rows for part in held)
                found = self._merge(held, base, condition)
                yield replace(found, blocks=len(blocks), records=records)
                return
            del held
            tail, records = files.enter_context(StoredRows(self.memory)), 0
            dead: list[Positions] = []
            replaced: list[Positions] = []
            for number in range(len(shards)):
                if some := shards.read(number):
                    records += sum(part.rows.num_rows for part in some)
                    found = self._merge(some, base, condition)
                    dead.append(found.dead)
                    replaced.append(found.replaced)
                    for rows in found.tail:
                        tail.write(rows)
            yield MergedLogs(
                distinct(np.concatenate(dead)),
                tail.read(),
                np.concatenate(replaced),
                held=False,
                blocks=len(blocks),
                records=records,
            )

    def _deletes(self, blocks: Sequence[SliceBlock]) -> list[Positions] | None:
        """Positions of deleted rows, where that is all that blocks have.

        ``None`` where there are rows, or where ordering values decide.
        """
        if any(block.place.type != BlockType.DELETE for block in blocks):
            return None
        found = [positions_of(block) for block in blocks]
        if self.rules.stored_order and not all(
            are_natural(content_of(self.files, block, self.fetched).to_pybytes(), len(some))
            for block, some in zip(blocks, found, strict=True)
        ):
            return None
        return found

    def folded(
        self, blocks: Sequence[SliceBlock], base: InstantTime | None
    ) -> Iterator[FoldedLogs]:
        """Yield what blocks come to, part by part, without their base file.

        To merge that into any base file, or with later blocks, is to merge them all. No block may
        be of partial updates. ``base`` is the instant of the base file, if there is one.
        """
        by_positions = base is not None and has_positions(blocks, base)
        schema = self._needed(self.schema.names, by_positions=by_positions)
        parts = (self._part(block, schema, by_positions=by_positions) for block in blocks)
        with ExitStack() as files:
            held, shards = self._held(blocks, parts, files)
            if shards is None:
                yield self._fold(held)
                return
            del held
            for number in range(len(shards)):
                if some := shards.read(number):
                    yield self._fold(some)

    def _fold(self, parts: Sequence[BlockRows]) -> FoldedLogs:
        logs, rules = joined(parts), self.rules
        codes, _ = _codes(logs, _keys(logs))
        ranks = _ranks(logs, codes, rules)
        if rules.fill is None:
            winner = _winners(codes, ranks, rules)
            rows = take(logs.rows, winner)
        else:
            rows, winner = folded_by(
                logs.rows, codes, ranks, logs.deletes, rules, deletes_end=False
            )
        positions = None if logs.positions is None else logs.positions[winner]
        return FoldedLogs(rows, logs.bare[winner], positions)

    def _merge(
        self, parts: Sequence[BlockRows], base: BaseRows | None, condition: pc.Expression | None
    ) -> MergedLogs:
        logs = joined(parts)
        keys = _keys(logs)
        if keys is not None and RECORD_KEY not in self.schema.names:
            logs = replace(logs, rows=logs.rows.drop_columns(RECORD_KEY))
        return merged_logs(logs, keys, base, self.rules, condition)

    def _needed(self, columns: Collection[str], *, by_positions: bool) -> pa.Schema:
        """The columns to read of log rows."""
        needed = {*columns, *deciding_names(self.rules)}
        if not by_positions:
            needed |= {RECORD_KEY, *(self.keys.made_of if self.keys.are_made else ())}
        fields = [field for field in self.schema if field.name in needed]
        if RECORD_KEY in needed and RECORD_KEY not in self.schema.names:
            fields.append(pa.field(RECORD_KEY, pa.string()))
        # a table without columns does not know how many rows it has
        return pa.schema(fields or [self.schema.field(0)])

    def _part(self, block: SliceBlock, schema: pa.Schema, *, by_positions: bool) -> BlockRows:
        """The rows of a block, with record keys unless they have positions."""
        part = read_block(
            self.files, block, schema, self.rules, self.fetched, by_positions=by_positions
        )
        if by_positions:
            return part
        at = part.rows.schema.get_field_index(RECORD_KEY)
        stored = part.rows.column(at)
        if not stored.null_count:
            return part
        if not self.keys.are_made:
            raise CorruptMetadataError(block.path, "a log row has no record key")
        made = self.keys.made(part.rows.filter(stored.is_null()), block.path)
        keys = pc.replace_with_mask(
            stored.combine_chunks(), stored.is_null().combine_chunks(), made.combine_chunks()
        )
        rows = part.rows.set_column(at, part.rows.schema.field(at), keys)
        return replace(part, rows=rows, lacking=part.lacking - {RECORD_KEY})

    def _held(
        self, blocks: Sequence[SliceBlock], parts: Iterable[BlockRows], files: ExitStack
    ) -> tuple[list[BlockRows], Shards | None]:
        """Log rows in memory, or all of them in shards."""
        held: list[BlockRows] = []
        shards: Shards | None = None
        size = content = 0
        for block, part in zip(blocks, parts, strict=True):
            held.append(part)
            size += part.rows.nbytes
            content += block.place.size
            if shards is None and size > self.memory.limit:
                all_content = sum(one.place.size for one in blocks)
                count = self.memory.shards_for(size * all_content / max(1, content))
                shards = Shards(self.memory, count, files)
            if shards is not None:
                for one in held:
                    shards.add(one, _shards(one, len(shards)))
                held.clear()
        return held, shards


def _keys(logs: LogRows) -> pa.ChunkedArray | None:
    return None if logs.positions is not None else logs.rows.column(RECORD_KEY)


def _shards(part: BlockRows, count: int) -> Positions:
    """The shard of each row of a block."""
    if part.positions is not None:
        return part.positions % count
    return shards_of(part.rows.column(RECORD_KEY).combine_chunks(), count)


def merged_logs(
    logs: LogRows,
    keys: pa.ChunkedArray | None,
    base: BaseRows | None,
    rules: MergeRules,
    condition: pc.Expression | None = None,
) -> MergedLogs:
    """Merge log rows into a base file.

    ``keys`` are their record keys, ``None`` where they have positions. Rows that do not meet the
    condition may be missing.
    """
    codes, uniques = _codes(logs, keys)
    ranks = _ranks(logs, codes, rules)
    fills = rules.fill is not None or ABSENT in logs.rows.column_names
    if fills:
        tail, winner = folded_by(logs.rows, codes, ranks, logs.deletes, rules, deletes_end=False)
    else:
        tail, winner = logs.rows, _winners(codes, ranks, rules)
        can_match = base is not None and base.can_match
        if condition is not None and not can_match and not _any(condition, tail):
            return MergedLogs(_NONE, iter(()))
    lives, always = ~logs.deletes[winner], logs.always[winner]
    # what a partial update behind a delete lacks comes from the base file, or else is null
    needs = lives.copy()
    needs[codes[logs.deletes]] = False
    met, stored = _meetings(logs, uniques, base)
    late = np.zeros(len(met), bool)
    if base is not None and rules.stored_order and len(met):
        tops = sorted({name.partition(".")[0] for name in rules.stored_order})
        own = (met if fills else winner[met]).astype(np.int64)
        ours = tail.select(tops).take(pa.array(own))
        late = _late(ours, taken(base, tops, stored), rules) & ~always[met]
    if base is not None and fills:
        return _completed(tail, lives, _Met(met, stored, late, needs, winner), base, rules)
    if ABSENT in tail.column_names:
        _require_whole(tail.filter(pa.array(needs)), "its file group")
        tail = tail.drop_columns(ABSENT)
    lives[met[late]] = False
    stays = lives
    own = np.arange(tail.num_rows)
    if not fills:
        stays, own = np.zeros(tail.num_rows, bool), winner
        stays[winner[lives]] = True
    replaced = np.full(tail.num_rows, -1)
    replaced[own[met]] = stored
    return MergedLogs(distinct(stored[~late]), _kept(tail, stays), replaced[stays])


def living(rows: pa.Table, dead: Positions) -> pa.Table:
    """Rows of a base file but for some positions."""
    if not len(dead):
        return rows
    stays = np.ones(rows.num_rows, bool)
    stays[dead] = False
    return rows.filter(pa.array(stays))


def _any(condition: pc.Expression, rows: pa.Table) -> bool:
    """Whether a row meets the condition."""
    return bool(rows.filter(condition).num_rows)


def _kept(rows: pa.Table, stays: Mask) -> Iterator[pa.Table]:
    """Yield the rows that stay, part by part.

    They are not in memory twice.
    """
    if stays.all():
        yield rows
        return
    start = 0
    for batch in rows.to_batches(_BATCH_ROWS):
        end = start + batch.num_rows
        yield pa.Table.from_batches([batch]).filter(pa.array(stays[start:end]))
        start = end


def taken(base: BaseRows, names: Sequence[str], positions: Positions) -> pa.Table:
    """Some columns of the rows at ascending positions."""
    found, end = [], 0
    for start, rows in base.columns(names):
        end = start + rows.num_rows
        begin, stop = np.searchsorted(positions, (start, end))
        found.append(take(rows, positions[begin:stop] - start))
    if positions.max(initial=-1) >= end:
        raise beyond_last_row(base.path)
    return pa.concat_tables(found)


@dataclass(frozen=True, slots=True)
class _Met:
    """Folded rows that meet rows of the base file, pair by pair.

    ``late``: the row of the base file is the later version. ``needs``: of all folded rows those
    that have to be whole where they meet none. ``winner``: the log row that counts for each.
    """

    rows: Positions
    stored: Positions
    late: Mask
    needs: Mask
    winner: Positions


def _codes(logs: LogRows, keys: pa.ChunkedArray | None) -> tuple[Positions, pa.Array]:
    """Ordinals of keys or positions, and what they stand for."""
    positions = logs.positions
    if positions is not None and (positions[1:] > positions[:-1]).all():
        return np.arange(len(positions)), pa.array(positions)
    found = pa.array(positions) if keys is None else keys.combine_chunks()
    encoded = found.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def _ranks(logs: LogRows, codes: Positions, rules: MergeRules) -> Positions:
    """By which of two log rows of a key the greater counts."""
    count = len(codes)
    if not rules.stored_order:
        return np.zeros(count, np.int64)
    ranks: Positions = order_ranks(order_values(logs.rows, rules.stored_order, rules), count)
    if logs.always.any():
        order = np.argsort(codes, kind="stable")
        ranks[order] = _since_deletes(ranks[order], codes[order], logs, order)
    return ranks


def _winners(codes: Positions, ranks: Positions, rules: MergeRules) -> Positions:
    """Which log row counts, by the codes of the keys."""
    count = len(codes)
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    ends = np.flatnonzero(np.append(sorted_codes[1:] != sorted_codes[:-1], True))
    if rules.stored_order:
        scaled = sorted_codes * (count + 1) + ranks[order]
        numbers = np.where(scaled == np.maximum.accumulate(scaled), np.arange(count), -1)
        ends = np.maximum.accumulate(numbers)[ends]
    winner: Positions = order[ends]
    return winner


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
    """Pairs of a folded row and a position in the base file.

    The positions ascend.
    """
    if base is None:
        return _NONE, _NONE
    if logs.positions is not None:
        stored = uniques.to_numpy().astype(np.int64)
        order = np.argsort(stored, kind="stable")
        return order, stored[order]
    found = [(_NONE, _NONE)]
    is_open = np.ones(len(uniques), bool)
    for start, keys in base.record_keys():
        codes = pc.index_in(keys, value_set=uniques)
        at = np.flatnonzero(codes.is_valid().to_numpy())
        own = codes.drop_null().to_numpy().astype(np.int64)
        # of several rows of one key logs change the first, as in Hudi's own readers
        first = np.full(len(uniques), -1)
        first[own[::-1]] = np.arange(len(own))[::-1]
        is_first = (first[own] == np.arange(len(own))) & is_open[own]
        is_open[own] = False
        found.append((own[is_first], at[is_first] + start))
    met, stored = zip(*found, strict=True)
    return np.concatenate(met), np.concatenate(stored)


def _late(ours: pa.Table, stored: pa.Table, rules: MergeRules) -> Mask:
    """Which rows are earlier than those of the base file."""
    found: Mask = true_mask(
        existing_is_newer(
            order_values(stored, rules.stored_order, rules),
            order_values(ours, rules.stored_order, rules),
        )
    )
    return found


def _completed(
    tail: pa.Table, lives: Mask, met: _Met, base: BaseRows, rules: MergeRules
) -> MergedLogs:
    """The outcome where rows take what they lack from stored ones.

    Its rows are in the order of the log rows that count, as they are where none lacks a column:
    writes know rows by their places, whatever columns they read.
    """
    names = [name for name in tail.column_names if name != ABSENT]
    had = taken(base, names, met.stored)
    written = ~met.late
    if rules.fills_stored and rules.fill is not None:
        # also where the stored row lacks nothing: that depends on the columns that are read
        written |= lives[met.rows]
    updates = np.flatnonzero(written & lives[met.rows])
    is_new = lives.copy()
    is_new[met.rows] = False
    parts = [take(tail, met.rows[updates]), tail.filter(pa.array(is_new))]
    _require_whole(tail.filter(pa.array(is_new & met.needs)), base.path)
    rows = pa.concat_tables(parts).combine_chunks()
    had, late = take(had, updates), met.late[updates]
    count = len(updates)
    for name, absent in absent_values(rows).items():
        at = rows.schema.get_field_index(name)
        rows = with_stored(rows, at, absent[:count], had.column(name))
    rows = filled(rows, np.arange(count), late, had, rules)
    is_stored = late.any() and not rules.late_is_written
    for name in META_COLUMNS if is_stored else ():
        if name in names:  # a stored row that is filled is still the stored row
            rows = with_stored(rows, rows.schema.get_field_index(name), late, had.column(name))
    replaced = np.concatenate([met.stored[updates], np.full(rows.num_rows - count, -1)])
    winner = met.winner
    order = np.argsort(np.concatenate([winner[met.rows[updates]], winner[is_new]]))
    rows = take(rows.select(names), order)
    return MergedLogs(distinct(met.stored[written]), iter((rows,)), replaced[order])


def _require_whole(rows: pa.Table, path: str) -> None:
    """Refuse new rows that lack columns."""
    if any(absent.any() for absent in absent_values(rows).values()):
        raise CorruptMetadataError(path, "a partial update in its logs has no row to update")
