"""Redistribution of rows over tasks before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.schema.casting import without_views


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Which rows come to one task.

    With ``ranges``, every task gets one range of the order of ``columns`` (dotted for fields of
    structs); otherwise all rows that have one value of them. ``as_text`` orders values as strings,
    as record keys are. ``tasks`` is ``None`` to leave it to the engine.
    """

    columns: tuple[str, ...]
    ranges: bool
    as_text: bool
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Splits:
    """Rows that are spread over tasks already, one table each."""

    tables: tuple[pa.Table, ...]


def arranged(table: pa.Table, arrangement: Arrangement, parts: int) -> Splits:
    """Spread the rows of a table over parts.

    Rows of a part keep their order, or are sorted.

    ``parts`` counts only where the arrangement has no ``tasks``.
    """
    table = without_views(table)
    count = max(1, arrangement.tasks or parts)
    columns = [_column(table, name, arrangement.as_text) for name in arrangement.columns]
    if arrangement.ranges:
        return Splits(_ranges(table, columns, count))
    return Splits(_by_value(table, columns, count))


def _ranges(
    table: pa.Table, columns: Sequence[pa.ChunkedArray], count: int
) -> tuple[pa.Table, ...]:
    named = pa.table({str(number): column for number, column in enumerate(columns)})
    keys = [(name, "ascending", "at_start") for name in named.column_names]
    ordered = table.take(pc.sort_indices(named, sort_keys=keys))
    step = max(1, -(-table.num_rows // count))
    return tuple(ordered.slice(start, step) for start in range(0, max(1, table.num_rows), step))


def _by_value(
    table: pa.Table, columns: Sequence[pa.ChunkedArray], count: int
) -> tuple[pa.Table, ...]:
    codes = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        pairs = codes * len(coded.dictionary) + coded.indices.to_numpy()
        _, codes = np.unique(pairs, return_inverse=True)
    sizes = np.bincount(codes) if len(codes) else np.zeros(0, dtype=np.int64)
    # the largest first, each to the part that has least
    part_of = np.zeros(len(sizes), dtype=np.int64)
    loads = np.zeros(count, dtype=np.int64)
    for value in np.argsort(-sizes, kind="stable"):
        part_of[value] = np.argmin(loads)
        loads[part_of[value]] += sizes[value]
    parts = part_of[codes] if len(codes) else codes
    return tuple(
        table.take(pa.array(rows))
        for part in range(count)
        if len(rows := np.flatnonzero(parts == part))
    )


def _column(table: pa.Table, name: str, as_text: bool) -> pa.ChunkedArray:
    top, *below = name.split(".")
    column = table.column(top)
    if below:
        column = pa.chunked_array([pc.struct_field(chunk, below) for chunk in column.chunks])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if as_text else column
