"""The fence over random timelines and lineages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.plugin.fenced import pending_publications
from hudi_core.spi import Lineage, Publication, fence
from hudi_core.timeline.timeline import Timeline, instant_key

TIMES = st.integers(0, 99).map(lambda n: InstantTime(f"202601010000000{n:02d}"))
ACTIONS = st.sampled_from([Action.COMMIT, Action.REPLACECOMMIT, Action.CLEAN, Action.SAVEPOINT])


@st.composite
def instants(draw: st.DrawFn) -> Instant:
    requested, action, state = draw(TIMES), draw(ACTIONS), draw(st.sampled_from(State))
    if state is not State.COMPLETED:
        return Instant(requested, action, state)
    took = draw(st.integers(1, 500))
    return Instant(requested, action, state, InstantTime(f"{int(requested) + took}"))


LINEAGES = st.builds(
    Lineage.of, st.lists(st.builds(Publication, TIMES, ACTIONS, st.just("v"))), st.none() | TIMES
)


@given(st.lists(instants()), st.lists(LINEAGES, max_size=3))
def test_complete_is_what_hudi_and_every_format_hold(
    found: list[Instant], lineages: list[Lineage]
) -> None:
    timeline = Timeline.of(found)
    fenced = fence(timeline, lineages)
    assert list(fenced.completed()) == [
        one for one in timeline.completed() if all(held.holds(one) for held in lineages)
    ]
    # nothing is lost, added or moved, and fencing again changes nothing
    assert [instant_key(one) for one in fenced] == [instant_key(one) for one in timeline]
    assert fence(fenced, lineages) == fenced
    # what the fence took back is exactly what recovery has to publish
    back = {*timeline.completed()} - {*fenced.completed()}
    assert {*pending_publications(fenced)} == back
