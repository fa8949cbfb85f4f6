"""Decoded Avro values as Arrow arrays, at any depth.

Values are as :func:`~hudi_core.avro.datum.decode_datum` returns them: without logical types, so
that dates, times and timestamps are numbers, and decimals the bytes of the unscaled number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.schema.arrow_types import is_list

_DECIMAL_BYTES: Final = 16


def arrow_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return decoded values as an array.

    Values that are not of the type raise ``ValueError``, ``TypeError``, ``LookupError`` or
    ``OverflowError``; Arrow's own errors are among these.
    """
    if pt.is_struct(kind):
        if not kind.num_fields:  # there is no column to take the length from
            return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=[])
        columns = [
            arrow_values([None if one is None else one[field.name] for one in values], field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=_nulls(values))
    if pt.is_map(kind):
        pairs = [pair for one in values if one is not None for pair in one.items()]
        keys = arrow_values([key for key, _ in pairs], kind.key_type)
        items = arrow_values([item for _, item in pairs], kind.item_type)
        offsets = _offsets(values)
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=_nulls(values))
    if is_list(kind):
        below = list(chain.from_iterable(one for one in values if one is not None))
        elements = arrow_values(below, kind.value_type)
        offsets = _offsets(values)
        return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=_nulls(values))
    if pt.is_decimal(kind):
        return _decimals(values, kind)
    return pa.array(values, kind)


def _nulls(values: Sequence[Any]) -> pa.Array | None:
    mask = [one is None for one in values]
    return pa.array(mask, pa.bool_()) if any(mask) else None


def _validity(values: Sequence[Any]) -> pa.Buffer:
    return pa.array([one is not None for one in values], pa.bool_()).buffers()[1]


def _offsets(values: Sequence[Any]) -> pa.Array:
    lengths = (0 if one is None else len(one) for one in values)
    return pa.array([0, *accumulate(lengths)], pa.int32())


def _decimals(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Decimals from big-endian numbers in two's complement."""
    content = b"".join(
        int.from_bytes(one or b"", "big", signed=True).to_bytes(
            _DECIMAL_BYTES, "little", signed=True
        )
        for one in values
    )
    found = pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(content)])
    found.validate(full=True)
    return found
