"""A table that is open: its client, its format, and what both give a writer or a reader."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_core.meta_client import TableMetaClient
from hudi_core.model.protocols import FileLister, TimelineView
from hudi_core.plugin.host import FormatHost
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.manager import ViewManager


@dataclass(frozen=True, slots=True)
class OpenTable:
    """One open table.

    Attributes
    ----------
    client
        Where it is, what its properties say, and its Hudi timeline.
    host
        Its format and the observers.
    """

    client: TableMetaClient
    host: FormatHost

    def timeline(self) -> TimelineView:
        """Return the timeline as the format sees it now; what every reader and planner uses."""
        return self.host.get_timeline_factory().active_timeline(self.client)

    def seeing(self, timeline: Timeline) -> OpenTable:
        """Return this table with the Hudi timeline that was read under the lock that is held, so
        that neither its client nor its format lists it again."""
        return replace(self, client=self.client.seeing(timeline))

    def lister(self) -> FileLister:
        """Return who tells the table's files."""
        return self.host.get_metadata_factory().create(self.client)

    def views(self) -> ViewManager:
        """Return what makes views of the table's files."""
        return ViewManager(self.client.read_commit, self.lister(), self.timeline)
