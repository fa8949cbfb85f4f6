"""What archivals, and whoever is there beside them, do next, in the order of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.model.archival import (
    FIRST,
    LEFT,
    NOWHERE,
    OLD,
    STUCK,
    TWICE,
    Commits,
    Pending,
    Reader,
    Rules,
    State,
    Step,
)


# --- an archival
def _chosen(state: State, rules: Rules) -> list[int]:
    """The commits that an archival moves: all but one, as far as they may go."""
    writes = sorted(state.active)
    unsaved = [one for one in writes if one not in state.saved or not rules.keeps_saved]
    bounds = [] if rules.is_beyond else sorted(state.saved)[:1]
    if state.pending and rules.keeps_from_pending:
        number = state.pending.number
        bounds.append(max((one for one in writes if one < number), default=number))
    if state.is_replaced and rules.keeps_replacing:
        bounds.append(state.replacing)
    if rules.keeps_newest:
        unsaved = unsaved[:-1]
    return [one for one in unsaved if all(one < bound for bound in bounds)][: len(writes) - 1]


def _archival(state: State, chosen: Sequence[int], rules: Rules) -> tuple[Step, ...]:
    ordered = sorted(chosen, reverse=not rules.oldest_first)
    new = tuple(one for one in ordered if one not in state.history or not rules.looks_into_history)
    steps: list[Step] = []
    for what in rules.order:
        if what in ("pending", "completed"):
            steps += [(what, (one,)) for one in ordered]
        elif what == "format" or new:
            steps.append((what, new if what in ("file", "manifest") else ()))
    return tuple(steps) if rules.has_watermark else (*steps, ("watermark", ()))


def _stepped(state: State, step: Step, rules: Rules) -> State:
    """The state after a step of who has the lock."""
    what, them = step
    match what:
        case "open":
            if state.following is not None and rules.goes_on:
                state = state._replace(history=state.following, following=None)
            chosen = [*them] or _chosen(state, rules)
            todo = _archival(state, chosen, rules) if chosen else ()
            return state._replace(program=(*todo, *state.program))
        case "file":
            return state._replace(stored=state.stored.union(them))
        case "manifest" if state.following is not None:
            return state._replace(wrong=state.wrong | {STUCK}, program=())
        case "manifest":
            return state._replace(following=(*state.history, *them))
        case "version" if state.following is not None:
            return state._replace(history=state.following, following=None)
        case "pending":
            return state._replace(begun=state.begun.difference(them))
        case "completed":
            return state._replace(active=state.active.difference(them))
        case "format":
            archived = max(state.history, default=0)
            kept = frozenset(name for name in state.names if name > archived)
            mark = max(state.watermark, archived) if rules.has_watermark else state.watermark
            left = {LEFT} if state.pinned - state.saved and not state.program else set()
            return state._replace(names=kept, watermark=mark, wrong=state.wrong | left)
        case "watermark":
            return state._replace(watermark=max(state.history, default=0))
        case "savepoint":
            return state._replace(
                saved=state.saved.difference(them), leaving=state.leaving.difference(them)
            )
        case "unpin":
            return state._replace(pinned=state.pinned.difference(them))
    return state


# --- everybody else
def _without(state: State, gone: Commits) -> State:
    """The table once commits were taken out."""
    return state._replace(
        active=state.active - gone,
        begun=state.begun - gone,
        names=state.names - gone,
        there=state.there - gone,
        files=state.files - gone,
    )


def _rollbacks(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    one = max(state.active, default=0)
    if not one or one in state.saved or state.pending:
        return
    if one == state.replacing and FIRST not in state.files:
        return
    left = state.active - {one}
    start = max(left, default=0)
    is_hidden = not left - state.saved and any(row > start for row in state.history)
    if rules.looks_at_history and is_hidden:
        return
    yield f"rolls {one} back", _without(state, frozenset({one}))


def _restores(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    for one in sorted(state.active & state.saved):
        later = frozenset(range(one + 1, state.last + 1)) & state.there
        if later and not later & state.saved and not state.pending:
            after = _without(state, later)
            if not rules.takes_archived_out:
                after = after._replace(files=state.files - (later & state.active))
            yield f"restores to {one}", after


def _savepoints(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    for one in sorted(state.active - state.saved):
        if len(state.saved) < 2:
            saved = state.saved | {one}
            yield f"saves {one}", state._replace(saved=saved, pinned=state.pinned | {one})
    for one in sorted(state.saved):
        later = [row for row in state.history if row > one and row not in state.active]
        is_first = one in state.active and one == min(state.active - state.saved | {one})
        is_passed = bool(later) and is_first and one < max(state.active)
        first: tuple[Step, ...] = ()
        if is_passed and rules.keeps_replacing and one == state.replacing and state.is_replaced:
            continue  # it is refused
        if is_passed and rules.archives_passed_over:
            first = (("open", (one,)),)
        leaving = state.leaving | {one}
        last: tuple[Step, ...] = (("savepoint", (one,)), ("unpin", (one,)))
        program = (*first, *(last if rules.timeline_first else last[::-1]))
        begun = state._replace(program=program, leaving=leaving)
        yield f"deletes the savepoint of {one}", begun


def _cleans(state: State) -> Iterator[tuple[str, State]]:
    """What a commit replaced goes, where no savepoint keeps it."""
    if state.is_replaced and FIRST not in state.saved:
        yield "a clean", state._replace(files=state.files - {FIRST})


def _completed(state: State, one: int) -> State:
    return state._replace(
        active=state.active | {one},
        begun=state.begun | {one},
        names=state.names | {one},
        there=state.there | {one},
        files=state.files | {one},
        last=max(state.last, one),
    )


def _writes(state: State) -> Iterator[tuple[str, State]]:
    if state.last <= max(OLD):
        yield f"{state.last + 1} is written", _completed(state, state.last + 1)


def _begins(state: State) -> Iterator[tuple[str, State]]:
    """A write under way, and up to two others before it completes."""
    one = state.last + 1
    if state.pending is None:
        if one == max(OLD) + 1:
            yield f"{one} begins", state._replace(pending=Pending(one, state.there), last=one)
        return
    mine = state.pending.number
    yield f"{mine} completes", _completed(state, mine)._replace(pending=None)
    if one <= mine + 2:
        yield f"{one} is written", _completed(state, one)


def _reads(state: State, rules: Rules) -> Iterator[tuple[str, State]]:
    timeline, history = tuple(sorted(state.active)), state.history
    first, second = (timeline, history) if rules.reads_timeline_first else (history, timeline)
    if state.reader is None:
        yield "a reader takes its first look", state._replace(reader=Reader(first, state.there))
        return
    found = (*state.reader.seen, *second)
    found = tuple(set(found)) if rules.counts_once else found
    wrong = state.wrong
    if state.reader.there & state.there - {*found}:
        wrong |= {NOWHERE}
    if len(set(found)) < len(found):
        wrong |= {TWICE}
    yield "and its second", state._replace(reader=None, wrong=wrong)


def moves(state: State, rules: Rules, actions: Sequence[str]) -> Iterator[tuple[str, State]]:
    """What can happen next, in words, and the state after it.

    ``actions``: who is there beside archivals.
    """
    if "read" in actions:
        yield from _reads(state, rules)
    if state.program:
        step, *rest = state.program
        name = " ".join(map(str, (step[0], *step[1])))
        yield name, _stepped(state._replace(program=tuple(rest)), step, rules)
        if state.crashes:
            yield "dies", state._replace(program=(), crashes=state.crashes - 1)
        return
    if rules.unpins:  # the next action recovers first
        state = state._replace(pinned=state.pinned & state.saved)
    yield "an archival begins", state._replace(program=(("open", ()),))
    others: dict[str, Callable[[], Iterator[tuple[str, State]]]] = {
        "roll back": lambda: _rollbacks(state, rules),
        "restore": lambda: _restores(state, rules),
        "save": lambda: _savepoints(state, rules),
        "write": lambda: _writes(state),
        "begin": lambda: _begins(state),
        "clean": lambda: _cleans(state),
    }
    for name in actions:
        if name in others:
            yield from others[name]()
