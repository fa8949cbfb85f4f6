"""The two-step commit as a machine of small steps: writers, a recoverer, and what can go wrong.

Every process is a sequence of atomic steps; each is one request to the timeline or to the format,
or a decision made from what the last requests told. Between any two steps any other process may
take some of its own. What can go wrong:

* a writer dies at any point (as often as there are crashes left);
* the lease of the lock runs out, also under a holder that is alive and believes it holds it, and a
  writer that is alive is taken for dead;
* a request to the format is lost, or lands and the answer is lost, or lands at any later time, also
  after its sender is gone.

The recoverer is any healthy next writer: it does not die, and may run as often as it likes. What is
left out: the rows, the metadata table, table services. Requests are linearizable: a put of a
timeline file, and compare-and-set in the format, happen at one point of time.

The names of :class:`Step` are those in the comments of ``hudi_core/txn``, and of the rollback that
it runs, in ``hudi_core/actions``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Final, NamedTuple


class Step(IntEnum):
    """What a process does next."""

    BEGIN = auto()
    """Put the instant on the timeline; the write builds on the fenced timeline of now."""
    RECORD_PARENT = auto()
    """Take the lock and read the format: its state, and which instants its lineage holds."""
    DECIDE = auto()
    """Read the timeline, *after* the format, and choose: make good what others left, or go on."""
    COMPLETE = auto()
    """Step 1: the completed file, which holds the parent."""
    LOOK_FOR_PLAN = auto()
    """Read the timeline again: has anybody planned to roll this instant back?"""
    PUBLISH = auto()
    """Step 2: compare-and-set on the parent. After any answer but yes: from the start again."""
    PLAN_ROLLBACK = auto()
    """Put the plan of a rollback of a pending instant on the timeline."""
    LOOK_AT_TARGET = auto()
    """Read the timeline again: has the instant been completed meanwhile?"""
    FENCE = auto()
    """Compare-and-set a state of the format that changes nothing but to say that the instant will
    never be taken: requests on their way fail, and nobody sends another."""
    UNDO = auto()
    """Delete the files and complete the rollback."""
    ENDED = auto()
    DEAD = auto()

    @property
    def word(self) -> str:
        """The step as comments in the code name it."""
        return self.name.lower().replace("_", "-")


class Policy(Enum):
    """What is done with an instant that step 1 holds and step 2 does not."""

    FORWARD = "roll forward, or back behind a fence where the checks fail"
    FENCED = "always roll back, behind a fence"
    PLAIN = "roll back as if it had never been completed"
    IGNORE = "leave it"


@dataclass(frozen=True)
class Protocol:
    """The protocol, and what can be taken out of it; by default it is the right one.

    ``writers``: how many writers there are. ``disjoint``: whether they change different file
    groups. ``compare_and_set``: whether step 2 is made only on the state that it was planned on.
    ``checks_conflicts``, ``checks_order``: whether a replay looks for instants that it conflicts
    with, or that are newer. ``parent_first``: whether the format is read before the timeline, and
    not after the decision. ``looks_at_target``: whether a pending target is read again when the
    plan of its rollback is on the timeline. ``looks_for_plan``: whether a writer looks for such a
    plan between the two steps. ``plan_is_failure``: whether a writer that finds one tells that it
    failed, and not that the outcome is open. ``late_landing``: whether requests may land after
    their sender has given them up. ``zombies``: whether leases run out under live holders, and live
    writers are taken for dead. ``crashes``: how many writers may die.
    """

    writers: int = 2
    policy: Policy = Policy.FORWARD
    disjoint: bool = False
    compare_and_set: bool = True
    checks_conflicts: bool = True
    checks_order: bool = True
    parent_first: bool = True
    looks_at_target: bool = True
    looks_for_plan: bool = True
    plan_is_failure: bool = False
    late_landing: bool = True
    zombies: bool = True
    crashes: int = 2


FREE: Final = -1

# what the timeline holds of an instant
ABSENT, PENDING, COMPLETED, ROLLED_BACK = range(4)
# what a caller was answered
NOTHING, DONE, FAILED, UNKNOWN = range(4)


class Process(NamedTuple):
    """What one process knows. A process is a writer, whose instant has its number, or the last one,
    which is the recoverer."""

    at: Step
    seen: int = 0
    """The instants that the format held when it was read, as bits; until the decision only."""
    is_current: bool = False
    """Whether the format is still in the state that was read: the parent."""
    target: int = -1
    time: int = 0
    has_sent: bool = False


LOST_UPDATE: Final = "lost update"
DUPLICATE: Final = "duplicate"
OUT_OF_ORDER: Final = "out of order"


class State(NamedTuple):
    """Everything there is; one entry or bit per instant, which has the number of its writer."""

    timeline: tuple[int, ...]
    times: tuple[int, ...]
    """Completion times; 0 while there is none."""
    bases: tuple[int, ...]
    """How many instants the format held when each write began: it builds on just these, as the
    format never loses one."""
    planned: int
    """The instants with a pending rollback."""
    held: int
    """The instants that the format holds."""
    revoked: int
    """The instants that the format will never hold."""
    travelling: int
    """The instants for which a request for step 2 may land yet."""
    lock: int
    outcomes: tuple[int, ...]
    crashes: int
    processes: tuple[Process, ...]
    wrong: frozenset[str] = frozenset()
    """What went wrong when an instant came into the format."""


Moves = Iterator[tuple[str, State]]
"""What can happen next: who does what, and the state after it."""


def first_state(protocol: Protocol) -> State:
    count = protocol.writers
    zeros = (0,) * count
    writers = (Process(Step.BEGIN),) * count
    return State(
        timeline=(ABSENT,) * count,
        times=zeros,
        bases=zeros,
        planned=0,
        held=0,
        revoked=0,
        travelling=0,
        lock=FREE,
        outcomes=(NOTHING,) * count,
        crashes=protocol.crashes,
        processes=(*writers, Process(Step.RECORD_PARENT)),
    )


def put(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])


def numbers(bits: int) -> Iterator[int]:
    """Yield the instants that bits stand for."""
    number = 0
    while bits >> number:
        if bits >> number & 1:
            yield number
        number += 1


def landed(state: State, instant: int, protocol: Protocol) -> State:
    """Return the state once the format holds an instant, with what is wrong about that."""
    wrong = set(state.wrong)
    if state.held >> instant & 1:
        wrong.add(DUPLICATE)
    elif state.timeline[instant] != ROLLED_BACK:
        others = [one for one in numbers(state.held) if state.timeline[one] != ROLLED_BACK]
        if others and not protocol.disjoint and state.held.bit_count() > state.bases[instant]:
            wrong.add(LOST_UPDATE)
        if any(state.times[one] > state.times[instant] for one in others):
            wrong.add(OUT_OF_ORDER)
    after = state._replace(held=state.held | 1 << instant, wrong=frozenset(wrong))
    return changed(after, protocol)


def changed(state: State, protocol: Protocol) -> State:
    """Return the state after a change of the format: nobody has its present state as parent."""
    processes = tuple(
        one._replace(is_current=False) if one.is_current else one for one in state.processes
    )
    # a request that can never land any more is as good as none
    travelling = 0 if protocol.compare_and_set else state.travelling
    return state._replace(processes=processes, travelling=travelling)


def in_order(state: State) -> State:
    """Return the state with completion times that are 1, 2, 3, ...: only their order matters."""
    given = {*state.times, *(one.time for one in state.processes)} - {0}
    if max(given, default=0) == len(given):
        return state
    rank = {time: number for number, time in enumerate(sorted(given), 1)} | {0: 0}
    return state._replace(
        times=tuple(rank[time] for time in state.times),
        processes=tuple(one._replace(time=rank[one.time]) for one in state.processes),
    )


def next_time(state: State) -> int:
    return 1 + max((*state.times, *(one.time for one in state.processes)))


def has_ended(process: Process) -> bool:
    return process.at in (Step.ENDED, Step.DEAD)


def known_outcome(writer: int, held: int, state: int, planned: int) -> int | None:
    """How a writer ends, where what it reads decides that.

    ``held``, ``planned``: the instants, as bits, that are complete in the format, and whose
    rollback is planned. ``state``: of its own instant on the timeline.
    """
    if held >> writer & 1:
        return DONE
    if state == ROLLED_BACK:
        return FAILED
    if planned >> writer & 1:
        return FAILED if state == PENDING else UNKNOWN
    return None
