"""UTC timestamps to local ones and back, as millisecond arrays.

What a clock shows is kept as if it were in UTC. Zones are named as
:func:`hudi_core.config.time_zone.time_zone` returns them, with the rules of ``zoneinfo``. Arrow's
own conversion was tried: it is as fast, and knows no summer time from 2037 on.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.config.time_zone import UTC

Millis = npt.NDArray[np.int64]
_MILLI: Final = timedelta(milliseconds=1)
_DAY: Final = 86_400_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
_FIRST, _LAST = (
    (datetime(year, month, day, tzinfo=UTC_ZONE) - _EPOCH) // _MILLI
    for year, month, day in ((1, 1, 3), (9999, 12, 29))
)
"""Beyond these zones are taken to stay as they are, as ``datetime`` ends two days later."""


def zone_of(name: str) -> tzinfo:
    """The zone of a name."""
    if name == UTC:
        return UTC_ZONE
    fixed = datetime.strptime(name, "%z").tzinfo if name[0] in "+-" else None
    return fixed or ZoneInfo(name)


def to_local_millis(utc_millis: Millis, zone: str) -> Millis:
    """What clocks of a zone show."""
    rules = zone_of(zone)
    return _shifted(utc_millis, rules, lambda utc: _offset(utc.astimezone(rules)))


def to_utc_millis(local: Millis, zone: str, *, last: bool = False) -> Millis:
    """When clocks of a zone show that.

    Of a time that clocks show twice, ``last`` takes the second. One that they skip becomes a moment
    before the gap, with ``last`` after it.
    """
    rules = zone_of(zone)
    choose = min if last else max

    def behind(clock: datetime) -> timedelta:
        return -choose(_offset(clock.replace(tzinfo=rules, fold=fold)) for fold in (0, 1))

    return _shifted(local, rules, behind)


def _shifted(values: Millis, rules: tzinfo, shift: Callable[[datetime], timedelta]) -> Millis:
    """Values with their zone offsets added, per day where possible.

    Clocks are changed once a day at most, so those that agree on both ends of a day agree within.
    """
    if rules.utcoffset(None) is not None:
        return values + shift(_EPOCH) // _MILLI

    def shifts(some: Millis) -> Millis:
        inside = np.clip(some, _FIRST, _LAST).tolist()
        return np.array([shift(_EPOCH + each * _MILLI) // _MILLI for each in inside], np.int64)

    coded = pa.array(values // _DAY).dictionary_encode()
    days, places = coded.dictionary.to_numpy(), coded.indices.to_numpy()
    first = shifts(days * _DAY)
    shifted: Millis = values + first[places]
    is_mixed = (first != shifts((days + 1) * _DAY))[places]
    if is_mixed.any():
        single, places = np.unique(values[is_mixed], return_inverse=True)
        shifted[is_mixed] = (single + shifts(single))[places]
    return shifted


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta(0)
