"""What a read is made of: schema, plan, and the scan that tasks run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hudi_core.config.read import QueryType, ReadConfig
from hudi_core.read.filters import Condition
from hudi_core.read.incremental import IncrementalQuery
from hudi_core.read.plan import PlannedFile, ReadPlan, read_schema
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.scan import FileScan, file_scan
from hudi_core.read.spark_frame import splits
from hudi_core.services.opening import open_table
from hudi_core.txn.open_table import OpenTable
from pyspark_hudi.options import SourceOptions


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A read before its first row.

    Attributes
    ----------
    scan
        Reads files, in any task.
    tasks
        The files of each task.
    """

    scan: FileScan
    tasks: tuple[tuple[PlannedFile, ...], ...]


def spark_schema(options: SourceOptions) -> StructType:
    """Return the columns of a table in Spark's types."""
    opened = open_table(options.path, options.given)
    return from_arrow_schema(read_schema(opened.client, opened.timeline()))


def plan_read(
    options: SourceOptions, columns: Sequence[str], conditions: Sequence[Condition]
) -> PlannedRead:
    """Plan the rows of a snapshot, of a past one, or of a span of time, as the options say.

    Parameters
    ----------
    columns
        The columns to read.
    conditions
        What rows must fulfil; files that hold none such are not read.
    """
    opened = open_table(options.path, options.given)
    # one timeline for the query and for what lists the files
    opened = opened.seeing(opened.client.timeline())
    plan = _plan(opened, ReadConfig.from_options(options.given), conditions)
    scan = file_scan(opened.client, plan, columns, conditions or None)
    return PlannedRead(scan, tuple(splits(plan.files)))


def _plan(opened: OpenTable, query: ReadConfig, conditions: Sequence[Condition]) -> ReadPlan:
    client, timeline = opened.client, opened.timeline()
    if query.query_type is QueryType.INCREMENTAL:
        return IncrementalQuery(client, timeline).plan(query.begin, query.end)
    return SnapshotQuery(client, opened.lister(), timeline).plan(query.as_of, conditions or None)
