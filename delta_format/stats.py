"""File statistics in the Delta log, from the writer's.

Nothing but the shape of the schema decides the shape of the statistics: a shape that does not fit
can make a table unreadable for everybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from delta_format.values import Json, bounds, encode
from hudi_core.spi import ColumnStats, FileStats

_LEFT_OUT: Final = frozenset(
    {"_hoodie_commit_seqno", "_hoodie_partition_path", "_hoodie_file_name"}
)
"""Columns that no filter is on."""


def statistics(
    rows: int,
    columns: FileStats,
    schema: pa.Schema,
    partition_by: Iterable[str],
    *,
    are_tight: bool = True,
) -> str:
    """Return the statistics of one file.

    ``are_tight``: no row of it is deleted, which might have a bound or be one of the nulls.
    """
    out = {*_LEFT_OUT, *partition_by}
    fields = [field for field in schema if field.name not in out]
    low, high, nulls = _members(fields, "", columns)
    found: Shaped = {
        "numRecords": rows,
        "minValues": low,
        "maxValues": high,
        "nullCount": nulls,
    }
    return encode(found if are_tight else {**found, "tightBounds": False})


Shaped = dict[str, Json]


def _members(
    fields: Iterable[pa.Field], prefix: str, columns: FileStats
) -> tuple[Shaped, Shaped, Shaped]:
    low: Shaped = {}
    high: Shaped = {}
    nulls: Shaped = {}
    for field in fields:
        path = f"{prefix}{field.name}"
        if pt.is_struct(field.type):
            for into, found in zip(
                (low, high, nulls), _members(field.type, f"{path}.", columns), strict=True
            ):
                if found:
                    into[field.name] = found
        elif not pt.is_nested(field.type) and path in columns:
            _leaf(field, columns[path], low, high, nulls)
    return low, high, nulls


def _leaf(field: pa.Field, known: ColumnStats, low: Shaped, high: Shaped, nulls: Shaped) -> None:
    if known.null_count is not None:
        nulls[field.name] = known.null_count
    if known.min_value is None or known.max_value is None or known.nan_count:
        return  # engines order NaN above all numbers, so that there would be no upper bound
    found = bounds(known.min_value, known.max_value, field.type)
    if found is not None:
        low[field.name] = found[0]
        if found[1] is not None:
            high[field.name] = found[1]


def without_float_bounds(columns: FileStats, schema: pa.Schema) -> FileStats:
    """Statistics that a footer has for sure: not whether there is NaN."""
    floating = set(_floating_paths(schema, ""))
    return {
        path: replace(known, min_value=None, max_value=None) if path in floating else known
        for path, known in columns.items()
    }


def _floating_paths(fields: Iterable[pa.Field], prefix: str) -> Iterable[str]:
    for field in fields:
        path = f"{prefix}{field.name}"
        if pt.is_struct(field.type):
            yield from _floating_paths(field.type, f"{path}.")
        elif pt.is_floating(field.type):
            yield path
