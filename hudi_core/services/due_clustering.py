"""Clusterings that are due after a commit."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import HudiError, InstantNotFoundError
from hudi_core.model.commit import WriteOperation
from hudi_core.model.instant import Action, Instant
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.services.clustering_groups import StalePlanError, can_be_clustered
from hudi_core.table_handle import OpenTable
from hudi_core.txn.scheduled import is_scheduled
from hudi_core.txn.table_lock import TableLock

_log = logging.getLogger(__name__)


def cluster_if_due(
    table: OpenTable, lock: TableLock, config: WriteConfig, engine: Engine
) -> Sequence[Clustering]:
    """Schedule or run clusterings after a commit, as options ask.

    Takes the lock itself.

    With ``hoodie.clustering.inline`` what is scheduled is run first, then a new clustering where
    enough commits came since the last one. With ``hoodie.clustering.schedule.inline`` alone it is
    only scheduled. A table with buckets, or of a format that knows no clusterings, has none.

    ``table`` is as the commit left it. The commit remains valid where a clustering fails.
    """
    clustering = config.clustering
    if not (clustering.inline or clustering.schedule_inline) or not can_be_clustered(table):
        return ()
    service = ClusteringService(table.as_stored().afresh, lock, engine, config)
    done: list[Clustering] = []
    if clustering.inline:
        done += _run_scheduled(service)
    due = clustering.inline_max_commits if clustering.inline else clustering.schedule_max_commits
    if commits_since_clustering(service.table) >= due:
        new = service.cluster() if clustering.inline else service.schedule()
        done += [new] if new.groups else []
    return done


def cluster_after_commit(
    table: OpenTable, lock: TableLock, config: WriteConfig, engine: Engine
) -> None:
    """Schedule or run clusterings that are due after a commit.

    The commit has taken place: what fails now is logged, and left to the next one.
    """
    if not config.services.enabled:
        return
    try:
        cluster_if_due(table, lock, config, engine)
    except HudiError:
        where = table.client.base_path
        _log.warning("the clustering of %s after a commit failed", where, exc_info=True)


def commits_since_clustering(table: OpenTable) -> int:
    """Completed writes after the last clustering, be that complete or not."""
    timeline = table.client.timeline()
    writes = timeline.completed_writes()
    pending = [one.requested_time for one in timeline.pending() if _is_clustering(table, one)]
    done = (one.requested_time for one in reversed(writes) if _is_clustering(table, one))
    last = max([*pending, next(done, "")])
    return sum(one.requested_time > last for one in writes)


def _is_clustering(table: OpenTable, instant: Instant) -> bool:
    if instant.action is not Action.REPLACECOMMIT or not instant.is_completed:
        return instant.action is Action.CLUSTERING
    return table.client.active.read_notes(instant).operation_type == WriteOperation.CLUSTER


def _run_scheduled(service: ClusteringService) -> list[Clustering]:
    """Run what is scheduled; what is out of date is given up."""
    done: list[Clustering] = []
    for one in service.table.client.timeline().pending().where(is_scheduled):
        try:
            done += service.run(one.requested_time)
        except StalePlanError as stale:
            _log.warning("%s", stale)
        except InstantNotFoundError:
            continue  # another process runs it, or gave it up
    return done
