"""A file group with logs: writers, a compaction that another process runs, a clean, a rollback.

Every write puts one row into the group: writers of logs into a log, others into a base file with
all rows that they read. A compaction is planned, run and completed by any process; that may die,
and the compaction is planned again. What readers see follows from requested and completion times
alone, as in ``hudi_core/view/file_system.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

LOST: Final = "the row of an acknowledged write is lost"
CHANGED: Final = "a past state is not what its writes made of it"
RETURNED: Final = "a row that was rolled back is there"
STARVED: Final = "a compaction reads a file that is gone"

FIRST: Final = "first"
LOG: Final = "log"
BASE: Final = "base"
COMPACTION: Final = "compaction"


@dataclass(frozen=True, slots=True)
class Rules:
    """A protocol: whether each of its protective steps is taken.

    ``homes_by_completion``: whether a log is of the newest slice that was requested before the log
    was complete, and not before it was requested. ``counts_crossed``: whether a past state has the
    logs of its writes that a later compaction took over. ``plans_completed``: whether a plan names
    logs of completed writes alone. ``plans_anew``: whether a dead compaction is planned again with
    the logs of then. ``looks_for_compactions``: whether a base file commits that a compaction was
    planned without. ``looks_at_plans``: whether a write is rolled back that a plan names.
    ``looks_at_later``: whether only the last write is rolled back. ``clean_spares_planned``:
    whether a clean leaves what a plan names.
    """

    homes_by_completion: bool = True
    counts_crossed: bool = True
    plans_completed: bool = True
    plans_anew: bool = True
    looks_for_compactions: bool = True
    looks_at_plans: bool = True
    looks_at_later: bool = True
    clean_spares_planned: bool = True


class Write(NamedTuple):
    """An instant of the group.

    ``requested``, ``done``: its times; 0 while it is not complete. ``rows``: what its file has: of
    a log its own row, of a base file those that it merged too. ``named``: the files that a plan
    names. ``began``: the writes that were complete when it began.
    """

    name: str
    kind: str
    requested: int
    done: int = 0
    rows: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    began: frozenset[str] = frozenset()

    @property
    def is_base(self) -> bool:
        """Whether its file begins a slice."""
        return self.kind != LOG


class State(NamedTuple):
    """The group, and who is at it.

    ``actors``: kind and next step of each process. ``crashes``: how many may die yet. ``writes``:
    instants, by requested time. ``files``: names of those whose files exist. ``now``: the last time
    that was given. ``undone``: writes that were rolled back. ``wrong``: what went wrong in a step.
    """

    actors: tuple[tuple[str, str], ...]
    crashes: int
    writes: tuple[Write, ...] = (Write(FIRST, BASE, 1, 2, frozenset({FIRST})),)
    files: frozenset[str] = frozenset({FIRST})
    now: int = 2
    undone: frozenset[str] = frozenset()
    wrong: frozenset[str] = frozenset()

    def find(self, name: str) -> Write | None:
        """The write of a name."""
        return next((one for one in self.writes if one.name == name), None)

    @property
    def complete(self) -> tuple[Write, ...]:
        """The writes that count."""
        return tuple(one for one in self.writes if one.done)


Slice = tuple[Write, tuple[Write, ...]]
"""A base file and its logs."""
Moves = Iterator[tuple[str, State]]


def slices(state: State, rules: Rules) -> list[Slice]:
    """The slices of the group, the newest first."""
    bases = [one for one in state.complete if one.is_base]
    homes: dict[str, list[Write]] = {one.name: [] for one in bases}
    for log in state.complete:
        if not log.is_base:
            time = log.done if rules.homes_by_completion else log.requested
            home = max((one for one in bases if one.requested <= time), key=_requested)
            homes[home.name].append(log)
    found = [(one, tuple(homes[one.name])) for one in bases]
    return sorted(found, key=lambda one: one[0].requested, reverse=True)


def _requested(one: Write) -> int:
    return one.requested


def seen_at(state: State, time: int, rules: Rules) -> Slice | None:
    """The slice that a reader as of a requested time sees; ``None`` where a clean took it."""
    every = slices(state, rules)
    place = next(at for at, (base, _) in enumerate(every) if base.requested <= time)
    base, logs = every[place]
    if rules.counts_crossed:
        logs = tuple(log for _, some in every[: place + 1] for log in some)
    counted = tuple(log for log in logs if log.requested <= time)
    return (base, counted) if {base.name, *(log.name for log in counted)} <= state.files else None


def rows_in(found: Slice) -> frozenset[str]:
    """The rows of a slice."""
    base, logs = found
    return base.rows.union(*(log.rows for log in logs))


def violations(state: State, rules: Rules) -> Iterator[str]:
    """What is wrong in a state."""
    yield from state.wrong
    written = {one.name for one in state.complete if one.kind != COMPACTION}
    present = rows_in(slices(state, rules)[0])
    if written - present:
        yield LOST
    if present & state.undone:
        yield RETURNED
    for one in state.complete:
        then = seen_at(state, one.requested, rules)
        up_to = {each.name for each in state.complete if each.requested <= one.requested}
        if then is not None and rows_in(then) != up_to & written:
            yield CHANGED


# --- moves
def moves(state: State, rules: Rules) -> Moves:
    """What can happen next, in words, and the state after it."""
    for me, (kind, step) in enumerate(state.actors):
        if step == "ended":
            continue
        for what, after, following in _steps(state, f"{kind} {me}", kind, step, rules):
            yield f"{kind} {me}: {what}", _at(after, me, following)
        if step == "work" and state.crashes:
            dead = _at(state, me, "ended")._replace(crashes=state.crashes - 1)
            yield f"{kind} {me} dies, and is recovered", _recovered(dead, f"{kind} {me}", rules)


def _at(state: State, me: int, step: str) -> State:
    kind = state.actors[me][0]
    actors = (*state.actors[:me], (kind, step), *state.actors[me + 1 :])
    return state._replace(actors=actors)


_Steps = Iterator[tuple[str, State, str]]


def _steps(state: State, name: str, kind: str, step: str, rules: Rules) -> _Steps:
    match kind, step:
        case (("log" | "base"), "start"):
            began = frozenset(one.name for one in state.complete)
            new = Write(name, kind, state.now + 1, began=began)
            yield "begins", _put(state, new), "work"
        case (("log" | "base"), "work"):
            yield _committed(state, name, rules)
        case "compaction", "start" if not _pending(state):
            base, logs = slices(state, rules)[0]
            early = () if rules.plans_completed else _under_way(state)
            if logs or early:
                named = frozenset({base.name, *(one.name for one in (*logs, *early))})
                plan = Write(name, COMPACTION, state.now + 1, named=named)
                yield f"plans to merge {sorted(named)}", _put(state, plan), "ended"
        case "runner", "start" if _pending(state):
            yield "begins", state, "work"
        case "runner", "work":
            found = _pending(state)
            yield *(("finds no plan", state) if found is None else _ran(state, found)), "ended"
        case "clean", "start":
            yield "cleans", _cleaned(state, rules), "ended"
        case "rollback", "start":
            last = sorted(state.complete, key=lambda one: one.done)
            for target in last[-1:] if rules.looks_at_later else last:
                after = _rolled_back(state, target, rules)
                if after is not None:
                    yield f"rolls {target.name} back", after, "ended"


def _put(state: State, new: Write) -> State:
    return state._replace(writes=(*state.writes, new), now=new.requested)


def _with(state: State, changed: Write) -> State:
    writes = tuple(changed if one.name == changed.name else one for one in state.writes)
    return state._replace(writes=writes)


def _without(state: State, name: str) -> State:
    writes = tuple(one for one in state.writes if one.name != name)
    return state._replace(writes=writes, files=state.files - {name})


def _pending(state: State) -> Write | None:
    return next((one for one in state.writes if one.kind == COMPACTION and not one.done), None)


def _under_way(state: State) -> tuple[Write, ...]:
    return tuple(one for one in state.writes if one.kind == LOG and not one.done)


def _committed(state: State, name: str, rules: Rules) -> tuple[str, State, str]:
    mine = state.find(name)
    assert mine is not None
    since = [one for one in state.complete if one.name not in mine.began and one.kind != COMPACTION]
    gone = mine.began - {one.name for one in state.complete} - state.undone
    later = [
        one for one in state.writes if one.kind == COMPACTION and one.requested > mine.requested
    ]
    taken_back = mine.began & state.undone
    if since or gone or taken_back or (mine.is_base and later and rules.looks_for_compactions):
        return "meets a conflict", _without(state, name), "ended"
    read = mine.began - {one.name for one in state.complete if one.kind == COMPACTION}
    rows = frozenset({name}) | (read if mine.is_base else frozenset())
    done = mine._replace(done=state.now + 1, rows=rows)
    after = _with(state, done)
    return "completes", after._replace(now=done.done, files=state.files | {name}), "ended"


def _ran(state: State, plan: Write) -> tuple[str, State]:
    rows = frozenset[str]()
    for name in plan.named:
        one = state.find(name)
        if one is None or (one.done and name not in state.files):
            return "cannot read its files", state._replace(wrong=state.wrong | {STARVED})
        rows |= one.rows or {name}
    done = plan._replace(done=state.now + 1, rows=rows)
    after = _with(state, done)._replace(now=done.done, files=state.files | {plan.name})
    return "completes the compaction", after


def _recovered(state: State, name: str, rules: Rules) -> State:
    plan = _pending(state)
    if not name.startswith("runner"):
        return _without(state, name)
    if plan is None:
        return state
    left = _without(state, plan.name)
    base, logs = slices(left, rules)[0]
    named = frozenset({base.name, *(one.name for one in logs)})
    named = named if rules.plans_anew else plan.named
    again = Write(f"{plan.name} again", COMPACTION, state.now + 1, named=named)
    return _put(left, again)


def _cleaned(state: State, rules: Rules) -> State:
    plan = _pending(state)
    kept = plan.named if plan is not None and rules.clean_spares_planned else frozenset[str]()
    old = slices(state, rules)[1:]
    gone = {one.name for base, logs in old for one in (base, *logs)} - kept
    return state._replace(files=state.files - gone)


def _rolled_back(state: State, target: Write, rules: Rules) -> State | None:
    plan = _pending(state)
    is_planned = plan is not None and target.name in plan.named
    if target.name == FIRST or (is_planned and rules.looks_at_plans):
        return None
    before = slices(_without(state, target.name), rules)[0]
    if not {before[0].name, *(one.name for one in before[1])} <= state.files:
        return None  # what it replaced was cleaned
    undone = state.undone if target.kind == COMPACTION else state.undone | {target.name}
    return _without(state, target.name)._replace(undone=undone)
