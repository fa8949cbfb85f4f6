"""Which types the files of a plan were written with.

Spark's reader is told a file's types instead of finding them out, and refuses a file whose types
are others. A table whose columns changed their types has files of both kinds.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.schema import TableSchema
from hudi_core.read.plan import ReadPlan


def files_by_types(
    client: TableMetaClient, plan: ReadPlan
) -> list[tuple[pa.Schema, tuple[str, ...]]]:
    """Return the files of a plan by the schema to read them with.

    Parameters
    ----------
    client
        The table; the metadata of every write that a file is from is read, once.

    Returns
    -------
    list
        Pairs of a schema and URIs. The schema has the plan's columns where the files have the
        plan's types or lack a column, and the types of the files otherwise. Files of archived
        writes are taken to have the plan's types.
    """
    grouped: dict[str, tuple[pa.Schema, list[str]]] = {}
    known = {instant.requested_time: instant for instant in client.timeline().completed_writes()}
    schemas: dict[InstantTime, pa.Schema] = {}
    for file in plan.files:
        if file.instant not in schemas:
            instant = known.get(file.instant)
            text = client.read_commit(instant).schema_json if instant else None
            schemas[file.instant] = _schema_to_read(plan.schema, client, text)
        schema = schemas[file.instant]
        grouped.setdefault(schema.to_string(), (schema, []))[1].append(file.uri)
    return [(schema, tuple(uris)) for schema, uris in grouped.values()]


def _schema_to_read(wanted: pa.Schema, client: TableMetaClient, text: str | None) -> pa.Schema:
    if text is None:
        return wanted
    written = TableSchema.from_avro(text, client.config.field_ids).with_meta()
    return pa.schema(
        [
            field.with_type(written.field(field.name).type)
            if field.name in written.names
            else field
            for field in wanted
        ]
    )
