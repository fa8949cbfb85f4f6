"""The Avro schema of the metadata table's records, as new files carry it.

Field names, order and unions are those of ``hudi-format`` section 5. Tables of version 8 know
neither the types of bounds nor bounds that are arrays.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from hudi_core.avro.wrappers import SCALARS, wrapper_union
from hudi_core.model.schema import META_COLUMNS

_STRING: Final = {"type": "string", "avro.java.string": "String"}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _column_stats(has_value_types: bool) -> dict[str, Any]:
    bounds = [*SCALARS, "ArrayWrapper"] if has_value_types else [*SCALARS]
    minimum = wrapper_union(SCALARS, arrays=has_value_types)
    fields = [
        _optional("fileName", _STRING),
        _optional("columnName", _STRING),
        {"name": "minValue", "type": minimum, "default": None},
        {"name": "maxValue", "type": ["null", *bounds], "default": None},
        _optional("valueCount", "long"),
        _optional("nullCount", "long"),
        _optional("totalSize", "long"),
        _optional("totalUncompressedSize", "long"),
        _field("isDeleted", "boolean"),
        {"name": "isTightBound", "type": "boolean", "default": False},
    ]
    if has_value_types:
        kind = _record(
            "HoodieValueTypeInfo",
            _field("typeOrdinal", "int"),
            _optional("additionalInfo", _STRING),
        )
        fields.append(_optional("valueType", kind))
    return _record("HoodieMetadataColumnStats", *fields)


@cache
def record_schema(has_value_types: bool) -> str:
    """Return the schema as JSON.

    Parameters
    ----------
    has_value_types
        Whether bounds say their type (statistics of version 2, in tables of version 9).
    """
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
        _optional("ColumnStatsMetadata", _column_stats(has_value_types)),
        _optional("recordIndexMetadata", location),
        _optional("SecondaryIndexMetadata", secondary),
    )
    record["namespace"] = "org.apache.hudi.avro.model"
    return json.dumps(record, separators=(",", ":"))


@cache
def table_schema(has_value_types: bool) -> str:
    """Return the schema as the commits of a metadata table keep it: without the meta fields."""
    record = json.loads(record_schema(has_value_types))
    record["fields"] = [one for one in record["fields"] if one["name"] not in META_COLUMNS]
    return json.dumps(record, separators=(",", ":"))
