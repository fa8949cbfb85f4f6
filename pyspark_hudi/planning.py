"""Parts of a read: schema, plan, and the scan in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hudi_core.config.read import ReadConfig
from hudi_core.read.asked import feed_of, plan_of
from hudi_core.read.change_feed import FEED_SCHEMA
from hudi_core.read.filters import Condition
from hudi_core.read.plan import Scan, Sized, read_schema
from hudi_core.read.scan import file_scan
from hudi_core.read.spark_frame import splits
from hudi_core.services.opening import open_within
from pyspark_hudi.options import SourceOptions


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A read before its first row.

    Attributes
    ----------
    scan
        Reads the parts of a task, in any task.
    tasks
        The files, or changes of files, of each task.
    """

    scan: Scan[Any]
    tasks: Sequence[tuple[Sized, ...]]


def spark_schema(options: SourceOptions) -> StructType:
    """The columns of a table in Spark's types.

    For a catalog with a note of the read's options.
    """
    opened, _ = open_within(options.paths, options.given)
    # Spark does not say whether it asks for a stream, which has no begin
    is_feed = ReadConfig.asks_for_feed(options.given)
    schema = FEED_SCHEMA if is_feed else read_schema(opened.client, opened.timeline())
    columns = from_arrow_schema(schema)
    return options.noted_in(columns) if options.is_of_catalog else columns


def plan_read(
    options: SourceOptions, columns: Sequence[str], conditions: Sequence[Condition]
) -> PlannedRead:
    """Plan the rows of a snapshot or time span, or its changes.

    Parameters
    ----------
    columns
        The columns to read.
    conditions
        What rows must fulfil; files that hold none such are not read.
    """
    opened, within = open_within(options.paths, options.given)
    query = ReadConfig.from_options(options.given)
    if query.is_feed:
        feed = feed_of(opened, query, within)
        return PlannedRead(feed.scan, splits(feed.parts))
    plan = plan_of(opened, query, conditions or None, within)
    scan = file_scan(opened.client, plan, columns, conditions or None)
    return PlannedRead(scan, splits(plan.files))
