"""Numbers brought to a wider type, or to text, as in Hudi.

Arrow's own cast refuses whole numbers that a floating-point type holds only rounded, and spells
floating-point numbers in another way than Java.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.schema.arrow_types import children
from hudi_core.schema.java_float import double_text, float_text


def widened(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Values in another type that a column may be promoted to."""
    if pt.is_integer(values.type) and pt.is_floating(wanted):
        return values.cast(wanted, safe=False)  # to the nearest, as in Java
    if pt.is_floating(values.type) and pt.is_string(wanted):
        return number_strings(values)
    return values.cast(wanted)


def number_strings(values: pa.Array, *, old: bool = False) -> pa.StringArray:
    """Floating-point numbers as Java spells them; nulls stay null.

    ``old`` is Java before 19.
    """
    double = values.type == pa.float64()
    spell: Callable[..., str] = double_text if double else float_text
    # by their bits, so that -0.0 and 0.0 stay apart and NaN is one value
    coded = values.view(pa.int64() if double else pa.int32()).dictionary_encode()
    distinct = coded.dictionary.view(values.type).to_numpy(zero_copy_only=False)
    strings = pa.array([spell(value, old=old) for value in distinct], pa.string())
    return strings.take(coded.indices)


def arrow_widens(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow's own cast does the same as :func:`widened`, at any depth."""
    if pt.is_floating(wanted) and pt.is_integer(stored):
        return bool(pt.is_int32(stored) and pt.is_float64(wanted))
    if pt.is_string(wanted) and pt.is_floating(stored):
        return False
    if pt.is_struct(stored) and pt.is_struct(wanted):
        below = {field.name: field.type for field in stored}
        return all(
            arrow_widens(below[field.name], field.type) for field in wanted if field.name in below
        )
    pairs = zip(children(stored), children(wanted), strict=False)
    return all(arrow_widens(mine.field.type, theirs.field.type) for mine, theirs in pairs)
