"""The newest state that a table's reader has seen."""

from __future__ import annotations

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.model.instant import Instant
from hudi_core.read.known_state import KnownState
from hudi_core.read.query import SnapshotQuery
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline


class LatestState:
    """What is known of a table's newest state, until it has another.

    Each query looks at the timeline, which is one list of a folder, and at what the table's format
    says of it. Where both are as they were, and the table was not opened again, as by its own
    repairs, the query plans from what is known. Of a table there is one such state, the newest.
    """

    def __init__(self) -> None:
        self._newest: tuple[TableConfig, Timeline, tuple[Instant, ...], KnownState] | None = None

    def query(self, opened: OpenTable) -> SnapshotQuery:
        """A query of the table at the timeline that it sees."""
        config, timeline, fenced = opened.client.config, opened.client.timeline(), opened.timeline()
        newest = self._newest  # looked at once: another thread may put the next one there
        if MetadataConfig.from_options(opened.client.options).validate:
            known = KnownState()  # each query compares the metadata table with the storage
        elif (
            newest is not None
            and newest[0] is config
            and newest[1:3] == (timeline, fenced.instants)
        ):
            known = newest[3]
        else:
            known = KnownState()
            self._newest = config, timeline, fenced.instants, known
        return SnapshotQuery(opened.client, opened.lister(), fenced, known=known)
