"""Rows that lack columns, rows of change data, and overwrites of named partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.engine.base import Engine
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import PartitionValueError, RecordKeyError, SchemaError
from hudi_core.model.commit import ReplaceCommitMetadata
from tests.formats.service_tables import READERS, agree, batch
from tests.merging_histories import EVENTS, batches, by_hudi, held, kinds
from tests.tables import TABLES, new_table

Row = dict[str, Any]
FILL = {"hoodie.write.set.null.for.missing.columns": "true"}
KEEP = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}
PEOPLE = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("mail", pa.string()),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.int64())])),
    ]
)
A: Row = {"id": 1, "name": "A", "mail": "a@x", "s": {"a": 1, "b": 1}}
B: Row = {"id": 2, "name": "B", "mail": "b@x", "s": {"a": 2, "b": 2}}


def make(path: Path, table_format: str = "native", **options: str) -> hudi.Table:
    ordering = options.pop("ordering", None)
    table = new_table(path, PEOPLE, options, ordering_field=ordering, format=table_format)
    table.insert([A, B])
    return table


def rows_held(table: hudi.Table) -> list[Row]:
    """The rows by key, which all readers of the table's formats see."""
    names = table.schema.names
    rows: list[Row] = table.to_arrow(names).sort_by("id").to_pylist()
    found = []
    if "delta" in table.format:
        found.append(pa.table(DeltaTable(table.path).to_pyarrow_table()))
    if "iceberg" in table.format:
        found.append(StaticTable.from_metadata(table.path).scan().to_arrow())
    for one in found:
        assert one.select(names).sort_by("id").to_pylist() == rows
    return rows


@pytest.mark.parametrize("table_format", TABLES)
def test_each_row_keeps_what_it_lacks(path: Path, table_format: str) -> None:
    table = make(path, table_format)
    rows = [
        {"id": 2, "name": "B2"},
        {"id": 1, "mail": None, "tier": "gold"},
        {"id": 2, "mail": "b2@x"},
        {"id": 3, "tier": "new"},
        {"id": 3, "name": "C"},
    ]
    done = table.upsert(rows, options=KEEP)
    assert (done.inserted, done.updated) == (1, 2)
    assert rows_held(table) == [
        {**A, "mail": None, "tier": "gold"},
        {**B, "name": "B2", "mail": "b2@x", "tier": None},
        {"id": 3, "name": "C", "mail": None, "s": None, "tier": "new"},
    ]


@pytest.mark.parametrize("table_format", TABLES)
def test_an_option_fills_no_more_than_what_is_absent(path: Path, table_format: str) -> None:
    table = make(path, table_format)
    table.upsert([{"id": 9}, {**A, "name": "A2"}, {"id": 2, "s": {"a": 3}}], options=FILL)
    assert rows_held(table) == [
        {**A, "name": "A2"},
        {"id": 2, "name": None, "mail": None, "s": {"a": 3, "b": None}},
        {"id": 9, "name": None, "mail": None, "s": None},
    ]


def sparse() -> list[Row]:
    return [A, {"id": 2, "name": "B2", "s": {"a": 1, "b": 1}}]


KINDS: dict[str, Callable[[Sequence[Row]], Any]] = {
    "list": list,
    "tuple": tuple,
    "iterator": iter,
    "generator": lambda rows: (row for row in rows),
}


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *((kind, "upsert") for kind in KINDS),
        *(("list", way) for way in ("insert", "bulk_insert", "stage", "plan", "write")),
    ],
)
def test_a_row_lacking_a_stored_column_is_refused_by_name(path: Path, kind: str, way: str) -> None:
    table = make(path)
    data = KINDS[kind](sparse())
    writes: dict[str, Callable[[Any], object]] = {
        "upsert": table.upsert,
        "insert": table.insert,
        "bulk_insert": table.bulk_insert,
        "stage": table.stage,
        "plan": partial(table.plan, "upsert"),
        "write": partial(hudi.write, path=table.path),
    }
    with pytest.raises(SchemaError, match=r"^Row 2 \(\{'id': 2.* lacks the column 'mail'"):
        writes[way](data)
    assert len(table.timeline.completed_writes()) == 1
    assert rows_held(table) == [A, B]


@pytest.mark.parametrize(
    ("row", "error", "reason"),
    [
        ({"name": "x"}, RecordKeyError, "record key column 'id'"),
        ({"id": 1, "mail": "x"}, SchemaError, "column 'name': it orders the versions"),
        ({"id": 1, "name": "x", "s": {"a": 1}}, SchemaError, "column 's.b': other rows have it"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(
    path: Path, row: Row, error: type[SchemaError], reason: str
) -> None:
    table = make(path, ordering="name")
    with pytest.raises(error, match=rf"^Row 2 .* lacks the (record key )?{reason}"):
        table.upsert([A, row], options=KEEP)
    assert rows_held(table) == [A, B]


def test_columns_that_the_table_lacks_are_taken_from_any_row(path: Path) -> None:
    table = make(path)
    rows = [{**A, "tier": "gold"}, B, {**A, "name": "A2"}, {**B, "s": {"a": 1, "b": 1, "c": 1}}]
    table.upsert(rows)
    assert rows_held(table) == [
        {**A, "name": "A2", "tier": "gold", "s": {"a": 1, "b": 1, "c": None}},
        {**B, "tier": None, "s": {"a": 1, "b": 1, "c": 1}},
    ]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_new_table_has_the_columns_of_all_rows(path: Path, mode: Any) -> None:
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
    }
    if mode == "overwrite":
        make(path)
    rows = [{"id": 1, "p": "x"}, {"id": 2, "p": "y", "v": 1}, {"id": 2, "p": "y", "w": "a"}]
    hudi.write((row for row in rows), path, mode=mode, options=options)
    table = hudi.Table.open(path)
    expected = [
        {"id": 1, "p": "x", "v": None, "w": None},
        {"id": 2, "p": "y", "v": 1, "w": "a"},  # rows of one key complete each other
    ]
    assert table.to_arrow(["id", "p", "v", "w"]).sort_by("id").to_pylist() == expected
    with pytest.raises(SchemaError, match=r"^Row 2 .* lacks the column 'p': it is part of"):
        hudi.write([{"id": 1, "p": "x"}, {"id": 2}], path, mode="overwrite", options=options)
    assert table.count() == 2


def test_a_later_stored_row_takes_nothing(path: Path) -> None:
    """Neither does a row that was deleted and comes back keep what it had."""
    table = make(path, ordering="name")
    rows = [
        {"id": 1, "name": "0", "mail": "late"},
        {"id": 2, "name": "C", "_hoodie_is_deleted": True},
        {"id": 2, "name": "D", "s": None},
    ]
    table.upsert(rows, options=KEEP)
    assert rows_held(table) == [A, {"id": 2, "name": "D", "mail": None, "s": None}]


def test_rows_that_may_move_are_refused(path: Path) -> None:
    options = {**KEEP, "hoodie.index.type": "GLOBAL_SIMPLE"}
    table = hudi.Table.create(path, PEOPLE, record_key="id", partition_by="name", options=options)
    table.insert([A, B])
    rows = [A, {"id": 2, "name": "A"}]
    with pytest.raises(SchemaError, match="lack the column 'mail', 's', and a row that moves"):
        table.upsert(rows)
    table.upsert(
        [A, {"id": 2, "name": "A", "new": 1}],
        options={**FILL, "hoodie.table.partial.update.mode": "NONE"},
    )
    assert table.to_arrow(["id", "name", "new"]).sort_by("id").to_pylist() == [
        {"id": 1, "name": "A", "new": None},
        {"id": 2, "name": "A", "new": 1},
    ]


def test_a_delete_needs_no_more_than_keys(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    assert table.delete([{"id": 1}, {"id": 2, "name": "B"}]).deleted == 2
    parted = hudi.Table.create(tmp_path / "p", PEOPLE, record_key="id", partition_by="name")
    parted.insert([A, {**B, "name": None}])
    with pytest.raises(SchemaError, match=r"^Row 2 .* lacks the column 'name': a delete needs"):
        parted.delete([{"id": 1, "name": "A"}, {"id": 2}])
    removes = {"hoodie.datasource.write.operation": "delete_partition"}
    with pytest.raises(PartitionValueError, match=r"^Row 2 .* lacks the column 'name', by which"):
        hudi.write([{"name": "A"}, {"id": 2}], parted.path, options=removes)
    assert parted.count() == 2


def test_a_merge_names_the_source_row(path: Path) -> None:
    table = make(path)
    source = [{"id": 1, "mail": "m"}, {"id": 2}]
    with pytest.raises(SchemaError, match=r"^Row 2 .* of the source lacks the column 'mail'"):
        table.merge(source, on="id")
    merge = table.merge(iter(source), on="id", options=FILL).when_matched_update_all()
    assert merge.execute().updated == 2
    assert rows_held(table) == [{**A, "mail": "m"}, {**B, "mail": None}]


def test_a_struct_is_set_as_a_whole(path: Path) -> None:
    table = make(path)
    for wrong in ({"a": 1}, {"a": 1, "b": 2, "c": 3}):
        with pytest.raises(
            SchemaError, match=r"does not have the columns of s\. Give each of a, b"
        ):
            table.update({"s": wrong})
    lacks = pa.table({"id": [1], "s": [{"a": 5}]})
    with pytest.raises(SchemaError, match=r"lacks the column s\.b"):
        table.merge(lacks, on="id").when_matched_update_all().execute()
    assert rows_held(table) == [A, B]


def test_a_stage_keeps_which_values_are_absent(path: Path) -> None:
    table = make(path)
    stage = table.stage([{"id": 1, "name": "A2"}, {"id": 2, "mail": "b2@x"}], options=KEEP)
    expected = [{**A, "name": "A2"}, {**B, "mail": "b2@x"}]
    assert stage.to_arrow(PEOPLE.names).sort_by("id").to_pylist() == expected
    table.find_stage(stage.id).publish()
    assert rows_held(table) == expected


@pytest.mark.parametrize("table_format", TABLES)
def test_frames_that_were_filtered(path: Path, table_format: str) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "qty": [10, 20, 30]})
    late = frame[frame.id > 1]
    table = hudi.Table.create(path, late, record_key="id", format=table_format)
    table.insert(late)
    table.upsert(frame)
    table.upsert(pa.Table.from_pandas(late))
    table.upsert(pa.Table.from_pandas(late).to_reader())
    table.upsert(frame.set_index("id").sort_values("qty"))
    assert rows_held(table) == frame.to_dict("records")


def rows_of_spark() -> Iterator[Any]:
    for row in (A, B):
        yield SimpleNamespace(asDict=lambda recursive, row=row: dict(row) if recursive else {})


def test_rows_of_spark_are_rows(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    assert table.upsert(rows_of_spark()).updated == 2
    with pytest.raises(SchemaError, match="A schema of type generator cannot be used"):
        hudi.Table.create(tmp_path / "u", rows_of_spark(), record_key="id")


def test_a_column_that_rows_bring_says_nothing_of_absence(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    row = {**A, "_hoodie_absent": {"name": True}}
    for given in ([row], pa.Table.from_pylist([row])):
        with pytest.raises(SchemaError, match="_hoodie_absent has a name that Hudi keeps"):
            table.upsert(given, options=KEEP)
    with pytest.raises(SchemaError, match="cannot be used: The rows have several columns named"):
        hudi.Table.create(tmp_path / "u", pd.DataFrame([[1, 2]], columns=["id", "id"]))


NAMES = {
    "iceberg": "9-PostgresDebeziumAvroPayload-unordered-all",
    "delta": "8-AWSDmsAvroPayload-ts-two",
}


def check(path: Path, table_format: str, engine: Engine, spark: SparkSession | None) -> None:
    (kind,) = (one for one in kinds() if str(one) == NAMES[table_format])
    options = {**kind.options}
    table = hudi.Table.create(path, EVENTS, record_key="id", format=table_format, options=options)
    for rows in batches(kind.history):
        data = rows if spark is None else spark.createDataFrame(rows).coalesce(1)
        table.upsert(data, engine=engine)
    for read in READERS[table_format]:
        assert held(table, read(path)) == by_hudi(str(kind)), read.__name__
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize("table_format", NAMES)
def test_readers_of_a_format_see_rows_of_change_data_merged(table_format: str, path: Path) -> None:
    check(path, table_format, LocalEngine(), None)


@pytest.mark.spark
@pytest.mark.parametrize("table_format", NAMES)
def test_they_see_same_rows_by_spark(table_format: str, spark: SparkSession, path: Path) -> None:
    check(path, table_format, SparkEngine(spark, tasks_on_driver=False), spark)


@pytest.mark.parametrize("named", ["oslo", {"city": "oslo"}])
@pytest.mark.parametrize("keys", ["ac", ""])
def test_partitions_without_new_rows_are_replaced_too(
    path: Path, table: hudi.Table, keys: str, named: Any
) -> None:
    result = table.insert_overwrite(batch(5, *keys), partitions=[named])
    left = {"a", "c"} if keys else {"a", "b"}
    assert set(table.to_arrow()["id"].to_pylist()) == left
    assert isinstance(result.metadata, ReplaceCommitMetadata)
    assert len(result.metadata.partition_to_replace_file_ids) == (2 if keys else 1)
    agree(path)


def test_a_partition_that_is_not_there_replaces_nothing(native: hudi.Table) -> None:
    native.insert_overwrite(batch(5), partitions=[{"city": "bari"}])
    assert native.to_arrow().num_rows == 4
