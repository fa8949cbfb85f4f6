"""Table schemas: types, field ids, Avro, promotions, and rows that fit."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import SchemaError
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.schema.arrow_types import leaves, normalise_type, walk
from hudi_core.schema.casting import PROMOTIONS, Promotion, can_promote
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


# --- ids
def test_ids_are_given_depth_first_after_the_meta_columns() -> None:
    schema = TableSchema.create(NESTED)
    assert schema.field_ids() == IDS
    assert schema.last_column_id == 21
    assert schema.arrow.field("tags").type.value_field.metadata == {b"PARQUET:field_id": b"11"}


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


# --- creation
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


# --- Avro
def optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def of_long(**more: Any) -> dict[str, Any]:
    return {"type": "long", "logicalType": "timestamp-micros", **more}


def fixed(name: str, size: int, precision: int, scale: int) -> dict[str, Any]:
    """Avro's type of a decimal in a column."""
    named = {"type": "fixed", "name": "fixed", "namespace": f"hoodie.big__t.big__t_record.{name}"}
    numbers = {"precision": precision, "scale": scale}
    return {**named, "size": size, "logicalType": "decimal", **numbers}


def struct(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    named = {"type": "record", "name": name, "namespace": "hoodie.big__t.big__t_record"}
    return {**named, "fields": [*fields]}


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
    of_list = struct("l", optional("x", "int"))
    of_map = struct("m", optional("y", fixed("m.y", 7, 15, 2)))
    assert without_ids(json.loads(schema.to_avro("big-t"))) == {
        "type": "record",
        "name": "big__t_record",
        "namespace": "hoodie.big__t",
        "fields": [
            {"name": "id", "type": "long"},
            optional("price", fixed("price", 5, 10, 5)),
            optional("at", of_long()),
            optional("local", of_long(**{"adjust-to-utc": False})),
            optional("l", {"type": "array", "items": ["null", of_list]}),
            optional("m", {"type": "map", "values": ["null", of_map]}),
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
    inner = {**struct("Point", {"name": "x", "type": "int"}), "namespace": "geo"}
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


# --- rows brought to the order and the types of a table's schema
SMALL = TableSchema.create(
    pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("x", pa.float64()),
            ("at", pa.timestamp("us", "UTC")),
            ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
            ("price", pa.decimal128(10, 2)),
        ]
    )
)


def test_rows_are_brought_to_the_order_and_types_of_the_table() -> None:
    batch = pa.record_batch(
        {
            "at": pa.array([1_000_000_000], pa.timestamp("ns", "Asia/Tokyo")),
            "id": pa.array([7], pa.uint64()),
            "_hoodie_commit_time": ["20260101000000000"],
            "price": pa.array([3], pa.int64()),
            "x": pa.array([2], pa.int8()),
        }
    )
    cast = SMALL.cast_batch(batch)
    assert cast.schema.equals(SMALL.arrow, check_metadata=True)
    assert cast.to_pylist() == [
        {
            "id": 7,
            "x": 2.0,
            "at": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
            "s": None,
            "price": Decimal("3.00"),
        }
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1], "y": [2], "z": [3]}, "The table lacks the columns y, z"),
        ({"x": [1.0]}, "Column id is required, and the rows do not have it"),
        ({"id": [1, None]}, "Column id is required, and 1 of 2 rows have no value"),
        ({"id": ["1"]}, "Column id has the type string, and the table has int32"),
        ({"id": [1.0]}, "Column id has the type double, and the table has int32"),
        ({"id": [2**31]}, "Column id holds values that int32 cannot represent"),
        ({"id": [1], "x": [2**53 + 1]}, "Column x holds values that double cannot represent"),
        ({"id": [1], "price": [10**9]}, "Column price holds values that decimal128"),
        ({"id": [1], "price": [Decimal("1.005")]}, "Column price holds values that decimal128"),
        ({"id": [1], "at": [dt.datetime(2026, 1, 1)]}, "Column at has the type timestamp"),  # noqa: DTZ001
        ({"id": [1], "s": [{"a": 1, "c": 2}]}, "The struct s of the table lacks the columns c"),
        ({"id": [1], "s": [5]}, "Column s has the type int64, and the table has struct"),
        ({"id": [1], "x": [{"a": 5}]}, "Column x has the type struct"),
    ],
)
def test_rows_that_do_not_fit_are_refused(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        SMALL.cast_batch(pa.record_batch(columns))


def test_nanoseconds_that_would_be_lost_are_refused() -> None:
    batch = pa.record_batch({"id": [1], "at": pa.array([1_001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(SchemaError, match="Column at holds values"):
        SMALL.cast_batch(batch)
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(SchemaError, match="several columns named id"):
        SMALL.cast_batch(twice)


def test_floats_become_narrower_only_when_nothing_is_lost() -> None:
    schema = TableSchema.create(pa.schema([("f", pa.float32())]))
    fits = pa.record_batch({"f": [0.5, float("nan"), float("inf"), None]})
    assert str(schema.cast_batch(fits).column(0).to_pylist()) == "[0.5, nan, inf, None]"
    with pytest.raises(SchemaError, match="Column f holds values"):
        schema.cast_batch(pa.record_batch({"f": [0.1]}))
    with pytest.raises(SchemaError, match="Column f holds values"):
        schema.cast_batch(pa.record_batch({"f": [1e300]}))


def test_columns_of_nulls_become_any_type() -> None:
    batch = pa.record_batch({"id": [1, 2], "s": pa.nulls(2), "x": pa.nulls(2)})
    assert SMALL.cast_batch(batch).column("s").null_count == 2


def encoded_forms(values: list[Any], kind: pa.DataType) -> list[pa.Array]:
    return [
        pa.array(values, kind),
        pa.concat_arrays([pa.array(values, kind), pa.array(values, kind)]).slice(len(values)),
    ]


@pytest.mark.parametrize(
    ("given", "stored", "values"),
    [
        (pa.list_view(pa.int8()), pa.list_(pa.int64()), [[1], None, [], [2, 3]]),
        (pa.large_list_view(pa.string()), pa.list_(pa.string()), [["a", None], ["b"]]),
        (pa.large_list(pa.int32()), pa.list_(pa.int64()), [[1], None, [2, 3]]),
        (pa.list_(pa.int32(), 2), pa.list_(pa.int64()), [[1, 2], None, [3, 4]]),
        (
            pa.map_(pa.large_string(), pa.int8()),
            pa.map_(pa.string(), pa.int32()),
            [[("a", 1)], None, [], [("b", None), ("c", 3)]],
        ),
        (
            pa.struct([("b", pa.large_string()), ("a", pa.int8())]),
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
            [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}],
        ),
        (
            pa.list_(pa.struct([("a", pa.list_view(pa.int8()))])),
            pa.list_(pa.struct([("a", pa.list_(pa.int32()))])),
            [[{"a": [1]}, None], None, [{"a": None}, {"a": [2, 3]}]],
        ),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", None, "b", "a"]),
    ],
    ids=str,
)
def test_nested_values_survive_whatever_their_layout(
    given: pa.DataType, stored: pa.DataType, values: list[Any]
) -> None:
    schema = TableSchema.create(pa.schema([("c", stored)]))
    for array in encoded_forms(values, given):
        cast = schema.cast_batch(pa.record_batch({"c": array})).column(0)
        cast.validate(full=True)
        assert cast.to_pylist() == pa.array(values, stored).to_pylist()


def test_list_views_in_any_order_keep_their_values() -> None:
    views = pa.ListViewArray.from_arrays(
        pa.array([2, 0, 1], pa.int32()), pa.array([1, 2, 2], pa.int32()), pa.array([10, 11, 12])
    )
    schema = TableSchema.create(pa.schema([("c", views.type)]))
    cast = schema.cast_batch(pa.record_batch({"c": views})).column(0)
    assert cast.to_pylist() == [[12], [10, 11], [11, 12]]


def test_run_end_encoded_columns_are_decoded() -> None:
    array = pc.run_end_encode(pa.array(["a", "a", None]))
    schema = TableSchema.create(pa.schema([("c", array.type)]))
    assert schema.cast_batch(pa.record_batch({"c": array})).column(0).to_pylist() == [
        "a",
        "a",
        None,
    ]


def test_required_fields_below_a_null_struct_are_not_missing() -> None:
    inner = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    schema = TableSchema.create(pa.schema([("s", inner)]))
    loose = pa.struct([("a", pa.int64())])
    cast = schema.cast_batch(pa.record_batch({"s": pa.array([{"a": 1}, None], loose)}))
    assert cast.column(0).to_pylist() == [{"a": 1}, None]
    with pytest.raises(SchemaError, match=r"Column s\.a is required, and 1 of 1 rows"):
        schema.cast_batch(pa.record_batch({"s": pa.array([None, {"a": None}], loose)}))


# --- the types tables store, and the paths of nested fields
ELEMENT = pa.list_(pa.field("element", pa.string()))


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.bool_(), pa.bool_()),
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.int64(), pa.int64()),
        (pa.uint8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal64(12, 2), pa.decimal128(12, 2)),
        (pa.decimal256(38, 5), pa.decimal128(38, 5)),
        (pa.date64(), pa.date32()),
        (pa.time32("s"), pa.time64("us")),
        (pa.time64("ns"), pa.time64("us")),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.int16()), pa.int32()),
        (pa.large_list(pa.large_string()), ELEMENT),
        (pa.list_(pa.string(), 3), ELEMENT),
        (pa.list_view(pa.string_view()), ELEMENT),
        (pa.large_list_view(pa.string()), ELEMENT),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int32())])),
    ],
    ids=str,
)
def test_types_have_one_stored_form(given: pa.DataType, stored: pa.DataType) -> None:
    assert normalise_type(given, "c") == stored
    assert normalise_type(stored, "c") == stored


@pytest.mark.parametrize(
    "kind",
    [
        pa.null(),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.decimal256(39, 0),
        pa.decimal128(5, -2),
        pa.decimal128(2, 5),
        pa.map_(pa.int32(), pa.string()),
        pa.list_(pa.null()),
        pa.dense_union([pa.field("a", pa.int32())]),
        pa.uuid(),
        pa.struct([]),
    ],
    ids=str,
)
def test_types_without_a_counterpart_are_refused_by_column(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"Column a\.b.* has the type"):
        normalise_type(kind, "a.b")
    with pytest.raises(SchemaError, match="The struct s has several columns named a"):
        normalise_type(pa.struct([("a", pa.int32()), ("a", pa.int64())]), "s")


def test_nullability_survives() -> None:
    kind = pa.list_(pa.field("item", pa.struct([pa.field("x", pa.int8(), nullable=False)]), False))
    stored = normalise_type(kind, "c")
    assert not stored.value_field.nullable
    assert not stored.value_type.field("x").nullable


def test_paths_are_those_of_parquet_columns() -> None:
    schema = pa.schema(
        [
            ("a", pa.int32()),
            ("s", pa.struct([("x", pa.int32()), ("l", ELEMENT)])),
            ("m", pa.map_(pa.string(), pa.struct([("y", pa.int32())]))),
        ]
    )
    assert [path for path, _ in leaves(schema)] == [
        "a",
        "s.x",
        "s.l.list.element",
        "m.key_value.key",
        "m.key_value.value.y",
    ]
    assert [path for path, _ in walk(schema)][:3] == ["a", "s", "s.x"]


# --- the table of promotions says what the documentation says
PAGE = Path(__file__).resolve().parents[2] / "docs" / "types.md"


def test_the_documentation_lists_every_promotion() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Types that can grow")[1]
    listed = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert listed == [
        f"| {each.source} | {each.target} | "
        + " | ".join(
            "yes" if flag else "no"
            for flag in (each.exact, each.hudi, *_held(each), each.on_write, each.by_option)
        )
        + " |"
        for each in PROMOTIONS
    ]


def _held(each: Promotion) -> list[bool]:
    """Whether tables of the formats beside the native one can make a change."""
    hosts = (FormatHost.load(FormatRegistry(), name) for name in ("iceberg", "delta"))
    return [host.capabilities.can_promote(each.name) for host in hosts]


KINDS = (
    *(pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.bool_()),
    *(pa.decimal128(p, s) for p, s in ((5, 2), (9, 2), (9, 4), (10, 0), (20, 0), (38, 10))),
)


def test_no_pair_of_types_falls_under_two_promotions() -> None:
    for stored in KINDS:
        for wanted in KINDS:
            assert sum(each.fits(stored, wanted) for each in PROMOTIONS) <= 1, (stored, wanted)


def test_a_promotion_has_no_way_back() -> None:
    for one, other in combinations(KINDS, 2):
        assert not (can_promote(one, other) and can_promote(other, one))


@pytest.mark.parametrize("each", PROMOTIONS, ids=lambda each: str(each.name))
def test_what_rows_or_other_formats_make_is_exact(each: Promotion) -> None:
    assert each.exact or not (each.on_write or any(_held(each)))


def test_names_are_unique() -> None:
    assert len({each.name for each in PROMOTIONS}) == len(PROMOTIONS)


@pytest.mark.parametrize(
    ("stored", "wanted", "on_write", "expected"),
    [
        (pa.int32(), pa.int64(), True, True),
        (pa.int32(), pa.float64(), True, False),
        (pa.int32(), pa.float64(), False, True),
        (pa.int64(), pa.int32(), False, False),
        (pa.int32(), pa.decimal128(9, 0), False, False),
        (pa.int32(), pa.decimal128(12, 3), False, False),
        (pa.int32(), pa.decimal128(13, 3), False, True),
        (pa.decimal128(9, 2), pa.decimal128(9, 4), False, False),
        (pa.decimal128(9, 2), pa.decimal128(11, 4), True, True),
        (pa.date32(), pa.timestamp("us"), False, False),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False, False),
        (pa.string(), pa.int32(), False, False),
    ],
    ids=str,
)
def test_what_is_made(
    stored: pa.DataType, wanted: pa.DataType, on_write: bool, expected: bool
) -> None:
    assert can_promote(stored, wanted, on_write=on_write) is expected
