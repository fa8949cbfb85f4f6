"""Timestamps and times without the nanoseconds that microseconds cannot hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.schema.arrow_types import children
from hudi_core.schema.casting import null_mask, with_values


def without_nanoseconds(array: pa.Array) -> pa.Array:
    """Return an array with nanoseconds cut off, at any depth.

    Towards the past.

    Arrays that have none are returned as they are.
    """
    kind = array.type
    if not _has_nanoseconds(kind):
        return array
    if isinstance(array, pa.DictionaryArray):
        return without_nanoseconds(array.dictionary_decode())
    if isinstance(array, pa.RunEndEncodedArray):
        return without_nanoseconds(pc.run_end_decode(array))
    if children(kind):
        return _nested(array)
    micros = pa.time64("us") if pt.is_time(kind) else pa.timestamp("us", kind.tz)
    # a cast alone would cut towards 1970
    return pc.floor_temporal(array, unit="microsecond").cast(micros)


def _nested(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_struct(kind):
        below = [without_nanoseconds(array.field(n)) for n in range(kind.num_fields)]
        names = [field.name for field in kind]
        return pa.StructArray.from_arrays(below, names=names, mask=null_mask(array))
    return with_values(array, lambda values, _: without_nanoseconds(values))


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _has_nanoseconds(kind.value_type)
    if pt.is_timestamp(kind) or pt.is_time(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(field.type) for _, field in children(kind))
