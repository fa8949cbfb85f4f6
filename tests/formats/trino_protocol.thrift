// The calls of Trino's Thrift connector that the tests make. Names of methods and numbers of fields
// are the protocol's.

struct TableName { 1: string schemaName; 2: string tableName }
struct SchemaName { 1: optional string schemaName }
struct Identifier { 1: binary id }
struct NullableToken { 1: optional Identifier token }
struct NullableColumnSet { 1: optional set<string> columns }

struct Integers { 1: optional list<bool> nulls; 2: optional list<i32> ints }
struct Longs { 1: optional list<bool> nulls; 2: optional list<i64> longs }
struct Doubles { 1: optional list<bool> nulls; 2: optional list<double> doubles }
struct Texts { 1: optional list<bool> nulls; 2: optional list<i32> sizes; 3: optional binary bytes }
struct Booleans { 1: optional list<bool> nulls; 2: optional list<bool> booleans }
struct Dates { 1: optional list<bool> nulls; 2: optional list<i32> dates }
struct Timestamps { 1: optional list<bool> nulls; 2: optional list<i64> timestamps }

struct Block {
  1: optional Integers integerData
  2: optional Longs bigintData
  3: optional Doubles doubleData
  4: optional Texts varcharData
  5: optional Booleans booleanData
  6: optional Dates dateData
  7: optional Timestamps timestampData
  8: optional Texts jsonData
}

struct Marker { 1: optional Block value; 2: i32 bound }
struct Range { 1: Marker low; 2: Marker high }
struct AllOrNone { 1: bool all }
struct Equatable { 1: bool inclusive; 2: list<Block> values }
struct Ranges { 1: list<Range> ranges }
struct ValueSet {
  1: optional AllOrNone allOrNoneValueSet
  2: optional Equatable equatableValueSet
  3: optional Ranges rangeValueSet
}
struct Domain { 1: ValueSet valueSet; 2: bool nullAllowed }
struct TupleDomain { 1: optional map<string, Domain> domains }

struct Host { 1: string host; 2: i32 port }
struct Split { 1: Identifier splitId; 2: list<Host> hosts }
struct SplitBatch { 1: list<Split> splits; 2: optional Identifier nextToken }
struct Column { 1: string name; 2: string type; 3: optional string comment; 4: bool hidden }
struct Table {
  1: TableName schemaTableName
  2: list<Column> columns
  3: optional string comment
  4: optional list<set<string>> indexableKeys
}
struct NullableTable { 1: optional Table tableMetadata }
struct PageResult { 1: list<Block> columnBlocks; 2: i32 rowCount; 3: optional Identifier nextToken }
exception ServiceError { 1: string message; 2: bool retryable }

service Tables {
  list<string> trinoListSchemaNames() throws (1: ServiceError ex1)
  list<TableName> trinoListTables(1: SchemaName schemaNameOrNull) throws (1: ServiceError ex1)
  NullableTable trinoGetTableMetadata(1: TableName schemaTableName) throws (1: ServiceError ex1)
  SplitBatch trinoGetSplits(
    1: TableName schemaTableName, 2: NullableColumnSet desiredColumns,
    3: TupleDomain outputConstraint, 4: i32 maxSplitCount, 5: NullableToken nextToken
  ) throws (1: ServiceError ex1)
  PageResult trinoGetRows(
    1: Identifier splitId, 2: list<string> columns, 3: i64 maxBytes, 4: NullableToken nextToken
  ) throws (1: ServiceError ex1)
  SplitBatch trinoGetIndexSplits(
    1: TableName schemaTableName, 2: list<string> indexColumnNames,
    3: list<string> outputColumnNames, 4: PageResult keys, 5: TupleDomain outputConstraint,
    6: i32 maxSplitCount, 7: NullableToken nextToken
  ) throws (1: ServiceError ex1)
}
