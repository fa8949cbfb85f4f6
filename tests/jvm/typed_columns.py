"""A column of every type whose ranges are kept, and files of them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from tests.interop.typed_values import TYPES, US, UTC, UTC_US, at

Column = tuple[pa.DataType, Sequence[Any]]


def typed(name: str) -> Column:
    return TYPES[name].stored, TYPES[name].values


COLUMNS: Final[Mapping[str, Column]] = {
    **{
        name: typed(name)
        for name in (
            *("boolean", "int32", "int64", "float32", "float64", "string", "binary"),
            *("decimal_5_2", "decimal_9_0", "decimal_18_0", "decimal_18_18", "decimal_20_5"),
            *("decimal_38_0", "decimal_38_10"),
        )
    },
    # the third is the first day of the Gregorian calendar
    "date": (pa.date32(), (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 15))),
    "local_range": (
        US,
        (at(1, 1, 1), at(9999, 12, 31, 23, 59, 59, 999999), at(1582, 10, 15, 0, 0, 0, 1)),
    ),
    "zoned_range": (
        UTC_US,
        (
            at(1, 1, 1, zone=UTC),
            at(9999, 12, 31, 23, 59, 59, 999999, zone=UTC),
            at(1582, 10, 15, 0, 0, 0, 1, zone=UTC),
        ),
    ),
    "numbers": (pa.float64(), (-1.5, 0.0, 1e300)),
    "zeros": (pa.float64(), (-0.0, 0.0, 1.0)),
    "infinities": (pa.float32(), (-math.inf, 0.5, math.inf)),
    "few_digits": (pa.decimal128(38, 10), (Decimal("-1.5"), Decimal(0), Decimal("2.25"))),
    "letters": (pa.string(), ("a", "b", "ä")),
    "local": (US, (at(1969, 12, 31), at(2024, 2, 29), at(2025, 1, 1))),
    "zoned": (UTC_US, tuple(at(year, 1, 1, 12, 0, 0, 1, zone=UTC) for year in (1969, 2024, 2025))),
    "point.x": (pa.int32(), (-1, 0, 1)),
    "point.inner.s": (pa.string(), ("a", "b", "c")),
}
ALL: Final = {"hoodie.metadata.index.column.stats.column.list": ",".join(["id", "city", *COLUMNS])}


def column_of(name: str, values: Sequence[Any]) -> pa.Array:
    """Values of a column; those of nested ones are wrapped from the inside out."""
    kind = COLUMNS[name][0]
    array = pa.array(values, kind)
    for level in reversed(name.split(".")[1:]):
        missing = pa.array([value is None for value in values])
        array = pa.StructArray.from_arrays([array], [level], mask=missing)
    return array


def batch(ids: Sequence[int], cities: str, picks: Sequence[int | None]) -> pa.Table:
    """Rows with one of the three values of each column, or with nulls.

    ``cities``: a letter for each row. ``picks``: the number of the value that a row has in each
    column; ``None`` for nulls.
    """
    columns: dict[str, pa.Array] = {"id": pa.array(ids), "city": pa.array(list(cities))}
    nested: dict[str, list[pa.Array]] = {}
    for name, (_, values) in COLUMNS.items():
        chosen = [None if pick is None else values[pick] for pick in picks]
        if "." in name:
            nested.setdefault(name.split(".")[0], []).append(column_of(name, chosen))
        else:
            columns[name] = column_of(name, chosen)
    for name, parts in nested.items():
        fields = [field for part in parts for field in part.type]
        missing = pa.array([pick is None for pick in picks])
        arrays = [part.field(0) for part in parts]
        columns[name] = pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)
    return pa.table(columns)


def full_batches() -> list[pa.Table]:
    """Files with one value of each column, with several, and with nulls beside values."""
    return [
        batch([1, 2], "AB", [0, 1]),
        batch([3, 4, 5], "ABA", [None, 2, 1]),
        batch([7, 8, 9], "ADD", [1, 2, 0]),
    ]


def typed_batches() -> list[pa.Table]:
    """Files as those, and files with nulls alone."""
    return [
        batch([1, 2], "AB", [0, 1]),
        batch([3, 4], "AB", [None, 2]),
        batch([5, 6], "CC", [None, None]),
        batch([7, 8, 9], "ADD", [1, 2, 0]),
    ]
