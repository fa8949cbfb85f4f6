"""What a read plans that is asked for with Hudi's options."""

from __future__ import annotations

from dataclasses import replace

from hudi_core.config.read import QueryType, ReadConfig
from hudi_core.read.filters import RowFilter
from hudi_core.read.incremental import IncrementalQuery
from hudi_core.read.path_pattern import PathPattern
from hudi_core.read.plan import ReadPlan
from hudi_core.read.query import SnapshotQuery
from hudi_core.table_handle import OpenTable


def plan_of(
    opened: OpenTable,
    query: ReadConfig,
    row_filter: RowFilter | None = None,
    within: PathPattern | None = None,
) -> ReadPlan:
    """Return the files of a snapshot, past snapshot, or time span.

    Parameters
    ----------
    row_filter
        Rows that are wanted; files that hold none such are not planned.
    within
        What of the table is meant; ``None`` for all of it.
    """
    # one timeline for the query and for what lists the files
    opened = opened.seeing(opened.client.timeline())
    client, timeline = opened.client, opened.timeline()
    if query.query_type is not QueryType.INCREMENTAL:
        snapshot = SnapshotQuery(client, opened.lister(), timeline)
        return snapshot.plan(query.as_of, row_filter, within)
    plan = IncrementalQuery(client, timeline).plan(query.begin, query.end, row_filter)
    if within is None:
        return plan
    return replace(plan, files=tuple(file for file in plan.files if within.names(file.path)))
