"""Equality of rows: nulls are equal to nulls, and NaN to NaN."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Mask: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]


def differing_rows(left: pa.Table, right: pa.Table) -> Mask:
    """Mask of the rows that are not the same in both tables."""
    found = np.zeros(left.num_rows, bool)
    for one, other in zip(left.columns, right.columns, strict=True):
        found |= _differing(one.combine_chunks(), other.combine_chunks())
    return found


def _differing(left: pa.Array, right: pa.Array) -> Mask:
    kind = left.type
    is_left, is_right = (_numpy(array.is_valid()) for array in (left, right))
    found: Mask = is_left != is_right
    both = is_left & is_right
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            parts = (pc.struct_field(array, [number]) for array in (left, right))
            found |= both & _differing(*parts)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        rows = np.flatnonzero(both)
        found[rows] |= _differing_lists(*(array.take(pa.array(rows)) for array in (left, right)))
    else:
        same = pc.equal(left, right)
        if pa.types.is_floating(kind):
            same = pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))
        found |= both & ~_numpy(pc.fill_null(same, False))
    return found


def _differing_lists(left: pa.Array, right: pa.Array) -> Mask:
    """Mask of lists, or maps, that differ; none is null."""
    sizes = [np.diff(array.offsets.to_numpy()) for array in (left, right)]
    found: Mask = sizes[0] != sizes[1]
    rows = np.flatnonzero(~found)
    items = [_items(array.take(pa.array(rows))) for array in (left, right)]
    owners = np.repeat(rows, sizes[0][rows])
    found[owners[_differing(*items)]] = True
    return found


def _items(lists: pa.Array) -> pa.Array:
    if not pa.types.is_map(lists.type):
        return lists.flatten()
    return pa.StructArray.from_arrays([lists.keys, lists.items], ["key", "value"])


def _numpy(mask: pa.Array) -> Mask:
    found: Mask = mask.to_numpy(zero_copy_only=False)
    return found
