"""Versions of the Delta log, columns and partition values, as foreign readers see them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from hudi_core.errors import SchemaError, UnsupportedCapabilityError
from tests.formats.columns import SCHEMA
from tests.formats.delta_tables import (
    OPTIONS,
    assert_all_read,
    by_deltalake,
    content,
    new_table,
    row,
    rows,
    versions,
)


def test_each_instant_is_one_version_and_time_travel_agrees(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = new_table(path)
    table.bulk_insert(rows(0, 1, 2, 3, 4))
    table.upsert(rows(0, 6, ts=1))
    table.delete(rows(1))
    table.insert_overwrite(rows(5, ts=2))
    table.delete_partitions([{"city": "a%b"}])
    told = {info["hudi.instant"]: info for info in versions(path) if "hudi.instant" in info}
    writes = table.timeline.completed_writes()
    assert list(told) == [instant.requested_time for instant in writes]
    for instant in writes:
        info = told[instant.requested_time]
        assert info["hudi.action"] == instant.action
        assert info["hudi.completion-time"] == instant.completion_time
        assert content(by_deltalake(path, info["version"])) == content(
            table.to_arrow(as_of=instant)
        )
    assert [info["hudi.operation"] for info in told.values()] == [
        *("BULK_INSERT", "UPSERT", "DELETE", "INSERT_OVERWRITE", "DELETE_PARTITION")
    ]


def test_columns_are_added_by_alter_and_by_a_write_and_undone(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = new_table(path)
    table.insert(rows(0, 1))
    altered = table.alter(add_columns={"extra": pa.int64()})
    assert_all_read(path, content(rows(0, 1)))
    assert "extra" in by_deltalake(path).column_names

    batch = rows(2).append_column("extra", pa.array([7], pa.int64()))
    wide = batch.append_column("late", pa.array(["x"]))
    evolved = table.insert(wide, options={"hoodie.datasource.write.reconcile.schema": "true"})
    names = [*SCHEMA.names, "extra", "late"]
    both = pa.concat_tables([rows(0, 1), wide], promote_options="default")
    assert_all_read(path, content(both, names), names)
    before, newest = versions(path)[-2:]
    assert newest["hudi.instant"] == evolved.instant.requested_time
    assert before["hudi.instant"] == altered.instant.requested_time
    assert before["operation"] == "ADD COLUMNS"

    # the columns go with the write that brought them, and may come back with another type
    table.rollback(evolved.instant)
    assert "late" not in by_deltalake(path).column_names
    hudi.Table.open(str(path)).alter(add_columns={"late": pa.int64()})
    assert by_deltalake(path).schema.field("late").type == pa.int64()


def test_members_of_structs_are_added(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = new_table(path)
    table.insert(rows(1))
    inner = pa.struct([*SCHEMA.field("inner").type, pa.field("more", pa.int64())])
    index = SCHEMA.get_field_index("inner")
    wide = SCHEMA.set(index, pa.field("inner", inner))
    given_row = {**row(2), "inner": {"x": 2, "word": "w", "more": 9}}
    table.upsert(pa.Table.from_pylist([given_row], wide))
    found = {each["id"]: each["inner"] for each in by_deltalake(path).to_pylist()}
    assert found["k002"] == {"x": 2, "word": "w", "more": 9}
    assert found["k001"]["more"] is None


def test_what_delta_cannot_express_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "table")
    table.insert(rows(0))
    for change in ({"rename": {"value": "worth"}}, {"drop": "value"}):
        with pytest.raises(UnsupportedCapabilityError):
            table.alter(**change)
    with pytest.raises(UnsupportedCapabilityError, match="promote"):
        table.alter(promote={"inner.x": pa.int64()})
    assert_all_read(tmp_path / "table", content(rows(0)))


def test_a_column_of_a_type_that_delta_lacks_is_refused_at_creation(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("noon", pa.struct([("t", pa.time64("us"))]))])
    with pytest.raises(SchemaError, match=r"noon\.t has the type time64\[us\]"):
        hudi.Table.create(str(tmp_path / "t"), schema, record_key="id", options=OPTIONS)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("price", pa.decimal128(38, 10)),
        ("value", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ],
)
@pytest.mark.parametrize("hive", ["true", "false"])
def test_partition_values_of_every_type_are_exact(
    tmp_path: Path, column: str, kind: pa.DataType, hive: str
) -> None:
    path = tmp_path / "table"
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        record_key="id",
        partition_by=column,
        options={**OPTIONS, "hoodie.datasource.write.hive_style_partitioning": hive},
    )
    without = {**row(9), column: None}
    batch = pa.Table.from_pylist([row(1), row(2), row(3), without], SCHEMA)
    table.insert(batch)
    found = by_deltalake(path)
    assert content(found) == content(batch)
    assert found.schema.field(column).type == kind
    partitioned = DeltaTable(str(path)).metadata().partition_columns
    assert partitioned == ([] if pa.types.is_floating(kind) or column == "at" else [column])
