"""The two-step commit of a table with two formats: a step 2 for each, one after the other.

As :mod:`tests.model.two_steps`, with formats ``FIRST`` and ``LAST``. A commit travels from the
first to the last, and what is taken back from the last to the first; complete is what both hold.
So the last one never holds what the first one lacks, and shows just what is complete. Between any
two requests, those to the two formats too, any other process may take steps of its own, writers may
die, and what was sent may land late or without an answer. What is left out: a rollback that a user
asks for, of an instant that both hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Final, NamedTuple

from tests.model.exploration import (
    DONE_INVISIBLE,
    FAILED_VISIBLE,
    ROLLED_BACK_VISIBLE,
    STUCK,
    Verdict,
)
from tests.model.two_steps import (
    ABSENT,
    COMPLETED,
    DONE,
    DUPLICATE,
    FAILED,
    LOST_UPDATE,
    NOTHING,
    OUT_OF_ORDER,
    PENDING,
    ROLLED_BACK,
    UNKNOWN,
    numbers,
    put,
)

FIRST, LAST = 0, 1
AHEAD: Final = "the last format ahead of the first"


class At(IntEnum):
    """What a process does next."""

    BEGIN = auto()
    READ_FIRST = auto()
    READ_LAST = auto()
    DECIDE = auto()
    COMPLETE = auto()
    LOOK_FOR_PLAN = auto()
    PUBLISH_FIRST = auto()
    PUBLISH_LAST = auto()
    FENCE_FIRST = auto()
    FENCE_LAST = auto()
    LOOK_AGAIN = auto()
    REVERT_LAST = auto()
    REVERT_FIRST = auto()
    UNDO = auto()
    PLAN_ROLLBACK = auto()
    LOOK_AT_TARGET = auto()
    UNDO_PENDING = auto()
    ENDED = auto()
    DEAD = auto()


@dataclass(frozen=True)
class Several:
    """The protocol, and what can be taken out of it; by default it is the right one.

    Attributes
    ----------
    settles
        Whether a writer whose step 2 fails brings others' pending instants to their end before it
        goes on with its own.
    begun_first
        Whether an instant that one format holds is brought to its end before older ones.
    compares
        The formats in which step 2 is made only on the state that it was planned on.
    fences
        The formats that are fenced against an instant that is given up.
    looks_again
        Whether the formats are asked, once they are fenced, whether both hold the instant.
    reverts
        Whether an instant that is given up is taken out of a format that holds it.
    waits_for_all
        Whether a write is done when both formats hold it, and not when one does.
    parents_first
        Whether both formats are read before the timeline; without it the last one is read after.
    disjoint
        Whether the writers change different file groups.
    crashes
        How many writers may die.
    """

    writers: int = 2
    settles: bool = True
    begun_first: bool = True
    compares: tuple[int, ...] = (FIRST, LAST)
    fences: tuple[int, ...] = (FIRST, LAST)
    looks_again: bool = True
    reverts: bool = True
    waits_for_all: bool = True
    parents_first: bool = True
    disjoint: bool = False
    crashes: int = 1


class Who(NamedTuple):
    """What one process knows: a writer, or the last one, which recovers and does not die."""

    at: At
    seen: tuple[int, int] = (0, 0)
    current: tuple[bool, bool] = (False, False)
    target: int = -1
    time: int = 0
    has_sent: bool = False


class World(NamedTuple):
    """Everything there is; bits and entries per instant, pairs per format."""

    timeline: tuple[int, ...]
    times: tuple[int, ...]
    bases: tuple[int, ...]
    """The instants, as bits, that were complete when each write began."""
    planned: int
    held: tuple[int, int]
    revoked: tuple[int, int]
    travelling: tuple[int, int]
    told: tuple[int, ...]
    crashes: int
    who: tuple[Who, ...]
    wrong: frozenset[str] = frozenset()

    @property
    def complete(self) -> int:
        return self.held[FIRST] & self.held[LAST]


Moves = Iterator[tuple[str, World]]


def first_world(protocol: Several) -> World:
    zeros = (0,) * protocol.writers
    writers = (Who(At.BEGIN),) * protocol.writers
    return World(
        timeline=(ABSENT,) * protocol.writers,
        times=zeros,
        bases=zeros,
        planned=0,
        held=(0, 0),
        revoked=(0, 0),
        travelling=(0, 0),
        told=(NOTHING,) * protocol.writers,
        crashes=protocol.crashes,
        who=(*writers, Who(At.READ_FIRST)),
    )


def _set(pair: tuple[int, int], which: int, value: int) -> tuple[int, int]:
    return (value, pair[1]) if which == FIRST else (pair[0], value)


def _changed(world: World, which: int, protocol: Several) -> World:
    """Nobody has the format's present state as parent, and what is on its way will fail."""
    who = tuple(
        one._replace(current=_unset(one.current, which)) if one.current[which] else one
        for one in world.who
    )
    if which not in protocol.compares:
        return world._replace(who=who)
    return world._replace(who=who, travelling=_set(world.travelling, which, 0))


def _unset(pair: tuple[bool, bool], which: int) -> tuple[bool, bool]:
    return (False, pair[1]) if which == FIRST else (pair[0], False)


def _landed(world: World, which: int, instant: int, protocol: Several) -> World:
    """The world once a format holds an instant, with what is wrong about that."""
    wrong, held = set(world.wrong), world.held[which]
    if held >> instant & 1:
        wrong.add(DUPLICATE)
    elif world.timeline[instant] != ROLLED_BACK:
        others = [one for one in numbers(held) if world.timeline[one] != ROLLED_BACK]
        unknown = [one for one in others if not world.bases[instant] >> one & 1]
        if unknown and not protocol.disjoint:
            wrong.add(LOST_UPDATE)
        if any(world.times[one] > world.times[instant] for one in others):
            wrong.add(OUT_OF_ORDER)
    if which == LAST and not world.held[FIRST] >> instant & 1:
        wrong.add(AHEAD)
    now = world._replace(held=_set(world.held, which, held | 1 << instant), wrong=frozenset(wrong))
    return _changed(now, which, protocol)


def _in_order(world: World) -> World:
    """The world with completion times 1, 2, 3, ...: only their order matters."""
    given = sorted({*world.times, *(one.time for one in world.who)} - {0})
    rank = {time: number for number, time in enumerate(given, 1)} | {0: 0}
    return world._replace(
        times=tuple(rank[time] for time in world.times),
        who=tuple(one._replace(time=rank[one.time]) for one in world.who),
    )


@dataclass(frozen=True)
class SeveralMachine:
    """The moves of a protocol."""

    protocol: Several

    def moves(self, world: World) -> Moves:
        for me, one in enumerate(world.who):
            name = "recoverer" if me == self.protocol.writers else f"writer {me}"
            for what, after in self._steps(world, me, one):
                yield f"{name}: {what}", _in_order(after)
            is_mortal = me < self.protocol.writers and one.at not in (At.ENDED, At.DEAD)
            if world.crashes and is_mortal:
                dead = self._at(world, me, Who(At.DEAD))
                yield f"{name} dies", _in_order(dead._replace(crashes=world.crashes - 1))
        for which in (FIRST, LAST):
            for instant in numbers(world.travelling[which]):
                left = world.travelling[which] & ~(1 << instant)
                arrived = world._replace(travelling=_set(world.travelling, which, left))
                if arrived.revoked[which] >> instant & 1:
                    yield f"{instant} is refused", arrived
                else:
                    there = _landed(arrived, which, instant, self.protocol)
                    yield f"{instant} lands late in {which}", there

    def _steps(self, world: World, me: int, one: Who) -> Moves:
        match one.at:
            case At.BEGIN:
                begun = world._replace(
                    timeline=put(world.timeline, me, PENDING),
                    bases=put(world.bases, me, world.complete),
                )
                yield "begins", self._at(begun, me, Who(At.READ_FIRST))
            case At.READ_FIRST | At.READ_LAST:
                yield from self._read(world, me, one)
            case At.DECIDE:
                yield from self._decide(world, me, one)
            case At.COMPLETE:
                yield from self._complete(world, me, one)
            case At.LOOK_FOR_PLAN:
                if world.timeline[me] == ROLLED_BACK:
                    yield from self._tell(world, me, FAILED)
                elif world.planned >> me & 1:
                    yield from self._tell(world, me, UNKNOWN)
                else:
                    yield "finds no plan", self._at(world, me, one._replace(at=At.PUBLISH_FIRST))
            case At.PUBLISH_FIRST:
                yield from self._publish(world, me, one, FIRST)
            case At.PUBLISH_LAST:
                yield from self._publish(world, me, one, LAST)
            case At.ENDED | At.DEAD:
                return
            case _:
                yield from self._take_back(world, me, one)

    def _read(self, world: World, me: int, one: Who) -> Moves:
        which = FIRST if one.at is At.READ_FIRST else LAST
        seen = _set(one.seen, which, world.held[which])
        current = (True, False) if which == FIRST else (one.current[FIRST], True)
        following = At.READ_LAST if which == FIRST else At.DECIDE
        after = one._replace(at=following, seen=seen, current=current)
        yield f"reads format {which}", self._at(world, me, after)
        if one.has_sent and which == FIRST:
            yield from self._tell(world, me, UNKNOWN)

    def _decide(self, world: World, me: int, one: Who) -> Moves:
        there, is_writer = one.seen[FIRST] & one.seen[LAST], me < self.protocol.writers
        if is_writer:
            mine = world.timeline[me]
            if there >> me & 1:
                yield from self._tell(world, me, DONE)
                return
            if mine == ROLLED_BACK:
                yield from self._tell(world, me, FAILED)
                return
            if world.planned >> me & 1:
                yield from self._tell(world, me, FAILED if mine == PENDING else UNKNOWN)
                return
        kept = list(numbers(world.planned & there))
        left = [
            each
            for each, state in enumerate(world.timeline)
            if state == COMPLETED and not there >> each & 1
        ]
        if is_writer and me in left and not self.protocol.settles:
            left = [me]
        if kept:
            now = world._replace(planned=world.planned & ~(1 << kept[0]))
            yield f"leaves {kept[0]} be", self._at(now, me, self._again(one))
        elif left:
            # what one format holds comes before all else: other checks do not see it yet
            is_begun = one.seen[FIRST] if self.protocol.begun_first else 0
            target = min(left, key=lambda each: (not is_begun >> each & 1, world.times[each]))
            may = not world.planned >> target & 1 and self._may_follow(world, one, target)
            bit = 1 << target
            facing = Who(At.FENCE_FIRST, target=target, has_sent=one.has_sent)
            after = (
                facing._replace(
                    at=At.PUBLISH_FIRST,
                    seen=(one.seen[FIRST] & bit, one.seen[LAST] & bit),
                    current=one.current,
                )
                if may
                else facing
            )
            yield f"{'replays' if may else 'gives up'} {target}", self._at(world, me, after)
        elif is_writer:
            if not self.protocol.disjoint and there & ~world.bases[me]:
                yield from self._tell(self._rolled_back(world, me), me, FAILED)
                return
            time = 1 + max((*world.times, *(each.time for each in world.who)))
            after = one._replace(at=At.COMPLETE, time=time, seen=(0, 0))
            yield "finds nothing against it", self._at(world, me, after)
        else:
            yield from self._clear_up(world, me, one)

    def _may_follow(self, world: World, one: Who, target: int) -> bool:
        """The checks of a replay, against what is complete."""
        there = one.seen[FIRST] & one.seen[LAST]
        if not self.protocol.disjoint and there & ~world.bases[target]:
            return False
        newest = max((world.times[each] for each in numbers(there)), default=0)
        return newest <= world.times[target]

    def _clear_up(self, world: World, me: int, one: Who) -> Moves:
        is_clear = True
        for each in range(self.protocol.writers):
            if world.timeline[each] != PENDING:
                continue
            facing = Who(At.LOOK_AT_TARGET, target=each)
            if world.planned >> each & 1:
                yield f"goes on rolling {each} back", self._at(world, me, facing)
                is_clear = False
            else:
                after = facing._replace(at=At.PLAN_ROLLBACK)
                yield f"takes {each} for dead", self._at(world, me, after)
                is_clear &= world.who[each].at is not At.DEAD
        if is_clear:
            yield "is done", self._at(world, me, Who(At.READ_FIRST))

    def _complete(self, world: World, me: int, one: Who) -> Moves:
        after = one._replace(at=At.LOOK_FOR_PLAN, target=me, time=0)
        if not self.protocol.parents_first:
            after = after._replace(current=(after.current[FIRST], True))
        if world.timeline[me] == PENDING:
            world = world._replace(
                timeline=put(world.timeline, me, COMPLETED), times=put(world.times, me, one.time)
            )
        yield "completes", self._at(world, me, after)

    def _publish(self, world: World, me: int, one: Who, which: int) -> Moves:
        target, protocol = one.target, self.protocol
        looking = Who(At.READ_FIRST, has_sent=one.has_sent or target == me)
        missed = self._at(world, me, looking)
        if one.seen[which] >> target & 1:  # the hook finds its work done
            if which == FIRST:
                now = one._replace(
                    at=At.PUBLISH_LAST, seen=(0, one.seen[LAST]), current=(False, one.current[LAST])
                )
                yield "finds it there", self._at(world, me, now)
            else:
                yield "finds it there", missed
            return
        if world.revoked[which] >> target & 1:
            after = Who(At.FENCE_FIRST, target=target, has_sent=looking.has_sent)
            yield "is refused", self._at(world, me, after)
            return
        if which in protocol.compares and not one.current[which]:
            yield f"finds format {which} changed", missed
            return
        there = _landed(missed, which, target, protocol)
        if which == FIRST and (target != me or protocol.waits_for_all):
            further = _landed(world, which, target, protocol)
            now = further.who[me]._replace(
                at=At.PUBLISH_LAST,
                seen=(0, one.seen[LAST]),
                current=(False, one.current[LAST]),
                has_sent=looking.has_sent,
            )
            yield f"{target} lands in the first", self._at(further, me, now)
        elif target == me:
            yield from self._tell(there, me, DONE)
        else:
            yield f"{target} lands in the last", there
        yield f"{target} lands in {which}, the answer is lost", there
        sent = _set(world.travelling, which, world.travelling[which] | 1 << target)
        yield f"{target} is on its way to {which}", missed._replace(travelling=sent)

    def _take_back(self, world: World, me: int, one: Who) -> Moves:
        target, bit = one.target, 1 << one.target
        match one.at:
            case At.FENCE_FIRST | At.FENCE_LAST:
                which = FIRST if one.at is At.FENCE_FIRST else LAST
                following = At.FENCE_LAST if which == FIRST else At.LOOK_AGAIN
                now = self._at(world, me, one._replace(at=following))
                if not world.held[which] & bit and which in self.protocol.fences:
                    revoked = _set(now.revoked, which, now.revoked[which] | bit)
                    now = _changed(now._replace(revoked=revoked), which, self.protocol)
                yield f"fences {target} off in {which}", now
            case At.LOOK_AGAIN if world.complete & bit and self.protocol.looks_again:
                yield f"finds {target} in both", self._at(world, me, self._again(one))
            case At.LOOK_AGAIN:
                following = At.REVERT_LAST if self.protocol.reverts else At.UNDO
                yield f"takes {target} back", self._at(world, me, one._replace(at=following))
            case At.REVERT_LAST | At.REVERT_FIRST:
                which = LAST if one.at is At.REVERT_LAST else FIRST
                following = At.UNDO if which == FIRST else At.REVERT_FIRST
                now = self._at(world, me, one._replace(at=following))
                if world.held[which] & bit:
                    now = _changed(
                        now._replace(
                            held=_set(now.held, which, now.held[which] & ~bit),
                            revoked=_set(now.revoked, which, now.revoked[which] | bit),
                        ),
                        which,
                        self.protocol,
                    )
                if now.held[LAST] & ~now.held[FIRST]:
                    now = now._replace(wrong=now.wrong | {AHEAD})
                yield f"takes {target} out of {which}", now
            case At.UNDO:
                undone = self._rolled_back(world, target)
                yield f"rolls {target} back", self._at(undone, me, self._again(one))
            case At.PLAN_ROLLBACK:
                planned = world
                if world.timeline[target] in (PENDING, COMPLETED):
                    planned = world._replace(planned=world.planned | bit)
                after = one._replace(at=At.LOOK_AT_TARGET)
                yield f"plans to roll {target} back", self._at(planned, me, after)
            case At.LOOK_AT_TARGET if world.timeline[target] == COMPLETED:
                yield f"finds {target} completed", self._at(world, me, self._again(one))
            case At.LOOK_AT_TARGET:
                after = one._replace(at=At.UNDO_PENDING)
                yield f"finds {target} as it was", self._at(world, me, after)
            case At.UNDO_PENDING:
                undone = self._rolled_back(world, target)
                yield f"rolls {target} back", self._at(undone, me, self._again(one))

    @staticmethod
    def _rolled_back(world: World, target: int) -> World:
        bit = 1 << target
        first, last = world.revoked
        return world._replace(
            timeline=put(world.timeline, target, ROLLED_BACK),
            times=put(world.times, target, 0),
            bases=put(world.bases, target, 0),
            planned=world.planned & ~bit,
            revoked=(first & ~bit, last & ~bit),
        )

    def _tell(self, world: World, me: int, what: int) -> Moves:
        told = world._replace(told=put(world.told, me, what))
        yield f"tells {what}", self._at(told, me, Who(At.ENDED))

    @staticmethod
    def _again(one: Who) -> Who:
        return Who(At.READ_FIRST, has_sent=one.has_sent)

    @staticmethod
    def _at(world: World, me: int, one: Who) -> World:
        return world._replace(who=(*world.who[:me], one, *world.who[me + 1 :]))


def broken(world: World) -> set[str]:
    """What is wrong in a world, whatever comes next."""
    found = set(world.wrong)
    for one, told in enumerate(world.told):
        is_named = (world.held[FIRST] | world.held[LAST]) >> one & 1
        if is_named and world.timeline[one] == ROLLED_BACK:
            found.add(ROLLED_BACK_VISIBLE)
        if is_named and told == FAILED:
            found.add(FAILED_VISIBLE)
        if told == DONE and not world.complete >> one & 1:
            found.add(DONE_INVISIBLE)
    return found


def is_settled(world: World) -> bool:
    """Whether all is told, and timeline and formats hold the same."""
    completed = sum(1 << one for one, at in enumerate(world.timeline) if at == COMPLETED)
    ended = all(one.at in (At.ENDED, At.DEAD) for one in world.who[:-1])
    return ended and world.held == (completed, completed) and not world.planned


def explore(protocol: Several, until: frozenset[str] | None = None) -> Verdict:
    """Take every move in every world, the nearest first; see ``exploration.explore``."""
    machine, first = SeveralMachine(protocol), first_world(protocol)
    known: dict[World, int] = {first: 0}
    came: list[tuple[int, str]] = [(0, "")]
    before: list[list[int]] = [[]]
    settled: list[int] = []
    found: dict[str, int] = {}
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        number = known[world]
        wrong = broken(world)
        for name in sorted(wrong):
            found.setdefault(name, number)
        if until is not None and until <= found.keys():
            break
        if wrong:
            continue
        if is_settled(world):
            settled.append(number)
        for move, moved in machine.moves(world):
            after = _representative(moved)
            reached = known.setdefault(after, len(known))
            if reached == len(came):
                came.append((number, move))
                before.append([])
                waiting.append(after)
            before[reached].append(number)
    if not waiting and not found:
        stuck = _without_way(before, settled)
        if stuck is not None:
            found[STUCK] = stuck

    def way(number: int) -> tuple[str, ...]:
        path = []
        while number:
            number, move = came[number]
            path.append(move)
        return tuple(path[::-1])

    return Verdict(len(known), {name: way(number) for name, number in found.items()})


def _representative(world: World) -> World:
    """The same world with two writers swapped, if that one comes first."""
    if len(world.told) != 2:
        return world

    def swapped(bits: int) -> int:
        return (bits & 1) << 1 | bits >> 1

    def other(pair: tuple[int, int]) -> tuple[int, int]:
        return swapped(pair[0]), swapped(pair[1])

    def renamed(one: Who) -> Who:
        target = one.target if one.target < 0 else 1 - one.target
        return one._replace(seen=other(one.seen), target=target)

    twin = World(
        timeline=world.timeline[::-1],
        times=world.times[::-1],
        bases=(swapped(world.bases[1]), swapped(world.bases[0])),
        planned=swapped(world.planned),
        held=other(world.held),
        revoked=other(world.revoked),
        travelling=other(world.travelling),
        told=world.told[::-1],
        crashes=world.crashes,
        who=(renamed(world.who[1]), renamed(world.who[0]), renamed(world.who[2])),
        wrong=world.wrong,
    )
    return min(world, twin, key=lambda one: one[:-1])


def _without_way(before: list[list[int]], goals: list[int]) -> int | None:
    """The first world from which no settled one can be reached."""
    reaching, waiting = set(goals), list(goals)
    while waiting:
        for one in before[waiting.pop()]:
            if one not in reaching:
                reaching.add(one)
                waiting.append(one)
    return next((one for one in range(len(before)) if one not in reaching), None)
