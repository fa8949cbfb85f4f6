"""Parts of a read: schema, plan, and the scan in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hudi_core.config.read import ReadConfig
from hudi_core.read.asked import plan_of
from hudi_core.read.filters import Condition
from hudi_core.read.plan import PlannedFile, read_schema
from hudi_core.read.scan import FileScan, file_scan
from hudi_core.read.spark_frame import splits
from hudi_core.services.opening import open_within
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
    """The columns of a table in Spark's types.

    For a catalog with a note of the read's options.
    """
    opened, _ = open_within(options.paths, options.given)
    columns = from_arrow_schema(read_schema(opened.client, opened.timeline()))
    return options.noted_in(columns) if options.is_of_catalog else columns


def plan_read(
    options: SourceOptions, columns: Sequence[str], conditions: Sequence[Condition]
) -> PlannedRead:
    """Plan the rows of a snapshot, past snapshot, or time span.

    Parameters
    ----------
    columns
        The columns to read.
    conditions
        What rows must fulfil; files that hold none such are not read.
    """
    opened, within = open_within(options.paths, options.given)
    plan = plan_of(opened, ReadConfig.from_options(options.given), conditions or None, within)
    scan = file_scan(opened.client, plan, columns, conditions or None)
    return PlannedRead(scan, tuple(splits(plan.files)))
