"""Structs of Hive metastores, by the numbers of their fields.

Source: ``hive_metastore.thrift`` of Apache Hive. An entry is sent back whole to be changed, so that
what is read of it has all fields that anybody uses.
"""

from __future__ import annotations

from typing import Final

from hudi_core.metastore.thrift_calls import Interface

HIVE: Final = Interface()
_struct = HIVE.struct

Column: Final = _struct("FieldSchema", "1: string name, 2: string type, 3: string comment")
Serde: Final = _struct(
    "SerDeInfo", "1: string name, 2: string serializationLib, 3: map<string,string> parameters"
)
Descriptor: Final = _struct(
    "StorageDescriptor",
    """
    1: list<FieldSchema> cols, 2: string location, 3: string inputFormat, 4: string outputFormat,
    5: bool compressed, 6: i32 numBuckets, 7: SerDeInfo serdeInfo, 8: list<string> bucketCols,
    10: map<string,string> parameters, 12: bool storedAsSubDirectories
    """,
)
Entry: Final = _struct(
    "Table",
    """
    1: string tableName, 2: string dbName, 3: string owner, 4: i32 createTime,
    5: i32 lastAccessTime, 6: i32 retention, 7: StorageDescriptor sd,
    8: list<FieldSchema> partitionKeys, 9: map<string,string> parameters,
    10: string viewOriginalText, 11: string viewExpandedText, 12: string tableType
    """,
)
Part: Final = _struct(
    "Partition",
    """
    1: list<string> values, 2: string dbName, 3: string tableName, 6: StorageDescriptor sd,
    7: map<string,string> parameters
    """,
)
Database: Final = _struct("Database", "1: string name, 2: string description")
Additions: Final = _struct(
    "AddPartitionsRequest",
    """
    1: string dbName, 2: string tblName, 3: list<Partition> parts, 4: bool ifNotExists,
    5: bool needResult
    """,
)
Removed: Final = _struct("RequestPartsSpec", "1: list<string> names")
Removals: Final = _struct(
    "DropPartitionsRequest",
    """
    1: string dbName, 2: string tblName, 3: RequestPartsSpec parts, 4: bool deleteData,
    5: bool ifExists, 8: bool needResult
    """,
)
Context: Final = _struct("EnvironmentContext", "1: map<string,string> properties")
NOTHING: Final = _struct("Nothing").__name__
"""A result that is ignored."""
