"""Files of a timeline in the other layout.

Layout 2 names when an instant completed. Layout 1 does not, and Hudi takes the date of the
completed file for it, which is right as long as the table was not copied. So a date counts only
where the requested file of the same instant was stored when its name says. Without such a date an
instant completes right after its request: readers of layout 1 go by requested times, and so the
order of the writes stays what it was.

Commit metadata is JSON in layout 1 and Avro in layout 2; all else is Avro in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.instant_time import InstantTime, TimelineZone, next_instant_time
from hudi_core.timeline.active import LAYOUT_2, ActiveTimeline
from hudi_core.timeline.serde import (
    decode_commit,
    decode_replace_commit,
    decode_requested_replace,
    encode,
    encode_json,
    is_json,
)

_EARLY: Final = timedelta(minutes=1)
_LATE: Final = timedelta(minutes=5)
"""How far before and after its time a requested file may be stored: clocks of writer and store
differ, and writers are slow."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class MovedFile:
    """One file of a timeline in both layouts."""

    before: Instant
    after: Instant


def moved_files(active: ActiveTimeline, zone: TimelineZone) -> tuple[MovedFile, ...]:
    """Every file of a timeline with its place in layout 2.

    Costs one listing, and a read of each request for a replacement.
    """
    stored = {
        instant: file.modified_ms
        for file in active.storage.list(active.folder)
        if (instant := active.parse(file.name)) is not None
    }
    done = completion_times(stored, zone)
    clusterings = {one.requested_time for one in stored if is_planned_clustering(active, one)}
    return tuple(
        MovedFile(one, _moved(one, done, one.requested_time in clusterings))
        for one in sorted(stored, key=lambda one: one.sort_key)
    )


def completion_times(
    stored: Mapping[Instant, int], zone: TimelineZone
) -> dict[Instant, InstantTime]:
    """When each completed instant of layout 1 completed; each time once.

    ``stored`` has the times at which the instants' files were stored, in milliseconds since the
    epoch.
    """
    dates = {one: _EPOCH + ms * _MILLI for one, ms in stored.items()}
    originals = {
        one.requested_time: date
        for one, date in dates.items()
        if one.state is State.REQUESTED
        and -_EARLY <= date - zone.utc_datetime(one.requested_time) <= _LATE
    }
    if [originals[time] for time in sorted(originals)] != sorted(originals.values()):
        originals = {}  # copied, and just now
    found: dict[Instant, InstantTime] = {}
    taken: set[InstantTime] = set()
    for one in sorted(filter(lambda one: one.is_completed, dates), key=lambda one: one.sort_key):
        time = one.requested_time
        wanted = zone.digits(dates[one]) if time in originals else time
        wanted = next_instant_time(time, wanted)
        while wanted in taken:
            wanted = next_instant_time(wanted, wanted)
        found[one] = wanted
        taken.add(wanted)
    return found


def is_planned_clustering(active: ActiveTimeline, instant: Instant) -> bool:
    """Whether a file requests a clustering.

    Layout 1 names it like other replacements.
    """
    if instant.action is not Action.REPLACECOMMIT or instant.state is not State.REQUESTED:
        return False
    path = f"{active.storage.root}/{active.path(instant)}"
    return decode_requested_replace(active.read(instant), path).clustering_plan is not None


def _moved(instant: Instant, done: Mapping[Instant, InstantTime], is_clustering: bool) -> Instant:
    if instant.is_completed:
        return instant.to(State.COMPLETED, done[instant])
    if is_clustering and instant.action is Action.REPLACECOMMIT:
        return replace(instant, action=Action.CLUSTERING)
    return instant


def moved_back(active: ActiveTimeline) -> tuple[MovedFile, ...]:
    """Every file of a timeline with its place in layout 1.

    That knows no completion times, and names clusterings like other replacements.
    """
    found = active.scan()
    return tuple(
        MovedFile(one, _without_time(one))
        for one in sorted(found.files, key=lambda one: one.sort_key)
        if one not in found.late
    )


def _without_time(instant: Instant) -> Instant:
    is_clustering = instant.action is Action.CLUSTERING
    action = Action.REPLACECOMMIT if is_clustering else instant.action
    return replace(instant, action=action, completion_time=None)


@dataclass(frozen=True, slots=True)
class CopyToLayout:
    """Copies a file into another layout; a value for engines."""

    before: ActiveTimeline
    after: ActiveTimeline

    def __call__(self, file: MovedFile) -> None:
        """Copy it."""
        to_layout = _body if self.after.layout_version == LAYOUT_2 else _body_in_layout_1
        body = to_layout(self.before, file.before)
        self.after.storage.put_if_absent(self.after.path(file.after), body)


def _body(active: ActiveTimeline, instant: Instant) -> bytes:
    """The bytes of a file in layout 2."""
    data = active.read(instant)
    if instant.action not in WRITE_ACTIONS or not is_json(data):
        return data
    path = f"{active.storage.root}/{active.path(instant)}"
    if instant.is_completed and instant.action is Action.REPLACECOMMIT:
        return encode(decode_replace_commit(data, path))
    return encode(decode_commit(data, path))


def _body_in_layout_1(active: ActiveTimeline, instant: Instant) -> bytes:
    """The bytes of a file in layout 1."""
    data = active.read(instant)
    if instant.action not in WRITE_ACTIONS or instant.state is State.REQUESTED or not data:
        return data
    path = f"{active.storage.root}/{active.path(instant)}"
    if instant.is_completed and instant.action is Action.REPLACECOMMIT:
        return encode_json(decode_replace_commit(data, path))
    return encode_json(decode_commit(data, path))
