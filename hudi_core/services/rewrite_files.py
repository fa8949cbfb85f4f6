"""Data files replaced by others with the same rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hudi_core.actions.clustering import groups_under_clustering
from hudi_core.actions.clustering_plan import PlannedGroup
from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import engine_for
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import TableLock


def rewrite_each(
    table: OpenTable, lock: TableLock, config: WriteConfig, paths: Collection[str]
) -> Clustering:
    """Rewrite data files one by one, their rows in order.

    It is a clustering, and takes the lock itself. Files that are the latest of their file groups no
    more, or that another clustering is about to replace, stay as they are.

    Parameters
    ----------
    paths
        Of the files, relative to the table.

    Raises
    ------
    HudiError
        What a clustering raises.
    """

    def choose(now: OpenTable, _: ClusteringConfig) -> list[PlannedGroup]:
        timeline = now.timeline()
        busy = groups_under_clustering(now.client, timeline)
        return [
            PlannedGroup(one.partition_path, (one.base_file,), 1)
            for one in now.views().view(timeline).latest_slices()
            if one.base_file is not None and one.base_file.path in paths and one.group not in busy
        ]

    given = replace(config, clustering=replace(config.clustering, sort_columns=()))
    return ClusteringService(table, lock, engine_for(None), given, choose=choose).cluster()
