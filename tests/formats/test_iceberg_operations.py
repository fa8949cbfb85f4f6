"""Every operation on an Iceberg table, judged by pyiceberg, polars and hudi-rs after each step."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import parquet_files_to_data_files

import hudi_core as hudi
from hudi_core.errors import UnsupportedCapabilityError
from tests.formats.iceberg_tables import (
    SCHEMA,
    Iceberg,
    agree,
    bag,
    create,
    ours,
    row,
    rows,
    summary,
    without_meta,
)

META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"]
KINDS: dict[str, tuple[Any, dict[str, str]]] = {
    "one column": ("city", {}),
    "hive style": ("city", {"hoodie.datasource.write.hive_style_partitioning": "true"}),
    "two columns": (["city", "flag"], {}),
    "no partitions": (None, {}),
    "a day": ("day", {}),
    "without metadata table": ("city", {"hoodie.metadata.enable": "false"}),
    "metadata below .hoodie": ("city", {"hoodie.table.format.iceberg.location": ".hoodie/iceberg"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_agrees_after_every_step(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    partition_by, options = KINDS[kind]
    table = create(path, partition_by, **options)
    where = path / ".hoodie/iceberg" if "below" in kind else path
    seen = {}

    def step(result: Any, keys: set[int], ts: dict[int, int], action: str) -> None:
        expected = bag(pa.Table.from_pylist([row(k, ts.get(k, 0)) for k in keys], SCHEMA))
        ice = Iceberg(where)
        columns = SCHEMA.names
        assert bag(ice.rows(columns)) == expected
        assert ours(path) == expected
        if where == path:
            assert agree(path) == expected
        newest = ice.lineage[-1]
        assert newest.summary is not None
        assert newest.summary.operation.value == action
        told = summary(newest)
        assert told["hudi.instant"] == result.instant.requested_time
        assert told["hudi.completion-time"] == result.instant.completion_time
        assert told["total-records"] == str(len(keys))
        xtable = json.loads(told["XTABLE_METADATA"])
        assert xtable["sourceIdentifier"] == result.instant.requested_time
        seen[result.instant.requested_time] = (newest.snapshot_id, expected)

    step(table.bulk_insert(rows(range(12))), set(range(12)), {}, "append")
    table.insert(rows(range(12, 16)))
    kinds = {summary(one)["hudi.operation"] for one in Iceberg(where).lineage}
    assert kinds == {"BULK_INSERT", "INSERT"}
    ts = {1: 2, 5: 2, 20: 2}
    step(table.upsert(rows(ts, 2)), {*range(16), 20}, ts, "overwrite")
    gone = {2, 6, 11}
    left = {*range(16), 20} - gone
    step(table.delete(rows(gone)), left, ts, "overwrite")
    if partition_by is not None:
        here = _partition(3, partition_by)
        left = {key for key in left if _partition(key, partition_by) != here} | {3}
        step(table.insert_overwrite(rows([3])), left, ts, "overwrite")
    left = {1, 4, 8}
    step(table.insert_overwrite_table(rows(left)), left, {}, "overwrite")
    for instant, (snapshot_id, expected) in seen.items():
        assert bag(Iceberg(where).rows(SCHEMA.names, snapshot_id)) == expected
        assert ours(path, instant) == expected


def _partition(key: int, columns: Any) -> tuple[Any, ...]:
    names = [columns] if isinstance(columns, str) else columns
    return tuple(row(key)[name] for name in names)


def test_partitions_are_deleted_by_one_snapshot_and_pruned_by_their_values(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    table.bulk_insert(rows(range(10)))
    ice = Iceberg(tmp_path / "t")
    planned = list(ice.table.scan("city == 'oslo'").plan_files())
    assert {one.file.partition[0] for one in planned} == {"oslo"}
    table.delete_partitions(["oslo"])
    newest = ice.lineage[-1]
    assert newest.summary is not None
    assert newest.summary.operation.value == "delete"
    assert agree(tmp_path / "t") == bag(rows(k for k in range(10) if k % 5 != 1))


def test_columns_change_with_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path)
    table.bulk_insert(rows(range(6)))
    ids = {field.name: field.field_id for field in Iceberg(path).table.schema().fields}
    table.alter(add_columns={"extra": pa.int32()})
    agree(path)
    table.alter(rename={"value": "worth"})
    agree(path, hudi_rs=False)  # it finds columns by name only
    table.alter(drop="worth")
    agree(path)
    table.alter(add_columns={"value": pa.string()})
    agree(path, hudi_rs=False)
    fields = {field.name: field.field_id for field in Iceberg(path).table.schema().fields}
    assert fields["value"] not in ids.values()
    assert {name: fields[name] for name in META} == {name: ids[name] for name in META}
    changed = without_meta(table.to_arrow())
    changed = changed.set_column(changed.column_names.index("value"), "value", pa.array(["x"] * 6))
    result = table.upsert(changed)
    assert bag(Iceberg(path).rows(["id", "value"])) == bag(changed.select(["id", "value"]))
    table.rollback(result.instant)
    assert agree(path, hudi_rs=False)
    assert Iceberg(path).rows(["value"])["value"].null_count == 6


def test_an_undone_schema_change_is_undone_in_iceberg(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path)
    table.bulk_insert(rows(range(3)))
    result = table.alter(add_columns={"extra": pa.int32()})
    table.rollback(result.instant)
    assert "extra" not in Iceberg(path).table.schema().column_names
    agree(path)


def test_the_rows_of_an_undone_write_are_gone_and_its_snapshot_too(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path)
    table.bulk_insert(rows(range(6)))
    before = agree(path)
    result = table.upsert(rows(range(3), 5))
    undone = Iceberg(path).lineage[-1].snapshot_id
    table.rollback(result.instant)
    ice = Iceberg(path)
    assert agree(path) == before
    assert undone not in {one.snapshot_id for one in ice.table.metadata.snapshots}
    assert [summary(one)["hudi.operation"] for one in ice.lineage] == ["BULK_INSERT"]
    table.upsert(rows([1], 6))
    assert agree(path) == bag(pa.concat_tables([rows([0, 2, 3, 4, 5]), rows([1], 6)]))


@pytest.mark.filterwarnings("ignore")
def test_bounds_and_counts_are_what_pyiceberg_takes_from_the_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path).bulk_insert(rows(range(40)))
    table = Iceberg(path).table
    ours = {one.file.file_path: one.file for one in table.scan().plan_files()}
    theirs = parquet_files_to_data_files(table.io, table.metadata, iter(ours))
    fields = {field.name: field.field_id for field in table.schema().fields}
    plain = [number for name, number in fields.items() if name not in ("inner", "tags", "notes")]
    for other in theirs:
        mine = ours[other.file_path]
        assert mine.record_count == other.record_count
        assert mine.file_size_in_bytes == other.file_size_in_bytes
        assert mine.partition == other.partition
        for number in plain:
            assert mine.null_value_counts[number] == other.null_value_counts[number]
            assert mine.value_counts[number] == other.value_counts[number]
            assert mine.upper_bounds.get(number) == other.upper_bounds.get(number)
            if not mine.nan_value_counts.get(number):
                assert mine.lower_bounds.get(number) == other.lower_bounds.get(number)
    value = fields["value"]
    with_nan = [one for one in ours.values() if one.nan_value_counts[value]]
    assert sum(one.nan_value_counts[value] for one in with_nan) == 5
    # no footer has bounds of a column with NaN; a lower one loses no row
    assert {value in one.lower_bounds for one in with_nan} == {True}
    assert {value in one.upper_bounds for one in with_nan} == {False}


def test_no_file_is_said_to_hold_nothing_but_nan(tmp_path: Path) -> None:
    """Iceberg-Spark leaves such a file out of ``value > 3``, and Spark wants its rows."""
    path = tmp_path / "t"
    table = create(path)
    table.bulk_insert(
        pa.Table.from_pylist(
            [{**row, "value": math.nan} for row in rows(range(3)).to_pylist()], rows([0]).schema
        )
    )
    [value] = [
        field.field_id for field in Iceberg(path).table.schema().fields if field.name == "value"
    ]
    files = [one.file for one in Iceberg(path).table.scan().plan_files()]
    assert files
    for one in files:
        assert value in one.value_counts
        assert value not in one.nan_value_counts
        assert value not in one.lower_bounds
    assert len(agree(path)) == 3


def test_the_location_is_kept(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    kept = hudi.Table.open(str(tmp_path / "t")).config.raw
    assert kept["hoodie.table.format.iceberg.location"] == f"file://{tmp_path}/t"
    assert table.config.raw == kept


def test_what_iceberg_lacks_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    with pytest.raises(UnsupportedCapabilityError, match="promote type"):
        table.alter(promote={"inner.x": pa.float64()})
    assert len(Iceberg(tmp_path / "t").table.metadata.snapshots) == 1
