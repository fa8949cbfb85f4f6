"""The fence: what only the Hudi timeline holds is not complete."""

from __future__ import annotations

import pytest

from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.plugin.fenced import pending_publications
from hudi_core.spi import Lineage, Publication, PublishedInstants, fence, instant_keys
from hudi_core.timeline.timeline import Timeline


def time(n: int) -> InstantTime:
    return InstantTime(f"202601010000{n:05d}")


def done(n: int, action: Action = Action.COMMIT, took: int = 5) -> Instant:
    return Instant(time(n), action, State.COMPLETED, time(n + took))


def pending(n: int, action: Action = Action.COMMIT, state: State = State.INFLIGHT) -> Instant:
    return Instant(time(n), action, state)


def published(*instants: Instant) -> list[Publication]:
    return [Publication(one.requested_time, one.action, f"v{n}") for n, one in enumerate(instants)]


def lineage(*instants: Instant, watermark: InstantTime | None = None) -> Lineage:
    return Lineage.of(published(*instants), watermark)


def completed(timeline: Timeline) -> list[Instant]:
    return list(timeline.completed())


@pytest.mark.parametrize("operation", ["UPSERT", None])
def test_what_is_recorded_of_an_instant_is_read_again(operation: str | None) -> None:
    keys = instant_keys(done(10, Action.CLUSTERING), operation)
    assert keys.get("hudi.operation") == operation
    read = Publication.of({**keys, "files": "3"}, "v7")
    assert read == Publication(time(10), Action.REPLACECOMMIT, "v7", time(15))
    del keys["hudi.completion-time"]
    assert Publication.of(keys, "v7").completion_time is None


def test_what_the_format_holds_stays_complete() -> None:
    timeline = Timeline.of([done(10), done(20), pending(30)])
    assert fence(timeline, [lineage(done(10), done(20))]) == timeline


def test_step_1_alone_is_inflight() -> None:
    timeline = Timeline.of([done(10), done(20)])
    fenced = fence(timeline, [lineage(done(10))])
    assert completed(fenced) == [done(10)]
    assert fenced.find(time(20)) == Instant(time(20), Action.COMMIT, State.INFLIGHT, time(25))
    assert not fenced.is_committed(time(20))
    assert fenced.is_committed(time(10))
    assert [one.requested_time for one in fenced.completed_writes()] == [time(10)]


def test_the_hudi_timeline_itself_is_not_changed() -> None:
    timeline = Timeline.of([done(10)])
    fence(timeline, [Lineage()])
    assert completed(timeline) == [done(10)]


def test_without_publications_step_1_is_enough() -> None:
    timeline = Timeline.of([done(10), pending(20)])
    assert fence(timeline, []) == timeline


def test_all_formats_of_the_list_must_hold_an_instant() -> None:
    timeline = Timeline.of([done(10), done(20), done(30)])
    fenced = fence(timeline, [lineage(done(10), done(20)), lineage(done(20), done(30))])
    assert completed(fenced) == [done(20)]


def test_a_savepoint_and_its_commit_are_two_instants() -> None:
    savepoint = Instant(time(10), Action.SAVEPOINT, State.COMPLETED, time(40))
    timeline = Timeline.of([done(10), savepoint])
    assert completed(fence(timeline, [lineage(done(10))])) == [done(10)]
    assert completed(fence(timeline, [lineage(savepoint)])) == [savepoint]


def test_a_clustering_is_published_as_the_replacecommit_it_became() -> None:
    clustering = done(10, Action.REPLACECOMMIT)
    held = Lineage.of([Publication(time(10), Action.CLUSTERING, "v0")])
    assert completed(fence(Timeline.of([clustering]), [held])) == [clustering]


@pytest.mark.parametrize(
    "action", [Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.DELTACOMMIT]
)
def test_every_kind_of_action_is_fenced(action: Action) -> None:
    timeline = Timeline.of([done(10, action)])
    assert completed(fence(timeline, [Lineage()])) == []
    assert completed(fence(timeline, [lineage(done(10, action))])) == [done(10, action)]


def test_actions_that_no_hook_tells_of_are_not_fenced() -> None:
    timeline = Timeline.of([done(10, Action.INDEXING)])
    assert fence(timeline, [Lineage()]) == timeline


def test_pending_instants_stay_as_they_are() -> None:
    timeline = Timeline.of([pending(10), pending(20, state=State.REQUESTED)])
    # a lineage that names them does not complete them
    fenced = fence(timeline, [lineage(done(10), done(20))])
    assert fenced.instants == fenced.ahead == timeline.instants


def test_the_watermark_counts_completion_times() -> None:
    early, long_one, late = done(10), done(11, took=50), done(20)
    timeline = Timeline.of([early, long_one, late])
    fenced = fence(timeline, [lineage(watermark=time(25))])
    assert completed(fenced) == [early, late]
    assert completed(fence(timeline, [lineage(watermark=EARLIEST)])) == []


def test_layout_1_has_requested_times_only() -> None:
    old = Instant(time(10), Action.COMMIT, State.COMPLETED)
    timeline = Timeline.of([old])
    assert completed(fence(timeline, [lineage(watermark=time(10))])) == [old]


def test_archived_instants_stay_committed() -> None:
    fenced = fence(Timeline.of([done(10), done(20)]), [lineage(done(10))])
    assert fenced.is_committed(time(5))


def test_pending_publications_are_told_from_failed_writes() -> None:
    slow = done(10, took=90)
    timeline = Timeline.of([slow, done(20), pending(30), done(40), done(50)])
    fenced = fence(timeline, [lineage(done(40))])
    assert pending_publications(fenced) == (done(20), done(50), slow)
    assert pending_publications(timeline) == ()


def test_a_lineage_finds_its_publications() -> None:
    held = lineage(done(10), watermark=time(100))
    found = held.find(pending(10))
    assert found is not None
    assert found.version == "v0"
    assert held.find(done(20)) is None
    assert held.holds(done(20))
    assert isinstance(held, PublishedInstants)
