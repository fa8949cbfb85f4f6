"""The protocols of clean and restore, as states and moves.

A service is a sequence of steps that a process takes one by one; it may die before each of them.
Whoever comes next recovers: goes on with what the timeline shows, in the order that the code has.
Every state that can be reached is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

MISSING: Final = "the format names a file that is gone"
UNREADABLE: Final = "a visible commit has lost its file"
OUT_OF_ORDER: Final = "a later commit is visible without an earlier one"
PUBLISHED_AGAIN: Final = "a commit that is being taken out was published or undone by itself"
LEFT: Final = "something is left of the service when all is quiet"

COMMITS: Final = (1, 2)
"""The commits of a restore's plan, the older first; of a clean, those with superseded files."""


@dataclass(frozen=True, slots=True)
class State:
    """A table under one service.

    ``service``: on the Hudi timeline: ``none``, ``planned`` or ``complete``. ``recorded``: whether
    the format holds the service. ``timeline``: the commits that are complete on the Hudi timeline,
    and those that look pending. ``hidden``: the commits whose completed file was taken away.
    ``format_names``: the commits whose files the format names. ``files``: the commits whose files
    exist. ``step``: next step of the process at work; ``None`` where nobody is. ``crashes``: how
    often somebody may die yet. ``wrong``: whether a commit of the plan was published or undone by
    itself.
    """

    service: str = "none"
    recorded: bool = False
    timeline: frozenset[int] = frozenset(COMMITS)
    hidden: frozenset[int] = frozenset()
    format_names: frozenset[int] = frozenset(COMMITS)
    files: frozenset[int] = frozenset(COMMITS)
    step: int | None = 0
    crashes: int = 2
    wrong: bool = False

    @property
    def pending_publication(self) -> frozenset[int]:
        """Commits that are complete on the timeline, and not in the format."""
        return self.timeline - self.format_names


Step = Callable[[State], State]


def _plan(state: State) -> State:
    return replace(state, service="planned") if state.service == "none" else state


def _complete(state: State) -> State:
    return replace(state, service="complete")


def _record(state: State) -> State:
    return replace(state, recorded=True)


def _stop_naming(state: State) -> State:
    return replace(state, format_names=frozenset())


def _delete(commit: int) -> Step:
    return lambda state: replace(state, files=state.files - {commit})


def _hide(commit: int) -> Step:
    def hide(state: State) -> State:
        if commit not in state.timeline:
            return state
        return replace(state, timeline=state.timeline - {commit}, hidden=state.hidden | {commit})

    return hide


def _tidy(commit: int) -> Step:
    return lambda state: replace(state, hidden=state.hidden - {commit})


STEPS: Final[Mapping[str, Step]] = {
    "plan": _plan,
    "stop naming": _stop_naming,
    **{f"hide {one}": _hide(one) for one in COMMITS},
    **{f"delete {one}": _delete(one) for one in COMMITS},
    "complete": _complete,
    "record": _record,
    **{f"tidy {one}": _tidy(one) for one in COMMITS},
}
CLEAN: Final = ("plan", "stop naming", "delete 1", "delete 2", "complete", "record")
RESTORE: Final = (
    *("plan", "stop naming", "hide 2", "hide 1", "delete 2", "delete 1"),
    *("complete", "record", "tidy 2", "tidy 1"),
)


@dataclass(frozen=True, slots=True)
class Protocol:
    """A service and its recovery.

    ``steps``: names of :data:`STEPS`, in order. ``is_restore``: whether the commits of the plan go
    from the timeline; a clean's stay, as past states that have expired. ``continues_first``:
    whether recovery goes on with a pending service before it publishes what the format lacks.
    ``continues``: whether recovery goes on with it at all.
    """

    steps: Sequence[str]
    is_restore: bool
    continues_first: bool = True
    continues: bool = True


def explore(protocol: Protocol) -> frozenset[str]:
    """What goes wrong in any state that the protocol can get into."""
    found: set[str] = set()
    first = State()
    seen, waiting = {first}, deque([first])
    while waiting:
        state = waiting.popleft()
        found |= set(_violations(protocol, state))
        for following in _moves(protocol, state):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return frozenset(found)


def _moves(protocol: Protocol, state: State) -> Iterator[State]:
    if state.step is None:
        if _is_open(protocol, state):
            yield _recovering(protocol, state)
        return
    if state.crashes:
        yield replace(state, step=None, crashes=state.crashes - 1)
    done = STEPS[protocol.steps[state.step]](state)
    last = state.step + 1 == len(protocol.steps)
    yield replace(done, step=None if last else state.step + 1)


def _is_open(protocol: Protocol, state: State) -> bool:
    """Whether a recovery has anything to do."""
    if state.service == "planned":
        return protocol.continues
    if state.service == "complete":
        return not state.recorded or bool(state.hidden)
    return False


def _recovering(protocol: Protocol, state: State) -> State:
    """The state in which recovery has begun: at its first step, or with what it did before."""
    wrong = state.wrong
    if protocol.is_restore and not protocol.continues_first and state.service == "planned":
        # the format lacks them, so that they look like commits that died between the steps; or
        # like writes that died
        wrong = wrong or bool(state.pending_publication or state.hidden)
    return replace(state, step=1, wrong=wrong)


def _violations(protocol: Protocol, state: State) -> Iterator[str]:
    if state.format_names - state.files:
        yield MISSING
    if state.wrong:
        yield PUBLISHED_AGAIN
    if protocol.is_restore:
        if state.timeline - state.files:
            yield UNREADABLE
        if 2 in state.timeline and 1 not in state.timeline:
            yield OUT_OF_ORDER
    is_quiet = state.step is None and not _is_open(protocol, state)
    is_begun = state.service != "none" or state.files != frozenset(COMMITS)
    if is_quiet and is_begun:
        gone = not state.files and (not protocol.is_restore or not state.timeline | state.hidden)
        if state.service != "complete" or not state.recorded or not gone:
            yield LEFT
