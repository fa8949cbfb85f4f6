"""The files that a clustering rewrites, by table or by plan."""

from __future__ import annotations

from datetime import UTC, datetime

from hudi_core.actions.clustering import PendingClustering, groups_under_clustering
from hudi_core.actions.clustering_plan import PlannedGroup, chosen_partitions, plan_groups
from hudi_core.config.clustering import ClusteringConfig
from hudi_core.errors import CommitConflictError, TableServiceError, UnknownPartitionError
from hudi_core.model.capability import Capability
from hudi_core.model.instant_time import to_datetime
from hudi_core.rows.sorting import require_ordered
from hudi_core.table_handle import OpenTable


class StalePlanError(CommitConflictError):
    """A scheduled clustering whose files another write has replaced."""


def groups_of_plan(table: OpenTable, pending: PendingClustering) -> list[PlannedGroup]:
    """The groups of a plan, whose files must be present ones.

    ``StalePlanError`` is for a file group that another write changed since; a plan that names
    anything but base files of the table is corrupt.
    """
    root = table.client.storage.root
    named = list(pending.own_groups(root))
    slices = table.views().view().latest_slices(sorted({path for path, _, _ in named}))
    latest = {one.base_file.path: one.base_file for one in slices if one.base_file is not None}
    groups = []
    for partition, paths, outputs in named:
        stale = [path for path in paths if path not in latest]
        if stale:  # guard looks-at-plan
            time_ = pending.instant.requested_time
            raise StalePlanError(
                f"The clustering {time_} cannot be run any more: another write has changed file "
                f"group {stale[0]} since it was planned",
                "It is given up, and nothing has changed. Schedule another one.",
                instant=time_,
            )
        groups.append(PlannedGroup(partition, tuple(latest[path] for path in paths), outputs))
    return groups


def groups_to_rewrite(table: OpenTable, config: ClusteringConfig) -> list[PlannedGroup]:
    """The groups of a new plan."""
    timeline = table.timeline()
    schema = table.client.schema_at(timeline)
    require_ordered(schema, config.sort_columns, ClusteringConfig.sort_columns.key)
    view = table.views().view(timeline)
    unknown = sorted(set(config.partitions) - set(view.partitions()))
    if unknown:
        raise UnknownPartitionError(
            f"The table has no rows in the partition {', '.join(map(repr, unknown))}",
            "Name partitions that Table.file_slices() lists.",
            partitions=tuple(unknown),
        )
    hour = to_datetime(table.client.config.zone.digits(datetime.now(UTC))).hour
    partitions = chosen_partitions(view.partitions(), config, hour)
    busy = groups_under_clustering(table.client, timeline)
    return plan_groups(view.latest_slices(partitions), config, busy)


def can_be_clustered(table: OpenTable) -> bool:
    """Whether the table's format knows clusterings, and it has no buckets."""
    has_buckets = table.client.config.buckets is not None
    return Capability.CLUSTERING in table.host.capabilities and not has_buckets


def require_clusterable(table: OpenTable) -> None:
    """Refuse a table that cannot be clustered.

    Neither tables with buckets nor those of a format that does not know clusterings can be.
    """
    table.client.require_writable()
    table.host.require(Capability.CLUSTERING)
    if table.client.config.buckets is not None:
        raise TableServiceError(
            f"{table.client.base_path} has buckets, each of which is one file group: no two can be "
            "rewritten together",
            "Its files are as few as its buckets; nothing is to be done.",
        )
