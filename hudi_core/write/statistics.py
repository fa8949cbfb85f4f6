"""Column statistics of a data file, collected while it is written.

Bounds, counts and sizes come from the footer that the parquet writer has in memory; what footers
do not tell comes from the rows as they are written: NaN counts, and bounds of texts and bytes so
long that the writer leaves them out (parquet-cpp drops bounds above 4096 bytes; it never shortens
one).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Context
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.model.arrow_types import is_bytes, is_text, leaves
from hudi_core.model.casting import map_entries
from hudi_core.model.stats import ColumnStats, Scalar
from hudi_core.write.encoded_columns import is_encoded, plain

MAX_FOOTER_BOUND: Final = 4096
"""Bytes of the longest bound that parquet-cpp writes into a footer."""

Bounds = tuple[Any, Any]
_EXACT: Final = Context(prec=76)


def leaf_arrays(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the leaf values of an array, one array per leaf, without what null parents hide."""
    kind = array.type
    if not pt.is_nested(kind):
        yield array
    elif pt.is_struct(kind):
        for child in array.flatten():
            yield from leaf_arrays(child)
    elif pt.is_map(kind):
        yield from leaf_arrays(map_entries(array).flatten())
    else:
        yield from leaf_arrays(array.flatten())


def leaf_columns(table: pa.Table) -> Iterator[list[pa.Array]]:
    """Yield the leaf values of a table, leaf by leaf, as the chunks they come in."""
    for column in table.columns:
        parts = [list(leaf_arrays(chunk)) for chunk in column.chunks]
        yield from (list(chunks) for chunks in zip(*parts, strict=True))


class StatisticsCollector:
    """Collects what footers do not tell, then completes it with the footer.

    Parameters
    ----------
    schema
        Schema of the file, in the types of the table.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._leaves = leaves(schema)
        self._nans = [0] * len(self._leaves)
        self._bounds: dict[tuple[int, int], Bounds] = {}
        self._groups = 0

    def observe(self, group: pa.Table) -> None:
        """Take note of one row group; call it for each, in their order."""
        for leaf, chunks in enumerate(leaf_columns(group)):
            kind = self._leaves[leaf][1].type
            if not chunks:
                continue
            values = pa.chunked_array(chunks)
            if pt.is_floating(kind):
                self._nans[leaf] += _count_nan(values)
            elif (is_text(kind) or is_bytes(kind)) and _has_long(values):
                found = pc.min_max(plain(values))
                self._bounds[leaf, self._groups] = (found["min"].as_py(), found["max"].as_py())
        self._groups += 1

    def finish(self, footer: pq.FileMetaData) -> dict[str, ColumnStats]:
        """Return the statistics of the file by leaf path.

        Parameters
        ----------
        footer
            Of the closed file, as its writer has it in memory.
        """
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        return {
            path: self._column(leaf, field.type, [group.column(leaf) for group in groups])
            for leaf, (path, field) in enumerate(self._leaves)
        }

    def _column(
        self, leaf: int, kind: pa.DataType, chunks: list[pq.ColumnChunkMetaData]
    ) -> ColumnStats:
        nulls = [_null_count(chunk) for chunk in chunks]
        bounds = [self._chunk_bounds(leaf, n, kind, chunk) for n, chunk in enumerate(chunks)]
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
            nan_count=self._nans[leaf],
            compressed_size=sum(chunk.total_compressed_size for chunk in chunks),
            uncompressed_size=sum(chunk.total_uncompressed_size for chunk in chunks),
        )

    def _chunk_bounds(
        self, leaf: int, group: int, kind: pa.DataType, chunk: pq.ColumnChunkMetaData
    ) -> Bounds | tuple[()] | None:
        """Return bounds in internal form; ``()`` where nothing has bounds, ``None`` if unknown."""
        observed = self._bounds.get((leaf, group))
        if observed is not None:
            return observed
        statistics = chunk.statistics
        if statistics is not None and statistics.has_min_max:
            internal = _internal_form(kind)
            return internal(statistics.min_raw), internal(statistics.max_raw)
        # of floats, only columns of nulls and NaN have no bounds
        if pt.is_floating(kind) or _null_count(chunk) == chunk.num_values:
            return ()
        return None


def _internal_form(kind: pa.DataType) -> Callable[[Any], Scalar]:
    """Return what turns a footer's physical value into a bound's internal form."""
    if pt.is_decimal(kind):
        return lambda raw: _EXACT.scaleb(
            _EXACT.create_decimal(int.from_bytes(raw, "big", signed=True)), -kind.scale
        )
    if is_text(kind):
        return lambda raw: str(raw, "utf-8")
    if (pt.is_timestamp(kind) or pt.is_time(kind)) and kind.unit == "ms":
        return lambda raw: int(raw) * 1000
    return _same


def _same(raw: Any) -> Any:
    return raw


def _null_count(chunk: pq.ColumnChunkMetaData) -> int | None:
    statistics = chunk.statistics
    return statistics.null_count if statistics is not None and statistics.has_null_count else None


def _count_nan(values: pa.ChunkedArray) -> int:
    return int(pc.sum(pc.is_nan(values), min_count=0).as_py())


def _has_long(values: pa.ChunkedArray) -> bool:
    if is_encoded(values.type):
        # the dictionaries of a row group are one
        values = values.chunk(0).dictionary
    return (pc.max(pc.binary_length(values)).as_py() or 0) > MAX_FOOTER_BOUND
