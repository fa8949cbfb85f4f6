"""Times that users name, and table states at them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TypeAlias

from hudi_core.errors import InvalidInstantTimeError, TimeOutOfRangeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.model.protocols import TimelineView

QueryTime: TypeAlias = str | Instant | datetime | date
"""A time on the timeline: an instant, a date and time (in the table's zone where it has none), a
date (its begin), or a string that :func:`hudi_core.model.instant_time.parse_query_time` takes."""


def requested_time(time: QueryTime | None) -> str | None:
    """The time by which snapshots compare."""
    return time.requested_time if isinstance(time, Instant) else _text(time)


def completed_time(time: QueryTime | None) -> str | None:
    """The time by which changes compare."""
    return time.effective_completion_time if isinstance(time, Instant) else _text(time)


def _text(time: str | date | None) -> str | None:
    match time:
        case None | str():
            return time
        case datetime():
            # milliseconds, for an exact time does not mean the end of its second
            return time.isoformat(timespec="milliseconds")
        case date():
            return time.isoformat()
    raise InvalidInstantTimeError(
        repr(time), f"it is of the type {type(time).__qualname__}, which is no time"
    )


def snapshot_time(client: TableMetaClient, timeline: TimelineView, as_of: str) -> InstantTime:
    """The time of a past state of a table."""
    time = client.instant_time(as_of, end_of_second=True)
    writes = timeline.completed_writes()
    newest = writes[-1].requested_time if writes else EARLIEST
    now = client.config.zone.digits(datetime.now(UTC))
    # the end of the second that it is now
    if time > max(newest, InstantTime(f"{now[:14]}999")):
        raise TimeOutOfRangeError(client.base_path, as_of, _first(client, timeline), now)
    if not writes or time < writes[0].requested_time:
        first = _first(client, timeline)
        if first is None or time < first:
            raise TimeOutOfRangeError(client.base_path, as_of, first, now)
    return time


def _first(client: TableMetaClient, timeline: TimelineView) -> InstantTime | None:
    """Requested time of the first write, archived ones included."""
    archived = (
        one.instant.requested_time
        for one in client.archived.load()
        if one.instant.is_completed and one.instant.action in WRITE_ACTIONS
    )
    active = (instant.requested_time for instant in timeline.completed_writes())
    return next(archived, None) or next(active, None)
