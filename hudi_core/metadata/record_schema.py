"""The Avro schema of the metadata table's records, as new files carry it.

Field names, order and unions are those of ``hudi-format`` section 5. Tables of version 8 keep no
types of bounds. Hudi 1.0 has no field for them in these tables; Hudi 1.2 has it in both versions,
and opens the metadata table of neither as a table where the commits keep another schema.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from hudi_core.avro.wrappers import SCALARS, wrapper_union
from hudi_core.schema.table_schema import META_COLUMNS

_STRING: Final = {"type": "string", "avro.java.string": "String"}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _column_stats() -> dict[str, Any]:
    kind = _record(
        "HoodieValueTypeInfo",
        _field("typeOrdinal", "int"),
        _optional("additionalInfo", _STRING),
    )
    return _record(
        "HoodieMetadataColumnStats",
        _optional("fileName", _STRING),
        _optional("columnName", _STRING),
        {"name": "minValue", "type": wrapper_union(SCALARS, arrays=True), "default": None},
        {"name": "maxValue", "type": ["null", *SCALARS, "ArrayWrapper"], "default": None},
        _optional("valueCount", "long"),
        _optional("nullCount", "long"),
        _optional("totalSize", "long"),
        _optional("totalUncompressedSize", "long"),
        _field("isDeleted", "boolean"),
        {"name": "isTightBound", "type": "boolean", "default": False},
        _optional("valueType", kind),
    )


@cache
def record_schema() -> str:
    """Return the schema as JSON."""
    file_info = _record(
        "HoodieMetadataFileInfo", _field("size", "long"), _field("isDeleted", "boolean")
    )
    files = {"type": "map", "values": file_info, "avro.java.string": "String"}
    bloom = _record(
        "HoodieMetadataBloomFilter",
        _field("type", _STRING),
        _field("timestamp", _STRING),
        _field("bloomFilter", "bytes"),
        _field("isDeleted", "boolean"),
    )
    location = _record(
        "HoodieRecordIndexInfo",
        _optional("partitionName", _STRING),
        _optional("fileIdHighBits", "long"),
        _optional("fileIdLowBits", "long"),
        _optional("fileIndex", "int"),
        _optional("fileId", _STRING),
        _optional("instantTime", "long"),
        {"name": "fileIdEncoding", "type": "int", "default": 0},
        _optional("position", "long"),
    )
    secondary = _record("HoodieSecondaryIndexInfo", _field("isDeleted", "boolean"))
    record = _record(
        "HoodieMetadataRecord",
        *(_optional(name, "string") for name in META_COLUMNS),
        _field("key", _STRING),
        _field("type", "int"),
        _field("filesystemMetadata", ["null", files]),
        _optional("BloomFilterMetadata", bloom),
        _optional("ColumnStatsMetadata", _column_stats()),
        _optional("recordIndexMetadata", location),
        _optional("SecondaryIndexMetadata", secondary),
    )
    record["namespace"] = "org.apache.hudi.avro.model"
    return json.dumps(record, separators=(",", ":"))


@cache
def table_schema() -> str:
    """Return the schema as the commits of a metadata table keep it: without the meta fields."""
    record = json.loads(record_schema())
    record["fields"] = [one for one in record["fields"] if one["name"] not in META_COLUMNS]
    return json.dumps(record, separators=(",", ":"))
