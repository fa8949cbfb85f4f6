"""Rows merged as Apache Hudi merges them: by payload classes, delete markers, partial updates.

The rows that Apache Hudi left are data; :mod:`tests.jvm.capture_merging` tells how they were made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.config.kinds import PayloadKind
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import (
    InvalidOptionError,
    OptionConflictError,
    SchemaError,
    UnsupportedTableError,
)
from tests.merging_histories import (
    MARKER,
    SCHEMA,
    UNAVAILABLE,
    Kind,
    batches,
    by_hudi,
    captured,
    held,
    kinds,
)

KINDS = {str(kind): kind for kind in kinds()}
PAYLOAD = "hoodie.datasource.write.payload.class"
PARTIAL = "hoodie.table.partial.update.mode"
NINE = {"hoodie.write.table.version": "9"}


def create(path: Path, kind: Kind, schema: pa.Schema = SCHEMA, **more: Any) -> hudi.Table:
    options = {"hoodie.metadata.enable": "false", **kind.options}
    return hudi.Table.create(
        str(path),
        schema,
        name="t",
        record_key="id",
        options=options | more.pop("options", {}),
        **more,
    )


def without_times(rows: list[list[Any]]) -> list[list[Any]]:
    return [row[1:] for row in rows]


# --- what Apache Hudi left ------------------------------------------------------------------------


def test_every_kind_of_table_was_captured() -> None:
    assert [one["kind"] for one in captured()["tables"]] == list(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_rows_are_those_that_hudi_leaves(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    given = batches(kind.history)
    table = create(tmp_path / "t", kind, given[0].schema)
    for batch in given:
        table.upsert(batch)
    found, expected = held(table), by_hudi(name)
    if kind.version == 8 and kind.payload is PayloadKind.PARTIAL_UPDATE:
        # there Hudi writes rows anew that nothing changes in
        found, expected = without_times(found), without_times(expected)
    assert found == expected


@pytest.mark.spark
def test_spark_merges_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    for name in (
        "9-PostgresDebeziumAvroPayload-unordered-all",
        "9-PartialUpdateAvroPayload-ts,_event_pos-all",
        "8-MySqlDebeziumAvroPayload-_event_seq-two",
    ):
        engine = SparkEngine(spark, tasks_on_driver=name.startswith("8"))
        table = create(tmp_path / name, KINDS[name])
        for batch in batches(KINDS[name].history):
            table.upsert(spark.createDataFrame(batch).coalesce(1), engine=engine)
        assert held(table) == by_hudi(name)


# --- what Apache Hudi 1.2 fails on, by the word of its payload classes ----------------------------


def cdc(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of key, log sequence number, operation, a text and a number."""
    names = ("id", "_event_lsn", "_change_operation_type", "v", "b")
    schema = pa.schema([SCHEMA.field(name) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


def values(table: hudi.Table, *names: str) -> list[tuple[Any, ...]]:
    rows = table.to_arrow(list(names)).to_pylist()
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


@pytest.mark.parametrize("version", [8, 9])
def test_postgres_keeps_what_was_not_sent(version: int, tmp_path: Path) -> None:
    gone, absent = UNAVAILABLE.encode(), UNAVAILABLE
    ordering = "_event_lsn" if version == 8 else None
    kind = Kind(version, PayloadKind.POSTGRES_DEBEZIUM, ordering)
    table = create(tmp_path / "t", kind, cdc().schema)
    table.upsert(
        cdc(*((key, 5, "c", f"v{key}", b"b") for key in range(1, 7)), (7, 5, "d", "", b""))
    )
    result = table.upsert(
        cdc(
            (1, 6, "u", absent, gone),
            (2, 5, "u", "same time", None),
            (3, 4, "u", "late", b"late"),
            (4, 4, "d", "late", None),
            (5, 6, "d", absent, None),
            (6, 6, "D", absent, None),
            (8, 1, "c", absent, gone),
        )
    )
    assert (result.inserted, result.updated) == (1, 2 if version == 8 else 3)
    upper = [] if version == 8 else [(6, 6, "v6", None)]
    assert values(table, "id", "_event_lsn", "v", "b") == [
        (1, 6, "v1", b"b"),
        (2, 5, "same time", None),
        (3, 5, "v3", b"b"),
        (4, 5, "v4", b"b"),
        *upper,
        (8, 1, absent, gone),
    ]


def test_partial_updates_of_version_8_delete_whatever_the_time(tmp_path: Path) -> None:
    table = create(tmp_path / "t", Kind(8, PayloadKind.PARTIAL_UPDATE, "ts"))
    (first, *_) = batches("living")
    table.upsert(first)
    late = first.set_column(
        SCHEMA.get_field_index("ts"), "ts", pa.array([0] * len(first), pa.int64())
    ).set_column(
        SCHEMA.get_field_index("_hoodie_is_deleted"),
        "_hoodie_is_deleted",
        pa.array([key % 2 == 0 for key in first["id"].to_pylist()]),
    )
    table.upsert(late)
    assert {key % 2 for (key,) in values(table, "id")} == {1}


def test_mysql_of_version_8_needs_its_sequence(tmp_path: Path) -> None:
    kind = Kind(8, PayloadKind.MYSQL_DEBEZIUM, "_event_seq")
    table = create(tmp_path / "t", kind)
    (first, *_) = batches("two")
    broken = first.set_column(
        SCHEMA.get_field_index("_event_seq"), "_event_seq", pa.array(["binlog.7"] * len(first))
    )
    before = table.timeline.instants
    with pytest.raises(SchemaError, match=r"in _event_seq, but 'binlog\.7'"):
        table.upsert(broken)
    assert [one for one in table.timeline.instants if one.is_completed] == list(before)
    assert not list(tmp_path.glob("t/*.parquet"))


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (Kind(9, PayloadKind.POSTGRES_DEBEZIUM, None), "_event_lsn"),
        (Kind(8, PayloadKind.POSTGRES_DEBEZIUM, "id"), "_event_lsn"),
        (Kind(9, PayloadKind.MYSQL_DEBEZIUM, None), "_event_bin_file"),
        (Kind(8, PayloadKind.MYSQL_DEBEZIUM, "id"), "_event_seq"),
        (Kind(9, None, "s.nope"), "s.nope"),
        (Kind(9, None, "s"), "s"),
    ],
    ids=str,
)
def test_a_table_without_the_column_that_orders_it(kind: Kind, column: str, tmp_path: Path) -> None:
    schema = pa.schema([field for field in SCHEMA if not field.name.startswith("_event")])
    with pytest.raises(SchemaError, match=column):
        create(tmp_path / "t", kind, schema)
    assert not (tmp_path / "t").exists()


def test_a_table_without_its_ordering_column_takes_inserts(tmp_path: Path) -> None:
    """Hudi before 1.1 stored a column named ts that nobody had."""
    table = stored_as(tmp_path / "t", Kind(8, None, "ts"), **{"hoodie.table.precombine.field": "x"})
    batch = batches("all")[0]
    table.insert(batch)
    table.bulk_insert(batch)
    for write, options in (
        (table.upsert, {}),
        (table.insert, {"hoodie.combine.before.insert": "true"}),
        (table.insert, {"hoodie.merge.allow.duplicate.on.inserts": "false"}),
    ):
        with pytest.raises(SchemaError, match="by x, which is no column"):
            write(batch, options=options)
    assert table.delete(batch).deleted == 2 * len(batch)


# --- delete markers -------------------------------------------------------------------------------


def simple(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of key, time, operation, truth value, and a struct with a text."""
    names = ("id", "ts", "Op", "gone", "s")
    schema = pa.schema(
        [*(SCHEMA.field(name) for name in names[:3]), ("gone", pa.bool_()), SCHEMA.field("s")]
    )
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


ALIVE = simple(*((key, 5, "I", False, {"ts": 1, "note": "I"}) for key in range(4)))
CHANGES = simple(
    (0, 6, "D", False, {"ts": 1, "note": "I"}),
    (1, 7, "U", True, {"ts": 1, "note": "I"}),
    (2, 8, "U", False, {"ts": 1, "note": "D"}),
    (3, 4, "D", True, {"ts": 2, "note": "D"}),
    (9, 6, "D", True, {"ts": 1, "note": "D"}),
)


@pytest.mark.parametrize(
    ("version", "stored", "field", "value", "left"),
    [
        (8, True, "Op", "D", [1, 2, 3]),
        (9, True, "Op", "D", [1, 2, 3]),
        (8, False, "Op", "D", [1, 2, 3]),
        (9, False, "gone", "true", [0, 2, 3]),
        (9, True, "ts", "8", [0, 1, 3, 9]),
        (9, True, "s.note", "D", [0, 1, 3]),
        (8, True, "s.ts", "2", [0, 1, 2, 3, 9]),
        (9, True, "absent", "D", [0, 1, 2, 3, 9]),
    ],
)
def test_rows_with_a_delete_marker_delete(
    version: int, stored: bool, field: str, value: str, left: list[int], tmp_path: Path
) -> None:
    marker = {"hoodie.payload.delete.field": field, "hoodie.payload.delete.marker": value}
    kind = Kind(version, None, "ts")
    table = create(tmp_path / "t", kind, ALIVE.schema, options=marker if stored else {})
    again = hudi.Table.open(str(tmp_path / "t"))
    given = {} if stored else marker
    again.upsert(ALIVE)
    dry = again.plan("upsert", CHANGES, options=given)
    result = again.upsert(CHANGES, options=given)
    assert sorted(key for (key,) in values(table, "id")) == left
    assert result.deleted == len({0, 1, 2, 3}.difference(left))
    # a dry run takes no row for a late one
    late = field in ("Op", "gone", "s.note", "s.ts")
    assert (dry.inserted, dry.deleted) == (result.inserted, result.deleted + late)
    again.insert(CHANGES, options=given)
    again.bulk_insert(CHANGES, options=given)
    found = [key for (key,) in values(table, "id")]
    assert found.count(9) == (3 if 9 in left else 0)


def test_a_marker_that_a_table_keeps_is_not_changed_by_an_option(tmp_path: Path) -> None:
    create(tmp_path / "t", Kind(9, PayloadKind.AWS_DMS, None))
    other = MARKER | {"hoodie.payload.delete.marker": "X"}
    with pytest.raises(OptionConflictError, match=r"delete\.marker='X'.*'D'"):
        hudi.Table.open(str(tmp_path / "t"), other)
    assert hudi.Table.open(str(tmp_path / "t"), MARKER)


def test_a_marker_in_a_column_of_another_type_is_refused(tmp_path: Path) -> None:
    marker = {"hoodie.payload.delete.field": "s", "hoodie.payload.delete.marker": "D"}
    with pytest.raises(SchemaError, match="column s marks deletes and has the type struct"):
        create(tmp_path / "t", Kind(9, None, "ts"), options=marker)
    assert not (tmp_path / "t").exists()


def test_columns_that_decide_keep_their_names(tmp_path: Path) -> None:
    kind = Kind(9, PayloadKind.AWS_DMS, None)
    table = create(tmp_path / "t", kind, ordering_field=["ts", "s.ts"])
    assert table.config.ordering_fields == ("ts", "s.ts")
    for column, purpose in (("Op", "marks deletes"), ("ts", "ordering"), ("s", "ordering")):
        with pytest.raises(SchemaError, match=purpose):
            table.alter(drop=[column])


# --- tables of others -----------------------------------------------------------------------------


def stored_as(path: Path, kind: Kind, **properties: str | None) -> hudi.Table:
    """A table whose properties another writer changed."""
    create(path, kind)
    file = path / ".hoodie" / "hoodie.properties"
    lines = [
        line for line in file.read_text().splitlines() if line.partition("=")[0] not in properties
    ]
    lines += [f"{name}={value}" for name, value in properties.items() if value is not None]
    file.write_text("\n".join(lines) + "\n")
    return hudi.Table.open(str(path))


MERGE = "hoodie.record.merge.property."


@pytest.mark.parametrize(
    ("kind", "properties", "named"),
    [
        (Kind(9, None, "ts"), {MERGE + "hoodie.other": "x"}, MERGE + "hoodie.other"),
        (Kind(9, None, "ts"), {MERGE + "hoodie.payload.delete.field": "Op"}, "half a delete mark"),
        (Kind(9, None, "ts"), {PARTIAL: "KEEP_VALUES"}, "KEEP_VALUES"),
        (Kind(9, None, "ts"), {PARTIAL: "FILL_GAPS"}, "FILL_GAPS"),
        (
            Kind(9, None, "ts"),
            {
                "hoodie.record.merge.mode": "CUSTOM",
                "hoodie.compaction.payload.class": "com.example.Payload",
            },
            "com.example.Payload",
        ),
        (
            Kind(9, None, "ts"),
            {
                "hoodie.record.merge.mode": "CUSTOM",
                "hoodie.record.merge.strategy.id": "11111111-2222-3333-4444-555555555555",
            },
            "11111111-2222",
        ),
        (
            Kind(8, PayloadKind.AWS_DMS, "ts"),
            {"hoodie.record.merge.strategy.id": "1897ef5f-18bc-4557-939c-9d6a8afd1519"},
            "1897ef5f",
        ),
        (
            Kind(8, PayloadKind.AWS_DMS, "ts"),
            {"hoodie.compaction.payload.class": "com.example.Payload"},
            "com.example.Payload",
        ),
        (Kind(8, None, "ts"), {"hoodie.record.merge.mode": "CUSTOM"}, "merge mode CUSTOM"),
    ],
)
def test_what_is_not_built_in_is_named_before_the_first_file(
    kind: Kind, properties: dict[str, str], named: str, tmp_path: Path
) -> None:
    table = stored_as(tmp_path / "t", kind, **properties)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(UnsupportedTableError, match=named.replace(".", r"\.")):
        table.upsert(batches("all")[0])
    assert sorted(tmp_path.rglob("*")) == files
    assert table.to_arrow().num_rows == 0


def test_the_former_name_of_a_mode_of_partial_updates(tmp_path: Path) -> None:
    kind = Kind(9, PayloadKind.POSTGRES_DEBEZIUM, None)
    table = stored_as(tmp_path / "t", kind, **{PARTIAL: "IGNORE_MARKERS"})
    for batch in batches("all"):
        table.upsert(batch)
    assert held(table) == by_hudi(str(kind))


def test_defaults_other_than_null_are_refused(tmp_path: Path) -> None:
    create(tmp_path / "t", Kind(9, PayloadKind.PARTIAL_UPDATE, "ts"))
    file = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    text = file.read_text()
    assert text.count('"default"\\:null') + text.count('"default":null')
    old = '"name":"n","type":["null","int"],"default":null'
    new = '"name":"n","type":["int","null"],"default":7'
    if old not in text:
        old, new = old.replace(":", "\\:"), new.replace(":", "\\:")
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(SchemaError, match="that of 'n' is not null"):
        hudi.Table.open(str(tmp_path / "t")).upsert(batches("all")[0])


def test_options_repeat_what_the_table_is_or_are_refused(tmp_path: Path) -> None:
    for kind in (Kind(8, PayloadKind.AWS_DMS, "ts"), Kind(9, PayloadKind.AWS_DMS, "ts")):
        path = tmp_path / str(kind)
        create(path, kind)
        custom = {
            **kind.options,
            "hoodie.write.record.merge.mode": "CUSTOM",
            "hoodie.write.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
            "hoodie.payload.ordering.field": "ts",
            "hoodie.write.record.merge.custom.implementation.classes": (
                "org.apache.hudi.DefaultSparkRecordMerger"
            ),
        }
        # what made the table opens it
        create(tmp_path / f"{kind} again", kind, options=custom)
        table = hudi.Table.open(str(path), custom)
        table.upsert(batches("all")[0], options={PARTIAL: "KEEP_VALUES"})
        for other in (
            PayloadKind.DEFAULT,
            PayloadKind.LATEST,
            PayloadKind.PARTIAL_UPDATE,
            "com.example.Mine",
        ):
            with pytest.raises(OptionConflictError, match="AWSDms"):
                hudi.Table.open(str(path), {PAYLOAD: str(other)})
        for name, value in (
            ("hoodie.payload.ordering.field", "n"),
            ("hoodie.write.record.merge.custom.implementation.classes", "com.example.Merger"),
        ):
            with pytest.raises(InvalidOptionError, match=value):
                hudi.Table.open(str(path), {name: value})
    with pytest.raises(OptionConflictError, match="IGNORE_DEFAULTS"):
        hudi.Table.open(str(path), {PARTIAL: "IGNORE_DEFAULTS"})


# --- partial updates ------------------------------------------------------------------------------


def test_modes_of_partial_updates_by_option(tmp_path: Path) -> None:
    """They are those of the payload classes that stand for them."""
    text = {"hoodie.write.partial.update.unavailable.value": UNAVAILABLE}
    for mode, options, like in (
        ("IGNORE_DEFAULTS", {}, Kind(9, PayloadKind.PARTIAL_UPDATE, "ts")),
        ("FILL_UNAVAILABLE", {"hoodie.table.ordering.fields": "_event_lsn", **text}, None),
    ):
        kind = Kind(9, None, "ts")
        table = create(tmp_path / mode, kind, options={PARTIAL: mode, **options})
        given = batches("all")
        for batch in given:
            table.upsert(batch)
        if like is not None:
            assert held(table) == by_hudi(str(like))
            continue
        # without deletes by operation it is that of Postgres
        twin = create(tmp_path / "twin", Kind(9, PayloadKind.POSTGRES_DEBEZIUM, None))
        name = "_change_operation_type"
        for number, batch in enumerate(given):
            alive = batch.set_column(
                SCHEMA.get_field_index(name), name, pa.array(["u"] * len(batch))
            )
            twin.upsert(alive)
            if not number:
                table = create(tmp_path / "own", kind, options={PARTIAL: mode, **options})
            table.upsert(alive)
        assert held(table) == held(twin)


def test_columns_may_be_left_out_where_nulls_are_filled(tmp_path: Path) -> None:
    table = create(tmp_path / "t", Kind(9, PayloadKind.PARTIAL_UPDATE, "ts"))
    table.upsert(batches("all")[0])
    before = {row["id"]: row for row in table.to_arrow().to_pylist()}
    keep = {PARTIAL: "KEEP_VALUES"}
    table.upsert(pa.table({"id": [1, 2], "ts": [9, 9], "v": [None, "x"]}), options=keep)
    after = {row["id"]: row for row in table.to_arrow().to_pylist()}
    for key, text in ((1, before[1]["v"]), (2, "x")):
        assert after[key]["ts"] == 9
        assert after[key]["v"] == text
        assert after[key]["w"] == before[key]["w"]


def test_rows_that_move_cannot_take_values_with_them(tmp_path: Path) -> None:
    kind, index = Kind(9, PayloadKind.PARTIAL_UPDATE, "ts"), {"hoodie.index.type": "GLOBAL_SIMPLE"}
    table = create(tmp_path / "t", kind, partition_by="Op", options=index)
    (first, second, _) = batches("all")
    with pytest.raises(SchemaError, match=r"moves to another.*update\.partition\.path=false"):
        table.upsert(first)
    stay = {"hoodie.simple.index.update.partition.path": "false"}
    flat = create(tmp_path / "flat", kind, options=index)
    for batch in (first, second):
        table.upsert(batch, options=stay)
        flat.upsert(batch)
    names = ("id", "ts", "v", "b", "n", "w")
    assert values(table, *names) == values(flat, *names)


def test_a_row_is_where_its_partition_column_says(tmp_path: Path) -> None:
    kind, index = Kind(9, PayloadKind.PARTIAL_UPDATE, "ts"), {"hoodie.index.type": "GLOBAL_SIMPLE"}
    schema = pa.schema([(name, SCHEMA.field(name).type) for name in ("id", "ts", "v", "Op")])
    table = create(tmp_path / "t", kind, schema, partition_by="v", options=index)
    stay = {"hoodie.simple.index.update.partition.path": "false"}
    both = {"id": 1, "ts": 1, "v": "a", "Op": "I"}, {"id": 1, "ts": 2, "v": None, "Op": None}
    table.upsert(pa.Table.from_pylist(both, schema), options=stay)
    (row,) = table.to_arrow().to_pylist()
    assert row["_hoodie_partition_path"] == "__HIVE_DEFAULT_PARTITION__"
    assert (row["v"], row["Op"]) == (None, "I")
