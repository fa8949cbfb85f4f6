"""The order of rows that a clustering writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.encoded_columns import is_encoded
from hudi_core.config.clustering import ClusteringOrder
from hudi_core.rows.curves import Words, bits_per_coordinate, hilbert, scaled, z_order
from hudi_core.rows.sorting import values_of


def row_order(rows: pa.Table, columns: Sequence[str], layout: ClusteringOrder) -> pa.Array:
    """Positions of rows in the order of a layout, nulls first.

    ``columns`` are dotted paths, at least one; strings may be dictionary encoded.
    """
    keys = [_key(values_of(rows, name)) for name in columns]
    if layout is ClusteringOrder.LINEAR or len(keys) == 1:
        table = pa.table(keys, names=[str(number) for number in range(len(keys))])
        order = [(name, "ascending", "at_start") for name in table.column_names]
        return pc.sort_indices(table, sort_keys=order)
    ranks = [_ranks(key) for key in keys]
    highest = max(int(one.max(initial=np.uint64(0))) for one in ranks)
    bits = bits_per_coordinate(len(keys), highest)
    coordinates = [scaled(one, bits) for one in ranks]
    curve = z_order if layout is ClusteringOrder.ZORDER else hilbert
    return pa.array(np.argsort(curve(coordinates, bits), kind="stable"))


def _key(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array to sort by.

    Encoded strings are replaced by their ranks, which sort faster.
    """
    if not is_encoded(column.type):
        return column.combine_chunks()
    whole = column.unify_dictionaries().combine_chunks()
    ranks = pc.rank(whole.dictionary, tiebreaker="dense")
    return ranks.take(whole.indices)


def _ranks(key: pa.Array) -> Words:
    """Ranks from 1 on, 0 of nulls; equal values have one rank."""
    found: Words = pc.rank(key, tiebreaker="dense").to_numpy(zero_copy_only=False)
    return np.where(pc.is_null(key).to_numpy(zero_copy_only=False), np.uint64(0), found)
