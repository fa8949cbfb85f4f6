"""Which version of a row wins, and what is counted, as in Apache Hudi."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.base_file.encoded_columns import constant
from hudi_core.config.kinds import PayloadKind
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import (
    DuplicateRecordKeyError,
    InvalidOptionError,
    OptionConflictError,
    SchemaError,
    UnsupportedTableError,
)
from hudi_core.rows.combine import existing_is_newer, winners
from hudi_core.schema.table_schema import TableSchema
from hudi_core.services.mending.differences import Source
from hudi_core.write.partial_rows import completed
from tests.cli_runs import run
from tests.merging_histories import (
    EVENTS,
    MARKER,
    UNAVAILABLE,
    Kind,
    batches,
    by_hudi,
    captured,
    held,
    kinds,
)
from tests.operators import operator
from tests.tables import copied, new_table, pairs, rows_of

KINDS = {str(kind): kind for kind in kinds()}
PAYLOAD = "hoodie.datasource.write.payload.class"
PARTIAL = "hoodie.table.partial.update.mode"
NINE = {"hoodie.write.table.version": "9"}


def create(path: Path, kind: Kind, schema: pa.Schema = EVENTS, **more: Any) -> hudi.Table:
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


# --- what Apache Hudi left
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


# --- what Apache Hudi 1.2 fails on, by the word of its payload classes
def cdc(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of key, log sequence number, operation, a text and a number."""
    names = ("id", "_event_lsn", "_change_operation_type", "v", "b")
    schema = pa.schema([EVENTS.field(name) for name in names])
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
        EVENTS.get_field_index("ts"), "ts", pa.array([0] * len(first), pa.int64())
    ).set_column(
        EVENTS.get_field_index("_hoodie_is_deleted"),
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
        EVENTS.get_field_index("_event_seq"), "_event_seq", pa.array(["binlog.7"] * len(first))
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
    schema = pa.schema([field for field in EVENTS if not field.name.startswith("_event")])
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


# --- delete markers
def simple(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of key, time, operation, truth value, and a struct with a text."""
    names = ("id", "ts", "Op", "gone", "s")
    schema = pa.schema(
        [*(EVENTS.field(name) for name in names[:3]), ("gone", pa.bool_()), EVENTS.field("s")]
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


# --- tables of others
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


# --- partial updates
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
                EVENTS.get_field_index(name), name, pa.array(["u"] * len(batch))
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
    schema = pa.schema([(name, EVENTS.field(name).type) for name in ("id", "ts", "v", "Op")])
    table = create(tmp_path / "t", kind, schema, partition_by="v", options=index)
    stay = {"hoodie.simple.index.update.partition.path": "false"}
    both = {"id": 1, "ts": 1, "v": "a", "Op": "I"}, {"id": 1, "ts": 2, "v": None, "Op": None}
    table.upsert(pa.Table.from_pylist(both, schema), options=stay)
    (row,) = table.to_arrow().to_pylist()
    assert row["_hoodie_partition_path"] == "__HIVE_DEFAULT_PARTITION__"
    assert (row["v"], row["Op"]) == (None, "I")


# --- which version of a row wins, and what is counted, where keys and times are awkward
NAN = math.nan
UNCOMBINED = {"hoodie.combine.before.upsert": "false"}


def states(*versions: tuple[str, float | None, str], kind: Any = None) -> pa.Table:
    ids, times, values = zip(*versions, strict=True)
    return pa.table(
        {"id": list(ids), "ts": pa.array(times, kind or pa.float64()), "value": list(values)}
    )


def make(path: Path, kind: Any = None) -> hudi.Table:
    return new_table(path / "t", states(("a", 1, ""), kind=kind).schema)


def timed_values(table: hudi.Table) -> list[str]:
    return sorted(table.to_arrow()["value"].to_pylist())


def is_greater(first: float, second: float) -> bool:
    """Return whether Java's ``Double.compare`` puts the first behind the second."""
    if math.isnan(first) or math.isnan(second):
        return not math.isnan(second)
    return (first, math.copysign(1.0, first)) > (second, math.copysign(1.0, second))


@given(st.floats() | st.sampled_from([NAN, -NAN, 0.0, -0.0, math.inf]), st.floats())
def test_floats_have_one_order_in_a_batch_and_against_stored_rows(
    first: float, second: float
) -> None:
    greater = is_greater(first, second)
    assert existing_is_newer([pa.array([first])], [pa.array([second])]).to_pylist() == [greater]
    chosen = winners(pa.chunked_array([["k", "k"]]), [pa.chunked_array([[first, second]])])
    assert chosen is not None
    assert chosen.tolist() == [0 if greater else 1]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_the_latest_time_wherever_it_comes(tmp_path: Path, kind: Any) -> None:
    table = make(tmp_path, kind)
    table.upsert(states(("a", 5, "five"), ("a", NAN, "nan"), ("a", None, "null"), kind=kind))
    assert timed_values(table) == ["nan"]
    assert table.upsert(states(("a", math.inf, "inf"), kind=kind)).updated == 0
    assert table.upsert(states(("a", NAN, "nan again"), kind=kind)).updated == 1
    assert timed_values(table) == ["nan again"]
    assert table.upsert(states(("a", None, "null"), kind=kind)).updated == 1
    assert timed_values(table) == ["null"]


@pytest.mark.spark
def test_nan_is_the_latest_time_on_spark_too(tmp_path: Path, spark: Any) -> None:
    table, engine = make(tmp_path), SparkEngine(spark, tasks_on_driver=False)
    for batch in (states(("a", NAN, "nan"), ("a", 5, "five")), states(("a", 6, "six"))):
        table.upsert(spark.createDataFrame(batch).coalesce(1), engine=engine)
        assert timed_values(table) == ["nan"]


def test_of_rows_that_are_not_combined_the_last_meets_the_stored_one(tmp_path: Path) -> None:
    for number, times in enumerate(itertools.permutations([9, 3, 5])):
        table = make(tmp_path / str(number))
        table.insert(states(("a", 4, "stored"), ("b", 1, "other")))
        result = table.upsert(states(*(("a", ts, str(ts)) for ts in times)), options=UNCOMBINED)
        last = times[-1]
        assert (result.inserted, result.updated, result.deleted) == (0, int(last > 4), 0)
        assert timed_values(table) == sorted([str(last) if last > 4 else "stored", "other"])


def test_rows_that_are_not_combined_and_meet_no_stored_one_all_stay(tmp_path: Path) -> None:
    """Those that come to a file that is there are one, as in Hudi: the last."""
    table = make(tmp_path)
    table.insert(states(("b", 1, "other")))
    batch = states(("a", 9, "9"), ("a", 3, "3"), ("b", 2, "new"))
    result = table.upsert(batch, options={**UNCOMBINED, "hoodie.parquet.small.file.limit": "0"})
    assert (result.inserted, result.updated) == (2, 1)
    assert timed_values(table) == ["3", "9", "new"]

    table = make(tmp_path / "small")
    table.insert(states(("b", 1, "other")))
    result = table.upsert(batch, options=UNCOMBINED)
    assert (result.inserted, result.updated) == (1, 1)
    assert timed_values(table) == ["3", "new"]


def stored_twice(path: Path) -> hudi.Table:
    table = make(path)
    table.bulk_insert(states(("a", 5, "newer"), ("a", 1, "older"), ("b", 1, "other")))
    return table


def test_a_dry_run_counts_keys_that_are_stored_twice_as_the_write_does(tmp_path: Path) -> None:
    table = stored_twice(tmp_path)
    batch = states(("a", 7, "in"), ("b", 7, "in"))
    dry, result = table.plan("upsert", batch), table.upsert(batch)
    assert (dry.updated, dry.deleted) == (result.updated, result.deleted) == (3, 0)
    assert stored_twice(tmp_path / "other").delete(batch).deleted == 3


# --- upserts of rows that lack columns
PARTIAL_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("value", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("size", pa.struct([("w", pa.int32())])),
    ]
)
KEEP = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}


def full(key: str, ts: int) -> dict[str, Any]:
    size = {"w": ts}
    return {"id": key, "city": "rome", "ts": ts, "value": ts / 2, "tags": [key], "size": size}


def some(*made: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(
        list(made), pa.schema([field for field in PARTIAL_SCHEMA if field.name in made[0]])
    )


def partial_make(
    path: Path, ordering_field: str | None = "ts", schema: pa.Schema = PARTIAL_SCHEMA
) -> hudi.Table:
    table = new_table(path / "t", schema, partition_by="city", ordering_field=ordering_field)
    table.insert(pa.Table.from_pylist([full("a", 5), full("b", 5), full("c", 5)], schema))
    return table


def partial_held(table: hudi.Table) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in table.to_arrow(PARTIAL_SCHEMA.names).to_pylist()}


def test_what_is_stored_stays_and_new_rows_have_nulls(tmp_path: Path) -> None:
    table = partial_make(tmp_path)
    batch = some(
        {"id": "new", "city": "rome", "ts": 1, "value": 9.0},
        {"id": "c", "city": "rome", "ts": 9, "value": None},
        {"id": "b", "city": "rome", "ts": 1, "value": 9.0},
        {"id": "a", "city": "rome", "ts": 8, "value": 8.0},
        {"id": "a", "city": "rome", "ts": 7, "value": 7.0},
        {"id": "z", "city": "oslo", "ts": 1, "value": 9.0},
    )

    dry = table.plan("upsert", batch, options=KEEP)
    result = table.upsert(batch, options=KEEP)

    assert (result.inserted, result.updated, result.deleted) == (2, 2, 0)
    assert (dry.inserted, dry.updated) == (2, 3)  # one of them is late
    nothing = {"tags": None, "size": None}
    assert partial_held(table) == {
        "a": {**full("a", 5), "ts": 8, "value": 8.0},
        "b": full("b", 5),
        "c": {**full("c", 5), "ts": 9, "value": None},  # a null that is given is a value
        "new": {"id": "new", "city": "rome", "ts": 1, "value": 9.0, **nothing},
        "z": {"id": "z", "city": "oslo", "ts": 1, "value": 9.0, **nothing},
    }


def test_rows_flagged_as_deleted_go_although_they_lack_columns(tmp_path: Path) -> None:
    table = partial_make(tmp_path)
    flags = pa.array([True, False])
    batch = some({"id": "a", "city": "rome", "ts": 6}, {"id": "b", "city": "rome", "ts": 6})

    result = table.upsert(batch.append_column("_hoodie_is_deleted", flags), options=KEEP)

    assert (result.updated, result.deleted) == (1, 1)
    assert partial_held(table) == {"b": {**full("b", 5), "ts": 6}, "c": full("c", 5)}


def test_without_an_ordering_field_the_later_row_wins(tmp_path: Path) -> None:
    table = partial_make(tmp_path, None)

    table.upsert(some({"id": "a", "city": "rome", "value": 1.0}), options=KEEP)

    assert partial_held(table)["a"] == {**full("a", 5), "value": 1.0}


def test_rows_that_lack_columns_are_refused_without_the_option(tmp_path: Path) -> None:
    table = partial_make(tmp_path)
    batch = some({"id": "a", "city": "rome", "ts": 6})

    for options in ({}, {"hoodie.table.partial.update.mode": "NONE"}):
        with pytest.raises(SchemaError, match="lack the column 'value', 'tags', 'size'"):
            table.upsert(batch, options=options)
    for operation in ("insert", "bulk_insert", "insert_overwrite"):
        with pytest.raises(SchemaError, match="lack the column"):
            getattr(table, operation)(batch, options=KEEP)


@pytest.mark.parametrize(
    ("column", "reason"),
    [("id", "record key"), ("city", "part of the partition"), ("ts", "orders the versions")],
)
def test_columns_that_every_row_needs_are_never_left_out(
    tmp_path: Path, column: str, reason: str
) -> None:
    row = {name: value for name, value in full("a", 6).items() if name != column}

    with pytest.raises(SchemaError, match=reason):
        partial_make(tmp_path).upsert(some(row), options=KEEP)


def test_columns_without_nulls_are_never_left_out(tmp_path: Path) -> None:
    strict = PARTIAL_SCHEMA.set(3, pa.field("value", pa.float64(), nullable=False))
    table = partial_make(tmp_path, schema=strict)

    with pytest.raises(SchemaError, match="lack the column 'value', and it has no nulls"):
        table.upsert(some({"id": "a", "city": "rome", "ts": 6}), options=KEEP)


def test_each_of_several_stored_rows_of_one_key_keeps_its_own_values(tmp_path: Path) -> None:
    table = partial_make(tmp_path)
    table.insert(some(full("x", 3), full("x", 4)))

    table.upsert(some({"id": "x", "city": "rome", "ts": 6}), options=KEEP)

    rows = [row for row in table.to_arrow().to_pylist() if row["id"] == "x"]
    assert sorted((row["ts"], row["value"]) for row in rows) == [(6, 1.5), (6, 2.0)]


def test_of_encoded_texts_only_those_that_stay_are_decoded() -> None:
    schema = TableSchema.create(pa.schema([("k", pa.string()), ("v", pa.string())]))
    count = (2 << 30) // 5000 + 1  # as texts they would be more than Arrow holds in one array
    stored = pa.table({"v": constant("x" * 5000, count)})

    rows = completed(pa.table({"k": ["a", "new"]}), np.array([count - 1]), stored, schema)

    assert rows.to_pydict() == {"k": ["a", "new"], "v": ["x" * 5000, None]}


# --- rows that share a key: each is merged for itself, and ``validate --keys`` counts them
NAMES = ("id", "city", "ts", "v", "_hoodie_is_deleted")
REPEATED_SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string())]
)
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}
WHOLE = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
BY_PARTITION = {
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.record.level.index.enable": "true",
}

Row = tuple[Any, ...]


def repeated_rows(*made: Row) -> pa.Table:
    names = NAMES[: len(made[0])]
    return pa.table({name: [row[at] for row in made] for at, name in enumerate(names)})


def repeated_make(path: Path, ordering: str | None = "ts", **options: str) -> hudi.Table:
    return new_table(path, REPEATED_SCHEMA, options, ordering_field=ordering)


def repeated_held(table: hudi.Table) -> list[Row]:
    found = table.to_arrow(list(REPEATED_SCHEMA.names)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def stored(path: Path, ordering: str | None, *, in_files: bool, **options: str) -> hudi.Table:
    """A table with a key in three rows: of one file, or of a file each."""
    table = repeated_make(path, ordering, **options)
    own = [("a", "x", 5, "p"), ("a", "x", 7, "q"), ("a", "x", 6, "r"), ("b", "x", 6, "s")]
    if not in_files:
        table.insert(repeated_rows(*own))
    for row in own if in_files else ():
        table.insert(repeated_rows(row), options=NEW_FILES)
    return table


LATE: list[Row] = [("a", "x", 5, "p"), ("a", "x", 6, "r")]
OTHER: Row = ("b", "x", 6, "s")


@pytest.mark.parametrize("in_files", [False, True], ids=["one file", "three files"])
@pytest.mark.parametrize(
    ("ordering", "row", "counts", "left"),
    [
        ("ts", ("a", "x", 8, "n"), (3, 0), [("a", "x", 8, "n")] * 3),
        ("ts", ("a", "x", 6, "n"), (2, 0), [("a", "x", 6, "n")] * 2 + [("a", "x", 7, "q")]),
        ("ts", ("a", "x", 4, "n"), (0, 0), [*LATE, ("a", "x", 7, "q")]),
        (None, ("a", "x", 1, "n"), (3, 0), [("a", "x", 1, "n")] * 3),
        ("ts", ("a", "x", 6, "n", True), (0, 2), [("a", "x", 7, "q")]),
        (None, ("a", "x", 1, "n", True), (0, 3), []),
    ],
)
def test_each_stored_row_of_a_key_is_merged_for_itself(
    in_files: bool,
    ordering: str | None,
    row: Row,
    counts: tuple[int, int],
    left: list[Row],
    tmp_path: Path,
) -> None:
    table = stored(tmp_path / "t", ordering, in_files=in_files)
    result = table.upsert(repeated_rows(row))
    assert (result.inserted, result.updated, result.deleted) == (0, *counts)
    assert repeated_held(table) == sorted([*left, OTHER])
    files = Counter(table.to_arrow()["_hoodie_file_name"].to_pylist())
    for stat in (status.stat for status in result.statuses):
        assert stat.num_writes == files[str(stat.path).rpartition("/")[2]]
    assert sum(status.stat.num_deletes or 0 for status in result.statuses) == counts[1]


def test_a_delete_by_key_deletes_all_of_its_rows(tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=False)
    assert table.delete(repeated_rows(("a", "x", 0, ""))).deleted == 3
    assert repeated_held(table) == [OTHER]


@pytest.mark.spark
def test_spark_merges_each_stored_row_too(spark: SparkSession, tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=False)
    frame = spark.createDataFrame(repeated_rows(("a", "x", 6, "n")))
    result = table.upsert(frame, engine=SparkEngine(spark, tasks_on_driver=False))
    assert (result.inserted, result.updated, result.deleted) == (0, 2, 0)
    assert repeated_held(table) == [("a", "x", 6, "n")] * 2 + [("a", "x", 7, "q"), OTHER]


# --- telling of them
def test_keys_of_several_rows_are_counted_when_asked_for(tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=True)
    table.insert(repeated_rows(("a", "y", 1, "t"), ("c", "y", 1, "u"), ("c", "y", 1, "u")))

    assert table.validate().repeated_keys is None
    found = table.validate(keys=True).repeated_keys
    assert found is not None
    assert (found.keys, found.rows, found.are_forbidden) == (2, 5, False)
    assert [(one.key, len(set(one.paths))) for one in found.examples] == [("a", 3), ("c", 1)]

    said = run("table", "validate", tmp_path / "t", "--keys")
    assert said.exit_code == 0, said.output
    assert "Keys that several rows have: 2 in 5 rows: 'a' 3 times (x/" in said.output
    document = json.loads(run("table", "validate", tmp_path / "t", "--keys", "--json").output)
    assert document["valid"]
    assert document["repeated_keys"]["rows"] == 5
    plain = json.loads(run("table", "validate", tmp_path / "t", "--json").output)
    assert plain["repeated_keys"] is None


def twice_in_a_partition(table: hudi.Table) -> None:
    table.insert(repeated_rows(("a", "x", 5, "p"), ("b", "x", 1, "r")))
    table.insert(repeated_rows(("a", "x", 6, "q")), options=NEW_FILES)


def in_two_partitions(table: hudi.Table) -> None:
    table.insert(repeated_rows(("a", "x", 5, "p"), ("a", "y", 5, "p")))


@pytest.mark.parametrize(
    ("options", "fill", "is_valid"),
    [
        (WHOLE, twice_in_a_partition, False),
        (WHOLE, in_two_partitions, False),
        (BY_PARTITION, twice_in_a_partition, False),
        (BY_PARTITION, in_two_partitions, True),
        ({}, twice_in_a_partition, True),
    ],
)
def test_a_record_index_forbids_keys_of_several_rows(
    options: dict[str, str], fill: Callable[[hudi.Table], None], is_valid: bool, tmp_path: Path
) -> None:
    table = repeated_make(tmp_path / "t", **options)
    fill(table)
    said = run("table", "validate", tmp_path / "t", "--keys")
    assert said.exit_code == (0 if is_valid else 4), said.output
    report = table.validate(keys=True)
    assert report.is_valid is is_valid
    said_of = [one.subject for one in report.of(Source.STORAGE)]
    assert said_of == ([] if is_valid else ["record keys"])


def test_a_record_index_goes_on_with_several_rows_of_a_key(tmp_path: Path) -> None:
    table = stored(tmp_path / "t", "ts", in_files=False, **WHOLE)
    operator(tmp_path / "t").index("secondary_index_v", "v")
    table = hudi.Table.open(str(tmp_path / "t"), WHOLE)
    table.upsert(repeated_rows(("a", "x", 6, "n"), ("b", "x", 9, "m"), ("c", "x", 1, "o")))
    assert repeated_held(table) == [
        *[("a", "x", 6, "n")] * 2,
        ("a", "x", 7, "q"),
        ("b", "x", 9, "m"),
        ("c", "x", 1, "o"),
    ]
    assert table.validate().is_valid
    assert table.to_arrow(["id"], filter=[("v", "=", "n")]).num_rows == 2
    table.delete(repeated_rows(("a", "x", 0, "")))
    assert {row[0] for row in repeated_held(table)} == {"b", "c"}
    assert table.validate(keys=True).is_valid


# --- combining before each operation, and inserts of keys that the table holds
TRIPS = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
POLICY = "hoodie.datasource.insert.dup.policy"
DROP = "hoodie.datasource.write.insert.drop.duplicates"


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", new_table, rows_of(TRIPS, *OLD))


def duplicate_held(table: hudi.Table) -> list[tuple[Any, ...]]:
    return pairs(table.to_arrow(), *TRIPS.names)


OLD = [("a", "rome", 5), ("b", "rome", 5), ("c", "oslo", 5)]
MIXED = rows_of(
    TRIPS, ("a", "rome", 9), ("d", "rome", 7), ("d", "rome", 8), ("d", "rome", 6), ("e", "bari", 1)
)


def test_insert_does_not_look_by_default(table: hudi.Table) -> None:
    table.insert(MIXED)

    assert len(duplicate_held(table)) == 8


@pytest.mark.parametrize("option", [{POLICY: "drop"}, {DROP: "true"}])
def test_insert_drops_known_keys_and_combines(table: hudi.Table, option: dict[str, str]) -> None:
    dry = table.plan("insert", MIXED, options=option)
    result = table.insert(MIXED, options=option)

    assert (result.inserted, result.updated) == (dry.inserted, dry.updated) == (2, 0)
    assert duplicate_held(table) == sorted([*OLD, ("d", "rome", 8), ("e", "bari", 1)])
    result = table.insert(rows_of(TRIPS, ("a", "rome", 9)), options=option)
    assert (result.inserted, result.files) == (0, 0)


@pytest.mark.parametrize("planned", [True, False])
def test_insert_fails_on_known_keys_and_names_them(table: hudi.Table, planned: bool) -> None:
    before = table.timeline.instants
    insert: Any = partial(table.plan, "insert") if planned else table.insert

    with pytest.raises(DuplicateRecordKeyError, match=r"partition 'rome' holds already: 'a'\. "):
        insert(MIXED, options={POLICY: "fail"})

    assert table.timeline.instants == before
    assert duplicate_held(table) == OLD
    new = rows_of(TRIPS, ("d", "rome", 1), ("a", "oslo", 1))
    assert insert(new, options={POLICY: "fail"}).inserted == 2


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_the_policy_is_for_inserts_only(table: hudi.Table, operation: str) -> None:
    getattr(table, operation)(rows_of(TRIPS, ("a", "rome", 9)), options={POLICY: "fail"})

    assert ("a", "rome", 9) in duplicate_held(table)


@pytest.mark.parametrize(
    "operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]
)
@pytest.mark.parametrize("combine", [True, False])
def test_inserting_operations_combine_when_asked_to(
    table: hudi.Table, operation: str, combine: bool
) -> None:
    batch = rows_of(TRIPS, ("x", "bari", 3), ("x", "bari", 4), ("x", "bari", 2), ("y", "bari", 1))
    options = {"hoodie.combine.before.insert": combine}

    dry = table.plan(operation, batch, options=options)
    result = getattr(table, operation)(batch, options=options)

    assert dry.inserted == result.inserted == (2 if combine else 4)
    new = [row for row in duplicate_held(table) if row[1] == "bari"]
    assert (new == [("x", "bari", 4), ("y", "bari", 1)]) is combine


@pytest.mark.parametrize("combine", [True, False])
def test_upsert_and_delete_combine_unless_told_not_to(table: hudi.Table, combine: bool) -> None:
    options = {"hoodie.combine.before.upsert": combine, "hoodie.combine.before.delete": combine}
    batch = rows_of(TRIPS, ("x", "rome", 3), ("x", "rome", 4), ("x", "rome", 2))

    # rows that are not combined and go to a new file all stay
    table.upsert(batch, options={**options, "hoodie.parquet.small.file.limit": "0"})

    assert len([row for row in duplicate_held(table) if row[0] == "x"]) == (1 if combine else 3)
    assert table.delete(batch, options=options).deleted == (1 if combine else 3)
    assert duplicate_held(table) == OLD
