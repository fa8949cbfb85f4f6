"""Archived instants, read from the archive of either layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudi_core.errors import InvalidInstantTimeError
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime, just_before, parse_instant_time
from hudi_core.model.protocols import Storage
from hudi_core.timeline.active import LAYOUT_1, LAYOUT_2
from hudi_core.timeline.archive_rows import completed_body, read_archive_log
from hudi_core.timeline.lsm_history import HistoryRow, read_history, read_newest_history
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """An archived instant and the bodies of its files.

    ``metadata`` and ``plan`` are the bytes of the completed and the requested file, ``None`` where
    they were not requested or are not there; in layout 1 there is no plan.
    """

    instant: Instant
    metadata: bytes | None = None
    plan: bytes | None = None


class ArchivedTimeline:
    """Reads the archive of one timeline."""

    def __init__(self, storage: Storage, folder: str, layout_version: int = LAYOUT_2) -> None:
        self.storage = storage
        self.folder = folder
        self.layout_version = layout_version

    def load(
        self,
        after: InstantTime | None = None,
        until: InstantTime | None = None,
        *,
        bodies: bool = False,
    ) -> tuple[ArchivedInstant, ...]:
        """Return archived instants by requested time, each action once.

        Rows of actions that this release does not know are left out.

        ``after`` is exclusive and ``until`` inclusive; both are requested times.
        """
        if self.layout_version == LAYOUT_1:
            entries = self._read_log(after, until, bodies=bodies)
        else:
            rows = read_history(self.storage, self.folder, after, until, bodies)
            entries = map(_from_row, rows)
        return _each_once(entries, after, until)

    def newest(
        self, count: int, after: InstantTime | None = None, *, bodies: bool = False
    ) -> tuple[ArchivedInstant, ...]:
        """Return the instants requested last, by requested time.

        In layout 2 older files of the history are not read.
        """
        if count <= 0:
            return ()
        if self.layout_version == LAYOUT_1:
            entries = self._read_log(after, None, bodies=bodies)
        else:
            rows = read_newest_history(self.storage, self.folder, count, after, bodies)
            entries = map(_from_row, rows)
        return _each_once(entries, after, None)[-count:]

    def body(self, instant: Instant) -> bytes | None:
        """Bytes of an archived instant's file; ``None`` where there are none."""
        time = instant.requested_time
        found = self.load(just_before(time), time, bodies=True)
        return next((one.metadata for one in found if one.instant == instant), None)

    def _read_log(
        self, after: InstantTime | None, until: InstantTime | None, *, bodies: bool
    ) -> Iterator[ArchivedInstant | None]:
        path = f"{self.storage.root}/{self.folder}"
        for entry in read_archive_log(self.storage, self.folder):
            found = _from_entry(entry)
            if found is not None and _is_between(found, after, until):
                yield replace(found, metadata=completed_body(entry, path)) if bodies else found


def _each_once(
    entries: Iterable[ArchivedInstant | None], after: InstantTime | None, until: InstantTime | None
) -> tuple[ArchivedInstant, ...]:
    """Return the instants of a time range, by requested time."""
    found: dict[Instant, ArchivedInstant] = {}
    for archived in entries:
        if archived is not None and _is_between(archived, after, until):
            found.setdefault(archived.instant, archived)
    # one instant may be in several states (layout 1), and in two files while these are merged
    kept = Timeline.of(found).instants
    return tuple(found[instant] for instant in kept)


def _is_between(
    archived: ArchivedInstant, after: InstantTime | None, until: InstantTime | None
) -> bool:
    time = archived.instant.requested_time
    return (after is None or time > after) and (until is None or time <= until)


def with_history(active: Timeline, archived: Iterable[ArchivedInstant]) -> Timeline:
    """Return one timeline of active and archived instants.

    An instant that is on both, because archiving is under way, is kept once, in its highest state:
    what the archive says is completed is completed, though only its inflight file may be left.
    """
    older = (one.instant for one in archived)
    return Timeline.of((*older, *active.instants), active.unknown)  # guard counts-once


def _from_row(row: HistoryRow) -> ArchivedInstant | None:
    instant = _instant(row.instant_time, row.action, State.COMPLETED, row.completion_time)
    return None if instant is None else ArchivedInstant(instant, row.metadata, row.plan)


def _from_entry(entry: Mapping[str, Any]) -> ArchivedInstant | None:
    # entries of early releases have no state: only completed instants were archived then
    word = str(entry.get("actionState") or State.COMPLETED).lower()
    if word not in list(State):
        return None
    instant = _instant(entry.get("commitTime"), entry.get("actionType"), State(word), None)
    return None if instant is None else ArchivedInstant(instant)


def _instant(time: object, action: object, state: State, completion: str | None) -> Instant | None:
    if not isinstance(time, str) or not isinstance(action, str) or action not in list(Action):
        return None
    try:
        done = parse_instant_time(completion) if completion else None
        return Instant(parse_instant_time(time), Action(action), state, done)
    except InvalidInstantTimeError:
        return None
