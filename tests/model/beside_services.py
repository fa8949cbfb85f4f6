"""The steps of clean, savepoint, rollback and restore, in the order of the code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tests.model.beside import FIRST, Actor, Clean, Rules, Savepoint, State, Undo, live

Move: TypeAlias = tuple[str, State]
"""What happens, in words, and the state after it."""
Moves: TypeAlias = Iterator[Move]


def at(state: State, me: int, actor: Actor) -> State:
    """The state with a process in another one."""
    return state._replace(actors=(*state.actors[:me], actor, *state.actors[me + 1 :]))


def go(state: State, me: int, step: str, *, unlocks: bool = False) -> State:
    """The state in which a process is at a step."""
    actor = state.actors[me]
    found = Actor(actor.kind, step) if step == "ended" else actor._replace(step=step)
    return at(state, me, found)._replace(lock=None if unlocks else state.lock)


def superseded(state: State, rules: Rules) -> frozenset[str]:
    """The files that a clean would delete."""
    kept = {one.name for one in live(state)}
    if rules.clean_spares_pending:
        kept |= {one.base for one in state.writes if one.at != "complete"}
    if rules.clean_spares_savepoints and state.saved:
        kept |= state.saved.files
    return (state.files & state.visible) - kept


def cleaning(state: State) -> Move | None:
    """The next step of the clean on the timeline."""
    clean = state.clean
    if clean is None:
        return None
    for one in sorted(clean.files & state.files) if clean.at == "planned" else ():
        return f"deletes the file of {one}", state._replace(files=state.files - {one})
    if clean.at == "planned":
        done = state._replace(clean=Clean(frozenset(), "complete"))
        return "completes the clean", done
    return "records the clean in the format", state._replace(clean=None)


def saved(state: State, me: int) -> Moves:
    """The savepoints that can be made."""
    if state.saved is not None:
        return
    for target in sorted(state.visible):
        files = frozenset(one.name for one in live(state, target))
        if files <= state.files:
            done = state._replace(saved=Savepoint(target, files, is_held=False))
            yield f"saves {target}", go(done, me, "settle savepoint")


def is_at_work(state: State, *, or_overdue: bool = False) -> bool:
    """Whether a write is under way whose writer gives signs of life."""
    pending = {one.name for one in state.writes if one.at == "inflight"}
    return any(
        one.mine in pending and not one.is_over and (or_overdue or not one.is_overdue)
        for one in state.actors
    )


def rolled_back(state: State, me: int, rules: Rules) -> Moves:
    """The rollbacks that can be planned."""
    if is_at_work(state):
        return
    last = state.completed[-1:] if rules.looks_at_later else state.completed
    for name in last:
        target = state.find(name)
        if target is None or name == FIRST:
            continue
        if rules.looks_at_savepoints and state.saved and state.saved.target == name:
            continue
        if not rules.looks_at_files or target.base in state.files:
            plan = state._replace(undo=Undo((name,), "planned", is_restore=False))
            yield f"plans to roll {name} back", go(plan, me, "undo")


def restored(state: State, me: int) -> Moves:
    """The restore that can be planned."""
    later = tuple(one.name for one in reversed(state.writes) if one.name in state.completed)[:-1]
    is_saved = state.saved is not None and state.saved.target != FIRST
    if later and not is_saved and FIRST in state.files and not is_at_work(state, or_overdue=True):
        plan = state._replace(undo=Undo(later, "planned", is_restore=True))
        yield f"plans to take {', '.join(later)} out", go(plan, me, "undo")


def undoing(state: State, rules: Rules, *, is_own: bool = False) -> Move | None:
    """The next step of the rollback or restore on the timeline."""
    undo = state.undo
    if undo is None:
        return None
    if rules.gives_up_rollbacks and not is_own and _must_stay(state, undo):
        return f"gives up to roll {undo.targets[0]} back", state._replace(undo=None)
    for step in rules.undo:
        after = _undo_step(state, undo, step)
        if after is not None:
            return f"{step} ({', '.join(undo.targets)})", after
    return None


def _must_stay(state: State, undo: Undo) -> bool:
    """Whether the target of a rollback that has done nothing yet has others on top by now."""
    target = undo.targets[0]
    is_untouched = undo.at == "planned" and target in state.visible & state.files
    return is_untouched and not undo.is_restore and state.completed[-1] != target


def _undo_step(state: State, undo: Undo, step: str) -> State | None:
    """The state after a step; ``None`` where it was taken already."""
    targets = frozenset(undo.targets)
    done = [one for one in undo.targets if one in state.completed]
    match step:
        case "leave" if targets & state.held:
            return state._replace(held=state.held - targets)
        case "hide" if done:
            hidden = tuple(
                one._replace(at="inflight") if one.name == done[0] else one for one in state.writes
            )
            left = tuple(one for one in state.completed if one != done[0])
            return state._replace(writes=hidden, completed=left)
        case "delete" if targets & state.files:
            return state._replace(files=state.files - {min(targets & state.files)})
        case "complete" if undo.at == "planned":
            return state._replace(undo=undo._replace(at="complete"))
        case "record" if undo.at == "complete":
            return state._replace(undo=undo._replace(at="recorded"))
        case "tidy" if undo.at == "recorded":
            kept = tuple(one for one in state.writes if one.name not in targets)
            return state._replace(writes=kept, undo=None, undone=state.undone | targets)
    return None
