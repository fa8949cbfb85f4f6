"""A machine whose clock is slow, for tables with old commits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from hudi_core.model.instant_time import UTC_TIMELINE
from hudi_core.timeline.clock import TimelineClock


@contextmanager
def clock_set_back(days: int) -> Iterator[None]:
    """Give out the instant times of some days ago."""
    init = TimelineClock.__init__
    defaults = init.__defaults__
    init.__defaults__ = (lambda: datetime.now(UTC) - timedelta(days=days), UTC_TIMELINE)
    try:
        yield
    finally:
        init.__defaults__ = defaults
