"""Partition paths of timestamps, against one value at a time by Python's own calendar."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume, given
from hypothesis import strategies as st

from hudi_core.config.stored_table import new_table_config, properties_of, stored_config
from hudi_core.config.table import TableConfig
from hudi_core.model.files import PartitionPath
from hudi_core.read.filters import to_filter
from hudi_core.read.partition_pruning import PartitionPruner
from tests.unit.timestamp_tables import PREFIX, made, of_config, options

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLIS = {"UNIX_TIMESTAMP": 1000, "EPOCHMILLISECONDS": 1, "EPOCHMICROSECONDS": 0.001}
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia")
"""Among them one with half an hour of summer time, and one that skipped a day."""
RULED = dt.datetime(2060, 1, 1, tzinfo=dt.UTC)
"""Here the lists of changes have ended, and rules go on."""
PATTERNS = {
    "yyyy/MM/dd": "%Y/%m/%d",
    "yyyyMMdd": "%Y%m%d",
    "yyyy-MM-dd-HH": "%Y-%m-%d-%H",
    "yyyy-MM": "%Y-%m",
    "yyyy": "%Y",
    "yyyy/DDD": "%Y/%j",
    "yyyy-MM-dd HH.mm.ss": "%Y-%m-%d %H.%M.%S",
    "MMM/EEEE hh a": "%b/%A %I %p",
    "xxxx-'W'ww-e": "%G-W%V-%u",
}
"""Formats, and what Python calls them."""
FIRST, LAST = 1900, 2100
WHOLE = [each for each in PATTERNS if "E" not in each and "x" not in each]


def config_of(kind: str, output: str, zone: str) -> TableConfig:
    more = {"output_zone": zone}
    if kind == "DATE_STRING":
        more |= {"inputs": "yyyy-MM-dd HH:mm:ss.SSS,yyyy-MM-dd", "input_zone": zone}
    return new_table_config(options(kind, output, **more))


def paths(config: TableConfig, values: list[Any], kind: pa.DataType) -> list[str]:
    return made(of_config(config, kind), values, kind)


def expected(value: int | None, kind: str, output: str, zone: str) -> str:
    number = 1 if value is None else value
    millis = int(number * 1000) if kind == "UNIX_TIMESTAMP" else number
    if kind == "EPOCHMICROSECONDS":
        millis = -(-number // 1000) if number < 0 else number // 1000
    shown = (EPOCH + dt.timedelta(milliseconds=millis)).astimezone(ZoneInfo(zone))
    return shown.strftime(PATTERNS[output])


@st.composite
def numbers(draw: st.DrawFn) -> tuple[str, list[int | None]]:
    kind = draw(st.sampled_from(sorted(MILLIS)))
    one = st.datetimes(dt.datetime(FIRST, 1, 1), dt.datetime(LAST, 1, 1)).map(  # noqa: DTZ001
        lambda moment: round(
            (moment.replace(tzinfo=dt.UTC) - EPOCH).total_seconds() * 1000 / MILLIS[kind]
        )
    )
    near = st.integers(-3_000_000, 3_000_000)
    return kind, draw(st.lists(st.none() | one | near, max_size=20))


@given(numbers(), st.sampled_from(sorted(PATTERNS)), st.sampled_from(ZONES))
def test_numbers_are_spelled_as_python_spells_them(
    rows: tuple[str, list[int | None]], output: str, zone: str
) -> None:
    kind, values = rows
    config = config_of(kind, output, zone)
    assert paths(config, values, pa.int64()) == [
        expected(value, kind, output, zone) for value in values
    ]


@given(
    st.lists(
        st.datetimes(dt.datetime(FIRST, 1, 1), dt.datetime(LAST, 1, 1)),  # noqa: DTZ001
        min_size=1,
    ),
    st.sampled_from(sorted(PATTERNS)),
    st.sampled_from(ZONES),
)
def test_texts_are_read_as_python_reads_them(
    values: list[dt.datetime], output: str, zone: str
) -> None:
    """In the zone of the paths, where a text comes out as it went in, but for what clocks skip."""
    local = ZoneInfo(zone)
    aware = [value.replace(tzinfo=local) for value in values]
    assume(all(each.astimezone(dt.UTC).astimezone(local) == each for each in aware))
    assume(
        all(
            each.astimezone(dt.UTC).astimezone(local).replace(tzinfo=None) == value
            for each, value in zip(aware, values, strict=True)
        )
    )
    texts = [value.isoformat(" ", "milliseconds") for value in values]
    texts += [value.date().isoformat() for value in values]
    wanted = [value.strftime(PATTERNS[output]) for value in values]
    midnights = [value.replace(hour=0, minute=0, second=0, microsecond=0) for value in values]
    back = [each.replace(tzinfo=local).astimezone(dt.UTC).astimezone(local) for each in midnights]
    assume([each.replace(tzinfo=None) for each in back] == midnights)
    wanted += [value.strftime(PATTERNS[output]) for value in midnights]

    assert paths(config_of("DATE_STRING", output, zone), texts, pa.string()) == wanted


@given(
    numbers(),
    st.sampled_from(WHOLE),
    st.sampled_from(ZONES),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "null", "valid"]),
    st.integers(0, 19),
    st.integers(-2, 2),
    st.booleans(),
)
def test_no_partition_is_left_out_that_has_a_matching_row(
    rows: tuple[str, list[int | None]],
    output: str,
    zone: str,
    op: str,
    at: int,
    beside: int,
    named: bool,
) -> None:
    kind, values = rows
    known = [value for value in values if value is not None]
    assume(known)
    value = known[at % len(known)] + beside
    column = pc.field("ts")
    expression = {
        "=": column == value,
        "!=": column != value,
        "<": column < value,
        "<=": column <= value,
        ">": column > value,
        ">=": column >= value,
        "in": column.isin(pa.array([value, known[0]])),
        "null": column.is_null(),
        "valid": ~column.is_null(),
    }[op]
    config = config_of(kind, output, zone)
    made = paths(config, values, pa.int64())
    schema = pa.schema([("_hoodie_partition_path", pa.string()), ("ts", pa.int64())])
    table = pa.table({"_hoodie_partition_path": made, "ts": values}, schema=schema)
    if not named:
        # a table of another writer, which made the paths in a zone that it does not tell
        stored = properties_of(config)
        untold = (f"{PREFIX}input.timezone", f"{PREFIX}output.timezone")
        config = stored_config({name: stored[name] for name in stored if name not in untold})
    partitions = sorted({PartitionPath(path) for path in made})

    kept = PartitionPruner(config, schema).keep(partitions, to_filter(expression, schema))

    matching = table.filter(expression)["_hoodie_partition_path"].to_pylist()
    assert set(matching) <= set(kept)


@given(st.lists(st.integers(0, 365 * 24 * 4), min_size=1), st.sampled_from(ZONES))
def test_clocks_go_on_to_be_changed(quarters: list[int], zone: str) -> None:
    timestamps = [RULED + dt.timedelta(minutes=15 * each) for each in quarters]
    values = [round(each.timestamp()) for each in timestamps]
    config = config_of("UNIX_TIMESTAMP", "yyyy-MM-dd HH.mm.ss", zone)
    local = ZoneInfo(zone)
    wanted = [each.astimezone(local).strftime("%Y-%m-%d %H.%M.%S") for each in timestamps]
    assert paths(config, values, pa.int64()) == wanted

    texts = [each.astimezone(local).strftime("%Y-%m-%d %H:%M:%S.000") for each in timestamps]
    by_text = config_of("DATE_STRING", "yyyy-MM-dd HH.mm.ss", zone)
    assert paths(by_text, texts, pa.string()) == wanted
