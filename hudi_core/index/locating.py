"""Probes files for incoming keys, and finds late rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.base_file.reader import read_known_keys, read_record_keys
from hudi_core.file_slice.stored_slice import BEYOND, stored_slice
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

_ANYTHING: Final = KeyFooter(None, None, None, 0)
"""The footer of a file whose logs may have any key."""


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
        if self.files[ordinal].adds_keys:
            return _ANYTHING
        known = None if self.known is None else self.known.footer(ordinal)
        return known or read_known_keys(self.context, self.files[ordinal].path)

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        """Read the keys of a base file, then those added in logs."""
        file = self.files[ordinal]
        keys = _keys_of_base(self.context, file)
        if not file.adds_keys:
            return keys
        added = stored_slice(self.context, file, ()).added_keys
        return pa.chunked_array([*keys.chunks, added], pa.string())


def _keys_of_base(context: WriteContext, file: BaseFile) -> pa.ChunkedArray:
    if not file.is_stored:
        return pa.chunked_array([], pa.string())
    return read_record_keys(context, file.path, file.size)


@dataclass(frozen=True, slots=True)
class LocatedKeys:
    """Incoming keys that one file holds.

    ``file`` is an ordinal within the scope. ``keys`` and ``stored`` are pairs: ordinal of the key,
    position of the row in the file. ``late`` marks stored rows with a greater ordering value than
    the incoming row, where that has to be known before rows are merged; else it is false.
    ``deleted`` marks rows that the logs of the slice delete, where that has to be known as early.
    """

    file: int
    keys: Positions
    stored: Positions
    late: Mask
    deleted: Mask


def locate(
    scope: Scope,
    incoming: Incoming,
    context: WriteContext,
    ordinals: Sequence[int],
    *,
    finds_deleted: bool | None = None,
) -> list[LocatedKeys]:
    """Look for incoming keys in some files of a scope.

    ``finds_deleted``: which rows logs delete has to be known, as it has with a global index.
    """
    asks = context.is_global if finds_deleted is None else finds_deleted
    chosen = [scope.files[ordinal] for ordinal in ordinals]
    known = None
    if scope.filters is not None:
        ranges = None if scope.key_ranges is None else scope.key_ranges.take(ordinals)
        known = KnownFooters(scope.filters, chosen, ranges)
    candidates = FileCandidates(context, [file for _, file in chosen], known)
    index = index_of(context.write.index.index_type, context.table.buckets)
    keys = incoming.keys.column("key").combine_chunks()
    return [
        _found(scope, incoming, context, ordinals[match.candidate], match, finds_deleted=asks)
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
            held = FileCandidates(context, [scope.files[ordinal][1]]).keys(0)
            matches = join_keys(ordinal, held, keys, chosen)
            found += [_found(scope, incoming, context, ordinal, match) for match in matches]
    return found


def deleted_in_logs(
    scope: Scope, context: WriteContext, found: Sequence[LocatedKeys]
) -> list[LocatedKeys]:
    """Find rows that logs delete, of keys that several files hold."""
    counts = np.bincount(np.concatenate([one.keys for one in found]))
    looked = []
    for one in found:
        _, base_file = scope.files[one.file]
        if base_file.logs and (counts[one.keys] > 1).any():
            deleted = stored_slice(context, base_file, ()).are_deleted(one.stored)
            one = replace(one, deleted=deleted)  # noqa: PLW2901
        looked.append(one)
    return looked


def _found(
    scope: Scope,
    incoming: Incoming,
    context: WriteContext,
    file: int,
    match: Matches,
    *,
    finds_deleted: bool = False,
) -> LocatedKeys:
    late = np.zeros(len(match.stored), bool)
    rules = context.rules
    fields = rules.stored_order
    names = list(dict.fromkeys(name.split(".")[0] for name in fields))
    path, base_file = scope.files[file]
    positions = match.stored.astype(np.int64)
    if base_file.adds_keys:
        count = len(_keys_of_base(context, base_file))
        positions = np.where(positions < count, positions, BEYOND + positions - count)
    deleted = np.zeros(len(positions), bool)
    if finds_deleted and base_file.logs:
        deleted = stored_slice(context, base_file, ()).are_deleted(positions)
    given = [name for name in incoming.keys.column_names if name.startswith(ORDERING)]
    if given:
        numbers = incoming.keys.column("number").to_numpy()[match.incoming]
        own = [one for one, source in enumerate(scope.sources.paths) if source == path]
        is_foreign = ~np.isin(scope.sources.partition_of(numbers), own)
        foreign = np.flatnonzero(is_foreign & ~deleted)
        if len(foreign):
            wanted, at = np.unique(positions[foreign], return_inverse=True)
            slice_ = stored_slice(context, base_file, names)
            rows = slice_.rows(wanted, names).take(pa.array(at))
            stored = order_values(rows, fields, rules)
            keys = incoming.keys.select(given).take(pa.array(match.incoming[foreign]))
            late[foreign] = true_mask(existing_is_newer(stored, keys.columns))
    found = LocatedKeys(file, match.incoming.astype(np.int64), positions, late, deleted)
    if ambiguity_of(scope.parts) is not Ambiguity.NONE:
        _require_same(scope, incoming, context, found)
    return found


def _require_same(
    scope: Scope, incoming: Incoming, context: WriteContext, found: LocatedKeys
) -> None:
    """Refuse incoming rows whose stored row has other key columns."""
    keys = incoming.keys.column("key").combine_chunks().take(pa.array(found.keys))
    numbers = incoming.keys.column("number").to_numpy()[found.keys]

    def rows(pairs: Positions) -> pa.Table:
        wanted = distinct(numbers[pairs])
        staged = scope.parts[0].schema
        names = [name for name in staged.names if name in key_names(context)]
        columns = pa.schema([staged.field(name) for name in names])
        some = scope.sources.take(context, scope.parts, wanted, columns)
        return some.take(pa.array(np.searchsorted(wanted, numbers[pairs])))

    path, base_file = scope.files[found.file]
    require_same_stored(
        context,
        keys,
        rows,
        lambda pairs: stored_key_columns(context, base_file, found.stored[pairs]),
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
            "deleted": lists([one.deleted for one in found], pa.bool_()),
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
            numbers(batch, "deleted", row),
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
