"""Clocks of zones, of many values at once, against one value at a time by ``zoneinfo``."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from hudi_core.keygen.zones import to_local_millis, to_utc_millis

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLI = dt.timedelta(milliseconds=1)
DAY = 86_400_000
ZONES = (
    "UTC",
    "America/New_York",
    "America/St_Johns",  # at one minute past midnight
    "America/Sao_Paulo",  # at midnight
    "Africa/Monrovia",  # 44 minutes and 30 seconds behind until 1972
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour of summer time
    "Pacific/Apia",  # skipped a day
    "Africa/Casablanca",  # four changes a year
)


def offset(moment: dt.datetime) -> int:
    return (moment.utcoffset() or dt.timedelta(0)) // MILLI


@pytest.mark.parametrize("name", ZONES)
def test_days_on_which_clocks_are_changed(name: str) -> None:
    zone = ZoneInfo(name)
    days = [EPOCH + dt.timedelta(days=each) for each in range(-5_000, 29_000)]
    offsets = [offset(day.astimezone(zone)) for day in days]
    changed = [days[at] for at in range(len(days) - 1) if offsets[at] != offsets[at + 1]]
    steps = [dt.timedelta(minutes=40 * each) for each in range(-36, 72)]
    some = [day + step for day in changed for step in steps]
    timestamps = np.array([(each - EPOCH) // MILLI for each in some], np.int64)

    assert to_local_millis(timestamps, name).tolist() == [
        int(moment) + offset(each.astimezone(zone))
        for each, moment in zip(some, timestamps, strict=True)
    ]
    for last, choose in ((False, max), (True, min)):
        shifts = [
            choose(offset(each.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)) for each in some
        ]
        assert to_utc_millis(timestamps, name, last=last).tolist() == (timestamps - shifts).tolist()


@pytest.mark.parametrize(("name", "hours"), [("Etc/GMT-5", 5), ("+05:00", 5), ("-03:00", -3)])
def test_zones_without_rules(name: str, hours: int) -> None:
    timestamps = np.array([-(2**53), -1, 0, 2**53], np.int64)
    assert (to_local_millis(timestamps, name) - timestamps).tolist() == [hours * 3_600_000] * 4
    assert (timestamps - to_utc_millis(timestamps, name)).tolist() == [hours * 3_600_000] * 4


@pytest.mark.parametrize("year", [-20_000, 0, 12_000])
def test_years_that_datetime_does_not_know(year: int) -> None:
    """Record keys of timestamps have no bound."""
    summer = np.datetime64(f"{year:05}-07-01", "ms").astype(np.int64)
    (shown,) = to_local_millis(np.array([summer]), "Europe/Berlin")
    assert abs(shown - summer) < DAY
