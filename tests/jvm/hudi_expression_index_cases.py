"""Hudi-Spark: expression indexes.

It skips files by ours, keeps ours right when it writes, and finds the rows that a model in Python
finds; and we keep those that it made.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final
from uuid import uuid4
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.jvm.commands import is_sound, succeed
from tests.jvm.engines import Engine
from tests.jvm.filters import Filter, Row
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.skipping import Filtered, Found, differences, filtered, judge_filters, wanted
from tests.jvm.writers import HudiSpark, Shape, Writer, insert_all, name_of, ours

VERSIONS: Final = ("8", "9")
LOCK: Final = {
    "hoodie.write.lock.provider": ("org.apache.hudi.client.transaction.lock.InProcessLockProvider")
}
TIME: Final = pa.timestamp("us", "UTC")
SOURCES: Final = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("city", pa.string()),
        *(pa.field(name, pa.string()) for name in ("name", "title", "pad", "code", "inner")),
        *(pa.field(name, TIME) for name in ("at", "seen", "made", "sent")),
        *(pa.field(name, pa.date32()) for name in ("born", "due", "paid")),
        pa.field("seconds", pa.int64()),
    ]
)
INDEXES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "name_lower": ("name", {"expr": "lower"}),
    "title_length": ("title", {"expr": "length"}),
    "pad_trim": ("pad", {"expr": "trim"}),
    "code_begin": ("code", {"expr": "substring", "pos": "1", "len": "2"}),
    "inner_part": ("inner", {"expr": "substring", "pos": "-2", "len": "1"}),
    "at_day": ("at", {"expr": "date_format", "format": "yyyy-MM-dd"}),
    "seen_year": ("seen", {"expr": "year"}),
    "made_day": ("made", {"expr": "to_date"}),
    "sent_seconds": ("sent", {"expr": "unix_timestamp"}),
    "born_month": ("born", {"expr": "month"}),
    "due_later": ("due", {"expr": "date_add", "days": "3"}),
    "paid_earlier": ("paid", {"expr": "date_sub", "days": "3"}),
    "seconds_text": ("seconds", {"expr": "from_unixtime", "format": "yyyy-MM"}),
}
EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def row(number: int, name: str | None, year: int | None, city: str = "oslo") -> dict[str, Any]:
    at = None if year is None else dt.datetime(year, number % 12 + 1, 20, 2, 30, tzinfo=dt.UTC)
    day = None if at is None else at.date()
    found = {
        "id": f"k{number}",
        "city": city,
        **dict.fromkeys(("name", "title", "code", "inner"), name),
        "pad": None if name is None else f"  {name} ",
        **dict.fromkeys(("at", "seen", "made", "sent"), at),
        **dict.fromkeys(("born", "due", "paid"), day),
        "seconds": None if at is None else int(at.timestamp()),
    }
    return {field.name: found[field.name] for field in SOURCES}


ROWS: Final = [
    row(1, "Anna", 2001),
    row(2, "bo", 2005),
    row(3, None, None),
    row(4, "Émile", 2010, "rome"),
    row(5, "ZOE-ANN", 2020, "rome"),
]


def sql_of(column: str, options: Mapping[str, str]) -> str:
    """The expression of an index as SQL spells it."""
    name = options["expr"]
    more = [options[each] for each in ("pos", "len", "days") if each in options]
    more += [f"'{options['format']}'"] if "format" in options else []
    return f"{name}({', '.join([column, *more])})"


def of_spark(index: str, value: Any, zone: dt.tzinfo = dt.UTC) -> Any:
    """The value of an index's function, computed without this project."""
    column, options = INDEXES[index]
    day = dt.timedelta(days=3)
    if value is None:
        return None
    computed: Mapping[str, Callable[[Any], Any]] = {
        "lower": lambda one: one.lower(),
        "length": len,
        "trim": lambda one: one.strip(" "),
        "substring": lambda one: one[:2] if options["pos"] == "1" else one[-2:-1],
        "date_format": lambda one: one.astimezone(zone).strftime("%Y-%m-%d"),
        "year": lambda one: one.astimezone(zone).year,
        "to_date": lambda one: one.astimezone(zone).date(),
        "unix_timestamp": lambda one: int(one.timestamp()),
        "month": lambda one: one.month,
        "date_add": lambda one: one + day,
        "date_sub": lambda one: one - day,
        "from_unixtime": lambda one: (
            (EPOCH + dt.timedelta(seconds=one)).astimezone(zone).strftime("%Y-%m")
        ),
    }
    assert column
    return computed[options["expr"]](value)


def literal(value: Any) -> str:
    if isinstance(value, dt.date):
        return f"date'{value}'"
    return str(value) if isinstance(value, int) else f"'{value}'"


def filters_on(index: str, rows: Sequence[Row], zone: dt.tzinfo = dt.UTC) -> list[Filter]:
    """Filters on an expression: of each of its values, of none of them, and of some."""
    column, options = INDEXES[index]
    sql = sql_of(column, options)
    values = sorted({of_spark(index, one[column], zone) for one in rows if one[column] is not None})
    absent = dt.date(1900, 1, 1) if isinstance(values[0], dt.date) else type(values[0])(7)

    def among(some: Sequence[Any]) -> Callable[[Row], bool | None]:
        return lambda one: (
            None if one[column] is None else of_spark(index, one[column], zone) in some
        )

    found = [Filter(f"{sql} = {literal(one)}", among([one])) for one in (*values, absent)]
    listed = ", ".join(map(literal, values[:2]))
    found.append(Filter(f"{sql} in ({listed})", among(values[:2])))
    least = values[0]

    def above(one: Row) -> bool | None:
        return None if one[column] is None else of_spark(index, one[column], zone) > least

    return [*found, Filter(f"{sql} > {literal(least)}", above)]


def batches(rows: Sequence[Row]) -> Iterator[pa.Table]:
    for one in rows:
        yield pa.Table.from_pylist([dict(one)], SOURCES)


def indexed(path: Path, shape: Shape, indexes: Sequence[str] = tuple(INDEXES)) -> Path:
    """Our table of the rows, a file each, with indexes."""
    insert_all(ours, path, shape, batches(ROWS))
    table = hudi.Table.open(str(path), options={"hoodie.fs.fsync": "false"})
    for name in indexes:
        column, options = INDEXES[name]
        table.create_index(name, column, using="column_stats", options=options)
    return path


@pytest.fixture(scope="module")
def ours_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Give our table of a version and layout; once each."""
    made: dict[tuple[str, str], Path] = {}

    def make(version: str, partition: str) -> Path:
        if (version, partition) not in made:
            path = tmp_path_factory.mktemp("indexed") / "table"
            made[version, partition] = indexed(path, Shape(version, partition=partition))
        return made[version, partition]

    return make


OWN_FAILURES: Final = {
    **{
        (index, "8", "city"): own_failure(
            "Hudi-Spark takes bounds of partitions for those of the column's type in version 8"
        )
        for index in ("at_day", "seen_year", "made_day", "born_month")
    },
    **{
        ("sent_seconds", "8", partition): own_failure(
            "Hudi-Spark takes numbers for times where they are of times, in version 8"
        )
        for partition in ("", "city")
    },
}


def skipping() -> Iterator[Any]:
    for index, version, partition in product(INDEXES, VERSIONS, ("", "city")):
        marks: Any = OWN_FAILURES.get((index, version, partition), ())
        layout = "partitioned" if partition else "one folder"
        name = f"{index}, version {version}, {layout}"
        yield pytest.param(index, version, partition, id=name, marks=marks)


@pytest.mark.parametrize(("index", "version", "partition"), [*skipping()])
def test_it_skips_by_ours(
    hudi_spark: Engine,
    tmp_path: Path,
    ours_of: Callable[[str, str], Path],
    index: str,
    version: str,
    partition: str,
) -> None:
    """Filters on the function of an index."""
    filters = filters_on(index, ROWS)

    @cache
    def made_by(name: str) -> Filtered:
        shape = Shape(version, partition=partition)
        if name == "ours":
            return filtered(hudi_spark, ours_of(version, partition), filters)
        return filtered(hudi_spark, theirs(hudi_spark, tmp_path / name, shape, [index]), filters)

    judge_filters(hudi_spark, wanted(filters, ROWS), lambda write: made_by(name_of(write)).found)
    if not made_by("ours").skips:
        assert not made_by("theirs").skips, "it skips files by its own index"
        raise OwnFailureError("it skips no file by its own index either")


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.parametrize("index", ["at_day", "seen_year", "made_day", "seconds_text"])
def test_sessions_of_other_time_zones(
    hudi_spark: Engine, ours_of: Callable[[str, str], Path], index: str, zone: str
) -> None:
    """What a day is depends on the session; no row is lost in any of them."""
    filters = filters_on(index, ROWS, ZoneInfo(zone))
    with hudi_spark.configured({"spark.sql.session.timeZone": zone}):
        found = filtered(hudi_spark, ours_of("9", "city"), filters)
    unequal = differences(found.found, wanted(filters, ROWS))
    assert not unequal, unequal


# --- tables that both write ----------------------------------------------------------------------

SOME: Final = ("name_lower", "code_begin")


@contextmanager
def named(engine: Engine, path: Path) -> Iterator[str]:
    """Have a table in the catalog of an engine."""
    name = f"t{uuid4().hex}"
    engine.sql(f"create table {name} using hudi location '{path}'")
    try:
        yield name
    finally:
        engine.sql(f"drop table {name}")


def theirs(engine: Engine, path: Path, shape: Shape, indexes: Sequence[str] = SOME) -> Path:
    """A table of the rows that Hudi-Spark made, with indexes that it made."""
    insert_all(HudiSpark(engine), path, shape, batches(ROWS))
    with named(engine, path) as table, engine.configured(LOCK):
        for name in indexes:
            column, options = INDEXES[name]
            given = ", ".join(f"{key}='{value}'" for key, value in options.items())
            engine.sql(
                f"create index {name} on {table} using column_stats({column}) options({given})"
            )
    return path


def changed(write: Writer, path: Path, shape: Shape) -> list[dict[str, Any]]:
    """Change a row of a table, and add some."""
    some = [row(1, "Xaver", 1980), row(6, "anna", 2031), row(7, "Yo", 2032, "bonn")]
    write("upsert", pa.Table.from_pylist(some, SOURCES), path, shape)
    return [*ROWS[1:], *some]


@pytest.mark.parametrize("maker", ["ours", "theirs"])
@pytest.mark.parametrize("partition", ["", "city"], ids=["one folder", "partitioned"])
@pytest.mark.parametrize("version", VERSIONS)
def test_both_write(
    hudi_spark: Engine, tmp_path: Path, version: str, partition: str, maker: str
) -> None:
    """An index that one of the two made is kept by both."""
    shape = Shape(version, partition=partition)
    spark: Writer = HudiSpark(hudi_spark)
    path = tmp_path / "table"
    if maker == "ours":
        indexed(path, shape, SOME)
    else:
        theirs(hudi_spark, path, shape)
        is_sound(path)
    for write, year in ((ours, 2040), (spark, 2050)):
        rows = changed(write, path, shape)
        late = row(8, f"Late {year}", year)
        write("upsert", pa.Table.from_pylist([late], SOURCES), path, shape)
        is_sound(path)
        rows.append(late)
        # what is greater it looks up in ranges of the column, as if the function kept their order
        filters = [one for index in SOME for one in filters_on(index, rows)[:-1]]
        found = filtered(hudi_spark, path, filters)
        unequal = differences(found.found, wanted(filters, rows))
        assert not unequal, unequal
        assert found.files["skipping"] < found.files["no skipping"]
        table = hudi.Table.open(str(path))
        for one in rows:
            if one["name"] is not None:
                keys = table.to_arrow(["id"], filter=[("name", "=", one["name"])])
                right = {each["id"] for each in rows if each["name"] == one["name"]}
                assert set(keys["id"].to_pylist()) == right


def test_it_drops_ours(hudi_spark: Engine, tmp_path: Path) -> None:
    """Hudi-Spark drops an index of ours, and we one of its."""
    path = indexed(tmp_path / "table", Shape("9"), SOME)
    with named(hudi_spark, path) as table, hudi_spark.configured(LOCK):
        hudi_spark.sql(f"drop index name_lower on {table}")
    assert "expr_index_name_lower" not in hudi.Table.open(str(path)).config.metadata_partitions
    is_sound(path)
    other = theirs(hudi_spark, tmp_path / "theirs", Shape("9"))
    succeed("metadata drop", other, "expr_index_name_lower")
    is_sound(other)
    changed(HudiSpark(hudi_spark), other, Shape("9"))
    is_sound(other)


def test_what_hudi_alone_keeps_is_refused_by_name(hudi_spark: Engine, tmp_path: Path) -> None:
    """A function that is not computed here."""
    shape = Shape("9")
    path = insert_all(HudiSpark(hudi_spark), tmp_path / "table", shape, batches(ROWS))
    with named(hudi_spark, path) as table, hudi_spark.configured(LOCK):
        hudi_spark.sql(
            f"create index odd on {table} using column_stats(name) "
            "options(expr='regexp_extract', pattern='(a)', idx='1')"
        )
    with pytest.raises(hudi.errors.UnsupportedTableError, match=r"expr_index_odd.*regexp_extract"):
        changed(ours, path, shape)
    assert hudi.Table.open(str(path)).count() == len(ROWS)


@own_failure("Hudi-Spark takes the index of one function for that of any other of the column")
@pytest.mark.parametrize("version", VERSIONS)
def test_another_function_of_the_column(
    hudi_spark: Engine, ours_of: Callable[[str, str], Path], tmp_path: Path, version: str
) -> None:
    """Filters on a function that has no index, of a column that has an index of another."""
    filters = [Filter("upper(name) = 'ANNA'", lambda one: (one["name"] or "").upper() == "ANNA")]

    def asked(write: Writer) -> Found:
        if write is ours:
            path = ours_of(version, "")
        else:
            path = theirs(hudi_spark, tmp_path / "theirs", Shape(version), ["name_lower"])
        return filtered(hudi_spark, path, filters).found

    judge_filters(hudi_spark, wanted(filters, ROWS), asked)
