"""Moments as what clocks of a zone show, and back; both as milliseconds of whole arrays.

What a clock shows is kept as if it were in UTC. Zones are named as
:func:`hudi_core.config.time_zone.time_zone` returns them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC as UTC_ZONE
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.time_zone import UTC

Millis = npt.NDArray[np.int64]
_MILLIS: Final = pa.timestamp("ms")
_MILLI: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
_PER_MINUTE: Final = 60_000
_SLOT: Final = 15 * _PER_MINUTE
"""Clocks are changed between two of these."""
_FAR: Final = 2_114_380_800_000
"""The first of 2037, from which on Arrow knows no summer time: it takes the changes that a zone
lists, and lists end there, but not the rule that goes on."""


def fixed_offset(zone: str) -> int | None:
    """Return the milliseconds that clocks are ahead of UTC; ``None`` for a zone with rules."""
    if zone == UTC:
        return 0
    if zone[0] not in "+-":
        return None
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return minutes * _PER_MINUTE * (-1 if zone[0] == "-" else 1)


def to_clock(moments: Millis, zone: str) -> Millis:
    """Return what clocks of a zone show."""
    offset = fixed_offset(zone)
    if offset is not None:
        return moments + offset if offset else moments

    def near(some: Millis) -> Millis:
        aware = pa.array(some).cast(pa.timestamp("ms", zone))
        return np.asarray(pc.local_timestamp(aware).cast(pa.int64()).to_numpy())

    rules = ZoneInfo(zone)
    return _in_two(moments, near, lambda moment: _millis(moment.astimezone(rules).utcoffset()))


def to_moments(shown: Millis, zone: str, *, last: bool = False) -> Millis:
    """Return when clocks of a zone show that.

    Parameters
    ----------
    last
        Of what they show twice, whether the second time is meant. What they skip is taken for a
        moment before, or after.
    """
    offset = fixed_offset(zone)
    if offset is not None:
        return shown - offset if offset else shown

    def near(some: Millis) -> Millis:
        naive = pa.array(some).cast(_MILLIS)
        which = "latest" if last else "earliest"
        aware = pc.assume_timezone(naive, zone, ambiguous=which, nonexistent=which)
        return np.asarray(aware.cast(pa.int64()).to_numpy())

    rules = ZoneInfo(zone)
    choose = min if last else max

    def behind(clock: datetime) -> int:
        both = (clock.replace(tzinfo=rules, fold=fold).utcoffset() for fold in (0, 1))
        return -choose(map(_millis, both))

    return _in_two(shown, near, behind)


def _in_two(
    values: Millis, near: Callable[[Millis], Millis], shift: Callable[[datetime], int]
) -> Millis:
    """Return what becomes of values: of near ones all at once, of far ones for each slot."""
    is_far = values >= _FAR
    if not is_far.any():
        return near(values)
    found = np.empty_like(values)
    found[~is_far] = near(values[~is_far])
    far = values[is_far]
    slots, places = np.unique(far // _SLOT, return_inverse=True)
    shifts = [shift(_EPOCH + timedelta(milliseconds=slot * _SLOT)) for slot in slots.tolist()]
    found[is_far] = far + np.array(shifts, np.int64)[places]
    return found


def _millis(offset: timedelta | None) -> int:
    return (offset or timedelta(0)) // _MILLI
