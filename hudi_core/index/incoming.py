"""Incoming rows as an index sees them: winners and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.engine.base import TaskContext
from hudi_core.index.stored_filters import StoredFilters
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.model.ranges import Mask, ValueRanges
from hudi_core.rows.combine import Positions, winners
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import deciding_names, deleted, order_values, require_sequences
from hudi_core.rows.staging import (
    INGEST_ORDER,
    SpillRef,
    StagedPart,
    StagedRows,
    load,
    spill,
    true_mask,
)
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema

ORDERING: Final = "ordering"
"""What the names of columns of keys begin with that hold ordering values."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Partitions whose staged rows are numbered through, one partition after the other.

    ``rows`` has the number of staged rows of each partition.
    """

    paths: tuple[PartitionPath, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, parts: Sequence[StagedPart], paths: Sequence[PartitionPath]) -> Sources:
        """Number the staged rows of some partitions."""
        counts = tuple(sum(part.rows.get(path, 0) for part in parts) for path in paths)
        return cls(tuple(paths), counts)

    @property
    def starts(self) -> Positions:
        """Return the number of the first row of every partition."""
        return np.cumsum([0, *self.rows], dtype=np.int64)[:-1]

    def partition_of(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the ordinal of the partition each row was staged for."""
        if len(self.paths) == 1:
            return np.zeros(len(numbers), np.int64)
        return np.searchsorted(self.starts, numbers, side="right") - 1

    def only(self, ordinals: Sequence[int]) -> Sources:
        """Return some of the partitions, numbered for themselves."""
        return Sources(
            tuple(self.paths[one] for one in ordinals), tuple(self.rows[one] for one in ordinals)
        )

    def renumbered(self, numbers: npt.NDArray[Any], ordinals: Sequence[int]) -> npt.NDArray[Any]:
        """Return the numbers that rows have among some of the partitions only."""
        moved = np.zeros(len(self.paths), np.int64)
        moved[list(ordinals)] = self.only(ordinals).starts
        shift = moved - self.starts
        return np.asarray(numbers + shift[self.partition_of(numbers)])

    def table(
        self, context: WriteContext, parts: Sequence[StagedPart], columns: Sequence[str]
    ) -> pa.Table:
        """Return some columns of the rows, in the order of their numbers."""
        return pa.concat_tables(
            StagedRows(context, parts, path, columns).table() for path in self.paths
        )

    def take(
        self,
        context: WriteContext,
        parts: Sequence[StagedPart],
        numbers: npt.NDArray[Any],
        schema: pa.Schema,
    ) -> pa.Table:
        """Return some of the rows, reading batch by batch.

        ``numbers`` are ascending; ``schema`` may have only some of the staged columns.
        """
        pieces: list[pa.RecordBatch] = []
        starts = self.starts
        cuts = np.searchsorted(numbers, [*starts, np.iinfo(np.int64).max])
        for path, start, low, high in zip(self.paths, starts, cuts, cuts[1:], strict=False):
            if high > low:
                staged = StagedRows(context, parts, path, schema.names)
                pieces += staged.take(numbers[low:high] - start)
        return pa.Table.from_batches(pieces, schema)


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows and files that may match: a partition's, or all.

    ``files`` is empty to look nothing up. ``combine``: rows with one key become one;
    ``deletes_all``: every row deletes, by the operation; ``sort``: new rows are put in the order of
    a bulk insert. ``probes_keys``: keys are asked for before the files are known. ``filters`` are
    those of the metadata table, set where the index asks it instead of the footers.
    """

    parts: tuple[StagedPart, ...]
    sources: Sources
    files: tuple[tuple[PartitionPath, BaseFile], ...]
    combine: bool
    deletes_all: bool
    sort: bool = False
    probes_keys: bool = False
    key_ranges: ValueRanges | None = None
    filters: StoredFilters | None = None

    def may_hold(self, keys: pa.Table) -> tuple[int, ...]:
        """Ordinals of the files that may hold one of the incoming keys."""
        if self.key_ranges is None:
            return tuple(range(len(self.files)))
        mask = self.key_ranges.may_hold(keys.column("key").combine_chunks())
        adds = np.array([file.adds_keys for _, file in self.files], bool)
        return tuple(np.flatnonzero(mask | adds).tolist())


@dataclass(frozen=True, slots=True)
class Incoming:
    """The rows of a scope that count once duplicates are combined.

    ``numbers`` are ascending among the sources; ``deletes`` is which of these delete, ``codes`` the
    ordinal of each key among the distinct ones. ``keys`` has a row per distinct key: ``key``,
    ``number`` (the row that represents it), ``deletes``, and the columns of
    :func:`ordering_columns` where the ordering values decide about a move; it has no rows where no
    key is asked for.
    """

    numbers: Positions
    deletes: Mask
    codes: Positions
    keys: pa.Table


@dataclass(frozen=True, slots=True)
class SpilledIncoming:
    """Incoming rows between two tasks.

    ``files`` are ordinals of the scope's files that may hold one of the keys.
    """

    rows: SpillRef
    keys: SpillRef
    files: tuple[int, ...]

    def load(self, context: WriteContext) -> Incoming:
        """Return the rows."""
        rows = load(context, self.rows).combine_chunks()
        return Incoming(
            rows.column("number").to_numpy(),
            true_mask(rows.column("deletes")),
            rows.column("code").to_numpy(),
            load(context, self.keys),
        )


def incoming_rows(
    scope: Scope, context: WriteContext, schema: TableSchema, moves: bool
) -> Incoming:
    """Combine duplicates and collect the distinct keys."""
    rows = scope.sources.table(context, scope.parts, _deciding_columns(scope, context))
    has_buckets = context.table.buckets is not None
    needs_keys = bool(scope.files) or scope.probes_keys or has_buckets
    keys = None
    if scope.combine or needs_keys:
        keys = record_keys(rows, context, schema)
    rules = context.rules
    ordering: Sequence[pa.ChunkedArray] = ()
    if not scope.deletes_all:
        require_sequences(rows, rules)
        if scope.combine:
            ordering = order_values(rows, rules.batch_order, rules)
    order = arrival_order(rows)
    chosen = _winners(keys, ordering, order) if keys is not None and scope.combine else None
    numbers = np.arange(rows.num_rows) if chosen is None else chosen
    deletes = np.full(len(numbers), scope.deletes_all) | deleted(rows, rules)[numbers]
    if keys is None or not needs_keys:
        return Incoming(numbers, deletes, np.zeros(0, np.int64), pa.table({}))
    counted = keys if chosen is None else keys.take(pa.array(chosen))
    distinct = counted.combine_chunks()
    codes = stands = np.arange(len(distinct))
    if not scope.combine:
        coded = distinct.dictionary_encode()
        distinct, codes = coded.dictionary, coded.indices.to_numpy().astype(np.int64)
        # of rows that were not combined, the last one meets the stored row
        last = _winners(counted, (), order) if len(distinct) < len(codes) else None
        last = np.arange(len(codes)) if last is None else last
        stands = np.empty(len(distinct), dtype=np.int64)
        stands[codes[last]] = last
    columns = {
        "key": distinct,
        "number": pa.array(numbers[stands]),
        "deletes": pa.array(deletes[stands]),
    }
    if moves and not scope.deletes_all:
        values = order_values(rows, rules.stored_order, rules)
        taken = [column.take(pa.array(numbers[stands])).combine_chunks() for column in values]
        columns |= dict(zip(ordering_columns(taken), taken, strict=True))
    return Incoming(numbers, deletes, codes, pa.table(columns))


def ordering_columns(values: Sequence[object]) -> list[str]:
    """Names of the columns of keys that hold ordering values."""
    return [f"{ORDERING}{number}" for number in range(len(values))]


def _deciding_columns(scope: Scope, context: WriteContext) -> list[str]:
    """Return the staged columns that hold a row's key, order and deletion."""
    wanted = {INGEST_ORDER, *key_names(context), *deciding_names(context.rules)}
    names = scope.parts[0].schema.names
    # where nothing decides, one column still counts the rows
    return [name for name in names if name in wanted] or names[:1]


def arrival_order(rows: pa.Table) -> Positions | None:
    """Return the rows in ingest order; ``None`` if already so."""
    if INGEST_ORDER not in rows.column_names:
        return None
    return np.argsort(rows.column(INGEST_ORDER).to_numpy(), kind="stable")


def _winners(
    keys: pa.ChunkedArray, ordering: Sequence[pa.ChunkedArray], order: Positions | None
) -> Positions | None:
    if order is None:
        return winners(keys, ordering)
    in_order = pa.array(order)
    chosen = winners(keys.take(in_order), [column.take(in_order) for column in ordering])
    return None if chosen is None else np.sort(order[chosen])


def spill_incoming(
    task: TaskContext, scope: Scope, incoming: Incoming, context: WriteContext, in_memory: bool
) -> SpilledIncoming:
    """Keep incoming rows for later tasks."""
    rows = pa.table(
        {
            "number": pa.array(incoming.numbers, pa.int64()),
            "deletes": pa.array(incoming.deletes),
            "code": pa.array(incoming.codes, pa.int64()),
        }
    )
    return SpilledIncoming(
        spill(context, task, "rows", rows, in_memory),
        spill(context, task, "keys", incoming.keys, in_memory),
        scope.may_hold(incoming.keys),
    )


def key_names(context: WriteContext) -> set[str]:
    """Top-level columns that :func:`record_keys` needs, where they are staged."""
    return {RECORD_KEY, *(name.split(".")[0] for name in context.table.record_key_fields)}


def record_keys(rows: pa.Table, context: WriteContext, schema: TableSchema) -> pa.ChunkedArray:
    """Return the record key of every row."""
    keys = context.key_generator(schema)
    return pa.chunked_array(
        [keys.record_keys(batch) for batch in rows.to_batches()], type=pa.string()
    )
