"""A plan as a Spark DataFrame.

Where Spark's JVM can open the table's store, its own parquet reader reads exactly the planned
files. Where it cannot, as stock Spark cannot open S3, the tasks read them as Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from hudi_core.storage.hadoop import hadoop_options, hadoop_schemes, with_scheme

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.model.instant_time import InstantTime
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.scan import hides_keys, warn_of_ignored_keys
from hudi_core.schema.alignment import stored_fields
from hudi_core.schema.avro_types import record_from_avro
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY

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
    logged = tuple(file for file in plan.files if file.logs)
    if logged:
        merged_scan = file_scan(client, replace(plan, files=logged), columns, row_filter)
        merged = frame_of_scan(spark, ScanPlan(merged_scan, logged))
        plain = replace(plan, files=tuple(file for file in plan.files if not file.logs))
        if not plain.files:
            return merged
        return frame_of_plan(spark, client, plain, columns, row_filter).unionByName(merged)
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


# --- columns as files were written with -----------------------------------------------------------

# Spark's reader is given a file's columns instead of finding them out: it refuses a file whose
# types are others, and matches by name. A table whose columns changed has files of several kinds.


def files_by_types(
    client: TableMetaClient, plan: ReadPlan
) -> list[tuple[pa.Schema, tuple[str, ...]]]:
    """Return a plan's files grouped by their stored columns.

    Pairs of a schema, as the files have it (meta columns first, field ids where there are any), and
    URIs. The metadata of every write that a file is from is read once; for an archived write, or
    one that kept no schema, the footer of one file is read.
    """
    warn_of_ignored_keys(client, plan.files)
    grouped: dict[bytes, tuple[pa.Schema, list[str]]] = {}
    known = {instant.requested_time: instant for instant in client.timeline().completed_writes()}
    schemas: dict[InstantTime, pa.Schema] = {}
    for file in plan.files:
        if file.instant not in schemas:
            instant = known.get(file.instant)
            text = client.read_commit(instant).schema_json if instant else None
            schemas[file.instant] = (
                _schema_of_footer(client, file) if text is None else _schema_of_commit(text)
            )
        schema = schemas[file.instant]
        if hides_keys(client):  # what a file may still hold of them is ignored
            schema = pa.schema([field for field in schema if field.name != RECORD_KEY])
        grouped.setdefault(schema.serialize().to_pybytes(), (schema, []))[1].append(file.uri)
    return [(schema, tuple(uris)) for schema, uris in grouped.values()]


def _schema_of_commit(text: str) -> pa.Schema:
    fields = record_from_avro(text)
    names = {field.name for field in fields}
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS if name not in names]
    return pa.schema([*meta, *fields])


def _schema_of_footer(client: TableMetaClient, file: PlannedSlice) -> pa.Schema:
    filesystem, path = client.files.filesystem(file.path)
    try:
        with (
            filesystem.open_input_file(path) as source,
            pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as stored,
        ):
            return pa.schema(stored_fields(stored.schema_arrow))
    except (OSError, pa.ArrowInvalid) as error:
        raise client.files.unreadable([file.path], f"{file.path}: {error}") from error
