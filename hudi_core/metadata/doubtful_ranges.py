"""Unreliable ranges that Hudi's own writers make.

Measured with Hudi-Spark 1.2.0: a file with a NaN gets bounds of 0.0 and 0.0, and a file whose texts
are so long that its footer has no bounds is said to have nothing but nulls. What is made of such
ranges, those of partitions, looks like any other.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.model.ranges import Mask
from hudi_core.schema.arrow_types import is_bytes, is_text

_LONG: Final = 2048
"""Bytes of the shortest value that may be too long: parquet-mr leaves out bounds that have 4096
together."""


def doubtful(table: pa.Table, kind: pa.DataType, *, of_files: bool) -> Mask:
    """Which ranges may be such.

    Parameters
    ----------
    table
        Columns ``minimum`` and ``maximum``, of the column's type, ``null_count``, ``value_count``
        and ``total_uncompressed_size``.
    kind
        Type of the column.
    of_files
        Whether the ranges are of files, and not of partitions.
    """
    if pt.is_floating(kind):
        return _floats(table, of_files)
    if is_text(kind) or is_bytes(kind):
        return _texts(table, of_files)
    return np.zeros(len(table), np.bool_)


def _floats(table: pa.Table, of_files: bool) -> Mask:
    low, high = (
        pc.fill_null(table[side], np.nan).to_numpy().astype(np.float64)
        for side in ("minimum", "maximum")
    )
    with_zero: Mask = (low <= 0) & (high >= 0)
    if not of_files:
        return with_zero
    # bounds that are zeros are negative below and positive above, whoever writes the file
    positive: Mask = (low == 0) & (high == 0) & ~np.signbit(low)
    return positive


def _texts(table: pa.Table, of_files: bool) -> Mask:
    nulls, values, size = (
        pc.fill_null(table[name], 0).to_numpy()
        for name in ("null_count", "value_count", "total_uncompressed_size")
    )
    some: Mask = (nulls == values) if of_files else (nulls > 0)
    long: Mask = size >= _LONG
    return some & long
