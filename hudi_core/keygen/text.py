"""Values as strings, as Java and Avro format them.

Record keys and partition values are made of them.

Hudi takes a value out of an Avro record, turns some logical types into Java objects
(``HoodieAvroUtils.convertValueForAvroLogicalTypes``) and calls ``toString`` on the result:

========================= ======================================================================
integers, booleans        decimal digits; ``true`` and ``false``
float, double             ``Float.toString``, ``Double.toString``: of Java 19 and later, or before
decimal                   ``BigDecimal.toString``: ``12.50``, ``1E-9``
date                      ``LocalDate.toString``: ``2026-01-31``, ``+10000-01-01``
time                      microseconds since midnight
timestamp                 microseconds since the epoch; with consistent logical timestamps, and in
                          Spark's row writer, ``java.sql.Timestamp.toString`` of milliseconds, for
                          timestamps with a zone only
bytes                     hexadecimal digits, lower case
========================= ======================================================================

``java.sql.Timestamp`` prints in the zone of the JVM. Which of two ways it is,
:class:`~hudi_core.model.key_form.KeyForm` says.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.keygen.zones import to_local_millis
from hudi_core.model.key_form import KeyForm
from hudi_core.schema.arrow_types import children
from hudi_core.schema.widening import number_strings

PLAIN: Final = KeyForm()
"""What Hudi does by default, on Java 19 and later."""
_YEAR_10000: Final = 2_932_897  # days since the epoch
_HEX: Final = np.array([list(f"{byte:02x}".encode()) for byte in range(256)], np.uint8)


def require_text_form(field: pa.Field, name: str, purpose: str) -> None:
    """Raise a :class:`SchemaError` for a column whose values have no text form."""
    if children(field.type) or pt.is_fixed_size_binary(field.type):
        raise SchemaError(
            f"Column {name} has the type {field.type}, which cannot be part of the {purpose}",
            "Use a column of a simple type.",
            column=name,
            type=str(field.type),
        )


def to_text(values: pa.Array, form: KeyForm = PLAIN) -> pa.StringArray:
    """Return values as strings; nulls stay null."""
    kind = values.type
    if pt.is_string(kind):
        return values
    if pt.is_date(kind):
        text = values.cast(pa.string())
        late = pc.greater_equal(values.cast(pa.int32()), _YEAR_10000)
        return pc.if_else(late, pc.binary_join_element_wise("+", text, ""), text)
    if pt.is_floating(kind):
        return number_strings(values, old=form.old_floats)
    if pt.is_binary(kind):
        return _hexadecimal(values)
    if pt.is_timestamp(kind) and kind.tz and form.timestamp_zone is not None:
        return _timestamps(values, form.timestamp_zone)
    if pt.is_time32(kind):
        values = values.cast(pa.int32())
    elif pt.is_temporal(kind):
        values = values.cast(pa.int64())
    return values.cast(pa.string())


def _hexadecimal(values: pa.BinaryArray) -> pa.StringArray:
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    data = np.frombuffer(b"".join(values.drop_null().to_pylist()), np.uint8)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths * 2, out=offsets[1:])
    text = pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets), pa.py_buffer(_HEX[data].tobytes())
    )
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _timestamps(values: pa.Array, zone: str) -> pa.StringArray:
    per_millisecond = 1000 if values.type.unit == "us" else 1
    # Java divides towards zero
    millis = pc.divide(values.cast(pa.int64()), per_millisecond)
    local = to_local_millis(millis.fill_null(0).to_numpy(), zone)
    clocks = pa.array(local, mask=millis.is_null().to_numpy(zero_copy_only=False))
    text = clocks.cast(pa.timestamp("ms")).cast(pa.string())
    # Timestamp drops zeros at the end of the fraction but the first
    return pc.replace_substring_regex(text, r"(\.\d)(\d*?)0+$", r"\1\2")
