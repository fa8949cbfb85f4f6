"""Hudi's wrappers: one-field records that distinguish equal Avro types.

In a union, values of different types may have the same Avro type.

Source: ``hudi-format`` sections 4 and 5 (ordering values of deletes, bounds of columns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}
_TYPES: Final[Mapping[str, object]] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": _STRING,
    "DateWrapper": "int",
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": "long",
    "LocalDateWrapper": "int",
}
SCALARS: Final = tuple(_TYPES)
"""Names of the wrappers of single values, in the order of their union."""
ARRAY: Final = "ArrayWrapper"
_ARRAY_FIELD: Final = "wrappedValues"


class Wrapped(NamedTuple):
    """A value and the name of its wrapper.

    ``wrapper`` is one of :data:`SCALARS`, or :data:`ARRAY`. ``value`` is as Avro holds it: dates
    are days, times and timestamps microseconds, decimals the bytes of the unscaled number, an array
    a tuple of wrapped values and ``None``.
    """

    wrapper: str
    value: Any


def wrapper_union(names: Sequence[str], *, arrays: bool) -> list[object]:
    """Return the Avro union of null and some wrappers, which it defines."""
    union: list[object] = ["null"]
    union += [_record(name, {"name": "value", "type": _TYPES[name]}) for name in names]
    if arrays:
        items = {"type": "array", "items": ["null", *names]}
        union.append(
            _record(ARRAY, {"name": _ARRAY_FIELD, "type": ["null", items], "default": None})
        )
    return union


def unwrap(value: object) -> Wrapped | None:
    """The value in a union of wrappers, as ``decode_datum(named=True)`` returns it."""
    match value:
        case None:
            return None
        case (str(name), dict(record)):
            wrapper = name.rpartition(".")[2]
            if wrapper in _TYPES and "value" in record:
                return Wrapped(wrapper, record["value"])
            if wrapper == ARRAY and _ARRAY_FIELD in record:
                return Wrapped(ARRAY, tuple(unwrap(item) for item in record[_ARRAY_FIELD] or ()))
    raise ValueError("a value is not in one of Hudi's wrappers")


def wrap_all(*values: Wrapped | None) -> list[object]:
    """Return wrapped values as ``encode_datum`` takes them."""
    found: list[object] = []
    for value in values:
        if value is None:
            found.append(None)
            continue
        name = f"{_NAMESPACE}.{value.wrapper}"
        is_array = value.wrapper == ARRAY
        record = {_ARRAY_FIELD: wrap_all(*value.value)} if is_array else {"value": value.value}
        found.append((name, record))
    return found


def _record(name: str, field: Mapping[str, object]) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [dict(field)]}
