"""The timeline of the native format: the Hudi timeline itself."""

from __future__ import annotations

from hudi_core.spi import MetaClientView, TimelineView


class NativeTimelineFactory:
    """Returns the Hudi timeline without a fence: step 1 suffices."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the Hudi timeline as it is now; one listing."""
        return meta_client.timeline()
