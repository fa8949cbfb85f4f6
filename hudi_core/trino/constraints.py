"""Trino's constraints as predicates of the connector.

What cannot be compared here as Trino compares it is left out: Trino applies the whole constraint to
the rows that come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.read.connector.domain import EVERYTHING, Domain, Range
from hudi_core.read.connector.predicate import ALL, TupleDomain
from hudi_core.schema.arrow_types import is_text
from hudi_core.trino.blocks import trino_type
from hudi_core.trino.names import names_of_columns

_BELOW, _EXACTLY, _ABOVE = 1, 2, 3
_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_MS: Final = 1000


def predicate_of(constraint: Any, schema: pa.Schema) -> TupleDomain:
    """The wanted rows of a constraint.

    ``None`` is every row.
    """
    domains = None if constraint is None else constraint.domains
    if domains is None:
        # Trino asks for no row by a constraint without a map, and for all by an empty one
        return ALL if constraint is None else TupleDomain(None)
    names = names_of_columns(schema.names)
    found = {}
    for name, given in domains.items():
        column = names.get(name)
        domain = None if column not in schema.names else _domain(given, schema.field(column).type)
        if column is not None and domain is not None:
            found[column] = domain
    return TupleDomain.of_domains(found)


def _domain(given: Any, kind: pa.DataType) -> Domain | None:
    """The domain of a column; ``None`` where it is left to Trino."""
    is_compared = pt.is_date32(kind) or pt.is_timestamp(kind) or is_text(kind)
    numbers = (pt.is_integer, pt.is_floating, pt.is_boolean)
    if not is_compared and not any(is_one(kind) for is_one in numbers):
        return None
    ranges = _ranges(given.value_set, kind)
    if ranges is None:
        return None
    if pt.is_floating(kind) and ranges != [EVERYTHING] and _is_complement(ranges):
        return None  # "is not 5" has NaN in it, and no range has
    return Domain.of(kind, ranges, nulls=bool(given.null_allowed))


def _ranges(value_set: Any, kind: pa.DataType) -> list[Range] | None:
    if value_set.all_or_none is not None:
        return [EVERYTHING] if value_set.all_or_none.all else []
    if value_set.equatable is not None:
        values = [_value(block, kind) for block in value_set.equatable.values or ()]
        single = Domain.of(kind, [_widened(Range.of(value), kind) for value in values])
        if value_set.equatable.inclusive:
            return list(single.ranges)
        # of a widened range the complement would lack rows
        is_exact = not pt.is_timestamp(kind) and not pt.is_floating(kind)
        return list(single.other_values(nulls=False).ranges) if is_exact else None
    if value_set.ranges is not None:
        return [_widened(_range(one, kind), kind) for one in value_set.ranges.ranges or ()]
    return None


def _range(bounds: Any, kind: pa.DataType) -> Range:
    low = None if bounds.low.value is None else _value(bounds.low.value, kind)
    high = None if bounds.high.value is None else _value(bounds.high.value, kind)
    has_low = low is not None and bounds.low.bound == _EXACTLY
    has_high = high is not None and bounds.high.bound == _EXACTLY
    return Range(low, high, has_low, has_high)


def _widened(given: Range, kind: pa.DataType) -> Range:
    """The range of stored values that Trino sees in a range.

    It sees milliseconds: 10 means all that is from 10 to less than 11. And it compares
    doubles: a bound between two values of the column is rounded to one of them.
    """
    if pt.is_floating(kind) and not pt.is_float64(kind):
        return Range(given.low, given.high, given.low is not None, given.high is not None)
    if not pt.is_timestamp(kind):
        return given
    per_second = _PER_SECOND[kind.unit]
    if per_second == 1:
        # a value between two seconds is none of the column
        low = None if given.low is None else given.low // _MS
        high = None if given.high is None else -(-given.high // _MS)
        return Range(low, high, low is not None, high is not None)
    factor = per_second // _MS
    low = None if given.low is None else (given.low + (not given.has_low)) * factor
    high = None if given.high is None else (given.high + given.has_high) * factor
    return Range(low, high, low is not None, False)


def _value(block: Any, kind: pa.DataType) -> Any:
    """The one value of a block, of the column's type."""
    name = trino_type(kind).name
    found = getattr(block, name)
    if found is None:
        raise ValueError(f"{name} has no such value")
    return _READ[name](found, kind)


def _first(values: Any, kind: pa.DataType) -> Any:
    del kind
    return values.values[0]


def _text(values: Any, kind: pa.DataType) -> str:
    del kind
    return bytes(values.data or b"").decode()


_READ: Final[Mapping[str, Callable[[Any, pa.DataType], Any]]] = {
    "integer": _first,
    "bigint": _first,
    "double": _first,
    "varchar": _text,
    "boolean": _first,
    "date": _first,
    "timestamp": _first,
}


def _is_complement(ranges: Sequence[Range]) -> bool:
    return bool(ranges) and ranges[0].low is None and ranges[-1].high is None
