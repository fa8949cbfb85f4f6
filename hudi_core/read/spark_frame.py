"""A plan as a Spark DataFrame.

Where Spark's JVM can open the table's store, its own parquet reader reads exactly the planned
files. Where it cannot, as stock Spark cannot open S3, the tasks read them as Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hudi_core.engine.choice import (
    connected_scheme,
    frame_of_batches,
    frame_of_files,
    frame_where,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.read.filters import RowFilter, require_columns
from hudi_core.read.plan import Part, ReadPlan, ScanPlan
from hudi_core.read.scan import file_scan
from hudi_core.read.written_types import files_by_types
from hudi_core.storage.hadoop import hadoop_options, hadoop_schemes, with_scheme

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPLIT_BYTES: Final = 128 << 20


def frame_of_plan(
    spark: SparkSession,
    client: TableMetaClient,
    plan: ReadPlan,
    columns: Sequence[str] | None = None,
    row_filter: RowFilter | None = None,
) -> DataFrame:
    """Return the rows of a plan as a DataFrame."""
    require_columns(columns, plan.schema)
    roots = client.files.roots
    found = {_scheme(root): connected_scheme(spark, hadoop_schemes(root)) for root in roots}
    schemes = {own: scheme for own, scheme in found.items() if scheme is not None}
    if len(schemes) < len(found):
        scan = file_scan(client, plan, columns, row_filter)
        return frame_of_batches(spark, splits(plan.files), scan.read, scan.output_schema)
    client.files.require_no_links(one.path for one in plan.files)
    files = [
        (schema, [with_scheme(uri, schemes[_scheme(uri)]) for uri in uris])
        for schema, uris in files_by_types(client, plan)
    ]
    options = {
        key: value
        for root in roots
        for key, value in hadoop_options(root, client.storage_options).items()
    }
    frame = frame_of_files(spark, files, plan.schema, plan.commit_times, options)
    return frame_where(frame, row_filter, columns)


def _scheme(uri: str) -> str:
    """The scheme of a URI; empty for a local path."""
    scheme, separator, _ = uri.partition("://")
    return scheme if separator else ""


def frame_of_scan(spark: SparkSession, plan: ScanPlan[Part]) -> DataFrame:
    """Return a DataFrame whose tasks read the parts of a scan."""
    return frame_of_batches(spark, splits(plan.parts), plan.scan.read, plan.scan.output_schema)


def splits(files: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Spread files over tasks of about 128 MB each, their order kept."""
    tasks: list[list[Part]] = []
    room = 0
    for file in files:
        if not tasks or file.size > room:
            tasks.append([])
            room = _SPLIT_BYTES
        tasks[-1].append(file)
        room -= file.size
    return [tuple(task) for task in tasks]
