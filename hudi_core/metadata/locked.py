"""A table and its metadata table while the table's lock is held: what every change works on."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LockedMetadata:
    """The two tables. The metadata table has no lock of its own.

    Attributes
    ----------
    client
        The table.
    metadata
        Its metadata table.
    data_timeline
        The table's timeline, loaded since the lock is held.
    """

    client: TableMetaClient
    metadata: TableMetaClient
    data_timeline: Timeline

    def next_time(self, timeline: Timeline | None = None) -> InstantTime:
        """Return a time greater than any on either timeline.

        Both take their times from one clock: most instants of the metadata table have the time of
        an instant of the table, and the others must not look like one.

        Parameters
        ----------
        timeline
            The metadata table's, if it was loaded since the lock is held; by default it is loaded.
        """
        own = self.metadata.timeline() if timeline is None else timeline
        both = Timeline.of((*self.data_timeline.instants, *own.instants))
        return self.client.clock.next_time(both)
