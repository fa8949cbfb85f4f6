"""Rows that are not one row, and whose record keys read alike, are refused before any is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import KeyCollisionError, RecordKeyError, UnsupportedTableError
from hudi_core.index import collisions
from tests.foreign import by_hudi_rs
from tests.formats.virtual_tables import INDEXES, LEVELS
from tests.samples import paired

Key = tuple[str | None, str | None]
SCHEMA = pa.schema(
    [("a", pa.string()), ("b", pa.string()), ("city", pa.string()), ("v", pa.int64())]
)
PAIRS: Mapping[str, tuple[Key, Key]] = {
    "joint": (("1,b:2", "3"), ("1", "2,b:3")),
    "null": ((None, "x"), ("__null__", "x")),
    "empty": (("y", ""), ("y", "__empty__")),
}
DUPLICATES = "hoodie.datasource.insert.dup.policy"
IN_FILE = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
COMBINED = {"hoodie.combine.before.insert": "true"}
PLAIN: tuple[str, str] = ("p", "q")


def rows(*keys: Key, v: int = 1, city: str = "rome") -> pa.Table:
    made = [{"a": a, "b": b, "city": city, "v": v + n} for n, (a, b) in enumerate(keys)]
    return pa.Table.from_pylist(made, SCHEMA)


def create(path: Path, *, table_format: str = "native", **options: str) -> hudi.Table:
    return hudi.Table.create(
        str(path),
        SCHEMA,
        name="t",
        record_key=["a", "b"],
        partition_by="city",
        format=table_format,
        options={"hoodie.fs.fsync": "false", **options},
    )


def held(table: hudi.Table) -> list[tuple[Any, ...]]:
    found = table.to_arrow(list(SCHEMA.names)).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def refused(write: Callable[[], Any], key: Key, other: Key) -> None:
    """It is, and names both rows."""
    with pytest.raises(KeyCollisionError) as caught:
        write()
    error = caught.value
    named = [tuple(row.values()) for row in (error.incoming, error.other)]
    assert sorted(named, key=repr) == sorted([key, other], key=repr)
    assert all(f"{name}={value!r}" in str(error) for name, value in error.incoming.items())


# --- rows of one write ---------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_of_one_write_are_compared(tmp_path: Path, pair: str) -> None:
    one, other = PAIRS[pair]
    table = create(tmp_path / "t")
    table.upsert(rows(PLAIN))
    before = sorted(tmp_path.rglob("*.parquet"))
    both = rows(PLAIN, one, other)
    for write in (
        partial(table.upsert, both),
        partial(table.upsert, both, options={"hoodie.combine.before.upsert": "false"}),
        partial(table.insert, both),
        partial(table.insert, both, options=COMBINED),
        partial(table.insert, both, options=IN_FILE),
        partial(table.insert, both, options={DUPLICATES: "drop"}),
        partial(table.bulk_insert, both, options=COMBINED),
        partial(table.insert_overwrite, both),
        partial(table.insert_overwrite_table, both, options=COMBINED),
        partial(table.delete, both),
        partial(table.plan, "upsert", both),
        table.merge(both, "target.v = source.v").when_not_matched_insert_all().execute,
    ):
        refused(write, one, other)
    assert held(table) == [("p", "q", "rome", 1)]
    assert sorted(tmp_path.rglob("*.parquet")) == before
    # partitions, whose keys are apart, do not meet
    table.upsert(rows(one))
    table.upsert(rows(other, city="oslo"))
    assert table.count() == 3


def test_a_bulk_insert_that_combines_nothing_compares_nothing(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    one, other = PAIRS["joint"]
    table.bulk_insert(rows(one, other))

    assert table.count() == 2
    refused(lambda: table.upsert(rows(one)), one, other)
    # as the error says: a condition on the columns finds the one row
    table.delete(where="a = '1'")
    table.upsert(rows(one, v=7))
    assert held(table) == [(*one, "rome", 7)]


# --- stored rows ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "level"), paired(INDEXES, [None, "no key column", "no meta columns"])
)
def test_stored_rows_are_compared(tmp_path: Path, index: str, level: str | None) -> None:
    options = {"hoodie.index.type": index, **INDEXES[index], **(LEVELS[level] if level else {})}
    table = create(tmp_path / "t", **options)
    # virtual keys have no nulls
    pairs = [pair for name, pair in PAIRS.items() if level != "no key column" or name != "null"]
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            table.upsert(rows(PLAIN, one))
            before = held(table)
            refused(partial(table.upsert, rows(PLAIN, other, v=8)), other, one)
            refused(partial(table.delete, rows(other)), other, one)
            assert held(table) == before
            assert table.upsert(rows(one, v=9)).updated == 1
            assert table.delete(rows(one)).deleted == 1
    assert held(table) == [("p", "q", "rome", 1)]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
def test_rows_do_not_move_onto_another_key(tmp_path: Path, index: str) -> None:
    table = create(tmp_path / "t", **{"hoodie.index.type": index, **INDEXES[index]})
    one, other = PAIRS["joint"]
    table.upsert(rows(one))
    by_key = rows(other).drop_columns(["city", "v"])

    refused(lambda: table.upsert(rows(other, city="oslo")), other, one)
    refused(lambda: table.delete(by_key), other, one)
    assert held(table) == [(*one, "rome", 1)]


@pytest.mark.parametrize("pair", PAIRS)
def test_inserts_that_look_for_keys_are_compared(tmp_path: Path, pair: str) -> None:
    one, other = PAIRS[pair]
    table = create(tmp_path / "t")
    table.upsert(rows(one))
    new = rows(other, v=5)
    by_columns = "target.a = source.a AND target.b = source.b"
    for write in (
        partial(table.insert, new, options={DUPLICATES: "drop"}),
        partial(table.insert, new, options={DUPLICATES: "fail"}),
        partial(table.insert, new, options=IN_FILE),
        table.merge(new, ["a", "b"]).when_not_matched_insert_all().execute,
        table.merge(new, by_columns).when_matched_delete().when_not_matched_insert_all().execute,
        table.merge(new, "target.v = source.v").when_not_matched_insert_all().execute,
    ):
        refused(write, other, one)
    assert held(table) == [(*one, "rome", 1)]
    # a row that goes with the merge makes room
    replace_it = table.merge(rows(other, v=1), "target.v = source.v")
    replace_it.when_matched_delete().execute()
    table.upsert(new)
    assert held(table) == [(*other, "rome", 5)]


@pytest.mark.parametrize("table_format", ["iceberg,delta"])
def test_every_format_refuses(tmp_path: Path, table_format: str) -> None:
    table = create(tmp_path / "t", table_format=table_format)
    for one, other in PAIRS.values():
        table.upsert(rows(one))
        refused(partial(table.upsert, rows(other)), other, one)
        refused(partial(table.delete, rows(other)), other, one)
    assert table.count() == len(by_hudi_rs(table.path)) == 3
    assert table.validate(keys=True).is_valid
    for one, _ in PAIRS.values():
        is_it = pc.field("b") == one[1]
        assert table.to_arrow(["a", "b"], filter=is_it).to_pylist() == [{"a": one[0], "b": one[1]}]


def test_filters_by_key_columns_find_the_row_itself(tmp_path: Path) -> None:
    table = create(
        tmp_path / "t", **{"hoodie.index.type": "RECORD_INDEX", **INDEXES["RECORD_INDEX"]}
    )
    for one, other in PAIRS.values():
        table.upsert(rows(one, v=3))
        for (a, b), count in ((one, 1), (other, 0)):
            is_a = pc.field("a").is_null() if a is None else pc.field("a") == a
            assert table.to_arrow(filter=is_a & (pc.field("b") == b)).num_rows == count


@pytest.mark.parametrize("index", ["BLOOM", "RECORD_INDEX", "GLOBAL_SIMPLE", "BUCKET"])
def test_inserts_of_odd_values_are_compared(tmp_path: Path, index: str) -> None:
    table = create(tmp_path / "t", **{"hoodie.index.type": index, **INDEXES[index]})
    table.insert(rows(*(one for one, _ in PAIRS.values())))
    before = held(table)
    for one, other in PAIRS.values():
        refused(partial(table.insert, rows(PLAIN, other)), other, one)
        refused(partial(table.bulk_insert, rows(other), options=COMBINED), other, one)
        refused(partial(table.plan, "insert", rows(other)), other, one)
    assert held(table) == before
    # what replaces the stored rows does not meet them; and a partition is for itself
    assert table.insert_overwrite(rows(PAIRS["joint"][1])).inserted == 1
    if index in ("BLOOM", "BUCKET"):
        assert table.insert(rows(PAIRS["joint"][0], city="oslo")).inserted == 1


def test_a_null_beside_a_stored_placeholder_is_read_and_stays_apart(tmp_path: Path) -> None:
    """An insert looks no such key up: the record index knows one place of it, and is not asked."""
    small = {"hoodie.parquet.small.file.limit": "0"}
    index = {"hoodie.index.type": "RECORD_INDEX", **INDEXES["RECORD_INDEX"]}
    table = create(tmp_path / "t", **small, **index)
    keys = [key for name in ("null", "empty") for key in PAIRS[name][::-1]]
    for key in keys:
        table.insert(rows(key))
    for a, b in keys:
        is_a = pc.field("a").is_null() if a is None else pc.field("a") == a
        assert table.to_arrow(filter=is_a & (pc.field("b") == b)).num_rows == 1
    for name in ("null", "empty"):
        one, other = PAIRS[name]
        refused(partial(table.upsert, rows(other)), other, one)
        refused(partial(table.delete, rows(other)), other, one)
    assert table.count() == len(keys)


def test_a_folder_with_such_rows_is_adopted_only_by_writing_them(tmp_path: Path) -> None:
    one, other = PAIRS["joint"]
    folder = tmp_path / "folder" / "city=rome"
    folder.mkdir(parents=True)
    pq.write_table(rows(one, other), folder / "a.parquet")
    found: dict[str, Any] = {"record_key": ["a", "b"], "partition_by": "city", "source": "parquet"}

    with pytest.raises(UnsupportedTableError, match="1 rows have the key of another row"):
        hudi.Table.adopt(folder.parent, **found)
    hudi.Table.adopt(folder.parent, rewrite=tmp_path / "new", **found)
    assert hudi.Table.open(tmp_path / "new").count() == 2


def test_timestamps_that_lose_their_microseconds_are_compared(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    logical = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    table = hudi.Table.create(
        str(tmp_path / "t"), schema, record_key="at", options={logical: "true"}
    )

    def of(*micros: int) -> pa.Table:
        return pa.table({"at": pa.array(micros, schema[0].type), "v": list(micros)}, schema)

    with pytest.raises(KeyCollisionError, match="beside it"):
        table.upsert(of(1_000_001, 1_000_002))
    table.upsert(of(1_000_000, 2_000_000))
    with pytest.raises(KeyCollisionError, match="stored in the table"):
        table.upsert(of(1_000_001, 2_000_000))
    assert table.upsert(of(1_000_000, 2_000_000)).updated == 2


# --- what is not compared ------------------------------------------------------


def test_other_keys_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "t")
    table.upsert(rows(PLAIN, ("x,y", "z:1")))
    one, other = PAIRS["null"]

    def read(*_: object) -> None:
        raise AssertionError("key columns were read")

    monkeypatch.setattr(collisions, "read_column", read)
    monkeypatch.setattr(collisions, "require_same_rows", read)
    assert table.upsert(rows(PLAIN, ("x,y", "z:1"), v=4)).updated == 2
    # an ambiguous key that meets no stored row is no reason, either
    assert table.upsert(rows(PLAIN, one, ("1,b:2", "3"))).inserted == 2
    with pytest.raises(AssertionError, match="key columns were read"):
        table.upsert(rows(other))


def test_a_virtual_key_has_no_nulls(tmp_path: Path) -> None:
    table = create(tmp_path / "t", **LEVELS["no key column"])
    table.upsert(rows(("__null__", "x")))

    with pytest.raises(RecordKeyError, match="null or empty in 1 of 1 rows"):
        table.upsert(rows((None, "x")))


# --- Spark ---------------------------------------------------------------------


@pytest.mark.spark
def test_spark_refuses(tmp_path: Path, spark: SparkSession) -> None:
    table = create(tmp_path / "t")

    def frame(*keys: Key) -> Any:
        # two tasks
        return spark.createDataFrame(rows(*keys)).repartition(2, "b")

    one, other = PAIRS["joint"]
    refused(lambda: table.upsert(frame(PLAIN, one, other)), one, other)
    refused(lambda: table.insert(frame(one, other)), one, other)
    table.upsert(frame(PLAIN, one))
    refused(lambda: table.upsert(frame(other)), other, one)
    refused(lambda: table.delete(frame(other)), other, one)
    merge = table.merge(frame(other), ["a", "b"]).when_not_matched_insert_all()
    refused(merge.execute, other, one)
    assert sorted(row[:2] for row in held(table)) == sorted([PLAIN, one])
