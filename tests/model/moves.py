"""What can happen next in a state of the two-step commit."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.two_steps import (
    COMPLETED,
    DONE,
    FAILED,
    FREE,
    PENDING,
    ROLLED_BACK,
    UNKNOWN,
    Moves,
    Policy,
    Process,
    Protocol,
    State,
    Step,
    changed,
    has_ended,
    in_order,
    known_outcome,
    landed,
    next_time,
    numbers,
    put,
)


@dataclass(frozen=True)
class Machine:
    """The moves of a protocol."""

    protocol: Protocol

    def moves(self, state: State) -> Moves:
        recoverer = self.protocol.writers
        for number, process in enumerate(state.processes):
            who = "recoverer" if number == recoverer else f"writer {number}"
            for what, after in self._steps(state, number, process):
                yield f"{who}: {what}", after
            if state.crashes and number != recoverer and not has_ended(process):
                dead = self._at(state, number, Process(Step.DEAD))
                yield f"{who} dies", in_order(dead)._replace(crashes=state.crashes - 1)
        for instant in range(recoverer):
            if state.travelling >> instant & 1:
                left = state._replace(travelling=state.travelling & ~(1 << instant))
                yield f"the request for {instant} lands late", landed(left, instant, self.protocol)

    # --- one process -----------------------------------------------------------------------------

    def _steps(self, state: State, me: int, process: Process) -> Moves:
        match process.at:
            case Step.BEGIN:
                yield from self._begin(state, me)
            case Step.RECORD_PARENT:
                yield from self._record_parent(state, me, process)
            case Step.DECIDE:
                yield from self._decide(state, me, process)
            case Step.COMPLETE:
                yield from self._complete(state, me, process)
            case Step.LOOK_FOR_PLAN:
                if state.timeline[me] == ROLLED_BACK:
                    yield from self._end_with(state, me, FAILED)
                elif state.planned >> me & 1:
                    # others may have published it before the plan was made
                    known = FAILED if self.protocol.plan_is_failure else UNKNOWN
                    yield from self._end_with(state, me, known)
                else:
                    after = process._replace(at=Step.PUBLISH, target=me)
                    yield "finds no plan to roll it back", self._at(state, me, after)
            case Step.PUBLISH:
                yield from self._publish(state, me, process)
            case _:
                yield from self._undo(state, me, process)

    def _begin(self, state: State, me: int) -> Moves:
        after = state._replace(
            timeline=put(state.timeline, me, PENDING),
            bases=put(state.bases, me, state.held.bit_count()),
        )
        yield "begins", self._at(after, me, Process(Step.RECORD_PARENT))

    def _record_parent(self, state: State, me: int, process: Process) -> Moves:
        # a lease that may run out at any time keeps nobody out: then there is no lock at all
        if state.lock not in (FREE, me) and state.processes[state.lock].at is not Step.DEAD:
            return
        after = process._replace(at=Step.DECIDE, seen=state.held, is_current=True)
        reading = self._at(state, me, after)
        if not self.protocol.zombies:
            reading = reading._replace(lock=me)
        yield f"reads the format, with {state.held.bit_count()} instants", reading
        if process.has_sent:
            yield from self._end_with(state, me, UNKNOWN)

    def _decide(self, state: State, me: int, process: Process) -> Moves:
        there = process.seen
        is_writer = me < self.protocol.writers
        if is_writer:
            outcome = known_outcome(me, there, state.timeline[me], state.planned)
            if outcome is not None:
                yield from self._end_with(state, me, outcome)
                return
        planned = [
            one for one in range(self.protocol.writers) if (state.planned & there) >> one & 1
        ]
        left = [
            one
            for one in range(self.protocol.writers)
            if state.timeline[one] == COMPLETED and not there >> one & 1
        ]
        if planned:
            kept = state._replace(planned=state.planned & ~(1 << planned[0]))
            yield f"forgets the plan for {planned[0]}", self._at(kept, me, self._again(process))
        elif left and self.protocol.policy is not Policy.IGNORE:
            oldest = min(left, key=lambda one: state.times[one])
            yield from self._make_good(state, me, process, oldest)
        elif is_writer and state.timeline[me] == COMPLETED:  # ignored, as those of others are
            yield from self._end_with(state, me, UNKNOWN)
        elif is_writer:
            yield from self._go_on(state, me, process, there)
        else:
            yield from self._clear_up(state, me, process)

    def _make_good(self, state: State, me: int, process: Process, target: int) -> Moves:
        policy, bit = self.protocol.policy, 1 << target
        facing = process._replace(target=target, seen=0)
        if policy is Policy.PLAIN or (state.revoked & bit and process.is_current):
            after = facing._replace(at=Step.UNDO, is_current=False)
            yield f"goes to roll {target} back", self._at(state, me, after)
        elif (
            policy is Policy.FORWARD
            and not state.planned & bit
            and self._may_follow(state, process, target)
        ):
            yield f"replays {target}", self._at(state, me, facing._replace(at=Step.PUBLISH))
        else:
            yield f"gives {target} up", self._at(state, me, facing._replace(at=Step.FENCE))

    def _may_follow(self, state: State, process: Process, target: int) -> bool:
        """The checks of a replay, against the lineage that it would follow."""
        touches = self.protocol.checks_conflicts and not self.protocol.disjoint
        if touches and process.seen.bit_count() > state.bases[target]:
            return False
        newest = max((state.times[one] for one in numbers(process.seen)), default=0)
        return not self.protocol.checks_order or newest <= state.times[target]

    def _go_on(self, state: State, me: int, process: Process, there: int) -> Moves:
        if not self.protocol.disjoint and there.bit_count() > state.bases[me]:
            yield from self._end_with(self._rolled_back(state, me), me, FAILED)
            return
        after = process._replace(at=Step.COMPLETE, time=next_time(state), seen=0)
        yield "finds nothing against it", self._at(state, me, after)

    def _clear_up(self, state: State, me: int, process: Process) -> Moves:
        """The recoverer, when all that was completed is in the format: writers that are gone."""
        is_clear = True
        for one in range(self.protocol.writers):
            if state.timeline[one] != PENDING:
                continue
            facing = process._replace(target=one, seen=0)
            if state.planned >> one & 1:
                after = facing._replace(at=Step.LOOK_AT_TARGET)
                yield f"goes on rolling {one} back", self._at(state, me, after)
                is_clear = False
            elif self.protocol.zombies or state.processes[one].at is Step.DEAD:
                after = facing._replace(at=Step.PLAN_ROLLBACK)
                yield f"takes {one} for dead", self._at(state, me, after)
                is_clear &= state.processes[one].at is not Step.DEAD
        if is_clear:
            yield "is done", self._end(state, me, Process(Step.RECORD_PARENT))

    def _complete(self, state: State, me: int, process: Process) -> Moves:
        following = Step.LOOK_FOR_PLAN if self.protocol.looks_for_plan else Step.PUBLISH
        after = process._replace(at=following, target=me, time=0)
        if not self.protocol.parent_first:
            after = after._replace(is_current=True)
        moved = self._at(state, me, after)
        if state.timeline[me] == PENDING:  # what lands after a rollback counts for nothing
            moved = moved._replace(
                timeline=put(state.timeline, me, COMPLETED),
                times=put(state.times, me, process.time),
            )
        yield "completes", in_order(moved)

    def _publish(self, state: State, me: int, process: Process) -> Moves:
        target = process.target
        looking = Process(Step.RECORD_PARENT, has_sent=process.has_sent or target == me)
        what = f"step 2 of {target}"
        missed = self._at(state, me, looking)
        if self.protocol.compare_and_set and not process.is_current:
            yield f"{what} finds the format changed", missed
            return
        there = landed(missed, target, self.protocol)
        if target == me:
            yield from (
                (f"{what} lands, {outcome}", end)
                for outcome, end in self._end_with(there, me, DONE)
            )
        else:
            yield f"{what} lands", there
        yield f"{what} lands, the answer is lost", there
        if self.protocol.late_landing:
            sent = state.travelling | 1 << target
            yield f"{what} is on its way", missed._replace(travelling=sent)
        else:
            yield f"{what} does not land", missed

    def _undo(self, state: State, me: int, process: Process) -> Moves:
        target = process.target
        match process.at:
            case Step.PLAN_ROLLBACK:
                planned = state
                if state.timeline[target] in (PENDING, COMPLETED):
                    planned = state._replace(planned=state.planned | 1 << target)
                following = Step.LOOK_AT_TARGET if self.protocol.looks_at_target else Step.UNDO
                after = process._replace(at=following, is_current=False)
                yield f"plans to roll {target} back", self._at(planned, me, after)
            case Step.LOOK_AT_TARGET if state.timeline[target] == COMPLETED:
                # no files are gone: as any that the format does not hold, or holds
                yield f"finds {target} completed", self._at(state, me, self._again(process))
            case Step.LOOK_AT_TARGET:
                after = process._replace(at=Step.UNDO)
                yield f"finds {target} as it was", self._at(state, me, after)
            case Step.FENCE if process.is_current or not self.protocol.compare_and_set:
                after = process._replace(at=Step.UNDO, is_current=False)
                fenced = changed(self._at(state, me, after), self.protocol)
                revoked = state.revoked | 1 << target
                yield f"fences {target} off", fenced._replace(revoked=revoked)
            case Step.FENCE:
                yield "finds the format changed", self._at(state, me, self._again(process))
            case Step.UNDO:
                undone = self._at(self._rolled_back(state, target), me, self._again(process))
                yield f"rolls {target} back", in_order(undone)

    # --- parts of steps --------------------------------------------------------------------------

    @staticmethod
    def _rolled_back(state: State, target: int) -> State:
        """Return the state in which an instant is undone: when it was completed, and on what it
        was built, says nothing more."""
        bit = 1 << target
        return state._replace(
            timeline=put(state.timeline, target, ROLLED_BACK),
            times=put(state.times, target, 0),
            bases=put(state.bases, target, 0),
            planned=state.planned & ~bit,
            revoked=state.revoked & ~bit,
        )

    def _end_with(self, state: State, me: int, what: int) -> Moves:
        words = {DONE: "done", FAILED: "failed", UNKNOWN: "unknown"}
        ended = state._replace(outcomes=put(state.outcomes, me, what))
        yield f"ends with {words[what]}", self._end(ended, me, Process(Step.ENDED))

    def _end(self, state: State, me: int, after: Process) -> State:
        lock = FREE if state.lock == me else state.lock
        return in_order(self._at(state, me, after)._replace(lock=lock))

    @staticmethod
    def _again(process: Process) -> Process:
        return Process(Step.RECORD_PARENT, has_sent=process.has_sent)

    @staticmethod
    def _at(state: State, me: int, process: Process) -> State:
        processes = (*state.processes[:me], process, *state.processes[me + 1 :])
        return state._replace(processes=processes)
