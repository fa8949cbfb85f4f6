"""Structs of Trino's Thrift protocol, by the numbers of their fields."""

from __future__ import annotations

from typing import Final

from hudi_core.metastore.thrift_calls import Interface

TRINO: Final = Interface()
_struct = TRINO.struct

# --- values --------------------------------------------------------------------------------------

IntegerValues: Final = _struct("IntegerValues", "1: list<bool> nulls, 2: list<i32> values")
BigintValues: Final = _struct("BigintValues", "1: list<bool> nulls, 2: list<i64> values")
DoubleValues: Final = _struct("DoubleValues", "1: list<bool> nulls, 2: list<double> values")
VarcharValues: Final = _struct(
    "VarcharValues", "1: list<bool> nulls, 2: list<i32> sizes, 3: binary data"
)
BooleanValues: Final = _struct("BooleanValues", "1: list<bool> nulls, 2: list<bool> values")
DateValues: Final = _struct("DateValues", "1: list<bool> nulls, 2: list<i32> values")
TimestampValues: Final = _struct("TimestampValues", "1: list<bool> nulls, 2: list<i64> values")
Block: Final = _struct(
    "Block",
    """
    1: IntegerValues integer, 2: BigintValues bigint, 3: DoubleValues double,
    4: VarcharValues varchar, 5: BooleanValues boolean, 6: DateValues date,
    7: TimestampValues timestamp
    """,
)
"""Values of one column, of one of the types; others are not compared in predicates."""

# --- predicates ----------------------------------------------------------------------------------

Marker: Final = _struct("Marker", "1: Block value, 2: i32 bound")
Bounds: Final = _struct("Bounds", "1: Marker low, 2: Marker high")
AllOrNone: Final = _struct("AllOrNone", "1: bool all")
Equatable: Final = _struct("Equatable", "1: bool inclusive, 2: list<Block> values")
Ranges: Final = _struct("Ranges", "1: list<Bounds> ranges")
ValueSet: Final = _struct(
    "ValueSet", "1: AllOrNone all_or_none, 2: Equatable equatable, 3: Ranges ranges"
)
ColumnDomain: Final = _struct("ColumnDomain", "1: ValueSet value_set, 2: bool null_allowed")
Constraint: Final = _struct("Constraint", "1: map<string,ColumnDomain> domains")

# --- tables and splits ---------------------------------------------------------------------------

Name: Final = _struct("Name", "1: string schema, 2: string table")
SchemaName: Final = _struct("SchemaName", "1: string name")
Id: Final = _struct("Id", "1: binary id")
Token: Final = _struct("Token", "1: Id token")
ColumnSet: Final = _struct("ColumnSet", "1: set<string> columns")
Column: Final = _struct(
    "Column", "1: string name, 2: string type, 3: string comment, 4: bool hidden"
)
Table: Final = _struct("Table", "1: Name name, 2: list<Column> columns, 3: string comment")
FoundTable: Final = _struct("FoundTable", "1: Table table")
Host: Final = _struct("Host", "1: string host, 2: i32 port")
SplitEntry: Final = _struct("SplitEntry", "1: Id id, 2: list<Host> hosts")
SplitBatch: Final = _struct("SplitBatch", "1: list<SplitEntry> splits, 2: Id next")
ServiceError: Final = _struct("ServiceError", "1: string message, 2: bool retryable")

# --- calls ---------------------------------------------------------------------------------------

ListSchemas: Final = _struct("ListSchemas")
ListTables: Final = _struct("ListTables", "1: SchemaName schema")
GetTable: Final = _struct("GetTable", "1: Name name")
GetSplits: Final = _struct(
    "GetSplits",
    "1: Name name, 2: ColumnSet columns, 3: Constraint constraint, 4: i32 most, 5: Token token",
)
GetRows: Final = _struct(
    "GetRows", "1: Id split, 2: list<string> columns, 3: i64 max_bytes, 4: Token token"
)

SchemasAnswer: Final = _struct("SchemasAnswer", "0: list<string> success, 1: ServiceError error")
TablesAnswer: Final = _struct("TablesAnswer", "0: list<Name> success, 1: ServiceError error")
TableAnswer: Final = _struct("TableAnswer", "0: FoundTable success, 1: ServiceError error")
SplitsAnswer: Final = _struct("SplitsAnswer", "0: SplitBatch success, 1: ServiceError error")
FailedAnswer: Final = _struct("FailedAnswer", "1: ServiceError error")
