"""Statistics of a data file's columns from its parquet footer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.model.bound_conversions import decimal_of
from hudi_core.model.stats import ColumnStats, Scalar
from hudi_core.schema.arrow_types import is_text

Bounds = tuple[Any, Any]


def footer_statistics(
    leaves: Sequence[tuple[str, pa.Field]],
    footer: pq.FileMetaData,
    nans: Sequence[int] | None = None,
    observed: Mapping[tuple[int, int], Bounds] | None = None,
) -> dict[str, ColumnStats]:
    """Return the statistics of a file by leaf path.

    Parameters
    ----------
    leaves
        The leaf fields of the file in the types of the table, in the order of its columns.
    footer
        Of the file.
    nans
        Number of NaN of each leaf; 0 without it, as footers have no such count.
    observed
        Bounds by leaf and row group, in internal form, that take the place of the footer's.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    known = observed or {}
    return {
        path: _column(
            field.type,
            [group.column(leaf) for group in groups],
            [known.get((leaf, number)) for number in range(len(groups))],
            0 if nans is None else nans[leaf],
        )
        for leaf, (path, field) in enumerate(leaves)
    }


def columns_of_old_lists(
    leaves: Sequence[tuple[str, pa.Field]], footer: pq.FileMetaData
) -> tuple[str, ...]:
    """Names of the columns that hold lists of two levels.

    All lists were such before the Parquet format asked for three, and those that are written by way
    of Avro are by default, by Hudi's engines too.

    Parameters
    ----------
    leaves
        The leaf fields of the file, in the order of its columns.
    footer
        Of the file.
    """
    if len(leaves) != len(footer.schema):
        return ()
    found = (
        path.partition(".")[0]
        for number, (path, _) in enumerate(leaves)
        if "." in path and footer.schema.column(number).path.count(".") < path.count(".")
    )
    return tuple(dict.fromkeys(found))


def _column(
    kind: pa.DataType,
    chunks: list[pq.ColumnChunkMetaData],
    observed: list[Bounds | None],
    nans: int,
) -> ColumnStats:
    # each look at a chunk's statistics makes them anew
    found = [chunk.statistics for chunk in chunks]
    nulls = [_null_count(one) for one in found]
    bounds = [
        _chunk_bounds(kind, chunk.num_values, one) if seen is None else seen
        for chunk, one, seen in zip(chunks, found, observed, strict=True)
    ]
    known = [each for each in bounds if each]
    low: Scalar | None = None
    high: Scalar | None = None
    if known and None not in bounds:
        low, high = min(each[0] for each in known), max(each[1] for each in known)
    return ColumnStats(
        min_value=low,
        max_value=high,
        value_count=sum(chunk.num_values for chunk in chunks),
        null_count=None if None in nulls else sum(count or 0 for count in nulls),
        nan_count=nans,
        compressed_size=sum(chunk.total_compressed_size for chunk in chunks),
        uncompressed_size=sum(chunk.total_uncompressed_size for chunk in chunks),
        has_unbounded=pt.is_floating(kind) and (nans > 0 or any(map(_is_unbounded, chunks, found))),
    )


def _is_unbounded(chunk: pq.ColumnChunkMetaData, statistics: pq.Statistics | None) -> bool:
    """Whether a column chunk has values without bounds."""
    bounded = statistics is not None and statistics.has_min_max and not _has_nan(statistics)
    return not bounded and _null_count(statistics) != chunk.num_values


def _has_nan(statistics: pq.Statistics) -> bool:
    """Whether a bound is NaN, which bounds nothing: parquet-mr writes such."""
    return _is_nan(statistics.min_raw) or _is_nan(statistics.max_raw)


def _is_nan(bound: Any) -> bool:
    return isinstance(bound, float) and math.isnan(bound)


def _chunk_bounds(
    kind: pa.DataType, values: int, statistics: pq.Statistics | None
) -> Bounds | tuple[()] | None:
    """Return the bounds of a column chunk in internal form.

    ``values`` is how many it has.
    ``()`` where no value has bounds, ``None`` where they are unknown.
    """
    if statistics is not None and statistics.has_min_max:
        # each look at a bound makes it anew
        low, high = statistics.min_raw, statistics.max_raw
        if _is_nan(low) or _is_nan(high):
            return None
        internal = _internal_form(kind)
        return (low, high) if internal is None else (internal(low), internal(high))
    # of floats, only columns of nulls and NaN have no bounds
    if pt.is_floating(kind) or _null_count(statistics) == values:
        return ()
    return None


def _internal_form(kind: pa.DataType) -> Callable[[Any], Scalar] | None:
    """Conversion of a footer's physical value to a bound's internal form.

    ``None`` where they are the same.
    """
    if pt.is_primitive(kind) and not pt.is_temporal(kind):
        return None
    if pt.is_decimal(kind):
        return lambda raw: decimal_of(raw, kind.scale)
    if is_text(kind):
        return lambda raw: str(raw, "utf-8")
    if (pt.is_timestamp(kind) or pt.is_time(kind)) and kind.unit == "ms":
        return lambda raw: int(raw) * 1000
    return None


def _null_count(statistics: pq.Statistics | None) -> int | None:
    return statistics.null_count if statistics is not None and statistics.has_null_count else None
