"""Instants and their file names.

One instant is one action at one requested time, in one of three states. Its file name is the only
place where state and completion time are kept, so the grammar of the name lives beside the value.

Source: ``hudi-format`` facts of Apache Hudi's timeline layouts 1 and 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from hudi_core.errors import InvalidInstantTimeError
from hudi_core.model.instant_time import DIGITS, InstantTime, parse_instant_time


class Action(StrEnum):
    """What an instant does to the table, named as in file names."""

    COMMIT = "commit"
    DELTACOMMIT = "deltacommit"
    REPLACECOMMIT = "replacecommit"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOGCOMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"

    @cached_property
    def completed_action(self) -> Action:
        """The action in the file name of the completed instant (layout 2)."""
        return _COMPLETED_AS.get(self, self)


_COMPLETED_AS: Final = {
    Action.CLUSTERING: Action.REPLACECOMMIT,
    Action.COMPACTION: Action.COMMIT,
    Action.LOGCOMPACTION: Action.DELTACOMMIT,
}

COMPACTIONS: Final = frozenset({Action.COMPACTION, Action.LOGCOMPACTION})
"""Actions that merge log files, into base files or into one log."""
PLANNED_ACTIONS: Final = COMPACTIONS | {Action.CLUSTERING}
"""Actions whose plan one process puts on the timeline, and any process runs."""
WRITE_ACTIONS: Final = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})
"""Completed actions that change which rows the table holds."""


class State(StrEnum):
    """How far an instant has come."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


_STATE_ORDER: Final = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


@dataclass(frozen=True, slots=True)
class Instant:
    """One action of the table at one time.

    Attributes
    ----------
    requested_time
        When the action was requested; identifies it, and names every file it writes.
    action
        What it does.
    state
        How far it has come.
    completion_time
        When it completed; ``None`` while pending, and always for tables of layout 1.
    """

    requested_time: InstantTime
    action: Action
    state: State
    completion_time: InstantTime | None = None

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def is_scheduled(self) -> bool:
        """Whether it has a plan that nobody has begun to run."""
        return self.action in PLANNED_ACTIONS and self.state is State.REQUESTED

    @property
    def effective_completion_time(self) -> InstantTime:
        """Completion time, or the requested time where the layout records none."""
        return self.completion_time or self.requested_time

    @property
    def sort_key(self) -> tuple[str, str, int]:
        return (self.requested_time, self.action.value, _STATE_ORDER[self.state])

    def to(self, state: State, completion_time: InstantTime | None = None) -> Instant:
        """Return this instant in another state."""
        action = self.action.completed_action if state is State.COMPLETED else self.action
        return replace(self, state=state, action=action, completion_time=completion_time)

    def __str__(self) -> str:
        return f"{self.requested_time}.{self.action}.{self.state}"


def file_name_v2(instant: Instant) -> str:
    """Return the layout 2 file name of ``instant`` (``hudi-format`` section 3)."""
    time, action = instant.requested_time, instant.action
    match instant.state:
        case State.REQUESTED:
            return f"{time}.{action}.requested"
        case State.INFLIGHT:
            return f"{time}.inflight" if action is Action.COMMIT else f"{time}.{action}.inflight"
        case State.COMPLETED:
            return f"{time}_{instant.completion_time}.{action.completed_action}"


_NAME: Final = re.compile(
    rf"(?P<time>{DIGITS})(?:_(?P<done>{DIGITS}))?"
    r"(?:\.(?P<action>[a-z]+))?(?:\.(?P<state>requested|inflight))?"
)


def parse_file_name_v2(name: str) -> Instant | None:
    """Return the instant of a layout 2 file name, else ``None``."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        time = parse_instant_time(match["time"])
        done = parse_instant_time(match["done"]) if match["done"] else None
    except InvalidInstantTimeError:
        return None
    word, state = match["action"], match["state"]
    if word == "inflight" and state is None and done is None:
        return Instant(time, Action.COMMIT, State.INFLIGHT)
    if word is None or word not in Action.__members__.values():
        return None
    action = Action(word)
    if state is not None:
        return None if done else Instant(time, action, State(state))
    return Instant(time, action, State.COMPLETED, done) if done else None


def file_name_v1(instant: Instant) -> str:
    """Return the layout 1 file name of ``instant``.

    It has no completion time, and all files lie in ``.hoodie``.
    """
    if instant.is_completed:
        return f"{instant.requested_time}.{instant.action}"
    return file_name_v2(instant)


def parse_file_name_v1(name: str) -> Instant | None:
    """Return the instant of a layout 1 file name, else ``None``."""
    match = _NAME.fullmatch(name)
    if match is None or match["done"]:
        return None
    if match["state"] is None and match["action"] in Action.__members__.values():
        try:
            time = parse_instant_time(match["time"])
        except InvalidInstantTimeError:
            return None
        return Instant(time, Action(match["action"]), State.COMPLETED)
    return parse_file_name_v2(name)
