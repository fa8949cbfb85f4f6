"""File slices as a write finds them: which rows live, and where."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import plain
from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.reader import (
    FileContext,
    read_columns,
    read_record_keys,
    row_count,
)
from hudi_core.config.merge_rules import merge_rules
from hudi_core.file_slice.blocks import blocks_of_slice
from hudi_core.file_slice.merged_logs import BaseRows, SliceMerging, living, taken
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.log_format.block import BlockType
from hudi_core.model.files import BaseFile, FileStatus, LogFileName
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.combine import Positions
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import Mask
from hudi_core.rows.gathering import take
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import FetchedFiles

_ABSENT: Final = -1
_NONE: Final = np.empty(0, np.int64)
BEYOND: Final = 1 << 30
"""What rows that only logs have are numbered from: no base file has as many."""


@dataclass(frozen=True)
class WrittenBase:
    """The base file of a slice.

    Read whole column by column, each once.
    """

    files: FileContext
    base: BaseFile
    can_match: bool = True

    @property
    def path(self) -> str:
        return self.base.path

    @property
    def instant(self) -> InstantTime:
        return self.base.instant

    def record_keys(self) -> Iterator[tuple[int, pa.ChunkedArray]]:
        yield 0, read_record_keys(self.files, self.base.path, self.base.size)

    def columns(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        missing = [name for name in names if name not in self._read]
        if missing:
            rows = read_columns(self.files, self.base, missing)
            self._read.update(zip(missing, rows.columns, strict=True))
        schema = self.files.schema.with_meta()
        fields = pa.schema([schema.field(name) for name in names])
        yield 0, pa.table([self._read[name] for name in names], schema=fields)

    @cached_property
    def _read(self) -> dict[str, pa.ChunkedArray]:
        return {}


@dataclass(frozen=True, slots=True)
class HeldBase:
    """The base file of a slice whose rows are in memory."""

    file: BaseFile
    rows: pa.Table
    schema: pa.Schema
    can_match: bool = True

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def instant(self) -> InstantTime:
        return self.file.instant

    def record_keys(self) -> Iterator[tuple[int, pa.ChunkedArray]]:
        yield 0, plain(self.rows.column(RECORD_KEY)).cast(pa.string())

    def columns(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        schema = pa.schema([self.schema.field(name) for name in names])
        columns = [plain(self.rows.column(name)) for name in names]
        yield 0, pa.table(columns, names=list(names)).cast(schema)


@dataclass(frozen=True, slots=True)
class OwnInstants:
    """The instants that the names of log files have.

    From table version 8 on a log file has the name of its writer, and those of a slice are of
    completed ones.
    """

    times: frozenset[InstantTime]

    def is_committed(self, time: InstantTime) -> bool:
        """Whether it is one of them."""
        return time in self.times


@dataclass(frozen=True)
class StoredSlice:
    """The rows of a slice, in some columns at least.

    ``stored`` are those of the base file, ``dead`` the positions of those that logs replaced or
    deleted; ``tail`` are the rows that logs have instead of these, or beside them. The latter,
    ``added`` in the order of their keys, have positions from :data:`BEYOND` on: the same whatever
    columns are read.
    """

    files: FileContext
    base: BaseFile
    stored: BaseRows
    dead: Positions
    tail: pa.Table
    replaced: Positions
    added: Positions

    @cached_property
    def _tail_of_dead(self) -> Positions:
        """Row of the tail for each dead row, -1 of deleted ones."""
        rows = np.full(len(self.dead), _ABSENT)
        in_base = np.flatnonzero(self.replaced >= 0)
        rows[np.searchsorted(self.dead, self.replaced[in_base])] = in_base
        return rows

    @property
    def added_keys(self) -> pa.Array:
        """Record keys of rows that only logs have.

        Their positions begin at :data:`BEYOND`.
        """
        return self.tail.column(RECORD_KEY).combine_chunks().take(pa.array(self.added))

    def added_rows(self, positions: Positions, names: Sequence[str]) -> pa.Table:
        """Rows that only logs have, at their positions."""
        return take(self.tail.select(list(names)), self.added[positions - BEYOND])

    def are_dead(self, positions: Positions) -> Mask:
        """Which rows of the base file logs replaced or deleted."""
        if not len(self.dead):
            return np.zeros(len(positions), bool)
        at = np.minimum(np.searchsorted(self.dead, positions), len(self.dead) - 1)
        found: Mask = self.dead[at] == positions
        return found

    def are_deleted(self, positions: Positions) -> Mask:
        """Which rows of the base file logs deleted."""
        found = self.are_dead(positions)
        if found.any():
            found[found] = self._replacing(positions[found]) == _ABSENT
        return found

    def _replacing(self, dead: Positions) -> Positions:
        return self._tail_of_dead[np.searchsorted(self.dead, dead)]

    def rows(self, positions: Positions, names: Sequence[str]) -> pa.Table:
        """The present rows at ascending positions of the base file.

        None of them may be deleted.
        """
        dead, beyond = self.are_dead(positions), positions >= BEYOND
        in_base = ~dead & ~beyond
        found = taken(self.stored, names, positions[in_base])
        if in_base.all():
            return found
        chosen = [self._replacing(positions[dead]), self.added[positions[beyond] - BEYOND]]
        own = take(self.tail.select(list(names)), np.concatenate(chosen))
        both = pa.concat_tables([found, own.cast(found.schema)])
        order = np.empty(len(positions), np.int64)
        parts = [np.flatnonzero(some) for some in (in_base, dead, beyond)]
        order[np.concatenate(parts)] = np.arange(len(positions))
        return take(both, order)

    def places(self, positions: Positions) -> Positions:
        """Rows of base file, then of the tail, without dead ones.

        -1 for positions whose rows are deleted.
        """
        dead, beyond = self.are_dead(positions), positions >= BEYOND
        found = positions - np.searchsorted(self.dead, positions)
        if dead.any() or beyond.any():
            alive = self._base_rows - len(self.dead)
            replacing = self._replacing(positions[dead])
            found[dead] = np.where(replacing == _ABSENT, _ABSENT, alive + replacing)
            found[beyond] = alive + self.added[positions[beyond] - BEYOND]
        return found

    def positions(self, places: Positions) -> Positions:
        """Positions in the base file of present rows; the reverse of :meth:`places`."""
        alive = np.delete(np.arange(self._base_rows), self.dead)
        tail = self.replaced.copy()
        tail[self.added] = BEYOND + np.arange(len(self.added))
        found: Positions = np.concatenate([alive, tail])[places]
        return found

    def merged_into(self, rows: pa.Table) -> pa.Table:
        """The rows of the slice, in the order of :meth:`places`.

        ``rows`` are those of its base file.
        """
        kept = living(rows, self.dead)
        return pa.concat_tables([kept, self.tail.select(rows.column_names).cast(kept.schema)])

    @property
    def row_count(self) -> int:
        """How many rows the slice has."""
        return int(self._base_rows - len(self.dead) + self.tail.num_rows)

    @cached_property
    def _base_rows(self) -> int:
        if not self.base.is_stored:
            return 0
        return row_count(self.files, self.base.path, self.base.size)


def has_deletes(files: FileContext, base: BaseFile) -> bool:
    """Whether the logs of a slice delete rows."""
    blocks = blocks_of_slice(files.files, base.logs, own_instants(base.logs), None, files.fetched)
    return any(block.place.type == BlockType.DELETE for block in blocks)


def own_instants(logs: Iterable[FileStatus]) -> OwnInstants:
    """The instants of log files, by their names."""
    parsed = [LogFileName.parse(log.name) for log in logs]
    return OwnInstants(frozenset(one.instant for one in parsed if one is not None))


def stored_slice(
    files: WriteContext,
    base: BaseFile,
    columns: Collection[str],
    rows: pa.Table | None = None,
    memory: MergeMemory | None = None,
) -> StoredSlice:
    """Read what the logs of a slice make of its base file.

    ``base`` has the logs; ``columns`` are those that are wanted of their rows. ``rows`` are all
    of the base file, where they are in memory. Log rows are on the disk where they take more than
    ``memory``, by default that which the options of the write give.
    """
    schema = files.schema.with_meta()
    keys = FileKeys(files.base_path, files.table, files.schema)
    wanted = {*columns} or {RECORD_KEY}
    if RECORD_KEY in wanted and keys.are_made:
        wanted.update(keys.made_of)
    names = [name for name in schema.names if name in wanted]
    nothing = pa.schema([schema.field(name) for name in names]).empty_table()
    stored: BaseRows = WrittenBase(files, base)
    if rows is not None or not base.is_stored:
        stored = HeldBase(base, schema.empty_table() if rows is None else rows, schema)
    if not base.logs:
        return StoredSlice(files, base, stored, _NONE, nothing, _NONE, _NONE)
    memory = memory or MergeMemory(files.write.merge_memory, files.write.spill_folder)
    merging = SliceMerging(
        files.files,
        schema,
        merge_rules(files.table),
        keys,
        own_instants(base.logs),
        memory,
        fetched=files.fetched or FetchedFiles(),
    )
    with merging.merged(base.logs, None, stored if base.is_stored else None, names) as found:
        if found is None:
            return StoredSlice(files, base, stored, _NONE, nothing, _NONE, _NONE)
        added = np.flatnonzero(found.replaced < 0)
        held = names if RECORD_KEY in names or not len(added) else [*names, RECORD_KEY]
        empty = pa.schema([schema.field(name) for name in held]).empty_table()
        parts = (rows.select(held) for rows in found.tail)
        if found.held:
            tail = pa.concat_tables([empty, *parts])
        else:
            tail = memory.mapped(empty.schema, parts)
    if len(added):
        # columns that blocks of partial updates lack make for another order of the tail
        added = added[pc.sort_indices(tail.column(RECORD_KEY).take(pa.array(added))).to_numpy()]
        tail = tail.select(names)
    if keys.are_made and RECORD_KEY in names:
        at = tail.schema.get_field_index(RECORD_KEY)
        tail = tail.set_column(at, tail.schema.field(at), keys.made(tail, base.path))
    return StoredSlice(files, base, stored, found.dead, tail, found.replaced, added)
