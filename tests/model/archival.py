"""Archiving, beside savepoints, rollbacks and restores: its states, moves and promises.

Commits are numbered in the order of their requests. An archival stores the rows of old ones as a
history file, a manifest that names it, and the version that leads there, takes the commits off the
active timeline, and lets the format forget them by their names: a watermark speaks for them. It may
die before each of these steps; the next one goes on. The deletion of a savepoint has two steps: it
leaves the timeline, and the format unpins its state. Whatever is asked for here holds the lock from
its beginning to its end. Savepoints, rollbacks and restores are one step each:
:mod:`tests.model.services` and :mod:`tests.model.beside` have theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

NOWHERE: Final = "a commit is neither active nor archived"
TWICE: Final = "a commit comes twice"
UNCOUNTED: Final = "a reader does not count a commit"
RETURNED: Final = "a reader counts a commit that was taken out"
BROKEN: Final = "the history names a file that is gone"
UNHELD: Final = "the format does not hold what the timeline has"
UNSAVED: Final = "the commit of a savepoint is not on the timeline"
UNPINNED: Final = "the format does not pin the state of a savepoint"
LEFT: Final = "the format pins a state of which the timeline has no savepoint"
UNSEEN: Final = "a pending write would miss a conflict"
REPLACED: Final = "a reader counts files that a commit replaced"
STUCK: Final = "an archival finds its manifest taken"

OLD: Final = (1, 2, 3)
"""The commits that are there; with one more, all but the newest are more than are kept."""
FIRST: Final = OLD[0]
SERVICE: Final = 1.5
"""When a clean completed that is not archived, as the next one goes on from it."""
ORDER: Final = ("file", "manifest", "version", "pending", "completed", "format")


@dataclass(frozen=True, slots=True)
class Rules:
    """A protocol: order of an archival's steps, and whether protective steps are taken.

    ``order``: of the steps. ``oldest_first``: in which order the commits leave the timeline.
    ``has_watermark``: whether the format sets the watermark in the change that forgets the names.
    ``looks_into_history``: whether an archival leaves out what the history has. ``goes_on``:
    whether an archival first takes the version up that another one has stored.
    ``reads_timeline_first``, ``counts_once``: how a reader puts timeline and history together.
    ``is_beyond``: whether commits after a savepoint may go; else nothing does from the first one
    on. ``keeps_saved``, ``keeps_newest``, ``keeps_from_pending``: what stays: commits with a
    savepoint, the newest one without, and what a pending write has to look at.
    ``looks_at_history``: whether a rollback is refused that leaves no later commit than the
    archived ones. ``keeps_replacing``: whether a commit stays while files are there that it
    replaced. ``takes_archived_out``: whether a restore deletes the files of archived commits, too.
    ``archives_passed_over``: whether the commit of a savepoint goes with it, where later ones are
    archived. ``timeline_first``: whether a savepoint leaves the timeline before the format.
    ``unpins``: whether who comes next finishes a deletion that died.
    """

    order: Sequence[str] = ORDER
    oldest_first: bool = True
    has_watermark: bool = True
    looks_into_history: bool = True
    goes_on: bool = True
    reads_timeline_first: bool = True
    counts_once: bool = True
    is_beyond: bool = True
    keeps_saved: bool = True
    keeps_newest: bool = True
    keeps_from_pending: bool = True
    looks_at_history: bool = True
    keeps_replacing: bool = True
    takes_archived_out: bool = True
    archives_passed_over: bool = True
    timeline_first: bool = True
    unpins: bool = True


Step: TypeAlias = tuple[str, tuple[int, ...]]
"""What is done, and to which commits."""
Commits: TypeAlias = frozenset[int]


class Pending(NamedTuple):
    """A write under way: its number, and what it began on."""

    number: int
    began: Commits


class Reader(NamedTuple):
    """A reader between its two looks: what the first one saw, and what was complete then."""

    seen: tuple[int, ...]
    there: Commits


class State(NamedTuple):
    """A table, and who is at it.

    ``active``, ``begun``: commits whose completed file, and whose other files are on the timeline.
    ``stored``: rows that history files hold. ``history``, ``following``: the rows of the present
    version, and of a manifest that is the next one. ``names``, ``watermark``: what the format holds
    by name, and up to when it holds all. ``there``: the commits that count, as their writers and
    services were told. ``files``: the commits whose data files exist. ``saved``, ``leaving``:
    commits with a savepoint, and those whose savepoint somebody began to delete. ``pinned``: those
    whose state the format pins. ``program``: the steps that who has the lock takes yet.
    ``pending``, ``reader``: who is at work without it. ``crashes``: how often somebody may die yet.
    ``wrong``: what a reader or an archival found. ``last``: the last number that was taken.
    ``replacing``: the commit that replaced the files of the first one; 0 where none did.
    """

    crashes: int = 1
    active: Commits = frozenset(OLD)
    begun: Commits = frozenset(OLD)
    stored: Commits = frozenset()
    history: tuple[int, ...] = ()
    following: tuple[int, ...] | None = None
    names: frozenset[float] = frozenset({*OLD, SERVICE})
    watermark: int = 0
    there: Commits = frozenset(OLD)
    files: Commits = frozenset(OLD)
    saved: Commits = frozenset()
    leaving: Commits = frozenset()
    pinned: Commits = frozenset()
    program: tuple[Step, ...] = ()
    pending: Pending | None = None
    reader: Reader | None = None
    wrong: frozenset[str] = frozenset()
    last: int = max(OLD)
    replacing: int = 0

    @property
    def is_replaced(self) -> bool:
        """Whether files that a commit replaced are there."""
        return self.replacing in self.there and FIRST in self.files


def counted(state: State) -> Commits:
    """The commits that count for readers of the timeline: active ones, and what is earlier."""
    going = {state.pending.number} if state.pending else set()
    listed = state.active | state.begun | going
    unsaved = listed - state.saved or {max(listed, default=0)}
    start = min(unsaved)
    return frozenset(
        one
        for one in range(1, state.last + 1)
        if one in state.active or (one < start and one not in listed)
    )


def violations(state: State) -> Iterator[str]:
    """What is wrong in a state."""
    yield from state.wrong
    going = {state.pending.number} if state.pending else set()
    if state.there - state.active - {*state.history}:
        yield NOWHERE
    if len(set(state.history)) < len(state.history):
        yield TWICE
    if {*state.history} - state.stored:
        yield BROKEN
    counts = counted(state) - going
    if state.there - counts:
        yield UNCOUNTED
    if counts & state.files - state.there:
        yield RETURNED
    if state.is_replaced and FIRST in counts and state.replacing not in state.active:
        yield REPLACED
    held = {one for one in (*state.active, SERVICE) if one in state.names or one <= state.watermark}
    if {*state.active, SERVICE} - held:
        yield UNHELD
    if state.saved - state.active - state.leaving:
        yield UNSAVED
    if state.saved - state.pinned:
        yield UNPINNED
    if state.pending and state.there - state.pending.began - state.active:
        yield UNSEEN
