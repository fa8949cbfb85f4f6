"""Table schemas: field ids and Avro."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import SchemaError
from hudi_core.schema.table_schema import META_COLUMNS, TableSchema

NESTED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("address", pa.struct([("city", pa.string()), ("zip", pa.int16())])),
        ("tags", pa.large_list(pa.string())),
        ("props", pa.map_(pa.string(), pa.struct([("n", pa.float64())]))),
        ("price", pa.decimal128(10, 5)),
        ("day", pa.date32()),
        ("at", pa.timestamp("ms", "Europe/Berlin")),
        ("local", pa.timestamp("s")),
        ("time", pa.time32("ms")),
        ("raw", pa.binary(4)),
    ]
)
IDS = {
    **dict(zip(META_COLUMNS, range(1, 6), strict=True)),
    "id": 6,
    "address": 7,
    "address.city": 8,
    "address.zip": 9,
    "tags": 10,
    "tags.list.element": 11,
    "props": 12,
    "props.key_value.key": 13,
    "props.key_value.value": 14,
    "props.key_value.value.n": 15,
    "price": 16,
    "day": 17,
    "at": 18,
    "local": 19,
    "time": 20,
    "raw": 21,
}


RECORD_OF_A = '{"type":"record","name":"r","fields":[{"name":"a","type":'


def without_ids(node: Any) -> Any:
    """Return an Avro schema as a writer leaves it that knows nothing of our attributes."""
    if isinstance(node, dict):
        return {key: without_ids(value) for key, value in node.items() if not key.endswith("-id")}
    return [without_ids(each) for each in node] if isinstance(node, list) else node


# --- ids -----------------------------------------------------------------------


def test_ids_are_given_depth_first_after_the_meta_columns() -> None:
    schema = TableSchema.create(NESTED)
    assert schema.field_ids() == IDS
    assert schema.last_column_id == 21
    assert schema.arrow.field("tags").type.value_field.metadata == {b"PARQUET:field_id": b"11"}


def test_ids_come_back_from_the_attributes() -> None:
    schema = TableSchema.create(NESTED)
    for with_meta in (False, True):
        assert TableSchema.from_avro(schema.to_avro("t", with_meta)) == schema


def test_ids_come_back_by_name_when_the_attributes_are_lost() -> None:
    schema = TableSchema.create(NESTED)
    foreign = json.dumps(without_ids(json.loads(schema.to_avro("t"))))
    assert "field-id" not in foreign
    again = TableSchema.from_avro(foreign, schema.field_ids(), schema.last_column_id)
    assert again == schema


def test_a_column_that_another_writer_added_gets_an_id_never_used_before() -> None:
    schema = TableSchema.create(pa.schema([("a", pa.int32()), ("gone", pa.int32())]))
    avro = without_ids(json.loads(schema.to_avro("t")))
    avro["fields"] = [avro["fields"][0], {"name": "new", "type": ["null", "string"]}]
    known = {path: number for path, number in schema.field_ids().items() if path != "gone"}
    again = TableSchema.from_avro(json.dumps(avro), known, schema.last_column_id)
    assert again.field_ids()["a"] == 6
    assert again.field_ids()["new"] == 8  # 7 was the dropped column's
    assert again.last_column_id == 8


def test_a_foreign_table_gets_the_ids_a_new_one_would_get() -> None:
    foreign = json.dumps(without_ids(json.loads(TableSchema.create(NESTED).to_avro("t"))))
    assert TableSchema.from_avro(foreign).field_ids() == IDS


def test_meta_columns_give_way_to_ids_that_are_taken() -> None:
    fields = [{"name": "a", "type": "int", "field-id": 1}]
    schema = TableSchema.from_avro(json.dumps({"type": "record", "name": "r", "fields": fields}))
    assert schema.field_ids()["a"] == 1
    assert schema.meta_ids == (2, 3, 4, 5, 6)
    assert schema.last_column_id == 6


def test_two_fields_with_one_id_are_refused() -> None:
    fields = [{"name": name, "type": "int", "field-id": 7} for name in "ab"]
    with pytest.raises(SchemaError, match="Column b has the field id 7 of another column"):
        TableSchema.from_avro(json.dumps({"type": "record", "name": "r", "fields": fields}))


def test_equality_sees_ids() -> None:
    schema = TableSchema.create(NESTED)
    other = TableSchema.from_avro(schema.to_avro("t").replace('"field-id":6', '"field-id":99'))
    assert other.arrow.equals(schema.arrow)
    assert other != schema
    assert schema == pickle.loads(pickle.dumps(schema))
    assert hash(schema) == hash(pickle.loads(pickle.dumps(schema)))


# --- creation ------------------------------------------------------------------


def test_meta_columns_of_another_table_are_left_out() -> None:
    given = pa.schema([(name, pa.string()) for name in META_COLUMNS] + [("a", pa.int32())])
    assert TableSchema.create(given).names == ["a"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([]), "has no columns"),
        (pa.schema([("a", pa.int32()), ("a", pa.string())]), "several columns named a"),
        (pa.schema([("a b", pa.int32())]), "Column 'a b' has a name"),
        (pa.schema([("größe", pa.int32())]), "Column 'größe' has a name"),
        (pa.schema([("1st", pa.int32())]), "Column '1st' has a name"),
        (pa.schema([("s", pa.struct([("a.b", pa.int32())]))]), r"Column 's\.a\.b' has a name"),
        (pa.schema([("_hoodie_operation", pa.string())]), "Hudi keeps for itself"),
    ],
)
def test_schemas_that_cannot_be_stored_are_refused(schema: pa.Schema, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        TableSchema.create(schema)


def test_fields_are_found_by_path() -> None:
    schema = TableSchema.create(NESTED)
    found = schema.field("address.city")
    assert found is not None
    assert found.type == pa.string()
    assert schema.field("address.street") is None


# --- Avro ----------------------------------------------------------------------


def test_avro_is_what_spark_makes_for_hudi() -> None:
    schema = TableSchema.create(
        pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("price", pa.decimal128(10, 5)),
                ("at", pa.timestamp("us", "UTC")),
                ("local", pa.timestamp("us")),
                ("l", pa.list_(pa.struct([("x", pa.int32())]))),
                ("m", pa.map_(pa.string(), pa.struct([("y", pa.decimal128(15, 2))]))),
            ]
        )
    )
    assert without_ids(json.loads(schema.to_avro("big-t"))) == {
        "type": "record",
        "name": "big__t_record",
        "namespace": "hoodie.big__t",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "price",
                "type": [
                    "null",
                    {
                        "type": "fixed",
                        "name": "fixed",
                        "namespace": "hoodie.big__t.big__t_record.price",
                        "size": 5,
                        "logicalType": "decimal",
                        "precision": 10,
                        "scale": 5,
                    },
                ],
                "default": None,
            },
            {
                "name": "at",
                "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
                "default": None,
            },
            {
                "name": "local",
                "type": [
                    "null",
                    {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
                ],
                "default": None,
            },
            {
                "name": "l",
                "type": [
                    "null",
                    {
                        "type": "array",
                        "items": [
                            "null",
                            {
                                "type": "record",
                                "name": "l",
                                "namespace": "hoodie.big__t.big__t_record",
                                "fields": [{"name": "x", "type": ["null", "int"], "default": None}],
                            },
                        ],
                    },
                ],
                "default": None,
            },
            {
                "name": "m",
                "type": [
                    "null",
                    {
                        "type": "map",
                        "values": [
                            "null",
                            {
                                "type": "record",
                                "name": "m",
                                "namespace": "hoodie.big__t.big__t_record",
                                "fields": [
                                    {
                                        "name": "y",
                                        "type": [
                                            "null",
                                            {
                                                "type": "fixed",
                                                "name": "fixed",
                                                "namespace": "hoodie.big__t.big__t_record.m.y",
                                                "size": 7,
                                                "logicalType": "decimal",
                                                "precision": 15,
                                                "scale": 2,
                                            },
                                        ],
                                        "default": None,
                                    }
                                ],
                            },
                        ],
                    },
                ],
                "default": None,
            },
        ],
    }


def test_avro_of_data_files_starts_with_the_meta_columns() -> None:
    fields = json.loads(TableSchema.create(NESTED).to_avro("t", with_meta=True))["fields"]
    assert [field["name"] for field in fields[:6]] == [*META_COLUMNS, "id"]
    assert fields[0] == {
        "name": "_hoodie_commit_time",
        "type": ["null", "string"],
        "doc": "",
        "default": None,
        "field-id": 1,
    }


@pytest.mark.parametrize(
    ("avro", "kind", "nullable"),
    [
        (["int", "null"], pa.int32(), True),
        ({"type": "string", "avro.java.string": "String"}, pa.string(), False),
        ({"type": {"type": "long", "logicalType": "time-micros"}}, pa.time64("us"), False),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC"), False),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms"), False),
        ({"type": "string", "logicalType": "uuid"}, pa.string(), False),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string(), False),
        ({"type": "fixed", "name": "f", "size": 4}, pa.binary(4), False),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            pa.decimal128(9, 2),
            False,
        ),
        (
            {"type": "array", "items": "int"},
            pa.list_(pa.field("element", pa.int32(), False)),
            False,
        ),
    ],
)
def test_avro_of_other_writers_is_understood(avro: Any, kind: pa.DataType, nullable: bool) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "c", "type": avro}]}
    field = TableSchema.from_avro(json.dumps(record)).arrow.field("c")
    assert (field.type, field.nullable) == (kind, nullable)
    # what was read is written so again
    again = TableSchema.from_avro(TableSchema.from_avro(json.dumps(record)).to_avro("t"))
    assert again.arrow.field("c").type == kind


def test_types_may_be_used_again_by_name() -> None:
    inner = {
        "type": "record",
        "name": "Point",
        "namespace": "geo",
        "fields": [{"name": "x", "type": "int"}],
    }
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": ["null", "geo.Point"]}]
    schema = TableSchema.from_avro(json.dumps({"type": "record", "name": "r", "fields": fields}))
    assert schema.arrow.field("a").type == schema.arrow.field("b").type
    assert len(set(schema.field_ids().values())) == len(schema.field_ids())


def test_comments_of_columns_survive() -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "c", "type": "int", "doc": "a é"}]}
    avro = TableSchema.from_avro(json.dumps(record, ensure_ascii=False)).to_avro("t")
    assert json.loads(avro)["fields"][0]["doc"] == "a é"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid"),
        ("[" * 100_000, "not valid"),
        ('"int"', "not a record"),
        ('{"type":"record","name":"r","fields":[]}', "a record without fields"),
        ('{"type":"record","name":"r","fields":[{"name":"a","type":["int","long"]}]}', "a union"),
        ('{"type":"record","name":"r","fields":[{"name":"a","type":"r"}]}', "recursive type 'r'"),
        ('{"type":"record","name":"r","fields":[{"name":"a","type":{}}]}', "no Avro type"),
        ('{"type":"record","name":"r","fields":[{"name":"a"}]}', "no Avro type"),
        (
            f'{RECORD_OF_A}{{"type":"bytes","logicalType":"decimal","precision":39}}}}]}}',
            "precision 39",
        ),
    ],
)
def test_damaged_avro_is_named(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        TableSchema.from_avro(text)
