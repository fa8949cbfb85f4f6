"""Column statistics of a data file, collected while it is written.

Bounds, counts and sizes come from the footer that the parquet writer has in memory. What footers
lack comes from the rows as they are written: NaN counts, and bounds of strings and bytes so
long that the writer leaves them out (parquet-cpp drops bounds above 4096 bytes; it never shortens
one).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.base_file.encoded_columns import is_encoded
from hudi_core.base_file.footer_statistics import Bounds, footer_statistics
from hudi_core.model.stats import ColumnStats
from hudi_core.schema.arrow_types import is_bytes, is_text, leaves
from hudi_core.schema.casting import map_entries

MAX_FOOTER_BOUND: Final = 4096
"""Bytes of the longest bound that parquet-cpp writes into a footer."""


def leaf_arrays(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the leaf arrays of an array, without values under null parents."""
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
    """Yield a table's leaf columns, each as a list of chunks."""
    for column in table.columns:
        parts = [list(leaf_arrays(chunk)) for chunk in column.chunks]
        yield from (list(chunks) for chunks in zip(*parts, strict=True))


class StatisticsCollector:
    """Collects statistics that footers lack, then completes them by the footer."""

    def __init__(self, schema: pa.Schema) -> None:
        self._leaves = leaves(schema)
        kinds = [field.type for _, field in self._leaves]
        self._kinds = [(pt.is_floating(one), is_text(one) or is_bytes(one)) for one in kinds]
        self._nans = [0] * len(self._leaves)
        self._bounds: dict[tuple[int, int], Bounds] = {}
        self._groups = 0

    @property
    def with_nan(self) -> frozenset[int]:
        """Numbers of the observed leaf columns that hold NaN."""
        return frozenset(leaf for leaf, count in enumerate(self._nans) if count)

    def observe(self, group: pa.Table) -> None:
        """Add one row group; call it for each, in file order."""
        for leaf, chunks in enumerate(leaf_columns(group)):
            is_floating, is_sized = self._kinds[leaf]
            if is_floating:
                self._nans[leaf] += sum(map(_count_nan, chunks))
            elif is_sized and any(map(_has_long, chunks)):
                found = pc.min_max(_occurring(pa.chunked_array(chunks)))
                self._bounds[leaf, self._groups] = (found["min"].as_py(), found["max"].as_py())
        self._groups += 1

    def finish(self, footer: pq.FileMetaData) -> dict[str, ColumnStats]:
        """Return the statistics of the file by leaf path.

        ``footer`` is that of the closed file as its writer has it in memory, with the bounds of all
        columns.
        """
        return footer_statistics(self._leaves, footer, self._nans, self._bounds)


def _count_nan(values: pa.Array) -> int:
    if not values.null_count:
        return int(np.count_nonzero(np.isnan(values.to_numpy())))
    return int(pc.sum(pc.is_nan(values), min_count=0).as_py())


def _has_long(values: pa.Array) -> bool:
    """Whether a value may have no bound in the footer."""
    values = values.dictionary if is_encoded(values.type) else values
    has_offsets = pt.is_string(values.type) or pt.is_binary(values.type)
    if has_offsets and len(values) and not values.null_count:
        offsets = np.frombuffer(values.buffers()[1], np.int32)
        sizes = np.diff(offsets[values.offset : values.offset + len(values) + 1])
        return int(sizes.max(initial=0)) > MAX_FOOTER_BOUND
    return (pc.max(pc.binary_length(values)).as_py() or 0) > MAX_FOOTER_BOUND


def _occurring(values: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return values among which are those of all rows, and no others.

    Never a string per row where there are numbers: long ones would fill the memory.
    """
    # the dictionaries of a row group are one, of what its rows have
    return values.chunk(0).dictionary if is_encoded(values.type) else values
