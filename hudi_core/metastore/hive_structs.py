"""Structs of Hive metastores, by the numbers of their fields.

Source: ``hive_metastore.thrift`` of Apache Hive. An entry is sent back whole to be changed, so that
what is read of it has all fields that anybody uses.
"""

from __future__ import annotations

from typing import Final

from hudi_core.metastore.thrift_calls import (
    BOOL,
    I32,
    LIST,
    MAP,
    STRING,
    STRUCT,
    TEXT,
    TEXT_MAP,
    TEXTS,
    of,
    struct,
    structs,
)

Column: Final = struct(
    "FieldSchema",
    (1, STRING, "name", TEXT),
    (2, STRING, "type", TEXT),
    (3, STRING, "comment", TEXT),
)
Serde: Final = struct(
    "SerDeInfo",
    (1, STRING, "name", TEXT),
    (2, STRING, "serializationLib", TEXT),
    (3, MAP, "parameters", TEXT_MAP),
)
Descriptor: Final = struct(
    "StorageDescriptor",
    (1, LIST, "cols", structs(Column)),
    (2, STRING, "location", TEXT),
    (3, STRING, "inputFormat", TEXT),
    (4, STRING, "outputFormat", TEXT),
    (5, BOOL, "compressed", None),
    (6, I32, "numBuckets", None),
    (7, STRUCT, "serdeInfo", of(Serde)),
    (8, LIST, "bucketCols", TEXTS),
    (10, MAP, "parameters", TEXT_MAP),
    (12, BOOL, "storedAsSubDirectories", None),
)
Entry: Final = struct(
    "Table",
    (1, STRING, "tableName", TEXT),
    (2, STRING, "dbName", TEXT),
    (3, STRING, "owner", TEXT),
    (4, I32, "createTime", None),
    (5, I32, "lastAccessTime", None),
    (6, I32, "retention", None),
    (7, STRUCT, "sd", of(Descriptor)),
    (8, LIST, "partitionKeys", structs(Column)),
    (9, MAP, "parameters", TEXT_MAP),
    (10, STRING, "viewOriginalText", TEXT),
    (11, STRING, "viewExpandedText", TEXT),
    (12, STRING, "tableType", TEXT),
)
Part: Final = struct(
    "Partition",
    (1, LIST, "values", TEXTS),
    (2, STRING, "dbName", TEXT),
    (3, STRING, "tableName", TEXT),
    (6, STRUCT, "sd", of(Descriptor)),
    (7, MAP, "parameters", TEXT_MAP),
)
Database: Final = struct(
    "Database",
    (1, STRING, "name", TEXT),
    (2, STRING, "description", TEXT),
)
Additions: Final = struct(
    "AddPartitionsRequest",
    (1, STRING, "dbName", TEXT),
    (2, STRING, "tblName", TEXT),
    (3, LIST, "parts", structs(Part)),
    (4, BOOL, "ifNotExists", None),
    (5, BOOL, "needResult", None),
)
Removed: Final = struct("RequestPartsSpec", (1, LIST, "names", TEXTS))
Removals: Final = struct(
    "DropPartitionsRequest",
    (1, STRING, "dbName", TEXT),
    (2, STRING, "tblName", TEXT),
    (3, STRUCT, "parts", of(Removed)),
    (4, BOOL, "deleteData", None),
    (5, BOOL, "ifExists", None),
    (8, BOOL, "needResult", None),
)
Context: Final = struct("EnvironmentContext", (1, MAP, "properties", TEXT_MAP))
Nothing: Final = struct("Nothing")
"""A result that is ignored."""
