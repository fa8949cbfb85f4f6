"""A table on which writers and services meet: its states, and what must be true in each.

One file group to begin with, of the write ``first``. A writer updates the group that is live when
it begins; a clustering replaces that group by one of its own with the same rows; a clean deletes
what the present state does not need; a savepoint keeps the files of a state; a rollback takes the
last write out, a restore all but the first. Every write has one file, of its name. The moves are in
:mod:`tests.model.beside_moves`, which also say whose steps these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

LOST: Final = "the rows of an acknowledged commit are lost"
DOUBLED: Final = "a reader finds rows twice"
RETURNED: Final = "rows that were rolled back are there"
UNREADABLE: Final = "a reader needs a file that is gone"
STARVED: Final = "a live writer or clustering reads a file that is gone"
AHEAD: Final = "the format holds what the timeline does not"
UNSAVED: Final = "a file of a savepoint is gone"
IN_USE: Final = "a clean is about to delete a file in use"
LEFT: Final = "something is left when all is quiet"

FIRST: Final = "first"
CLUSTERINGS: Final = ("clustering", "clustering again", "clustering a third time")
"""A plan that is put on the timeline again gets a new time."""

UNDO_STEPS: Final = ("leave", "hide", "delete", "complete", "record", "tidy")
"""Steps of a rollback or restore: the format, the completed files, the data files, the rest."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A protocol: whether each of its protective steps is taken, and in which order.

    ``rejects``: whether a writer refuses to change a file group under clustering; else it wins.
    ``looks_for_conflicts``: whether a commit looks for others of the same file group since it
    began. ``looks_at_plan``: whether who runs a clustering looks whether its files are the latest.
    ``looks_for_rollbacks``: whether a commit looks whether what it began on is still there.
    ``clean_spares_pending``, ``clean_spares_savepoints``: what a clean leaves. ``finishes_cleans``:
    whether savepoints, rollbacks and restores first finish a clean that somebody began.
    ``looks_at_files``, ``looks_at_later``, ``looks_at_savepoints``: what refuses a rollback.
    ``gives_up_rollbacks``: whether a rollback that somebody planned is dropped where others built
    on the write since. ``undo``: order of :data:`UNDO_STEPS`. ``is_one_change``: whether the format
    adds and removes files of a clustering in one change. ``publishes``, ``takes_back``: whether who
    comes next publishes what the format lacks, and rolls back what died.
    """

    rejects: bool = False
    looks_for_conflicts: bool = True
    looks_at_plan: bool = True
    looks_for_rollbacks: bool = True
    clean_spares_pending: bool = True
    clean_spares_savepoints: bool = True
    finishes_cleans: bool = True
    looks_at_files: bool = True
    looks_at_later: bool = True
    looks_at_savepoints: bool = True
    gives_up_rollbacks: bool = True
    undo: Sequence[str] = UNDO_STEPS
    is_one_change: bool = True
    publishes: bool = True
    takes_back: bool = True


class Write(NamedTuple):
    """A write or a clustering on the timeline.

    ``name``: of its instant, and of its file. ``at``: ``requested`` (a scheduled clustering),
    ``inflight`` or ``complete``. ``base``: the file that it reads. ``group``, ``over``: the file
    group that it writes, and that it changes or replaces. ``rows``: the writes whose rows its file
    holds.
    """

    name: str
    at: str
    base: str
    group: str
    over: str
    rows: frozenset[str]

    @property
    def is_clustering(self) -> bool:
        """Whether it replaces a file group."""
        return self.group != self.over


class Undo(NamedTuple):
    """A rollback or a restore: its targets, the newest first, and how far it is."""

    targets: tuple[str, ...]
    at: str
    is_restore: bool


class Clean(NamedTuple):
    """A clean: the files of its plan, and how far it is."""

    files: frozenset[str]
    at: str


class Savepoint(NamedTuple):
    """A savepoint, complete on the timeline."""

    target: str
    files: frozenset[str]
    is_held: bool


class Actor(NamedTuple):
    """A process.

    ``kind``, ``step``: what it is, and what it does next; ``ended`` and ``dead`` are for good.
    ``began``: what was visible when it began. ``is_overdue``: whether others take it for dead.
    """

    kind: str
    step: str = "start"
    mine: str = ""
    began: frozenset[str] = frozenset()
    is_overdue: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it takes no more steps."""
        return self.step in ("ended", "dead")


class State(NamedTuple):
    """The table, and everybody at it.

    ``writes``: of the timeline, in the order of requests. ``completed``: names of the complete
    ones, in the order of completion. ``held``: what the format holds. ``files``: the files that
    exist. ``acked``, ``undone``: writes that were told to be done, and that were rolled back.
    ``clean``, ``undo``, ``saved``: the service on the timeline, if any. ``lock``: who has it.
    ``crashes``, ``late``: how many may die, and be taken for dead, yet. ``wrong``: what went wrong
    in a step.
    """

    actors: tuple[Actor, ...]
    crashes: int
    late: int
    writes: tuple[Write, ...]
    completed: tuple[str, ...] = (FIRST,)
    held: frozenset[str] = frozenset({FIRST})
    files: frozenset[str] = frozenset({FIRST})
    acked: frozenset[str] = frozenset({FIRST})
    undone: frozenset[str] = frozenset()
    clean: Clean | None = None
    undo: Undo | None = None
    saved: Savepoint | None = None
    lock: int | None = None
    wrong: frozenset[str] = frozenset()

    def find(self, name: str) -> Write | None:
        """The write of a name."""
        return next((one for one in self.writes if one.name == name), None)

    @property
    def visible(self) -> frozenset[str]:
        """What a fenced reader counts."""
        return self.held.intersection(self.completed)


def first_state(kinds: Iterable[str], crashes: int, late: int) -> State:
    """A table with one write."""
    base = Write(FIRST, "complete", "", "group", "group", frozenset({FIRST}))
    actors = (*map(Actor, kinds), Actor("next"))
    return State(actors, crashes, late, (base,))


def live(
    state: State, until: str | None = None, counted: frozenset[str] | None = None
) -> list[Write]:
    """The latest file of each file group.

    ``until``: as of the state after this write. ``counted``: the writes that count; by default
    those that a fenced reader counts.
    """
    names = state.visible if counted is None else counted
    visible = [one for one in state.writes if one.name in names]
    if until is not None:
        last = [one.name for one in visible].index(until)
        visible = visible[: last + 1]
    replaced = {one.over for one in visible if one.is_clustering}
    half = [one for one in state.writes if f"new of {one.name}" in state.held]
    latest = {one.group: one for one in (*visible, *half)}
    return [one for group, one in latest.items() if group not in replaced]


def _is_half_restored(state: State) -> bool:
    """Whether a restore has hidden some commits and not yet all.

    Who reads the timeline alone then sees a state in between, of which a clean may have deleted
    files. See `docs/reliability.md`.
    """
    undo = state.undo
    if undo is None or not undo.is_restore:
        return False
    left = sum(one in state.completed for one in undo.targets)
    return 0 < left < len(undo.targets)


def violations(state: State) -> Iterator[str]:
    """What is wrong in a state."""
    yield from state.wrong
    present = live(state)
    counts = Counter(row for one in present for row in one.rows)
    going = frozenset(state.undo.targets if state.undo else ())
    raw = [] if _is_half_restored(state) else live(state, counted=frozenset(state.completed))
    if any(one.name not in state.files for one in (*present, *raw)):
        yield UNREADABLE
    if any(number > 1 for number in counts.values()):
        yield DOUBLED
    if any(not counts[one] for one in state.acked - going - state.undone - {*CLUSTERINGS}):
        yield LOST
    if any(counts[one] for one in state.undone):
        yield RETURNED
    if {one.removeprefix("new of ") for one in state.held} - {*state.completed}:
        yield AHEAD
    saved = state.saved.files if state.saved else frozenset[str]()
    if saved - state.files:
        yield UNSAVED
    if state.clean and state.clean.at == "planned":
        used = saved | {one.name for one in present}
        if state.clean.files & used:
            yield IN_USE
    *others, last = state.actors
    if last.is_over and all(one.is_over or one.step == "start" for one in others):
        pending = [one for one in state.writes if one.at == "inflight"]
        agrees = state.held == {*state.completed}
        orphans = state.files - {one.name for one in state.writes}
        if pending or not agrees or orphans or state.clean or state.undo:
            yield LEFT
