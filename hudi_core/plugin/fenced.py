"""The fence: the Hudi timeline as a table's formats see it.

An instant is complete when step 1 (the Hudi timeline) and step 2 (the format's current lineage)
have both happened (RFC-93, "Commit Protocol"). What only step 1 has reached is shown as inflight,
so that no reader, planner, cleaner or archiver takes it for complete. It keeps its completion time,
which no other inflight instant has: that is how recovery recognises a pending publication, which is
rolled forward, from a write that failed, which is rolled back.

The fence is over a list of publications: a table that is published to several formats at once is
complete when all of them hold an instant. Today the list has one element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_core.model.format import NamedInstants, Publication, PublishedInstants
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.timeline import InstantKey, Timeline, instant_key

UNPUBLISHED_ACTIONS: Final = frozenset({Action.INDEXING})
"""Actions for which no hook is called: they change the metadata table only."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a format has read from its current lineage; a :class:`PublishedInstants`.

    Attributes
    ----------
    publications
        What the lineage holds, by requested time and the action as which the instant completed.
    completed_watermark
        Instants that completed up to this time are complete, also where the format has forgotten
        them; ``None`` when it has never forgotten any. Step 2 follows the order of completion
        times, so that nothing that completed earlier can still be on its way.
    """

    publications: Mapping[InstantKey, Publication] = field(default_factory=dict)
    completed_watermark: InstantTime | None = None

    @classmethod
    def of(
        cls, publications: Iterable[Publication], completed_watermark: InstantTime | None = None
    ) -> Lineage:
        """Return the lineage of these publications."""
        held = {(one.requested_time, one.action.completed_action): one for one in publications}
        return cls(held, completed_watermark)

    def find(self, instant: Instant) -> Publication | None:
        """Return the publication of ``instant``, or ``None`` if not in the lineage."""
        return self.publications.get(instant_key(instant))

    def holds(self, instant: Instant) -> bool:
        """Whether ``instant``, completed in step 1, is complete in the format too."""
        if self.find(instant) is not None:
            return True
        watermark = self.completed_watermark
        return watermark is not None and instant.effective_completion_time <= watermark

    def names(self, instant: Instant) -> bool:
        """Whether the lineage names ``instant``, in whatever state it is."""
        return self.find(instant) is not None

    def publication(self, instant: Instant, version: str) -> Publication | None:
        """Return the publication of ``instant``, by name or watermark.

        By its name or, where the lineage has expired it, with the ``version`` whose watermark
        covers it; ``None`` where neither does.

        The watermark covers only what step 1 has completed.
        """
        found = self.find(instant)
        is_over = instant.is_completed or instant.completion_time is not None
        if found is not None or not is_over or not self.holds(instant):
            return found
        action = instant.action.completed_action
        done = instant.completion_time
        return Publication(instant.requested_time, action, version, done, is_expired=True)


def fence(timeline: TimelineView, publications: Sequence[PublishedInstants]) -> Timeline:
    """Return the timeline in which only what every format holds is completed.

    Parameters
    ----------
    timeline
        The Hudi timeline, read *before* the lineages: an instant that completes in between is then
        seen as requested or inflight, never as complete too early.
    publications
        What each format of the table holds. Without any, step 1 alone completes an instant.
    """

    def seen(instant: Instant) -> Instant:
        if not instant.is_completed or instant.action in UNPUBLISHED_ACTIONS:
            return instant
        if all(one.holds(instant) for one in publications):
            return instant
        return replace(instant, state=State.INFLIGHT)

    whole = timeline if isinstance(timeline, Timeline) else Timeline.of(timeline.instants)
    naming = [one for one in publications if isinstance(one, NamedInstants)]
    # of several formats one may hold what another one is to get yet: step 1 has completed that
    unfinished = [one for one in whole.pending() if one.completion_time is None]
    ahead = tuple(one for one in unfinished if any(each.names(one) for each in naming))
    return replace(whole, instants=tuple(map(seen, whole.instants)), ahead=ahead)


def pending_publications(timeline: TimelineView) -> tuple[Instant, ...]:
    """Return instants that step 1 has completed and step 2 has not.

    They are as the Hudi timeline has them (completed), in the order of completion times, which is
    the order in which recovery publishes them.
    """
    found = [
        replace(instant, state=State.COMPLETED)
        for instant in timeline.instants
        if instant.state is State.INFLIGHT and instant.completion_time is not None
    ]
    return tuple(sorted(found, key=lambda instant: instant.effective_completion_time))
