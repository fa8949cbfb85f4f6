"""Rows by their positions, of columns of any size.

In one piece, strings and bytes have 2 GB at most. Arrow gathers rows into one piece and refuses
more; then several pieces are made, of some rows each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[Any]

_PIECE_BYTES: Final = 256 << 20


def take(rows: pa.Table, positions: Numbers) -> pa.Table:
    """The rows at some positions."""
    try:
        return rows.take(pa.array(positions))
    except pa.ArrowInvalid:
        columns = [take_values(column, positions) for column in rows.columns]
        return pa.table(columns, schema=rows.schema)


def take_values(column: pa.ChunkedArray, positions: Numbers) -> pa.ChunkedArray:
    """The values at some positions."""
    try:
        return column.take(pa.array(positions))
    except pa.ArrowInvalid:
        each = max(1, len(column) * _PIECE_BYTES // column.nbytes)
        starts = np.cumsum([0, *map(len, column.chunks)])
        cuts = range(each, len(positions), each)
        pieces = [
            piece
            for some in np.split(positions.astype(np.int64), cuts)
            for piece in _gathered(column.chunks, starts, some)
        ]
        return pa.chunked_array(pieces, column.type)


def _gathered(
    chunks: Sequence[pa.Array], starts: Numbers, positions: Numbers
) -> Iterator[pa.Array]:
    """Yield the values at some positions, in pieces that fit."""
    within = np.searchsorted(starts, positions, side="right") - 1
    order = np.argsort(within, kind="stable")
    bounds = np.searchsorted(within[order], np.arange(len(starts)))
    try:
        found = [
            chunk.take(pa.array(positions[order[begin:end]] - start))
            for chunk, start, begin, end in zip(chunks, starts, bounds, bounds[1:], strict=False)
            if end > begin
        ]
        if (within[1:] < within[:-1]).any():
            found = [pa.concat_arrays(found).take(pa.array(np.argsort(order)))]
    except pa.ArrowInvalid:
        if len(positions) == 1:
            raise
        for half in np.array_split(positions, 2):
            yield from _gathered(chunks, starts, half)
    else:
        yield from found
