"""Moments as what clocks of a zone show, and back; both as milliseconds of whole arrays.

What a clock shows is kept as if it were in UTC. Zones are named as
:func:`hudi_core.config.time_zone.time_zone` returns them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.time_zone import UTC

Millis = npt.NDArray[np.int64]
_MILLIS: Final = pa.timestamp("ms")
_PER_MINUTE: Final = 60_000


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
    aware = pa.array(moments).cast(pa.timestamp("ms", zone))
    return np.asarray(pc.local_timestamp(aware).cast(pa.int64()).to_numpy())


def to_moments(shown: Millis, zone: str, *, last: bool = False) -> Millis:
    """Return when clocks of a zone show that.

    Parameters
    ----------
    last
        Of what they show twice, whether the second time is meant. What they skip is taken for a
        moment just before, or for the one just after.
    """
    offset = fixed_offset(zone)
    if offset is not None:
        return shown - offset if offset else shown
    naive = pa.array(shown).cast(_MILLIS)
    which = "latest" if last else "earliest"
    aware = pc.assume_timezone(naive, zone, ambiguous=which, nonexistent=which)
    return np.asarray(aware.cast(pa.int64()).to_numpy())
