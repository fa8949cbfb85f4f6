"""Probes files for incoming keys, and finds late rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.base_file.reader import read_column, read_known_keys, read_record_keys
from hudi_core.index import index_of
from hudi_core.index.base import Matches, join_keys
from hudi_core.index.collisions import (
    ambiguity_of,
    require_same_stored,
    stored_key_columns,
)
from hudi_core.index.incoming import ORDERING, Incoming, Scope, key_names
from hudi_core.index.stored_filters import KnownFooters
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.model.files import BaseFile, FileId
from hudi_core.model.ranges import Mask
from hudi_core.rows.combine import IntArray, Positions, distinct, existing_is_newer
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import order_values
from hudi_core.rows.staging import true_mask


@dataclass(frozen=True, slots=True)
class FileCandidates:
    """Base files as an index asks for them."""

    context: WriteContext
    files: Sequence[BaseFile]
    known: KnownFooters | None = None

    def __len__(self) -> int:
        return len(self.files)

    def file_id(self, ordinal: int) -> FileId:
        return self.files[ordinal].name.file_id

    def footer(self, ordinal: int) -> KeyFooter:
        known = None if self.known is None else self.known.footer(ordinal)
        return known or read_known_keys(self.context, self.files[ordinal].path)

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        file = self.files[ordinal]
        return read_record_keys(self.context, file.path, file.size)


@dataclass(frozen=True, slots=True)
class LocatedKeys:
    """Incoming keys that one file holds.

    ``file`` is an ordinal within the scope. ``keys`` and ``stored`` are pairs: ordinal of the key,
    position of the row in the file. ``late`` marks stored rows with a greater ordering value than
    the incoming row, where that has to be known before rows are merged; else it is false.
    """

    file: int
    keys: Positions
    stored: Positions
    late: Mask


def locate(
    scope: Scope, incoming: Incoming, context: WriteContext, ordinals: Sequence[int]
) -> list[LocatedKeys]:
    """Look for incoming keys in some files of a scope."""
    chosen = [scope.files[ordinal] for ordinal in ordinals]
    known = None
    if scope.filters is not None:
        ranges = None if scope.key_ranges is None else scope.key_ranges.take(ordinals)
        known = KnownFooters(scope.filters, chosen, ranges)
    candidates = FileCandidates(context, [file for _, file in chosen], known)
    index = index_of(context.write.index.index_type, context.table.buckets)
    keys = incoming.keys.column("key").combine_chunks()
    return [
        _found(scope, incoming, context, ordinals[match.candidate], match)
        for match in index.tag(keys, candidates)
    ]


def locate_hinted(
    scope: Scope, incoming: Incoming, context: WriteContext, hinted: Mapping[int, IntArray]
) -> list[LocatedKeys]:
    """Probe the files that an index names for incoming keys.

    ``hinted`` has ascending ordinals of keys by the ordinal of the file.
    """
    keys = incoming.keys.column("key").combine_chunks()
    found: list[LocatedKeys] = []
    for ordinal, chosen in hinted.items():
        if len(chosen):
            _, file = scope.files[ordinal]
            held = read_record_keys(context, file.path, file.size)
            matches = join_keys(ordinal, held, keys, chosen)
            found += [_found(scope, incoming, context, ordinal, match) for match in matches]
    return found


def _found(
    scope: Scope, incoming: Incoming, context: WriteContext, file: int, match: Matches
) -> LocatedKeys:
    if ambiguity_of(scope.parts) is not Ambiguity.NONE:
        _require_same(scope, incoming, context, file, match)
    late = np.zeros(len(match.stored), bool)
    rules = context.rules
    fields = rules.stored_order
    given = [name for name in incoming.keys.column_names if name.startswith(ORDERING)]
    if given:
        path, base_file = scope.files[file]
        numbers = incoming.keys.column("number").to_numpy()[match.incoming]
        own = [one for one, source in enumerate(scope.sources.paths) if source == path]
        foreign = np.flatnonzero(~np.isin(scope.sources.partition_of(numbers), own))
        if len(foreign):
            names = dict.fromkeys(name.split(".")[0] for name in fields)
            rows = pa.table({name: read_column(context, base_file.path, name) for name in names})
            stored = order_values(rows.take(pa.array(match.stored[foreign])), fields, rules)
            keys = incoming.keys.select(given).take(pa.array(match.incoming[foreign]))
            late[foreign] = true_mask(existing_is_newer(stored, keys.columns))
    return LocatedKeys(file, match.incoming.astype(np.int64), match.stored.astype(np.int64), late)


def _require_same(
    scope: Scope, incoming: Incoming, context: WriteContext, file: int, match: Matches
) -> None:
    """Refuse incoming rows whose stored row has other key columns."""
    keys = incoming.keys.column("key").combine_chunks().take(pa.array(match.incoming))
    numbers = incoming.keys.column("number").to_numpy()[match.incoming]

    def rows(pairs: Positions) -> pa.Table:
        wanted = distinct(numbers[pairs])
        staged = scope.parts[0].schema
        names = [name for name in staged.names if name in key_names(context)]
        columns = pa.schema([staged.field(name) for name in names])
        some = scope.sources.take(context, scope.parts, wanted, columns)
        return some.take(pa.array(np.searchsorted(wanted, numbers[pairs])))

    path, base_file = scope.files[file]
    require_same_stored(
        context,
        keys,
        rows,
        lambda pairs: stored_key_columns(context, base_file, match.stored[pairs]),
        path,
    )


def to_table(found: Sequence[LocatedKeys]) -> pa.Table:
    """The matches as a table, one row per file, to spill."""
    return pa.table(
        {
            "file": pa.array([one.file for one in found], pa.int32()),
            "keys": lists([one.keys for one in found], pa.int32()),
            "stored": lists([one.stored for one in found], pa.int32()),
            "late": lists([one.late for one in found], pa.bool_()),
        }
    )


def from_table(table: pa.Table) -> list[LocatedKeys]:
    """The matches that :func:`to_table` made a table of."""
    return [
        LocatedKeys(
            batch.column("file")[row].as_py(),
            numbers(batch, "keys", row),
            numbers(batch, "stored", row),
            numbers(batch, "late", row),
        )
        for batch in table.to_batches()
        for row in range(batch.num_rows)
    ]


def lists(arrays: Sequence[np.ndarray], type_: pa.DataType) -> pa.ListArray:
    """Return arrays as the elements of one column of lists."""
    offsets = np.cumsum([0, *(len(one) for one in arrays)], dtype=np.int32)
    values = pa.array(np.concatenate(arrays), type_) if arrays else pa.array([], type_)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def numbers(batch: pa.RecordBatch, column: str, row: int) -> np.ndarray:
    """Return one list of a column of lists."""
    values = batch.column(column)[row].values
    return np.asarray(values.to_numpy(zero_copy_only=False))
