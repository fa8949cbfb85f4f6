"""What a read plans that is asked for with Hudi's options."""

from __future__ import annotations

from dataclasses import replace

from hudi_core.config.kinds import MergeType
from hudi_core.config.read import QueryType, ReadConfig
from hudi_core.errors import HistoryExpiredError
from hudi_core.read.changes.feed import FeedPart
from hudi_core.read.changes.incremental import IncrementalQuery
from hudi_core.read.filters import RowFilter
from hudi_core.read.path_pattern import PathPattern
from hudi_core.read.plan import ReadPlan, ScanPlan
from hudi_core.read.query import SnapshotQuery
from hudi_core.table_handle import OpenTable


def plan_of(
    opened: OpenTable,
    query: ReadConfig,
    row_filter: RowFilter | None = None,
    within: PathPattern | None = None,
) -> ReadPlan:
    """Return the files of a snapshot, past snapshot, or time span."""
    # one timeline for the query and for what lists the files
    opened = opened.seeing(opened.client.timeline())
    client, timeline = opened.client, opened.timeline()
    if query.query_type is not QueryType.INCREMENTAL:
        snapshot = SnapshotQuery(
            client,
            opened.lister(),
            timeline,
            base_files_only=query.query_type is QueryType.READ_OPTIMIZED,
            skips_merge=query.merge_type is MergeType.SKIPPED,
        )
        return snapshot.plan(query.as_of, row_filter, within)
    changed = IncrementalQuery(client, timeline, opened.lister())
    try:
        plan = changed.plan(query.begin, query.end, row_filter)
    except HistoryExpiredError:
        if not query.falls_back:
            raise
        present = SnapshotQuery(client, opened.lister(), timeline).plan(None, row_filter)
        plan = replace(present, commit_times=changed.times(query.begin, query.end))
    if within is None:
        return plan
    return replace(plan, files=tuple(file for file in plan.files if within.names(file.path)))


def feed_of(
    opened: OpenTable, query: ReadConfig, within: PathPattern | None = None
) -> ScanPlan[FeedPart]:
    """Return the plan of a change feed, its images JSON strings."""
    opened = opened.seeing(opened.client.timeline())
    changed = IncrementalQuery(opened.client, opened.timeline(), opened.lister())
    plan = changed.feed(query.begin, query.end)
    if within is None:
        return plan
    parts = (part for part in plan.parts if any(within.names(one.path) for one in part.files))
    return replace(plan, parts=tuple(parts))
