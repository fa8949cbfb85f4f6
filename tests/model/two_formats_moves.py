"""What can happen next in a table with two formats."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.two_formats import (
    AHEAD,
    FIRST,
    LAST,
    At,
    Moves,
    Several,
    Who,
    World,
    changed,
    in_order,
    landed,
    with_value,
)
from tests.model.two_steps import (
    COMPLETED,
    DONE,
    FAILED,
    PENDING,
    ROLLED_BACK,
    UNKNOWN,
    known_outcome,
    numbers,
    put,
)


@dataclass(frozen=True)
class SeveralMachine:
    """The moves of a protocol."""

    protocol: Several

    def moves(self, world: World) -> Moves:
        for me, one in enumerate(world.who):
            name = "recoverer" if me == self.protocol.writers else f"writer {me}"
            for what, after in self._steps(world, me, one):
                is_as_before = after.times is world.times and after.who[me].time == one.time
                yield f"{name}: {what}", after if is_as_before else in_order(after)
            is_mortal = me < self.protocol.writers and one.at not in (At.ENDED, At.DEAD)
            if world.crashes and is_mortal:
                dead = self._at(world, me, Who(At.DEAD))
                yield f"{name} dies", in_order(dead._replace(crashes=world.crashes - 1))
        for which in (FIRST, LAST):
            for instant in numbers(world.travelling[which]):
                left = world.travelling[which] & ~(1 << instant)
                arrived = world._replace(travelling=with_value(world.travelling, which, left))
                if arrived.revoked[which] >> instant & 1:
                    yield f"{instant} is refused", arrived
                else:
                    there = landed(arrived, which, instant, self.protocol)
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
                    yield from self._end_with(world, me, FAILED)
                elif world.planned >> me & 1:
                    yield from self._end_with(world, me, UNKNOWN)
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
        seen = with_value(one.seen, which, world.held[which])
        current = (True, False) if which == FIRST else (one.current[FIRST], True)
        following = At.READ_LAST if which == FIRST else At.DECIDE
        after = one._replace(at=following, seen=seen, current=current)
        yield f"reads format {which}", self._at(world, me, after)
        if one.has_sent and which == FIRST:
            yield from self._end_with(world, me, UNKNOWN)

    def _decide(self, world: World, me: int, one: Who) -> Moves:
        there, is_writer = one.seen[FIRST] & one.seen[LAST], me < self.protocol.writers
        if is_writer:
            outcome = known_outcome(me, there, world.timeline[me], world.planned)
            if outcome is not None:
                yield from self._end_with(world, me, outcome)
                return
        kept = list(numbers(world.planned & there))
        left = [
            each
            for each, state in enumerate(world.timeline)
            if state == COMPLETED and not there >> each & 1
        ]
        if is_writer and me in left and not self.protocol.others_first:
            left = [me]
        if kept:
            now = world._replace(planned=world.planned & ~(1 << kept[0]))
            yield f"forgets the plan for {kept[0]}", self._at(now, me, self._again(one))
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
                yield from self._end_with(self._rolled_back(world, me), me, FAILED)
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
        there = landed(missed, which, target, protocol)
        if which == FIRST and (target != me or protocol.waits_for_all):
            further = landed(world, which, target, protocol)
            now = further.who[me]._replace(
                at=At.PUBLISH_LAST,
                seen=(0, one.seen[LAST]),
                current=(False, one.current[LAST]),
                has_sent=looking.has_sent,
            )
            yield f"{target} lands in the first", self._at(further, me, now)
        elif target == me:
            yield from self._end_with(there, me, DONE)
        else:
            yield f"{target} lands in the last", there
        yield f"{target} lands in {which}, the answer is lost", there
        sent = with_value(world.travelling, which, world.travelling[which] | 1 << target)
        yield f"{target} is on its way to {which}", missed._replace(travelling=sent)

    def _take_back(self, world: World, me: int, one: Who) -> Moves:
        target, bit = one.target, 1 << one.target
        match one.at:
            case At.FENCE_FIRST | At.FENCE_LAST:
                which = FIRST if one.at is At.FENCE_FIRST else LAST
                following = At.FENCE_LAST if which == FIRST else At.LOOK_AGAIN
                now = self._at(world, me, one._replace(at=following))
                if not world.held[which] & bit and which in self.protocol.fences:
                    revoked = with_value(now.revoked, which, now.revoked[which] | bit)
                    now = changed(now._replace(revoked=revoked), which, self.protocol)
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
                    now = changed(
                        now._replace(
                            held=with_value(now.held, which, now.held[which] & ~bit),
                            revoked=with_value(now.revoked, which, now.revoked[which] | bit),
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

    def _end_with(self, world: World, me: int, what: int) -> Moves:
        ended = world._replace(outcomes=put(world.outcomes, me, what))
        yield f"ends with {what}", self._at(ended, me, Who(At.ENDED))

    @staticmethod
    def _again(one: Who) -> Who:
        return Who(At.READ_FIRST, has_sent=one.has_sent)

    @staticmethod
    def _at(world: World, me: int, one: Who) -> World:
        return world._replace(who=(*world.who[:me], one, *world.who[me + 1 :]))
