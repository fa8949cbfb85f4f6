"""Any schema a table can have survives Avro, and any rows survive the cast."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.schema.table_schema import TableSchema

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
PRIMITIVES = st.sampled_from(
    [
        pa.bool_(),
        pa.int8(),
        pa.uint32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.large_binary(),
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us"),
        pa.timestamp("ms", "Asia/Tokyo"),
        pa.decimal128(38, 0),
        pa.decimal128(7, 7),
    ]
)


def fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    named = st.builds(pa.field, NAMES, types, st.booleans())
    return st.lists(named, min_size=1, max_size=4, unique_by=lambda field: field.name.lower())


def nested(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return (
        fields(types).map(pa.struct)
        | types.map(pa.list_)
        | types.map(pa.large_list)
        | types.map(lambda kind: pa.map_(pa.string(), kind))
    )


SCHEMAS = fields(st.recursive(PRIMITIVES, nested, max_leaves=6)).map(pa.schema)


def without_ids(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: without_ids(value) for key, value in node.items() if not key.endswith("-id")}
    return [without_ids(each) for each in node] if isinstance(node, list) else node


@given(SCHEMAS)
def test_schemas_survive_avro(given_schema: pa.Schema) -> None:
    schema = TableSchema.create(given_schema)
    ids = schema.field_ids()
    assert sorted(ids.values()) == list(range(1, schema.last_column_id + 1))
    assert TableSchema.create(schema.arrow) == schema
    avro = schema.to_avro("t", with_meta=True)
    assert TableSchema.from_avro(avro) == schema
    foreign = json.dumps(without_ids(json.loads(avro)))
    assert TableSchema.from_avro(foreign, ids, schema.last_column_id) == schema


@given(SCHEMAS)
def test_rows_without_values_fit_any_schema(given_schema: pa.Schema) -> None:
    schema = TableSchema.create(given_schema)
    empty = pa.RecordBatch.from_pylist([], given_schema)
    assert schema.cast_batch(empty).schema.equals(schema.arrow, check_metadata=True)
