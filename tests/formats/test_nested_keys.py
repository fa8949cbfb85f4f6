"""Record keys and partition paths of fields of structs: everything goes by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import hudi_core as hudi
from hudi_core.errors import RecordKeyError, SchemaError
from tests.foreign import by_hudi_rs
from tests.formats.service_tables import READERS, bag
from tests.formats.virtual_tables import INDEXES, LEVELS
from tests.samples import paired

HEAD = pa.struct([("k", pa.string()), ("city", pa.string()), ("x", pa.int64())])
SCHEMA = pa.schema([("h", HEAD), ("n", pa.int64()), ("v", pa.int64())])
SHAPES: dict[str, tuple[list[str], list[str]]] = {
    "plain": (["h.k"], []),
    "several": (["h.k", "n"], []),
    "partitioned": (["h.k"], ["h.city"]),
    "composite": (["h.k", "n"], ["h.city"]),
}
"""Columns of the key and of the partition. hudi-rs does not open a table whose partition path is
of a field of a struct."""
KINDS = [(shape, level) for level in (None, *LEVELS) for shape in SHAPES][::3]


def rows(keys: str, v: int = 1, city: str = "rome") -> pa.Table:
    made = [{"h": {"k": key, "city": city, "x": v}, "n": 7, "v": v} for key in keys]
    return pa.Table.from_pylist(made, SCHEMA)


def create(path: Path, shape: str = "plain", table_format: str = "native", **more: str) -> Any:
    keys, partitions = SHAPES[shape]
    return hudi.Table.create(
        str(path),
        SCHEMA,
        name="t",
        record_key=keys,
        partition_by=partitions,
        format=table_format,
        options={"hoodie.fs.fsync": "false", **more},
    )


def held(table: hudi.Table) -> str:
    found = table.to_arrow(["h", "v"]).to_pylist()
    return " ".join(sorted(f"{row['h']['k']}{row['v']}{row['h']['x']}" for row in found))


@pytest.mark.parametrize(("index", "kind"), paired(INDEXES, KINDS))
def test_every_operation_goes_by_the_field(
    tmp_path: Path, index: str, kind: tuple[str, str | None]
) -> None:
    shape, level = kind
    own = LEVELS[level] if level else {}
    options = {"hoodie.index.type": index, **INDEXES[index], **own}
    table = create(tmp_path / "t", shape, **options)
    begin = table.insert(rows("abc")).instant
    result = table.upsert(rows("bde", 2))
    assert (result.inserted, result.updated) == (2, 1)
    assert table.delete(rows("c")).deleted == 1
    assert (
        table.insert(
            rows("ae", 3), options={"hoodie.datasource.insert.dup.policy": "drop"}
        ).inserted
        == 0
    )
    assert held(table) == "a11 b22 d22 e22"
    on = "target.h.k = source.h.k AND target.n = source.n"
    merge = table.merge(rows("bz", 4), on)
    values = {"h": "source.h", "v": "source.v"}
    merge = merge.when_matched_update(values).when_not_matched_insert_all()
    assert (merge.execute().updated, held(table)) == (1, "a11 b44 d22 e22 z44")
    table.update({"v": 9}, where="h.k = 'd'")
    table.delete(where="h.k = 'e'")
    assert held(table) == "a11 b44 d92 z44"
    key = pc.field("h", "k") == "b"
    assert table.to_arrow(["v"], filter=key).column("v").to_pylist() == [4]
    diff = table.diff(begin, table.timeline.completed_writes()[-1])
    kinds = sorted((row["h"]["k"], row["_change_type"]) for row in diff.to_pylist())
    assert kinds == [("b", "update"), ("c", "delete"), ("d", "insert"), ("z", "insert")]
    if not table.config.partition_fields:
        assert len(by_hudi_rs(table.path)) == 4
    assert table.validate(keys=True).is_valid


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_readers_of_every_format_see_the_rows(tmp_path: Path, table_format: str) -> None:
    table = create(tmp_path / "t", "composite", table_format)
    table.insert(rows("ab"))
    table.upsert(pa.concat_tables([rows("bc", 2), rows("d", 2, "oslo")]))
    table.delete(rows("a"))
    for read in set(READERS[table_format]) - set(READERS["native"]):
        assert bag(read(tmp_path / "t"), ["h", "v"]) == bag(table.to_arrow(["h", "v"])), read
    paths = set(table.to_arrow(["_hoodie_partition_path"])[0].to_pylist())
    assert paths == {"rome", "oslo"}
    assert table.validate(keys=True).is_valid


def test_the_stored_key_is_hudis(tmp_path: Path) -> None:
    for shape, key in (("plain", "a"), ("several", "h.k:a,n:7")):
        table = create(tmp_path / shape, shape)
        table.insert(rows("a"))
        (row,) = by_hudi_rs(table.path)
        assert row["_hoodie_record_key"] == key
        properties = (tmp_path / shape / ".hoodie" / "hoodie.properties").read_text()
        assert f"hoodie.table.recordkey.fields={','.join(SHAPES[shape][0])}" in properties


def test_a_delete_needs_the_fields_of_key_and_partition_alone(tmp_path: Path) -> None:
    table = create(tmp_path / "t", "partitioned", **{"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.insert(rows("abcd"))

    table.delete(pa.table({"h": pa.array([{"k": "a", "city": "rome"}])}))
    table.delete(pa.table({"h": pa.array([{"city": "rome", "k": "b", "new": 1}]), "new": [1]}))
    table.delete(pa.table({"h": pa.array([{"k": "c"}])}))  # an index of the whole table finds it
    assert held(table) == "d11"
    by_partition = {"hoodie.index.type": "SIMPLE"}
    with pytest.raises(SchemaError, match=r"lack the column 'h\.city'"):
        table.delete(pa.table({"h": pa.array([{"k": "d"}])}), options=by_partition)


def test_rows_move_by_a_nested_partition(tmp_path: Path) -> None:
    table = create(tmp_path / "t", "partitioned", **{"hoodie.index.type": "GLOBAL_BLOOM"})
    table.insert(rows("ab"))

    assert table.upsert(rows("a", 2, "oslo")).updated + table.count() >= 2
    paths = {
        row["h"]["k"]: row["_hoodie_partition_path"]
        for row in table.to_arrow(["h", "_hoodie_partition_path"]).to_pylist()
    }
    assert paths == {"a": "oslo", "b": "rome"}


def test_what_has_no_key_or_would_change_one_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    table.insert(rows("ab"))
    without = pa.table({"h": pa.array([{"x": 1}]), "n": [1], "v": [1]})

    for given in (pa.array([None], HEAD), pa.array([{"k": None}], HEAD)):
        with pytest.raises(RecordKeyError, match=r"\(h\.k\) is null or empty in 1 of 1 rows"):
            table.upsert(pa.table([given, [1], [1]], names=SCHEMA.names))
    with pytest.raises(SchemaError, match=r"lack the column h\.k"):
        table.upsert(without)
    with pytest.raises(RecordKeyError, match=r"lack the record key column 'h\.k'"):
        table.delete(without)
    with pytest.raises(SchemaError, match="'h' is part of the record key"):
        table.update({"h": {"k": "z", "city": "rome", "x": 1}}, where="n = 7")
    by_number = table.merge(rows("z"), "target.n = source.n AND source.h.k = target.h.city")
    with pytest.raises(SchemaError, match="'h' is part of the record key"):
        by_number.when_matched_update({"h": "source.h"}).execute()
    for change in ({"drop": ["h"]}, {"drop": ["h.k"]}, {"rename": {"h.k": "key"}}):
        with pytest.raises(SchemaError, match=r"part of the record key|is part"):
            table.alter(**change)
    assert held(table) == "a11 b11"
    for name in ("h.none", "h", "n.k", "h.k.x"):
        with pytest.raises(SchemaError):
            hudi.Table.create(str(tmp_path / "no"), SCHEMA, record_key=name)
        assert not (tmp_path / "no").exists()


@pytest.mark.spark
def test_spark_takes_them(tmp_path: Path, spark: SparkSession) -> None:
    table = create(tmp_path / "t", "composite")

    def frame(keys: str, v: int = 1) -> Any:
        return spark.createDataFrame(rows(keys, v))

    sort = {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}
    table.bulk_insert(frame("abc"), options=sort)
    table.upsert(frame("bd", 2))
    table.delete(frame("c"))
    on = "target.h.k = source.h.k AND target.n = source.n"
    merge = table.merge(frame("dz", 4), on).when_matched_update({"h": "source.h"})
    merge.when_not_matched_insert_all().execute()
    assert held(table) == "a11 b22 d24 z44"
    assert table.read(spark).where("h.k = 'z'").count() == 1
