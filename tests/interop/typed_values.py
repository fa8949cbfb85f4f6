"""Every type that columns may have, as rows bring it and as tables keep it, with values of it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

import hudi_core as hudi

Row = dict[str, Any]
UTC: Final = dt.UTC
KEY: Final = "id"


@dataclass(frozen=True)
class Type:
    """A type as rows bring it, as the table has it, and three values: two to insert, one to
    upsert. Nulls come beside them."""

    given: pa.DataType
    stored: pa.DataType
    values: tuple[Any, Any, Any]
    encode: Callable[[pa.Array], pa.Array] = lambda array: array

    def array(self, values: list[Any]) -> pa.Array:
        """Return values in the type as it is given, by way of the type that holds them all."""
        if self.given == self.stored:
            return pa.array(values, self.given)
        return self.encode(pa.array(values, self.stored))


def same(kind: pa.DataType, *values: Any) -> Type:
    assert len(values) == 3
    return Type(kind, kind, values)


def cast(kind: pa.DataType, stored: pa.DataType, *values: Any) -> Type:
    assert len(values) == 3
    return Type(kind, stored, values, lambda array: array.cast(kind))


def encoded(stored: pa.DataType, *values: Any) -> Type:
    assert len(values) == 3
    return Type(
        pa.dictionary(pa.int32(), stored), stored, values, lambda array: array.dictionary_encode()
    )


def decimal(precision: int, scale: int) -> Type:
    # from digits: arithmetic would round to the 28 digits of the context
    greatest, least = (Decimal((sign, (9,) * precision, -scale)) for sign in (0, 1))
    return same(pa.decimal128(precision, scale), greatest, least, Decimal((0, (0,), -scale)))


def listed(kind: pa.DataType, make: Callable[[pa.DataType], pa.DataType]) -> Type:
    """Return a list of one of Arrow's other kinds; they are all stored as lists."""
    given, stored = make(kind), pa.list_(pa.field("element", kind))
    values = ([1, None], [2, 3], [None, 4])
    return Type(given, stored, values, lambda array: pa.array(array.to_pylist(), given))


def at(*parts: int, zone: dt.tzinfo | None = None) -> dt.datetime:
    year, month, day, hour, minute, second, micro = (*parts, 0, 0, 0, 0)[:7]
    return dt.datetime(year, month, day, hour, minute, second, micro, zone)


US, UTC_US = pa.timestamp("us"), pa.timestamp("us", "UTC")
DAY = at(2024, 2, 29, 12, 30, 59)
ZONED = DAY.replace(tzinfo=UTC)
POINT = pa.struct(
    [
        ("x", pa.int32()),
        ("at", US),
        ("d", pa.decimal128(7, 3)),
        ("in", pa.struct([("s", pa.string()), ("b", pa.binary())])),
    ]
)
POINTS: Final = (
    {"x": 1, "at": DAY, "d": Decimal("1.500"), "in": {"s": "ä", "b": b"\x00"}},
    {"x": None, "at": None, "d": None, "in": None},
    {"x": -1, "at": None, "d": Decimal("-9999.999"), "in": {"s": None, "b": b""}},
)


def list_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


TYPES: Final[Mapping[str, Type]] = {
    "boolean": same(pa.bool_(), True, False, True),
    **{
        f"{'u' if low == 0 else ''}int{bits}": cast(kind, stored, low, high, 7)
        for bits, low, high, kind, stored in (
            (8, -(2**7), 2**7 - 1, pa.int8(), pa.int32()),
            (16, -(2**15), 2**15 - 1, pa.int16(), pa.int32()),
            (32, -(2**31), 2**31 - 1, pa.int32(), pa.int32()),
            (64, -(2**63), 2**63 - 1, pa.int64(), pa.int64()),
            (8, 0, 2**8 - 1, pa.uint8(), pa.int32()),
            (16, 0, 2**16 - 1, pa.uint16(), pa.int32()),
            (32, 0, 2**32 - 1, pa.uint32(), pa.int64()),
        )
    },
    "uint64": Type(
        pa.uint64(),
        pa.decimal128(20, 0),
        (Decimal(0), Decimal(2**64 - 1), Decimal(7)),
        lambda array: pa.array(
            [None if value is None else int(value) for value in array.to_pylist()], pa.uint64()
        ),
    ),
    "float16": cast(pa.float16(), pa.float32(), 1.5, -0.0, math.inf),
    "float32": same(pa.float32(), 0.5, math.nan, -math.inf),
    "float64": same(pa.float64(), 0.1, math.nan, 5e-324),
    "string": same(pa.string(), "", "naïve 東京\0\n", "x" * 300),
    "large_string": cast(pa.large_string(), pa.string(), "a", "", "b"),
    "string_view": cast(pa.string_view(), pa.string(), "a", "longer than twelve bytes", "b"),
    "dictionary": encoded(pa.string(), "a", "b", "a"),
    "binary": same(pa.binary(), b"", b"\xff\x00", b"y" * 300),
    "large_binary": cast(pa.large_binary(), pa.binary(), b"a", b"", b"b"),
    "binary_view": cast(pa.binary_view(), pa.binary(), b"a", b"longer than twelve", b"b"),
    "fixed_binary": Type(
        pa.binary(3), pa.binary(), (b"abc", b"\x00\x01\x02", b"xyz"), lambda a: a.cast(pa.binary(3))
    ),
    **{
        f"decimal_{precision}_{scale}": decimal(precision, scale)
        for precision, scale in (
            *((p, 0) for p in (1, 2, 4, 7, 9, 10, 18, 19, 28, 38)),
            *((p, p) for p in (1, 9, 18, 38)),
            (5, 2),
            (20, 5),
            (38, 10),
        )
    },
    "decimal32": cast(
        pa.decimal32(5, 2), pa.decimal128(5, 2), Decimal("1.25"), Decimal("-1.00"), Decimal("0.00")
    ),
    "decimal64": cast(
        pa.decimal64(12, 2), pa.decimal128(12, 2), Decimal("1.25"), Decimal("-1.0"), Decimal("0.0")
    ),
    "decimal256": cast(
        pa.decimal256(38, 2), pa.decimal128(38, 2), Decimal("1.25"), Decimal("-1.0"), Decimal("0.0")
    ),
    "date": same(pa.date32(), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10)),
    "date64": cast(
        pa.date64(), pa.date32(), dt.date(1900, 1, 1), dt.date(2024, 2, 29), dt.date(1970, 1, 1)
    ),
    **{
        f"time_{unit}": cast(kind, pa.time64("us"), dt.time(0), dt.time(23, 59, 59), dt.time(12))
        for unit, kind in (
            ("s", pa.time32("s")),
            ("ms", pa.time32("ms")),
            ("us", pa.time64("us")),
            ("ns", pa.time64("ns")),
        )
    },
    "time_micros": same(
        pa.time64("us"), dt.time(23, 59, 59, 999999), dt.time(0, 0, 0, 1), dt.time(1)
    ),
    **{
        f"local_{unit}": cast(pa.timestamp(unit), US, DAY, at(1970, 1, 1), DAY)
        for unit in ("s", "ms", "us", "ns")
    },
    "local_range": same(
        US, at(1, 1, 1), at(9999, 12, 31, 23, 59, 59, 999999), at(1582, 10, 10, 0, 0, 0, 1)
    ),
    **{
        f"zoned_{unit}": cast(
            pa.timestamp(unit, "Europe/Rome"), UTC_US, ZONED, at(1970, 1, 1, zone=UTC), ZONED
        )
        for unit in ("s", "ms", "us", "ns")
    },
    "zoned_range": same(
        UTC_US,
        at(1, 1, 1, zone=UTC),
        at(9999, 12, 31, 23, 59, 59, 999999, zone=UTC),
        at(1582, 10, 10, 0, 0, 0, 1, zone=UTC),
    ),
    "list": same(list_of(pa.int64()), [1, None], [], [2]),
    "large_list": listed(pa.int32(), pa.large_list),
    "list_view": listed(pa.int32(), pa.list_view),
    "large_list_view": listed(pa.int32(), pa.large_list_view),
    "fixed_list": listed(pa.int32(), lambda kind: pa.list_(kind, 2)),
    "list_of_lists": same(list_of(list_of(pa.string())), [["a", None], None, []], [], [["b"]]),
    "list_of_structs": same(list_of(POINT), [POINTS[0], None], [POINTS[1]], [POINTS[2], POINTS[0]]),
    "struct": same(POINT, *POINTS),
    "map": same(pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", None)], [], [("ä", 2)]),
    "map_of_structs": same(
        pa.map_(pa.string(), POINT), [("a", POINTS[0])], [("b", POINTS[1]), ("c", None)], []
    ),
    "map_of_lists": same(
        pa.map_(pa.string(), list_of(pa.decimal128(20, 2))),
        [("a", [Decimal("1.50"), None])],
        [("b", None)],
        [("c", [])],
    ),
    "struct_of_all": same(
        pa.struct(
            [
                ("l", list_of(pa.map_(pa.string(), pa.date32()))),
                ("t", pa.time64("us")),
                ("z", UTC_US),
            ]
        ),
        {"l": [[("k", dt.date(2024, 1, 1))], None], "t": dt.time(1, 2, 3, 4), "z": ZONED},
        {"l": [], "t": None, "z": None},
        {"l": None, "t": dt.time(0), "z": ZONED},
    ),
}
NAMES: Final = tuple(TYPES)


def given(rows: Mapping[str, Row], names: tuple[str, ...] = NAMES) -> pa.Table:
    """Return rows as they are handed to the writer."""
    columns = {KEY: pa.array(list(rows), pa.string())}
    for name in names:
        columns[name] = TYPES[name].array([row[name] for row in rows.values()])
    return pa.table(columns)


def row(number: int | None) -> Row:
    """Return a row of the first, second or third values; of nulls for ``None``."""
    return {name: None if number is None else kind.values[number] for name, kind in TYPES.items()}


@dataclass
class Written:
    """A table and what it has to hold."""

    table: hudi.Table
    rows: dict[str, Row]

    @property
    def path(self) -> str:
        return self.table.path

    @property
    def names(self) -> list[str]:
        return [name for name in self.table.schema.names if name != KEY]


def write(table: hudi.Table, operation: str, data: Any) -> None:
    getattr(table, operation)(data, options={"hoodie.parquet.small.file.limit": "0"})


def plain(value: Any) -> Any:
    """Return a value so that equal ones compare equal: NaN, signed zeros, pairs of maps."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def by_key(table: pa.Table) -> dict[str, Row]:
    rows = table.to_pylist()
    assert len({each[KEY] for each in rows}) == len(rows)
    return {
        each[KEY]: {
            n: plain(v) for n, v in each.items() if n != KEY and not n.startswith("_hoodie")
        }
        for each in rows
    }


def expected(written: Written) -> dict[str, Row]:
    return {
        key: {name: plain(values.get(name)) for name in written.names}
        for key, values in written.rows.items()
    }
