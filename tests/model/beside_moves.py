"""What writers and services do next, in the order of the code.

Who has the lock takes one step after the other; it may die before each. Whoever takes the lock next
makes good what it finds (:func:`_recovery`). A writer or a clustering that works without the lock
may be taken for dead and go on all the same. Rollbacks of writes that were never complete are one
step here: :mod:`tests.model.moves` has theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tests.model.beside import (
    CLUSTERINGS,
    FIRST,
    STARVED,
    Actor,
    Clean,
    Rules,
    Savepoint,
    State,
    Undo,
    Write,
    live,
)

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


def moves(state: State, rules: Rules) -> Moves:
    """What can happen next, in words, and the state after it."""
    for me, actor in enumerate(state.actors):
        if actor.is_over:
            continue
        for what, after in _steps(state, me, rules):
            yield f"{actor.kind} {me}: {what}", after
        if state.crashes and actor.step != "start" and actor.kind != "next":
            dead = at(state, me, Actor(actor.kind, "dead"))
            free = None if state.lock == me else state.lock
            yield f"{actor.kind} {me} dies", dead._replace(crashes=state.crashes - 1, lock=free)
        if state.late and actor.step in ("write", "wait") and not actor.is_overdue:
            overdue = at(state, me, actor._replace(is_overdue=True))
            yield f"{actor.kind} {me} is taken for dead", overdue._replace(late=state.late - 1)


def _steps(state: State, me: int, rules: Rules) -> Moves:
    actor = state.actors[me]
    match actor.step:
        case "start" | "run" | "wait":
            if state.lock is None and _may_start(state, actor):
                step = {"start": "recover", "run": "take", "wait": "settle"}[actor.step]
                if actor.kind == "runner" and actor.step == "start":
                    step = "take"
                yield "takes the lock", go(state, me, step)._replace(lock=me)
        case "write":
            yield _written(state, me, actor)
        case "settle":
            yield _publication(state, rules) or _committed(state, me, actor, rules)
        case "publish":
            yield _published(state, me, actor, rules)
        case "ack":
            done = state._replace(acked=state.acked | {actor.mine})
            yield "is done", go(done, me, "ended", unlocks=True)
        case "settle savepoint":
            yield _publication(state, rules) or ("is done", go(state, me, "ended", unlocks=True))
        case "undo":
            due = undoing(state, rules, is_own=True)
            yield due or ("is done", go(state, me, "ended", unlocks=True))
        case "clean":
            yield cleaning(state) or ("is done", go(state, me, "ended", unlocks=True))
        case _:
            yield from _on_recovered(state, me, actor, rules)


def _may_start(state: State, actor: Actor) -> bool:
    *others, last = state.actors
    if actor.kind == "next":
        return all(one.step == "start" or one.is_over for one in others)
    if actor.kind == "runner" and _scheduled(state) is None:
        return False
    return last.step == "start"


def _scheduled(state: State) -> Write | None:
    return next((one for one in state.writes if one.at == "requested"), None)


# --- what is made good first
def _recovery(state: State, rules: Rules) -> Move | None:
    """One step of recovery under the lock; ``None`` when nothing is left to do."""
    if state.undo is not None and state.undo.is_restore:
        return undoing(state, rules)
    dead = _dead(state) if rules.takes_back else None
    return _publication(state, rules) or undoing(state, rules) or dead


def _publication(state: State, rules: Rules) -> Move | None:
    going = state.undo.targets if state.undo else ()
    for one in state.completed:
        if one not in state.held and one not in going and rules.publishes:
            held = (state.held | {one}) - {f"new of {one}"}
            return f"publishes the {one} of another", state._replace(held=held)
    if state.saved and not state.saved.is_held:
        saved = state.saved._replace(is_held=True)
        return "publishes the savepoint of another", state._replace(saved=saved)
    return None


def _dead(state: State) -> Move | None:
    alive = {
        one.mine for one in state.actors if one.mine and not one.is_over and not one.is_overdue
    }
    for one in state.writes:
        if one.at == "inflight" and one.name not in alive:
            left = _without(state, one.name)
            later = CLUSTERINGS[CLUSTERINGS.index(one.name) + 1 :] if one.is_clustering else ()
            if later:
                again = one._replace(name=later[0], at="requested", group=later[0])
                left = left._replace(writes=(*left.writes, again))
            return f"rolls back the {one.name} of another", left
    return None


def _without(state: State, name: str) -> State:
    kept = tuple(one for one in state.writes if one.name != name)
    return state._replace(writes=kept, files=state.files - {name})


def _on_recovered(state: State, me: int, actor: Actor, rules: Rules) -> Moves:
    """The steps of those that hold the lock and have nothing to make good any more."""
    asks = actor.kind in ("savepoint", "rollback", "restore")
    due = undoing(state, rules) if actor.kind == "rollback" else _recovery(state, rules)
    if due is None and (actor.kind in ("clean", "next") or (asks and rules.finishes_cleans)):
        is_refused = actor.kind == "restore" and is_at_work(state, or_overdue=True)
        due = None if is_refused else cleaning(state)
    if due is not None:
        yield due
        return
    ended = go(state, me, "ended", unlocks=True)
    match actor.kind, actor.step:
        case "writer", _:
            yield _begun(state, me, rules) or ("is refused", ended)
        case _, "take":
            yield _taken(state, me, rules) or ("has nothing to run", ended)
        case "clustering", _:
            yield _planned(state, me) or ("has nothing to plan", ended)
        case "clean", _:
            files = superseded(state, rules)
            if files:
                plan = state._replace(clean=Clean(files, "planned"))
                yield f"plans a clean of {', '.join(sorted(files))}", go(plan, me, "clean")
        case "savepoint", _:
            yield from saved(state, me)
        case "rollback", _:
            yield from rolled_back(state, me, rules)
        case "restore", _:
            yield from restored(state, me)
    if actor.kind not in ("writer", "clustering", "runner"):
        yield "ends", ended


# --- writers and clusterings
def _begun(state: State, me: int, rules: Rules) -> Move | None:
    base = live(state)[0]
    pending = [one for one in state.writes if one.at != "complete" and one.is_clustering]
    if rules.rejects and any(one.over == base.group for one in pending):
        return None
    name = f"write {me}"
    rows = base.rows | {name}
    write = Write(name, "inflight", base.name, base.group, base.group, rows)
    return f"begins on {base.name}", _off(state, me, write)


def _off(state: State, me: int, write: Write) -> State:
    """Somebody at work without the lock."""
    actor = Actor(state.actors[me].kind, "write", write.name, state.visible)
    others = tuple(one for one in state.writes if one.name != write.name)
    kept = [one if one.name != write.name else write for one in state.writes]
    writes = tuple(kept) if write.name in [one.name for one in state.writes] else (*others, write)
    return at(state, me, actor)._replace(writes=writes, lock=None)


def _planned(state: State, me: int) -> Move | None:
    base = live(state)[0]
    name = CLUSTERINGS[0]
    if any(
        one.over == base.group for one in state.writes if one.at != "complete" and one.is_clustering
    ) or state.find(name):
        return None
    plan = Write(name, "requested", base.name, name, base.group, base.rows)
    after = state._replace(writes=(*state.writes, plan))
    return f"plans to replace {base.name}", go(after, me, "run", unlocks=True)


def _taken(state: State, me: int, rules: Rules) -> Move | None:
    plan = _scheduled(state)
    if plan is None:
        return None
    if rules.looks_at_plan and plan.base not in [one.name for one in live(state)]:
        return "gives the plan up", go(_without(state, plan.name), me, "ended", unlocks=True)
    return f"begins the {plan.name}", _off(state, me, plan._replace(at="inflight"))


def _written(state: State, me: int, actor: Actor) -> Move:
    write = state.find(actor.mine)
    if write is None:  # it was rolled back: what it writes now it deletes when it learns of that
        return "writes in vain", go(state, me, "wait")
    if write.base not in state.files:
        wrong = state.wrong if actor.is_overdue else state.wrong | {STARVED}
        failed = _without(state, actor.mine)._replace(wrong=wrong)
        return "cannot read its file", go(failed, me, "ended")
    return "writes its file", go(state._replace(files=state.files | {actor.mine}), me, "wait")


def _committed(state: State, me: int, actor: Actor, rules: Rules) -> Move:
    mine = state.find(actor.mine)
    if mine is None or mine.at != "inflight":
        return "was rolled back", go(state, me, "ended", unlocks=True)
    touched = {mine.group, mine.over}
    since = [
        one
        for one in state.writes
        if one.name in state.visible - actor.began and touched & {one.group, one.over}
    ]
    gone = actor.began - state.visible
    if (since and rules.looks_for_conflicts) or (gone and rules.looks_for_rollbacks):
        left = _without(state, actor.mine)
        return "meets a conflict, and is undone", go(left, me, "ended", unlocks=True)
    done = tuple(
        one._replace(at="complete") if one.name == actor.mine else one for one in state.writes
    )
    after = state._replace(writes=done, completed=(*state.completed, actor.mine))
    return "completes on the timeline", go(after, me, "publish")


def _published(state: State, me: int, actor: Actor, rules: Rules) -> Move:
    half = f"new of {actor.mine}"
    if not rules.is_one_change and half not in state.held and actor.mine in CLUSTERINGS:
        return "adds its file to the format", state._replace(held=state.held | {half})
    held = (state.held | {actor.mine}) - {half}
    return "completes in the format", go(state._replace(held=held), me, "ack")
