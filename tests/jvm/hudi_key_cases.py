"""Tables of Hudi-Spark, whose keys have several forms: we go on as it began, and it with us."""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import OptionConflictError, UnsupportedTableError
from hudi_core.model.files import FileId, derive_file_id
from hudi_core.model.instant_time import InstantTime
from hudi_core.write import bulk_insert, planning
from tests.jvm.engines import Engine

HERE = {"hoodie.table.timeline.local.zone": "UTC"}
"""The zone of the engine's process."""
CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
VALIDATION = "hoodie.write.complex.keygen.validation.enable"
NEW_ENCODING = "hoodie.write.complex.keygen.new.encoding"
JAVA = "hoodie.datasource.write.keygenerator.java.version"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
RECORD_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def options(
    key: str = "id", partition_by: str = "", operation: str = "upsert", **more: str
) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.partitionpath.field": partition_by,
        "hoodie.datasource.write.operation": operation,
        "hoodie.table.ordering.fields": "v",
        **more,
    }


def opened(path: Path, more: Mapping[str, str] | None = None) -> hudi.Table:
    return hudi.Table.open(str(path), options={**HERE, **(more or {})})


def keys(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    found = opened(path).to_arrow(["_hoodie_record_key", *columns])
    return sorted(zip(*found.to_pydict().values(), strict=True), key=repr)


# --- forms of keys -------------------------------------------------------------------------------

MOMENTS = [
    dt.datetime(2026, 7, 1, 0, 0, 0, 123_456, dt.UTC),
    dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC),
]


def at(v: int, partitions: bool = False) -> pa.Table:
    timestamps = pa.array(MOMENTS, pa.timestamp("us", "UTC"))
    found = pa.table({"id": timestamps, "v": pa.array([v] * len(MOMENTS), pa.int64())})
    return found.append_column("day", timestamps) if partitions else found


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("bulk_insert", {}),  # the row writer spells them in any case
        ("upsert", {}),
        ("upsert", {CONSISTENT: "true"}),
        ("bulk_insert", {CONSISTENT: "true"}),
        ("bulk_insert", {"hoodie.datasource.write.row.writer.enable": "false"}),
    ],
)
def test_timestamps_as_keys(
    hudi_spark: Engine, tmp_path: Path, operation: str, more: dict[str, str]
) -> None:
    path = tmp_path / "table"
    hudi_spark.save(at(1), path, options(operation=operation, **more))
    before = keys(path)
    result = opened(path).upsert(at(2))
    assert (result.updated, result.inserted) == (2, 0)
    assert keys(path) == before
    is_text = "-" in before[0][0]
    with pytest.raises(OptionConflictError, match=CONSISTENT):
        opened(path, {CONSISTENT: str(not is_text).lower()}).upsert(at(3))
    # a job that says nothing of it takes what the table has kept
    hudi_spark.save(at(3), path, options())
    assert keys(path, "v") == [(*one, 3) for one in before]
    assert opened(path).delete(at(4)).deleted == 2


def test_timestamps_as_partitions(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "table"
    encoded = {"hoodie.datasource.write.partitionpath.urlencode": "true", CONSISTENT: "true"}
    hudi_spark.save(at(1, partitions=True), path, options("id", "day", **encoded))
    before = keys(path, "_hoodie_partition_path")
    assert before[0][1] == "2026-01-31 12%3A30%3A00.0"
    assert opened(path).upsert(at(2, partitions=True)).updated == 2
    hudi_spark.save(at(3, partitions=True), path, options("id", "day", **encoded))
    assert keys(path, "_hoodie_partition_path", "v") == [(*one, 3) for one in before]


@pytest.mark.parametrize("bare", ["true", "false"])
def test_complex_keys_of_one_field(hudi_spark: Engine, tmp_path: Path, bare: str) -> None:
    path = tmp_path / "table"
    more = {"hoodie.write.table.version": "8", VALIDATION: "false", NEW_ENCODING: bare}
    rows = pa.table({"id": ["1", "2"], "city": ["A", "B"], "day": ["x", "x"], "v": [1, 1]})
    job = options("id", "city,day", **more, **{"hoodie.write.auto.upgrade": "false"})
    hudi_spark.save(rows, path, job)
    other = {"true": "false", "false": "true"}[bare]
    with pytest.raises(OptionConflictError, match=NEW_ENCODING):
        opened(path, {NEW_ENCODING: other}).upsert(rows)
    assert opened(path).upsert(rows).updated == 2
    assert opened(path).delete(rows.slice(1)).deleted == 1
    hudi_spark.save(rows, path, job)
    prefix = "" if bare == "true" else "id:"
    assert [one[0] for one in keys(path)] == [f"{prefix}1", f"{prefix}2"]


def test_numbers_as_keys_have_the_digits_of_this_java(hudi_spark: Engine, tmp_path: Path) -> None:
    chance = random.Random(5)
    values = [struct.unpack(">d", chance.randbytes(8))[0] for _ in range(3000)]
    values = sorted({one for one in values if one == one and abs(one) < 1e308})
    singles = [struct.unpack(">f", chance.randbytes(4))[0] for _ in range(3000)]
    singles = sorted({one for one in singles if one == one and abs(one) < 3e38})
    for number, (some, kind) in enumerate(((values, pa.float64()), (singles, pa.float32()))):
        path = tmp_path / f"table{number}"
        rows = pa.table({"id": pa.array(some, kind), "v": [1] * len(some)})
        hudi_spark.save(rows, path, options())
        result = opened(path).upsert(rows)
        assert (result.updated, result.inserted) == (len(some), 0)
    plain = tmp_path / "plain"
    rows = pa.table({"id": [0.5, 100.25], "v": [1, 1]})
    hudi_spark.save(rows, plain, options())
    with pytest.raises(UnsupportedTableError, match=JAVA):
        opened(plain).upsert(rows)
    assert opened(plain, {JAVA: "17"}).upsert(rows).updated == 2


# --- buckets -------------------------------------------------------------------------------------


def test_buckets_are_proved(hudi_spark: Engine, tmp_path: Path) -> None:
    path = tmp_path / "table"
    rows = pa.table({"id": [f"k{n}" for n in range(60)], "city": ["A", "B"] * 30, "v": [1] * 60})
    hudi_spark.save(rows, path, options("id", "city", **BUCKETS))
    number = "hoodie.bucket.index.num.buckets"
    for wrong in ("2", "8", "256"):
        with pytest.raises(UnsupportedTableError, match=number):
            opened(path, {**BUCKETS, number: wrong}).upsert(rows)
    with pytest.raises(UnsupportedTableError, match="has buckets, 4 of them"):
        opened(path, {"hoodie.index.type": "SIMPLE"}).upsert(rows)
    assert opened(path, BUCKETS).upsert(rows).updated == 60
    hudi_spark.save(rows, path, options("id", "city", **BUCKETS))
    assert len(keys(path)) == 60


# --- the record index ----------------------------------------------------------------------------


def numbered(ids: range, v: int, city: str | None = None) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{n}" for n in ids],
            "city": [city or "AB"[n % 2] for n in ids],
            "v": pa.array([v] * len(ids), pa.int64()),
        }
    )


def test_what_hudi_leaves_in_its_record_index_is_no_damage(
    hudi_spark: Engine, tmp_path: Path
) -> None:
    """Replaced, deleted, clustered, cleaned and rolled back groups: none of them is named."""
    path, expected = tmp_path / "table", dict[str, int]()

    def spark(rows: pa.Table, operation: str, **more: str) -> None:
        hudi_spark.save(rows, path, options("id", "city", operation, **RECORD_INDEX, **more))

    def ours(ids: range, v: int) -> None:
        rows = numbered(ids, v)
        known = sum(one in expected for one in rows["id"].to_pylist())
        result = opened(path, RECORD_INDEX).upsert(rows)
        assert (result.updated, result.inserted) == (known, len(ids) - known)
        expected.update(dict.fromkeys(rows["id"].to_pylist(), v))
        check()

    def check() -> None:
        found = opened(path).to_arrow(["id", "v"])
        assert dict(zip(*found.to_pydict().values(), strict=True)) == expected
        assert found.num_rows == len(expected)
        assert hudi_spark.values(path, ["id", "v"]) == sorted(expected.items(), key=repr)

    spark(numbered(range(20), 1), "bulk_insert")
    expected |= dict.fromkeys((f"k{n}" for n in range(20)), 1)
    ours(range(5, 25), 2)
    spark(numbered(range(0, 30, 6), 3, "A"), "insert_overwrite")
    expected = {key: v for key, v in expected.items() if int(key[1:]) % 2}
    expected |= dict.fromkeys((f"k{n}" for n in range(0, 30, 6)), 3)
    ours(range(30), 4)
    spark(numbered(range(1), 5, "B"), "delete_partition")
    expected = {key: v for key, v in expected.items() if int(key[1:]) % 2 == 0}
    check()
    ours(range(3, 33), 6)
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    spark(numbered(range(30, 40), 7), "upsert", **inline)
    expected |= dict.fromkeys((f"k{n}" for n in range(30, 40)), 7)
    ours(range(45), 8)
    clean = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    spark(numbered(range(40, 50), 9), "upsert", **clean)
    expected |= dict.fromkeys((f"k{n}" for n in range(40, 50)), 9)
    ours(range(35, 55), 10)
    spark(numbered(range(50, 70), 11), "upsert")
    newest = opened(path).timeline.completed_writes()[-1].requested_time
    hudi_spark.sql(f"create table indexed using hudi location '{path}'")
    hudi_spark.sql(f"call rollback_to_instant(table => 'indexed', instant_time => '{newest}')")
    hudi_spark.sql("drop table indexed")
    check()
    ours(range(48, 72), 12)
    assert opened(path).validate().differences == ()


def test_file_groups_without_a_number(
    hudi_spark: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink names its file groups by a UUID alone; what we write of them Hudi-Spark looks up."""

    def bare(instant: InstantTime, task: int, group: int) -> FileId:
        return FileId(derive_file_id(instant, task, group)[:36])

    for module in (planning, bulk_insert):
        monkeypatch.setattr(module, "derive_file_id", bare)
    path, given = tmp_path / "table", {**RECORD_INDEX, "hoodie.write.table.version": "9"}
    table = hudi.Table.create(
        str(path),
        numbered(range(1), 1).schema,
        name="t",
        record_key="id",
        partition_by="city",
        ordering_field="v",
        options=given,
    )
    table.upsert(numbered(range(20), 1))
    assert {len(one.file_id) for one in table.file_slices()} == {36}
    hudi_spark.save(numbered(range(10, 30), 2), path, options("id", "city", **RECORD_INDEX))
    assert len(keys(path)) == 30
    assert table.upsert(numbered(range(25), 3)).updated == 25
    assert len(keys(path)) == 30
    assert len(hudi_spark.values(path, ["id"], "_hoodie_record_key = 'k3'")) == 1
