"""Structs of Trino's Thrift protocol, by the numbers of their fields."""

from __future__ import annotations

from typing import Final

from thrift.Thrift import TType

from hudi_core.metastore.thrift_calls import (
    I32,
    I64,
    LIST,
    MAP,
    STRING,
    STRUCT,
    TEXT,
    TEXTS,
    Struct,
    of,
    struct,
    structs,
)

BOOL, DOUBLE, SET = TType.BOOL, TType.DOUBLE, TType.SET
BYTES: Final = "BINARY"

# --- values --------------------------------------------------------------------------------------

_NULLS = (1, LIST, "nulls", (BOOL, None, False))


def _numbers(name: str, kind: int) -> type[Struct]:
    return struct(name, _NULLS, (2, LIST, "values", (kind, None, False)))


def _texts(name: str) -> type[Struct]:
    return struct(name, _NULLS, (2, LIST, "sizes", (I32, None, False)), (3, STRING, "data", BYTES))


IntegerValues: Final = _numbers("IntegerValues", I32)
BigintValues: Final = _numbers("BigintValues", I64)
DoubleValues: Final = _numbers("DoubleValues", DOUBLE)
VarcharValues: Final = _texts("VarcharValues")
BooleanValues: Final = _numbers("BooleanValues", BOOL)
DateValues: Final = _numbers("DateValues", I32)
TimestampValues: Final = _numbers("TimestampValues", I64)
Block: Final = struct(
    "Block",
    (1, STRUCT, "integer", of(IntegerValues)),
    (2, STRUCT, "bigint", of(BigintValues)),
    (3, STRUCT, "double", of(DoubleValues)),
    (4, STRUCT, "varchar", of(VarcharValues)),
    (5, STRUCT, "boolean", of(BooleanValues)),
    (6, STRUCT, "date", of(DateValues)),
    (7, STRUCT, "timestamp", of(TimestampValues)),
)
"""Values of one column, of one of the types; others are not compared in predicates."""

# --- predicates ----------------------------------------------------------------------------------

Marker: Final = struct("Marker", (1, STRUCT, "value", of(Block)), (2, I32, "bound", None))
Bounds: Final = struct("Bounds", (1, STRUCT, "low", of(Marker)), (2, STRUCT, "high", of(Marker)))
AllOrNone: Final = struct("AllOrNone", (1, BOOL, "all", None))
Equatable: Final = struct(
    "Equatable", (1, BOOL, "inclusive", None), (2, LIST, "values", structs(Block))
)
Ranges: Final = struct("Ranges", (1, LIST, "ranges", structs(Bounds)))
ValueSet: Final = struct(
    "ValueSet",
    (1, STRUCT, "all_or_none", of(AllOrNone)),
    (2, STRUCT, "equatable", of(Equatable)),
    (3, STRUCT, "ranges", of(Ranges)),
)
ColumnDomain: Final = struct(
    "ColumnDomain", (1, STRUCT, "value_set", of(ValueSet)), (2, BOOL, "null_allowed", None)
)
Constraint: Final = struct(
    "Constraint", (1, MAP, "domains", (STRING, TEXT, STRUCT, of(ColumnDomain), False))
)

# --- tables and splits ---------------------------------------------------------------------------

Name: Final = struct("Name", (1, STRING, "schema", TEXT), (2, STRING, "table", TEXT))
SchemaName: Final = struct("SchemaName", (1, STRING, "name", TEXT))
Id: Final = struct("Id", (1, STRING, "id", BYTES))
Token: Final = struct("Token", (1, STRUCT, "token", of(Id)))
ColumnSet: Final = struct("ColumnSet", (1, SET, "columns", TEXTS))
Column: Final = struct(
    "Column",
    (1, STRING, "name", TEXT),
    (2, STRING, "type", TEXT),
    (3, STRING, "comment", TEXT),
    (4, BOOL, "hidden", None),
)
Table: Final = struct(
    "Table",
    (1, STRUCT, "name", of(Name)),
    (2, LIST, "columns", structs(Column)),
    (3, STRING, "comment", TEXT),
)
FoundTable: Final = struct("FoundTable", (1, STRUCT, "table", of(Table)))
Host: Final = struct("Host", (1, STRING, "host", TEXT), (2, I32, "port", None))
SplitEntry: Final = struct(
    "SplitEntry", (1, STRUCT, "id", of(Id)), (2, LIST, "hosts", structs(Host))
)
SplitBatch: Final = struct(
    "SplitBatch", (1, LIST, "splits", structs(SplitEntry)), (2, STRUCT, "next", of(Id))
)
ServiceError: Final = struct(
    "ServiceError", (1, STRING, "message", TEXT), (2, BOOL, "retryable", None)
)

# --- calls ---------------------------------------------------------------------------------------

ListSchemas: Final = struct("ListSchemas")
ListTables: Final = struct("ListTables", (1, STRUCT, "schema", of(SchemaName)))
GetTable: Final = struct("GetTable", (1, STRUCT, "name", of(Name)))
GetSplits: Final = struct(
    "GetSplits",
    (1, STRUCT, "name", of(Name)),
    (2, STRUCT, "columns", of(ColumnSet)),
    (3, STRUCT, "constraint", of(Constraint)),
    (4, I32, "most", None),
    (5, STRUCT, "token", of(Token)),
)
GetRows: Final = struct(
    "GetRows",
    (1, STRUCT, "split", of(Id)),
    (2, LIST, "columns", TEXTS),
    (3, I64, "max_bytes", None),
    (4, STRUCT, "token", of(Token)),
)
_FAILURE = (1, STRUCT, "error", of(ServiceError))


def _answer(name: str, kind: int, of_what: object) -> type[Struct]:
    return struct(name, (0, kind, "success", of_what), _FAILURE)


SchemasAnswer: Final = _answer("SchemasAnswer", LIST, TEXTS)
TablesAnswer: Final = _answer("TablesAnswer", LIST, structs(Name))
TableAnswer: Final = _answer("TableAnswer", STRUCT, of(FoundTable))
SplitsAnswer: Final = _answer("SplitsAnswer", STRUCT, of(SplitBatch))
FailedAnswer: Final = struct("FailedAnswer", _FAILURE)
