"""The joined rows of a merge as a Spark DataFrame."""

from __future__ import annotations

from hudi_core.engine.base import Engine
from hudi_core.engine.choice import bounds_of, merged_frame
from hudi_core.meta_client import TableMetaClient
from hudi_core.read.filters import Filter
from hudi_core.read.positions import PositionScan
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.scan import file_scan
from hudi_core.read.spark_frame import splits
from hudi_core.rows.changes import SOURCE, Met
from hudi_core.write.changes import JoinedRows, numbered
from hudi_core.write.merge_join import MergePlan, within


def merged_frame_of(
    engine: Engine, client: TableMetaClient, snapshot: SnapshotQuery, merge: MergePlan
) -> JoinedRows:
    """Return the joined rows of a merge.

    The source is evaluated once: where its values show which files can match, its rows are kept by
    the executors until they are joined. See :func:`hudi_core.write.local_merge.merged_rows`.
    """
    source, joined, join, wanted = merge.source, merge.joined, merge.join, merge.wanted
    row_filter = None
    if Met.TARGET not in wanted:
        row_filter = join.filter
        if join.pairs:
            source, bounds = bounds_of(source, [other for _, other in join.pairs])
            for (target, _), values in zip(join.pairs, bounds, strict=True):
                known = within(joined.target.field(target), values, as_bounds=True)
                if known is not None:
                    found = Filter.of(known)
                    row_filter = found if row_filter is None else row_filter & found
    plan = snapshot.plan(None, row_filter)
    scan = file_scan(client, plan, joined.target.names)
    positions = PositionScan(scan, prefix=joined.target_prefix)
    frame, names = merged_frame(
        engine,
        splits(numbered(plan.files)),
        positions.read,
        positions.output_schema,
        source.toDF(*(joined.source_prefix + name for name in source.columns)),
        on=join.sql(joined, "spark"),
        how=_how(wanted),
        present=SOURCE,
        columns={one.name: one.guarded("spark") for one in merge.texts},
    )
    return JoinedRows(frame, plan.files, names)


def _how(wanted: frozenset[Met]) -> str:
    """The kind of join that gives all rows that clauses are for."""
    if {Met.SOURCE, Met.TARGET} <= wanted:
        return "full"
    if Met.SOURCE in wanted:
        return "right"
    return "left" if Met.TARGET in wanted else "inner"
