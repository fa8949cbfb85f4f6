"""A table's Delta log: opens it, and finds instants in it.

A version that completes an instant carries a transaction (``txn``) of its own, by which the log
shows for ever, and without being read from its beginning, that it holds the instant. Reports of
versions (``commitInfo``) hold the rest, and may be cleaned away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from deltalake import DeltaTable

from delta_format.handles import (
    Handle,
    at_version,
    keep_after,
    later,
    never_keep,
    newest,
    opened,
)
from delta_format.library import translated
from delta_format.location import LOG_FOLDER, root_of
from delta_format.log_actions import LogAction, transaction
from delta_format.reports import Reports
from delta_format.vectors import LogVectors
from hudi_core.spi import (
    ACTION_KEY,
    COMPLETION_TIME_KEY,
    INSTANT_KEY,
    TAKES_IN_KEY,
    WATERMARK_KEY,
    WRITE_ACTIONS,
    Action,
    CommitConflictError,
    DataPlaces,
    HudiError,
    Instant,
    MetaClientView,
    Publication,
    TimelineZone,
    parse_instant_time,
    to_epoch_millis,
)

STEP_KEY: Final = "hudi.step"
"""What a version of ours that completes no instant records: why it was made."""
OF_INSTANT_KEY: Final = "hudi.step-of"
"""What such a version records beside it: the instants it was made for, with commas between."""
SCHEMA_STEP: Final = "schema"
REVERT_STEP: Final = "revert"
FENCE_STEP: Final = "fence"
UNSAVE_STEP: Final = "delete-savepoint"
ARCHIVE_STEP: Final = "archive"
WRITES: Final = frozenset(one.value for one in WRITE_ACTIONS)
"""Actions that change rows, as versions report them."""
REVOKED: Final = -1
"""Version of an instant's transaction once the instant is taken out of the table."""

BASE: Final = "readVersion"
"""What a version reports beside: the version that it was made on."""
_VACUUM: Final = ("VACUUM START", "VACUUM END")
_FEW: Final = 16
_STAGES: Final = (1, 20, None)
"""How many versions are read at first, then, and at last."""


def app_id(instant: Instant) -> str:
    """Return the application id of the transaction that records an instant.

    A savepoint has the time of its commit, so that it needs an id of its own.
    """
    is_savepoint = instant.action.completed_action is Action.SAVEPOINT
    return f"hudi:{instant.requested_time}{'.savepoint' if is_savepoint else ''}"


def completion_millis(instant: Instant) -> int:
    """The digits of a completion time as milliseconds, taken for UTC.

    The version of an instant's transaction: it is found again whatever zone is declared.
    """
    return to_epoch_millis(instant.effective_completion_time)


def completed(instant: Instant, zone: TimelineZone) -> LogAction:
    """The transaction that makes a table hold an instant."""
    done = zone.epoch_millis(instant.effective_completion_time)
    return transaction(app_id(instant), completion_millis(instant), done)


def revoked(instant: Instant, zone: TimelineZone) -> LogAction:
    """The transaction that takes an instant out of a table, for ever."""
    done = zone.epoch_millis(instant.effective_completion_time)
    return transaction(app_id(instant), REVOKED, done)


def watermark_at(millis: int) -> LogAction:
    """The transaction that sets the watermark; see :attr:`Head.watermark`."""
    return transaction(WATERMARK_KEY, millis, millis)


@dataclass(frozen=True, eq=False)
class Head:
    """The newest version of a log at its opening.

    ``table`` stays at that version until something is written with it. ``reports`` are those of
    that version and the ones before, ``vectors`` the deletion vectors of its files. ``handle`` is
    what a later look under the same write's locks may continue from.
    """

    table: DeltaTable
    root: str
    reports: Reports
    vectors: LogVectors
    places: DataPlaces
    handle: Handle | None = None
    _recorded: dict[str, int | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def version(self) -> int:
        """Number of the version."""
        return int(self.table.version())

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what deltalake raises while it reads into errors of the project.

        Who looks again opens the log as a whole: what the handle goes by may have been cleaned up
        since, which is no damage.
        """
        try:
            with translated(self.root):
                yield
        except HudiError:
            never_keep(self)
            raise

    # --- instants --------------------------------------------------------------------------------

    def recorded(self, instant: Instant) -> int | None:
        """Return an instant's transaction version in the log, or ``None``.

        It is the completion time in milliseconds, or :data:`REVOKED`.
        """
        name = app_id(instant)
        if name not in self._recorded and self._came_before(instant):
            return None
        if name not in self._recorded:
            with self.reading():
                self._recorded[name] = self.table.transaction_version(name)
        return self._recorded[name]

    def holds(self, instant: Instant) -> bool:
        """Whether the table counts an instant."""
        recorded = self.recorded(instant)
        if recorded is not None:
            return recorded != REVOKED
        if self._came_before(instant):
            return False
        mark = self.watermark
        return (
            mark is not None
            and instant.completion_time is not None
            and completion_millis(instant) <= mark
        )

    @cached_property
    def watermark(self) -> int | None:
        """Watermark of the log in milliseconds, or ``None``.

        The completion time up to which every instant is complete that the log does not name.
        """
        with self.reading():
            return self.table.transaction_version(WATERMARK_KEY)

    def publication(self, instant: Instant) -> Publication | None:
        """Return how the table holds an instant; ``None`` when it does not."""
        if not self.holds(instant):
            return None
        action = instant.action.completed_action
        named = self.report(instant)
        if named is None:
            return Publication(instant.requested_time, action, str(self.version), is_expired=True)
        done = named.get(COMPLETION_TIME_KEY)
        completion = parse_instant_time(done) if done else instant.completion_time
        return Publication(instant.requested_time, action, str(named["version"]), completion)

    def among(self, instants: int) -> Recent:
        """Commit information of the newest versions, enough for so many instants."""
        reports = self._newest_reports(_FEW + 2 * instants)
        held, taken, unsaved = set(), set(), set()
        for info in reports:  # the newest first
            time = info.get(INSTANT_KEY)
            if info.get(STEP_KEY) in (REVERT_STEP, FENCE_STEP):
                taken.update(str(info.get(OF_INSTANT_KEY)).split(","))
            elif info.get(STEP_KEY) == UNSAVE_STEP:
                unsaved.add((info.get(OF_INSTANT_KEY), Action.SAVEPOINT.value))
            elif time is not None and time not in taken:
                held.add((time, info.get(ACTION_KEY)))
        return Recent(self, frozenset(held - unsaved))

    # --- versions --------------------------------------------------------------------------------

    def versions(self) -> Iterator[Mapping[str, Any]]:
        """Yield what the versions report of themselves, the newest first."""
        reported = 0
        for limit in _STAGES:
            found = self._newest_reports(limit)
            yield from found[reported:]
            reported = len(found)
            if limit is None or reported < limit:
                return

    def _came_before(self, instant: Instant) -> bool:
        """Whether the loaded reports show that no version has an instant.

        Back to one of before its request, all are of other instants.

        Looking for a transaction reads the log from its last checkpoint.
        """
        for info in self.reports.read:
            done = info.get(COMPLETION_TIME_KEY)
            is_other = INSTANT_KEY in info and info[INSTANT_KEY] != instant.requested_time
            if done is None or not is_other or STEP_KEY in info:
                return False
            if done < instant.requested_time:
                return True
        return False

    def _newest_reports(self, limit: int | None) -> Sequence[Mapping[str, Any]]:
        with self.reading():
            return self.reports.newest(limit)

    @property
    def is_of_hudi(self) -> bool:
        """Whether a Hudi writer made a version of the log.

        Or took the log over.
        """
        return self.watermark is not None or any(map(is_ours, self.versions()))

    def report(self, instant: Instant) -> Mapping[str, Any] | None:
        """Commit information of an instant's version; ``None`` once it is cleaned."""
        identity = (instant.requested_time, instant.action.completed_action)
        return next(
            (
                info
                for info in self.versions()
                if (info.get(INSTANT_KEY), info.get(ACTION_KEY)) == identity
            ),
            None,
        )

    @cached_property
    def foreign(self) -> ForeignVersions | None:
        """The versions that other writers have put on Hudi's; ``None`` for none.

        A version of ours is made on a version of ours only, or on those that it takes in, so that
        the newest answers for all. A vacuum changes no rows and is passed over.
        """
        return _foreign(self.versions())

    def require_parent(self, parent: str | None, instant: Instant | None = None) -> None:
        """Refuse another version than a change was decided on.

        A vacuum and the schema step of this very instant may have come in between.
        """
        if parent is None or parent == str(self.version):
            return
        time = None if instant is None else instant.requested_time
        schema_step = (SCHEMA_STEP, time)
        for info in self.versions():
            if str(info["version"]) == parent:
                return
            if (info.get(STEP_KEY), info.get(OF_INSTANT_KEY)) == schema_step:
                continue
            if info.get("operation") not in _VACUUM:
                break
        raise CommitConflictError(
            f"{f'Instant {time}' if time else 'A change'} builds on version {parent} of the Delta "
            f"log of {self.root}, which is at version {self.version} now",
            "Nothing was recorded. Run it again, on the table as it is now.",
            instant=time,
            parent=parent,
            version=self.version,
        )


@dataclass(frozen=True, slots=True)
class ForeignVersions:
    """Versions that no Hudi writer made.

    ``texts`` are their names, the oldest first. ``hudi_version`` is the newest that holds nothing
    of theirs; ``None`` where there is none.
    """

    texts: tuple[str, ...]
    hudi_version: int | None


def _text_of(info: Mapping[str, Any]) -> str:
    by = info.get("engineInfo") or info.get("clientVersion") or "an unknown engine"
    return f"version {info['version']} ({info.get('operation')}, by {by})"


def is_ours(info: Mapping[str, Any]) -> bool:
    """Whether a Hudi writer made a version, by its report."""
    return INSTANT_KEY in info or STEP_KEY in info


def _foreign(newest_first: Iterable[Mapping[str, Any]]) -> ForeignVersions | None:
    """Return the foreign versions that no version of ours has taken in."""
    found: list[str] = []
    ours: int | None = None
    taken_up_to = -1
    for info in newest_first:
        version = int(info["version"])
        if version <= taken_up_to:
            break
        if is_ours(info):
            base = info.get(BASE)
            # a version may report nothing, and the library then counts the reports as if it were
            # not there
            if base is not None and int(base) + 1 != version:
                version = int(base) + 1
                found.append(f"a version after {version} that does not say who made it")
            ours = version if ours is None else ours
            if TAKES_IN_KEY not in info:
                break
            # others may have come between what was looked at and the version
            taken_up_to = int(info[TAKES_IN_KEY])
        elif info.get("operation") not in _VACUUM:
            found.append(_text_of(info))
            ours = None if ours is None else taken_up_to
    return ForeignVersions(tuple(reversed(found)), ours) if found else None


@dataclass(frozen=True, slots=True)
class Recent:
    """Instants of a head, from the reports of its newest versions.

    Looking up one transaction takes as long as reading many reports.

    ``held`` gives completed actions by requested time, as the reports have them; ``head`` is asked
    for other instants.
    """

    head: Head
    held: frozenset[tuple[Any, Any]]

    def holds(self, instant: Instant) -> bool:
        """Whether the table counts an instant; see :meth:`Head.holds`."""
        return self.names(instant) or self.head.holds(instant)

    def names(self, instant: Instant) -> bool:
        """Whether one of the newest versions names an instant.

        In whatever state it is.
        """
        return (instant.requested_time, instant.action.completed_action) in self.held


def has_log(meta_client: MetaClientView) -> bool:
    """Whether a table has a Delta log, damaged or not."""
    return any(True for _ in meta_client.root.list(LOG_FOLDER))


def open_log(
    meta_client: MetaClientView, version: int | None = None, *, is_rebuilt: bool = False
) -> Head:
    """Open a table's log.

    ``version`` is one to go back to, by default the newest. ``is_rebuilt`` reads all of it, also
    where this process knows a part, as damage shows only then.
    """
    held = meta_client.held
    if version is None and held is not None and isinstance(held.value, Head):
        return held.value
    root = root_of(meta_client)
    with translated(root):
        if version is not None:
            return _head(meta_client, at_version(meta_client, version))
        if held is not None:
            # all of it at a table's first write: damage shows only so
            earlier = held.earlier.handle if isinstance(held.earlier, Head) else None
            held.earlier = None
            handle = opened(meta_client) if earlier is None else later(meta_client, earlier)
            head = _head(meta_client, handle.table, handle)
            held.value = head
            return head
        handle = opened(meta_client) if is_rebuilt else newest(meta_client)
    head = _head(meta_client, handle.table)
    keep_after(head, meta_client, handle)
    return head


def _head(meta_client: MetaClientView, table: DeltaTable, handle: Handle | None = None) -> Head:
    reports = Reports(meta_client, table, handle)
    vectors = LogVectors(meta_client, table)
    return Head(table, root_of(meta_client), reports, vectors, meta_client.files, handle)
