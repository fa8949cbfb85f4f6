"""The timeline as the Delta log sees it."""

from __future__ import annotations

from delta_format.foreign import look_for_foreign
from delta_format.log import open_log
from hudi_core.spi import MetaClientView, TimelineView, fence


class DeltaTimelineFactory:
    """Returns the Hudi timeline, fenced by the Delta log."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline: one listing, and the log's newest version."""
        timeline = meta_client.timeline()
        head = open_log(meta_client)
        recent = head.among(len(timeline.instants))
        look_for_foreign(meta_client, head)
        return fence(timeline, [recent])
