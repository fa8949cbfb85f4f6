"""The Avro schema of metadata records in new files.

Field names, order and unions are those of ``hudi-format`` section 5. Tables of version 8 keep no
types of bounds. Hudi 1.0 has no field for them in these tables; Hudi 1.2 has it in both versions,
and opens the metadata table of neither as a table where the commits keep another schema.
"""

from __future__ import annotations

import json
from functools import cache

from hudi_core.metadata.payload import avro_record, optional, required
from hudi_core.metadata.records import PAYLOADS
from hudi_core.schema.table_schema import META_COLUMNS


@cache
def record_schema() -> str:
    """The schema as JSON."""
    record = avro_record(
        "HoodieMetadataRecord",
        *(optional(name, "string") for name in META_COLUMNS),
        required("key", {"type": "string", "avro.java.string": "String"}),
        required("type", "int"),
        *(one.field for one in PAYLOADS),
    )
    record["namespace"] = "org.apache.hudi.avro.model"
    return json.dumps(record, separators=(",", ":"))


@cache
def table_schema() -> str:
    """Return the schema in commits, without the meta fields."""
    record = json.loads(record_schema())
    record["fields"] = [one for one in record["fields"] if one["name"] not in META_COLUMNS]
    return json.dumps(record, separators=(",", ":"))
