"""The Hudi timeline, fenced by the current Iceberg lineage."""

from __future__ import annotations

from hudi_core.spi import MetaClientView, TimelineView, fence
from iceberg_format.foreign import look_for_foreign
from iceberg_format.table import IcebergTable


class IcebergTimelineFactory:
    """Gives the timeline in which only what Iceberg holds is complete."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline: one listing, and the current metadata."""
        timeline = meta_client.timeline()
        table = IcebergTable.open(meta_client)
        state = table.load()
        look_for_foreign(table, state)
        return fence(timeline, (state.lineage,))
