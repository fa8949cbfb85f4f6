"""Which columns the files of a plan were written with.

Spark's reader is given a file's columns instead of finding them out: it refuses a file whose types
are others, and matches by name. A table whose columns changed has files of several kinds.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.plan import PlannedSlice, ReadPlan
from hudi_core.read.virtual_keys import hides_keys, warn_of_ignored_keys
from hudi_core.schema.alignment import stored_fields
from hudi_core.schema.avro_types import record_from_avro
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY


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
