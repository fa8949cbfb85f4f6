"""Partition paths that are made of timestamps: numbers, formats and texts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.stored_table import new_table_config, properties_of, stored_config
from tests.unit.timestamp_tables import DAYS, ISO, UTC, made, of_config, options, paths

# --- numbers -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "more", "output", "value", "path"),
    [
        # what Hudi's own tests expect
        (
            "EPOCHMILLISECONDS",
            {"zone": "GMT+8:00"},
            "yyyy-MM-dd hh",
            1578283932000,
            "2020-01-06 12",
        ),
        ("EPOCHMILLISECONDS", {"zone": "GMT"}, "yyyy-MM-dd hh", 1578283932000, "2020-01-06 04"),
        ("EPOCHMILLISECONDS", {"zone": "GMT+8:00"}, "yyyy-MM-dd hh", None, "1970-01-01 08"),
        (
            "EPOCHMICROSECONDS",
            {"zone": "GMT+8:00"},
            "yyyy-MM-dd hh",
            1578283932123456,
            "2020-01-06 12",
        ),
        ("SCALAR", {"zone": "GMT", "unit": "days"}, "yyyy-MM-dd hh", 20000, "2024-10-04 12"),
        ("SCALAR", {"zone": "GMT", "unit": "days"}, "yyyy-MM-dd hh", None, "1970-01-02 12"),
        ("SCALAR", {"zone": "GMT", **DAYS}, "yyyy-MM-dd", 18736, "2021-04-19"),
        ("UNIX_TIMESTAMP", {}, "yyyy/MM/dd", 1705311000, "2024/01/15"),
        # units
        ("SCALAR", {}, "yyyy/MM/dd", 1705311000, "2024/01/15"),
        ("SCALAR", {"unit": "NANOSECONDS"}, "ss.SSS", 1_999_999_999, "01.999"),
        ("SCALAR", {"unit": "MINUTES"}, "yyyy/MM/dd/HH/mm", 61, "1970/01/01/01/01"),
        ("SCALAR", {"unit": "hours"}, "yyyy/MM/dd/HH/mm", 25, "1970/01/02/01/00"),
        # before 1970, where parts of a millisecond are dropped towards it
        ("UNIX_TIMESTAMP", {}, "yyyy/MM/dd/HH", -1, "1969/12/31/23"),
        ("UNIX_TIMESTAMP", {}, "yyyy/MM/dd", -11_676_096_000, "1600/01/01"),
        ("EPOCHMICROSECONDS", {}, "yyyy/MM/dd", -999, "1970/01/01"),
        ("EPOCHMICROSECONDS", {}, "yyyy/MM/dd", -1000, "1969/12/31"),
        ("EPOCHMICROSECONDS", {}, "yyyy-MM-dd HH.mm.ss.SSS", -1001, "1969-12-31 23.59.59.999"),
        ("SCALAR", {"unit": "NANOSECONDS"}, "yyyy", -999_999, "1970"),
        # the first and the last of the years 1 to 9999, and what clocks of a zone show then
        ("EPOCHMICROSECONDS", {}, "yyyy-MM-dd HH", 253_402_300_799_999_999, "9999-12-31 23"),
        ("EPOCHMILLISECONDS", {}, "yyyy/MM/dd", -62_135_596_800_000, "0001/01/01"),
        ("SCALAR", DAYS, "yyyy-MM", 2_932_896, "9999-12"),
        ("SCALAR", DAYS, "yyyy-DDD", -719_162, "0001-001"),
        ("SCALAR", {"unit": "HOURS"}, "yyyy-MM-dd HH", 70_389_527, "9999-12-31 23"),
        ("UNIX_TIMESTAMP", {"zone": "GMT+9:00"}, "yyyy/MM/dd", 253_402_300_799, "10000/01/01"),
        (
            "UNIX_TIMESTAMP",
            {"output_zone": "Asia/Tokyo"},
            "EEE e DDD MMM yy xxxx-ww",
            253_402_300_799,
            "Sat 6 001 Jan 00 9999-52",
        ),
        ("UNIX_TIMESTAMP", {"zone": "GMT-5:00"}, "yyyy/MM/dd", -62_135_596_800, "0000/12/31"),
        ("UNIX_TIMESTAMP", {"zone": "GMT-5:00"}, "YYYY EEE", -62_135_596_800, "0001 Sun"),
        # zones with rules: an hour is there twice in Berlin's autumn
        (
            "UNIX_TIMESTAMP",
            {"output_zone": "Europe/Berlin"},
            "yyyy-MM-dd-HH",
            1729988999,
            "2024-10-27-02",
        ),
        (
            "UNIX_TIMESTAMP",
            {"output_zone": "Europe/Berlin"},
            "yyyy-MM-dd-HH",
            1729992599,
            "2024-10-27-02",
        ),
        (
            "UNIX_TIMESTAMP",
            {"output_zone": "Europe/Berlin"},
            "yyyy-MM-dd-HH",
            1711846800,
            "2024-03-31-03",
        ),
        ("UNIX_TIMESTAMP", {"output_zone": "GMT+05:30"}, "yyyy-MM-dd", 1705257000, "2024-01-15"),
        ("UNIX_TIMESTAMP", {"output_zone": "GMT-0330"}, "yyyy-MM-dd", 1705289399, "2024-01-14"),
        ("UNIX_TIMESTAMP", {"output_zone": "EST"}, "yyyy-MM-dd HH", 1719800000, "2024-06-30 22"),
        ("UNIX_TIMESTAMP", {"input_zone": "Asia/Tokyo"}, "yyyy/MM/dd", 1705330800, "2024/01/15"),
    ],
)
def test_numbers(
    kind: str, more: dict[str, str], output: str, value: int | None, path: str
) -> None:
    assert paths(kind, output, [value], **more) == [path]


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ("yyyyMMdd", "20240106"),
        ("yyyy-MM", "2024-01"),
        ("yyyy", "2024"),
        ("y/M/d", "2024/1/6"),
        ("YYYY", "2024"),
        ("yy", "24"),
        ("yyyyy", "02024"),
        ("'year='yyyy/'month='MM", "year=2024/month=01"),
        ("MMM yyyy", "Jan 2024"),
        ("MMMM", "January"),
        ("EEE", "Sat"),
        ("EEEE", "Saturday"),
        ("e", "6"),
        ("DDD", "006"),
        ("xxxx-'W'ww", "2024-W01"),
        ("HH kk KK hh a", "15 15 03 03 PM"),
        ("HH:mm:ss.S", "15:04:05.6"),
        ("SSSSS", "67800"),
        ("yyyy'T'", "2024T"),
        ("yyyy''MM", "2024'01"),
        ("yyyy'''x'", "2024'x"),
    ],
)
def test_letters_of_formats(output: str, path: str) -> None:
    moment = dt.datetime(2024, 1, 6, 15, 4, 5, 678_000, UTC)
    millis = round(moment.timestamp() * 1000)
    assert paths("EPOCHMILLISECONDS", output, [millis]) == [path]


def test_hours_at_midnight_and_noon() -> None:
    assert paths("UNIX_TIMESTAMP", "HH kk KK hh a", [0, 43_200]) == [
        "00 24 00 12 AM",
        "12 12 00 12 PM",
    ]


@pytest.mark.parametrize(
    ("arrow", "kind", "more", "value", "path"),
    [
        (pa.int32(), "UNIX_TIMESTAMP", {}, 1705311000, "2024/01/15"),
        (pa.float64(), "UNIX_TIMESTAMP", {}, 1705311000.9, "2024/01/15"),
        (pa.float64(), "UNIX_TIMESTAMP", {}, -0.9, "1970/01/01"),
        (pa.float64(), "UNIX_TIMESTAMP", {}, float("nan"), "1970/01/01"),
        (pa.float32(), "SCALAR", DAYS, 19737.5, "2024/01/15"),
        (pa.float64(), "SCALAR", DAYS, None, "1970/01/02"),
        (
            pa.decimal128(20, 4),
            "EPOCHMICROSECONDS",
            {},
            Decimal("1578283932123456.9999"),
            "2020/01/06",
        ),
        (pa.decimal128(20, 4), "SCALAR", DAYS, Decimal("-0.9999"), "1970/01/01"),
        (pa.decimal128(20, 4), "SCALAR", DAYS, None, "1970/01/02"),
        (pa.date32(), "SCALAR", DAYS, dt.date(1969, 12, 31), "1969/12/31"),
        (pa.date32(), "SCALAR", DAYS, dt.date(2024, 2, 29), "2024/02/29"),
        (pa.date32(), "SCALAR", DAYS, None, "1970/01/02"),
        (
            pa.timestamp("us", "UTC"),
            "EPOCHMICROSECONDS",
            {},
            dt.datetime(2024, 1, 15, 23, 59, 59, 999_999, UTC),
            "2024/01/15",
        ),
        (pa.timestamp("us"), "EPOCHMICROSECONDS", {}, dt.datetime(2024, 1, 15), "2024/01/15"),  # noqa: DTZ001
        (pa.timestamp("us"), "SCALAR", {"unit": "MICROSECONDS"}, None, "1970/01/01"),
        (
            pa.timestamp("us", "UTC"),
            "EPOCHMICROSECONDS",
            {"output_zone": "Asia/Tokyo"},
            dt.datetime(2024, 1, 15, 15, tzinfo=UTC),
            "2024/01/16",
        ),
    ],
)
def test_columns_of_other_types(
    arrow: pa.DataType, kind: str, more: dict[str, str], value: Any, path: str
) -> None:
    assert paths(kind, "yyyy/MM/dd", [value], arrow=arrow, **more) == [path]


# --- texts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "more", "output", "value", "path"),
    [
        # what Hudi's own tests expect
        (
            "yyyy-MM-dd hh:mm:ss",
            {"zone": "GMT+8:00"},
            "yyyy-MM-dd hh",
            "2020-01-06 12:12:12",
            "2020-01-06 12",
        ),
        (
            "yyyy-MM-dd hh:mm:ss",
            {"zone": "GMT"},
            "yyyy-MM-dd hh:mm:ss",
            None,
            "1970-01-01 12:00:00",
        ),
        (ISO, {"output_zone": "UTC"}, "yyyyMMddHH", "2020-04-01T13:01:33.428Z", "2020040113"),
        (ISO, {"output_zone": "UTC"}, "yyyyMMddHH", "2020-04-01T13:01:33Z", "2020040113"),
        (ISO, {"output_zone": "UTC"}, "yyyyMMddHH", "2020-04-01T13:01:33-05:00", "2020040118"),
        (ISO, {"output_zone": "UTC"}, "yyyyMMddHH", "2020-04-01T13:01:33.123-05:00", "2020040118"),
        (ISO, {"output_zone": "EST"}, "yyyyMMddHH", "2020-04-01T13:01:33.123Z", "2020040109"),
        (f"{ISO},yyyyMMdd", {"input_zone": "UTC"}, "MM/dd/yyyy", "20200401", "04/01/2020"),
        # offsets, in all their forms
        (ISO, {}, "HH:mm", "2020-04-01T13:01:33+0530", "07:31"),
        (ISO, {}, "HH:mm", "2020-04-01T13:01:33+05", "08:01"),
        (ISO, {}, "HH:mm", "2020-04-01T13:01:33z", "13:01"),
        (ISO, {}, "HH:mm", "2020-04-01t13:01:33Z", "13:01"),
        (ISO, {"input_zone": "Asia/Tokyo"}, "HH:mm", "2020-04-01T13:01:33Z", "13:01"),
        # zones of what has no offset
        (
            "yyyy-MM-dd HH:mm",
            {"input_zone": "Asia/Tokyo"},
            "yyyy-MM-dd HH",
            "2024-01-15 08:30",
            "2024-01-14 23",
        ),
        (
            "yyyy-MM-dd HH:mm",
            {"zone": "Asia/Tokyo"},
            "yyyy-MM-dd HH",
            "2024-01-15 08:30",
            "2024-01-15 08",
        ),
        ("yyyy-MM-dd HH:mm", {"input_zone": "Europe/Berlin"}, "HH", "2024-10-27 02:30", "00"),
        # fields with fewer digits, and fields that are not there
        ("yyyy-MM-dd", {}, "yyyy/MM/dd", "2024-1-5", "2024/01/05"),
        ("yyyy-MM", {}, "yyyy/MM/dd", "2024-03", "2024/03/01"),
        ("yyyy", {}, "yyyy/MM/dd HH:mm", "2024", "2024/01/01 00:00"),
        ("yyyyDDD", {}, "yyyy/MM/dd", "2024060", "2024/02/29"),
        ("d MMM yyyy", {}, "yyyy/MM/dd", "5 sep 2024", "2024/09/05"),
        ("d MMMM yyyy", {}, "yyyy/MM/dd", "5 September 2024", "2024/09/05"),
        ("yyyy-MM-dd hh:mm a", {}, "HH:mm", "2024-01-05 12:30 pm", "12:30"),
        ("yyyy-MM-dd hh:mm a", {}, "HH:mm", "2024-01-05 12:30 AM", "00:30"),
        ("yyyy-MM-dd KK a", {}, "HH", "2024-01-05 00 PM", "12"),
        ("yyyy-MM-dd kk", {}, "HH", "2024-01-05 24", "00"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", {}, "SSS", "2024-01-05 01:02:03.9876", "987"),
        ("yyyy-MM-dd HH:mm:ss.S", {}, "SSS", "2024-01-05 01:02:03.9", "900"),
        # the first that fits
        ("yyyy-MM-dd;dd.MM.yyyy", {"delimiter": ";"}, "yyyy/MM/dd", "05.01.2024", "2024/01/05"),
        ("yyyy-MM-dd|dd.MM.yyyy", {"delimiter": "\\|"}, "yyyy/MM/dd", "05.01.2024", "2024/01/05"),
        ("yyyy-MM-dd, dd.MM.yyyy", {}, "yyyy/MM/dd", "05.01.2024", "2024/01/05"),
        # the ends of the years that dates have, also where clocks elsewhere show others
        ("yyyy-MM-dd", {}, "yyyy/MM/dd", "9999-12-31", "9999/12/31"),
        ("yyyy-MM-dd", {}, "yyyy", "0001-01-01", "0001"),
        ("yyyy-MM-dd", {"zone": "Asia/Tokyo"}, "yyyy/MM/dd", "0001-01-01", "0001/01/01"),
        (
            "yyyy-MM-dd-HH",
            {"zone": "America/New_York"},
            "yyyy/MM/dd",
            "9999-12-31-23",
            "9999/12/31",
        ),
        (ISO, {"output_zone": "UTC"}, "yyyy/MM/dd", "9999-12-31T23:59:59-05:00", "10000/01/01"),
        # no text
        ("yyyy-MM-dd", {}, "yyyy/MM/dd", None, "1970/01/01"),
        (
            "yyyy-MM-dd'T'HH:mmZ",
            {"output_zone": "Asia/Tokyo"},
            "yyyy/MM/dd HH",
            None,
            "1970/01/01 09",
        ),
    ],
)
def test_texts(
    inputs: str, more: dict[str, str], output: str, value: str | None, path: str
) -> None:
    assert paths("DATE_STRING", output, [value], inputs=inputs, **more) == [path]
    assert paths("MIXED", output, [value], inputs=inputs, **more) == [path]


def test_texts_of_several_forms_in_one_batch() -> None:
    values = ["2024-01-05", None, "20240105", "2024-01-05T23:00:00-05:00", "2024-01-05"]
    inputs = f"yyyyMMdd,yyyy-MM-dd,{ISO}"

    assert paths("MIXED", "yyyy/MM/dd", values, inputs=inputs) == [
        "2024/01/05",
        "1970/01/01",
        "2024/01/05",
        "2024/01/06",
        "2024/01/05",
    ]


def test_without_any_zone_a_text_keeps_its_own_offset() -> None:
    """As Hudi has it for the tables that it made; new tables store their zones."""
    given = options("DATE_STRING", "yyyy-MM-dd HH", inputs=ISO)
    config = stored_config({**properties_of(new_table_config(given))})
    stored = {
        name: value
        for name, value in properties_of(config).items()
        if not name.endswith("timezone") or name == "hoodie.table.timeline.timezone"
    }

    old = of_config(stored_config(stored), pa.string())
    value = "2020-04-01T23:01:33-05:00"
    assert made(old, [value], pa.string()) == ["2020-04-01 23"]
    assert made(of_config(config, pa.string()), [value], pa.string()) == ["2020-04-02 04"]
