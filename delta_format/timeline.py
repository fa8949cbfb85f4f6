"""The timeline as the Delta log sees it."""

from __future__ import annotations

from delta_format.log import open_log
from hudi_core.spi import MetaClientView, TimelineView, fence


class DeltaTimelineFactory:
    """Returns the Hudi timeline, fenced by the Delta log."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline: one listing, and the log's newest version.

        Raises
        ------
        CorruptMetadataError
            The log is gone or damaged.
        """
        timeline = meta_client.timeline()
        return fence(timeline, [open_log(meta_client).among(len(timeline.instants))])
