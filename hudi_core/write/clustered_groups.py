"""File groups under clustering, which writers leave alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hudi_core.actions.clustering import groups_under_clustering
from hudi_core.config.clustering import ClusteringConfig, UpdatesStrategy
from hudi_core.errors import PendingClusteringError
from hudi_core.model.files import BasePath, FileGroupId
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.table_handle import OpenTable


@dataclass(frozen=True, slots=True)
class GroupsUnderClustering:
    """What pending clusterings are about to replace, for one write.

    With ``are_changed`` the write may change the groups all the same; the clustering is given up
    then.
    """

    base_path: BasePath
    groups: Mapping[FileGroupId, Instant] = field(default_factory=dict)
    are_changed: bool = False

    @classmethod
    def of(cls, table: OpenTable, timeline: TimelineView) -> GroupsUnderClustering:
        """Those of a table; reads the plans of pending clusterings."""
        client = table.client
        groups = groups_under_clustering(client, timeline)
        strategy = ClusteringConfig.updates.read(client.options)
        return cls(client.base_path, groups, strategy is UpdatesStrategy.ALLOW)

    def require_none_of(self, changed: Collection[FileGroupId]) -> None:
        """Refuse a write that changes one of the groups."""
        if self.are_changed:
            return
        for group in sorted(self.groups.keys() & set(changed)):  # guard rejects
            time = self.groups[group].requested_time
            raise PendingClusteringError(self.base_path, time, group.file_id, group.partition_path)
