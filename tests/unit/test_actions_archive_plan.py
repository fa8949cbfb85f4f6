"""Which instants an archival takes off the active timeline, and which stay on it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hudi_core.actions.archive_plan import ArchiveRules, LastClean, plan_archive
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.timeline import Timeline
from tests.unit.mortal_tables import at


def done(ordinal: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(at(ordinal), action, State.COMPLETED, at(ordinal + 5))


def pending(ordinal: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(at(ordinal), action, State.INFLIGHT)


def archived(
    instants: Sequence[Instant],
    rules: ArchiveRules | None = None,
    last_clean: LastClean | None = None,
    retained_from: Sequence[InstantTime] = (),
) -> list[int]:
    rules = rules or ArchiveRules(2, 4)
    chosen = plan_archive(Timeline.of(instants), rules, last_clean, retained_from)
    assert all(one in instants for one in chosen)
    return [int(one.requested_time[-5:]) for one in chosen]


SIX = [done(10 * n) for n in range(1, 7)]


def test_archiving_begins_beyond_the_maximum_and_stops_at_the_minimum() -> None:
    assert archived(SIX[:4]) == []
    assert archived(SIX[:5]) == [10, 20, 30]
    assert archived(SIX) == [10, 20, 30, 40]
    assert len(archived([done(10 * n) for n in range(1, 31)], ArchiveRules())) == 0
    assert len(archived([done(10 * n) for n in range(1, 32)], ArchiveRules())) == 11


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([pending(35)], [10, 20]),
        ([pending(35, Action.CLUSTERING)], [10, 20]),
        ([pending(35, Action.ROLLBACK)], [10, 20]),
        ([pending(5)], []),
        ([pending(15)], []),
        ([pending(65)], [10, 20, 30, 40]),
        ([done(30, Action.SAVEPOINT)], [10, 20]),
        ([done(10, Action.SAVEPOINT)], []),
        ([done(25, Action.REPLACECOMMIT)], [10, 20]),
        ([done(25, Action.CLEAN), done(27, Action.ROLLBACK)], [10, 20, 25, 27, 30, 40]),
        ([done(45, Action.CLEAN), done(47, Action.ROLLBACK)], [10, 20, 30, 40]),
        ([done(25, Action.INDEXING), done(26, Action.RESTORE)], [10, 20, 26, 30, 40]),
        ([done(46, Action.RESTORE)], [10, 20, 30, 40]),
    ],
)
def test_what_keeps_instants(more: list[Instant], expected: list[int]) -> None:
    assert archived([*SIX, *more]) == expected


def test_rollbacks_and_restores_count_and_leave_the_minimum_of_writes() -> None:
    undone = [done(10 * n + 5, Action.ROLLBACK) for n in range(2, 4)]
    restored = done(45, Action.RESTORE)
    assert archived([*SIX[:3], *undone[:1]]) == []
    assert archived([*SIX[:3], *undone]) == [10]
    assert archived([*SIX[:5], *undone, restored]) == [10, 20, 25, 30]
    # writes that stay keep the rollbacks beside them, however many these are
    many = [done(10 + n, Action.ROLLBACK) for n in range(1, 10)]
    assert archived([*SIX[:2], *many]) == []


def test_cleans_go_at_their_own_pace_and_rollbacks_with_their_writes() -> None:
    cleans = [done(10 * n + 5, Action.CLEAN) for n in range(1, 5)]
    last = LastClean(cleans[-1], at(10))
    undone = done(27, Action.ROLLBACK)
    some = [*SIX[:4], *cleans, undone]
    assert archived(some, ArchiveRules(2, 9, max_cleans=4), last) == []
    assert archived(some, ArchiveRules(2, 9, max_cleans=3)) == [15, 25, 35, 45]
    # the next clean goes on from the last one
    rules, newest = ArchiveRules(2, 9, max_cleans=3), LastClean(cleans[-1], None)
    assert archived(some, rules, newest) == [15, 25, 35]


def test_beyond_savepoints_only_the_savepointed_stay() -> None:
    rules = ArchiveRules(2, 4, beyond_savepoint=True)
    saved = done(20, Action.SAVEPOINT)
    assert archived([*SIX, saved], rules) == [10, 30, 40, 50]
    # files that 35 replaced are kept by the savepoint and would come back without it
    cleaned = LastClean(done(90, Action.CLEAN), at(60))
    replace = done(35, Action.REPLACECOMMIT)
    assert archived([*SIX, saved, replace], rules, cleaned) == [10, 30]
    assert archived([*SIX, replace, done(40, Action.SAVEPOINT)], rules, cleaned) == [
        10,
        20,
        30,
        35,
        50,
    ]


def test_the_last_clean_bounds_and_stays() -> None:
    clean = done(25, Action.CLEAN)
    older = done(15, Action.CLEAN)
    timeline = [*SIX, older, clean]
    assert archived(timeline, last_clean=LastClean(clean, at(30))) == [10, 15, 20]
    assert archived(timeline, last_clean=LastClean(clean, at(60))) == [10, 15, 20, 30, 40]
    assert archived(timeline, last_clean=LastClean(clean, None)) == [10, 15, 20, 30, 40]


@pytest.mark.parametrize(
    ("clean", "earliest", "expected"),
    [
        # 25 completed at 30
        (90, at(60), [10, 20, 25, 30]),
        (90, None, [10, 20, 25, 30]),
        (90, at(25), [10, 20]),
        (28, None, [10, 20]),
        (28, at(60), [10, 20]),
    ],
)
def test_a_replacecommit_stays_until_its_groups_are_deleted(
    clean: int, earliest: InstantTime | None, expected: list[int]
) -> None:
    cleaned = LastClean(done(clean, Action.CLEAN), earliest)
    timeline = [*SIX, done(25, Action.REPLACECOMMIT)]
    assert archived(timeline, ArchiveRules(3, 4), cleaned) == expected


def test_a_replacecommit_stays_while_what_it_replaced_is_stored() -> None:
    timeline = [*SIX, done(25, Action.REPLACECOMMIT), done(35, Action.REPLACECOMMIT)]
    cleaned = LastClean(done(90, Action.CLEAN), at(60))
    asked: list[int] = []

    def archived_but(*stored: int) -> list[int]:
        asked.clear()

        def decides(write: Instant) -> bool:
            asked.append(int(write.requested_time[-5:]))
            return asked[-1] in stored

        chosen = plan_archive(Timeline.of(timeline), ArchiveRules(3, 4), cleaned, (), decides)
        return [int(one.requested_time[-5:]) for one in chosen]

    assert (archived_but(), asked) == ([10, 20, 25, 30, 35], [25, 35])
    assert (archived_but(35), asked) == ([10, 20, 25, 30], [25, 35])
    assert (archived_but(25, 35), asked) == ([10, 20], [25])
    # a savepoint that the clean passed by may be deleted since
    for saved, expected in ((20, [10, 20]), (30, [10, 20, 25, 30]), (50, [10, 20, 25, 30, 35])):
        known = LastClean(cleaned.instant, cleaned.earliest_retained, {at(saved)})
        assert archived(timeline, ArchiveRules(3, 4), known) == expected


def test_bounds_from_elsewhere() -> None:
    assert archived(SIX, retained_from=[at(30), at(50)]) == [10, 20]
    assert archived(SIX, retained_from=[at(5)]) == []


@pytest.mark.parametrize(("due", "expected"), [(2, [10, 20, 30, 40]), (3, [10, 20, 30]), (9, [10])])
def test_deltacommits_that_the_next_compaction_counts_stay(due: int, expected: list[int]) -> None:
    deltas = [done(10 * n, Action.DELTACOMMIT) for n in range(1, 7)]
    deltas[1] = done(20)  # a compaction
    rules = ArchiveRules(1, 4, compaction_delta_commits=due)
    assert archived(deltas, rules) == expected
    assert archived([*deltas[:1], *deltas[2:]], rules) == ([] if due == 9 else [10, *expected[2:]])


def test_a_deltacommit_stays_that_completed_after_a_compaction_began() -> None:
    deltas = [done(10 * n, Action.DELTACOMMIT) for n in range(1, 7)]
    rules = ArchiveRules(1, 4)
    # the third was requested at 30 and completed at 35
    assert archived([*deltas, done(32)], rules) == [10, 20]
    assert archived([*deltas, done(36)], rules) == [10, 20, 30, 36, 40, 50]
    assert archived([*deltas, done(32), done(37)], rules) == [10, 20, 30, 32, 37, 40, 50]


def test_the_rest_stays_what_it_was() -> None:
    for count in range(1, 40):
        instants = [done(10 * n) for n in range(1, count)]
        chosen = plan_archive(Timeline.of(instants), ArchiveRules(), None)
        left = Timeline.of(one for one in instants if one not in chosen)
        assert all(left.is_committed(one.requested_time) for one in instants)
        assert len(left) in {count - 1, 20}
