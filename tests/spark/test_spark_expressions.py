"""Functions of expression indexes have the values that Spark computes, in every time zone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudi_core.metadata.statistics.expression_functions import FUNCTIONS
from hudi_core.metadata.statistics.expressions import Expression

pytestmark = pytest.mark.spark

UTC = dt.UTC
TIMES = [
    dt.datetime(1890, 3, 1, 12, tzinfo=UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    dt.datetime(1970, 1, 1, tzinfo=UTC),
    dt.datetime(2018, 11, 4, 2, 30, tzinfo=UTC),
    dt.datetime(2020, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC),
    dt.datetime(2024, 12, 31, 23, 30, tzinfo=UTC),
    dt.datetime(2025, 1, 1, 0, 30, tzinfo=UTC),
    dt.datetime(9998, 12, 30, 1, tzinfo=UTC),
]
DATES = [
    dt.date(1, 1, 2),
    dt.date(999, 12, 31),
    dt.date(1969, 12, 31),
    dt.date(2018, 11, 4),
    dt.date(2020, 2, 29),
    dt.date(9998, 12, 31),
]
SECONDS = [-(2**31), -1, 0, 1, 1_582_934_400, 2**31 - 1]
TEXTS = [
    "",
    " ",
    "  a b  ",
    "xxaxx",
    "Anna",
    "ÀÉÎÖÜ ß ẞ ŉ Ǆ",
    "ΑΒΓ άέ",
    "Привет ЁЖ",
    "漢字かな한글",
    "a😀b😀c",
    "😀",
    "\t\n",
    "ﬀ",
    "ΑΣ",
    "İı",
    "ᲐᲑ",
]
KINDS: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "timestamp": (pa.timestamp("us", "UTC"), TIMES),
    "date": (pa.date32(), DATES),
    "bigint": (pa.int64(), SECONDS),
    "string": (pa.string(), TEXTS),
}
PATTERNS = ("yyyy", "yyyyMM", "yyyy-MM-dd", "yyyy/MM/dd HH", "yyyy-MM-dd HH:mm:ss")
CASES: list[tuple[str, str, Mapping[str, str], str]] = [
    *(
        (name, kind, {}, f"{name}(v)")
        for name in ("year", "month", "day", "to_date", "unix_timestamp", "to_timestamp")
        for kind in ("timestamp", "date")
    ),
    ("hour", "timestamp", {}, "hour(v)"),
    *(
        ("date_format", kind, {"format": one}, f"date_format(v, '{one}')")
        for one in PATTERNS
        for kind in ("timestamp", "date")
    ),
    ("from_unixtime", "bigint", {}, "from_unixtime(v)"),
    *(
        ("from_unixtime", "bigint", {"format": one}, f"from_unixtime(v, '{one}')")
        for one in PATTERNS
    ),
    *(
        (name, kind, {"days": days}, f"{name}(v, {days})")
        for name in ("date_add", "date_sub")
        for days in ("0", "30", "-400")
        for kind in ("timestamp", "date")
    ),
    *((name, "string", {}, f"{name}(v)") for name in ("lower", "upper", "length", "trim")),
    *((name, "string", {}, f"{name}(v)") for name in ("ltrim", "rtrim")),
    ("trim", "string", {"trimString": "xa "}, "trim(both 'xa ' from v)"),
    ("ltrim", "string", {"trimString": "x"}, "trim(leading 'x' from v)"),
    ("rtrim", "string", {"trimString": "x"}, "trim(trailing 'x' from v)"),
    *(
        ("substring", "string", {"pos": str(pos), "len": str(size)}, f"substring(v, {pos}, {size})")
        for pos in (-9, -2, 0, 1, 2, 40)
        for size in (-1, 0, 1, 3, 40)
    ),
]
ZONES = ("UTC", "America/Los_Angeles", "America/Sao_Paulo", "Asia/Kathmandu", "+18:00", "-18:00")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)


def internal(value: Any) -> Any:
    """A value in internal form."""
    match value:
        case dt.datetime():
            return (value - EPOCH) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days
    return value


@contextmanager
def in_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def of_spark(
    spark: SparkSession, kind: str, values: Sequence[Any], sqls: Sequence[str], zone: str
) -> list[list[Any]]:
    """What Spark makes of values, in internal form, by expression."""
    # numbers of days and microseconds say which value it is, whatever the zone
    made = {"timestamp": "timestamp_micros(n)", "date": "date_from_unix_date(n)"}.get(kind, "n")
    given = [(place, internal(one)) for place, one in enumerate(values)]
    number = {"string": "string", "date": "int"}.get(kind, "bigint")
    with in_zone(spark, zone):
        frame = spark.createDataFrame(given, f"place int, n {number}").selectExpr(
            "place", f"{made} as v"
        )
        found = frame.orderBy("place").selectExpr(
            *(
                f"unix_micros({one})"
                if one.startswith("to_timestamp")
                else f"unix_date({one})"
                if one.startswith(("to_date", "date_add", "date_sub"))
                else one
                for one in sqls
            )
        )
        rows = found.collect()
    return [[row[number] for row in rows] for number in range(len(sqls))]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_spark(spark: SparkSession, kind: str, zone: str) -> None:
    arrow, values = KINDS[kind]
    cases = [case for case in CASES if case[1] == kind]
    found = of_spark(spark, kind, values, [sql for *_, sql in cases], zone)
    wrong: list[Any] = []
    for (name, _, options, sql), spelled in zip(cases, found, strict=True):
        expression = Expression(name, "v", arrow, options)
        for value, theirs in zip(values, spelled, strict=True):
            inner = internal(value)
            ours = expression.value(inner)
            is_exact = zone == "UTC" or not expression.zone_micros
            if is_exact and ours is not None and ours != theirs:
                wrong.append((sql, value, ours, theirs))
            if not expression.reads_values:
                bounds = expression.bounds(inner, inner)
                if bounds is not None and not bounds[0] <= theirs <= bounds[1]:
                    wrong.append((sql, zone, value, bounds, theirs))
    assert not wrong, wrong


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", ["timestamp", "date", "bigint", "string"])
def test_bounds_hold_for_all_values_between(spark: SparkSession, kind: str, zone: str) -> None:
    arrow, values = KINDS[kind]
    values = sorted(values)
    cases = [case for case in CASES if case[1] == kind]
    found = of_spark(spark, kind, values, [sql for *_, sql in cases], zone)
    wrong: list[Any] = []
    for (name, _, options, sql), spelled in zip(cases, found, strict=True):
        expression = Expression(name, "v", arrow, options)
        for begin in range(len(values)):
            for end in range(begin, len(values)):
                some = spelled[begin : end + 1]
                if expression.reads_values:
                    array = pa.chunked_array([pa.array(values[begin : end + 1], arrow)])
                    bounds = expression.bounds_of_values(array)
                else:
                    low, high = internal(values[begin]), internal(values[end])
                    bounds = expression.bounds(low, high)
                if bounds is not None and not bounds[0] <= min(some) <= max(some) <= bounds[1]:
                    wrong.append((sql, zone, values[begin], values[end], bounds, some))
    assert not wrong, wrong


def test_every_function_is_tested() -> None:
    assert {name for name, *_ in CASES} == {*FUNCTIONS}


@pytest.mark.parametrize(
    ("name", "text"),
    [("lower", "Anna"), ("upper", "ÀÉ ß Ж 漢"), ("lower", "ÄÖÜ Ё"), ("upper", "straße")],
)
def test_common_texts_are_certain(name: str, text: str) -> None:
    assert Expression(name, "v", pa.string(), {}).value(text) == getattr(text, name)()


@pytest.mark.parametrize("text", ["ΑΣ", "İ", "ᲐᲑ", "\U00010570", "\ua7c0", "ƛ"])
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_texts_that_releases_of_unicode_differ_in_are_not(name: str, text: str) -> None:
    expression = Expression(name, "v", pa.string(), {})
    assert expression.value(text) is None
    assert expression.bounds_of_values(pa.chunked_array([[text, "a"]])) is None


def test_every_certain_character_has_the_case_of_spark(spark: SparkSession) -> None:
    texts = [chr(one) for one in range(1, 0x110000) if not 0xD800 <= one < 0xE000]
    lower = Expression("lower", "v", pa.string(), {})
    upper = Expression("upper", "v", pa.string(), {})
    certain = [one for one in texts if lower.value(one) is not None]
    assert len(certain) > 30_000
    found = of_spark(spark, "string", certain, ["lower(v)", "upper(v)"], "UTC")
    wrong = [
        (text, low, high)
        for text, low, high in zip(certain, *found, strict=True)
        if (lower.value(text), upper.value(text)) != (low, high)
    ]
    assert not wrong, wrong
