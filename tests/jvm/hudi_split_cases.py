"""Hudi-Spark and split tables: it reads them, and which of its writers may write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import hudi_core as hudi
from tests.foreign import by_hudi_rs
from tests.jvm.engines import Engine
from tests.tables import SCHEMA, new_table, rows

MODE: Final = {"hoodie.table.merge-on-read.mode": "split"}
RECORD_INDEX: Final = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def split(path: Path, version: str, index: dict[str, str], order: str | None = "ts") -> hudi.Table:
    """A table with a row that was updated, one that was deleted, and one that came again."""
    options = {**MODE, **index, "hoodie.write.table.version": version}
    table = new_table(path, SCHEMA, options, table_type="MERGE_ON_READ", ordering_field=order)
    table.insert(rows("a", "b", "c", "d", part="x", ts=5))
    table.upsert(rows("a", "e", part="x", ts=7))
    table.delete(rows("b", "c", part="x"))
    table.upsert(rows("c", part="x", ts=6))
    return table


def held(found: Any) -> dict[str, int]:
    """Ordering values by keys, of which none is there twice."""
    pairs = [(row["id"], row["ts"]) for row in found]
    assert len(dict(pairs)) == len(pairs), sorted(pairs)
    return dict(pairs)


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("order", ["ts", None])
@pytest.mark.parametrize("positions", ["true", "false"])
def test_it_reads_them(
    hudi_spark: Engine, tmp_path: Path, version: str, order: str | None, positions: str
) -> None:
    table = split(tmp_path / "t", version, {}, order)
    expected = {"a": 7, "c": 6, "d": 5, "e": 7}
    given = {"hoodie.merge.use.record.positions": positions}
    assert held(hudi_spark.read(table.path, given).to_pylist()) == expected
    assert held(by_hudi_rs(table.path)) == held(table.to_arrow().to_pylist()) == expected


@pytest.mark.parametrize("version", ["8", "9"])
def test_it_writes_them_with_the_record_index(
    hudi_spark: Engine, tmp_path: Path, version: str
) -> None:
    table = split(tmp_path / "t", version, RECORD_INDEX)
    given = {
        **RECORD_INDEX,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.metadata.enable": "true",
        "hoodie.compact.inline": "false",
    }
    hudi_spark.save(rows("a", "b", "d", part="x", ts=8), table.path, given, mode="append")
    expected = {"a": 8, "b": 8, "c": 6, "d": 8, "e": 7}
    assert held(hudi_spark.read(table.path).to_pylist()) == expected
    again = hudi.Table.open(table.path, {**RECORD_INDEX, "hoodie.metadata.enable": "true"})
    assert held(again.to_arrow().to_pylist()) == expected
    again.upsert(rows("a", part="x", ts=9))
    assert held(hudi_spark.read(table.path).to_pylist()) == {**expected, "a": 9}


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_its_other_indexes_find_dead_rows(hudi_spark: Engine, tmp_path: Path, index: str) -> None:
    """They look at the keys of base files alone: an upsert of a key that two have adds a row."""
    table = split(tmp_path / "t", "9", {})
    given = {
        "hoodie.index.type": index,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.compact.inline": "false",
    }
    hudi_spark.save(rows("a", part="x", ts=8), table.path, given, mode="append")
    found = [row["ts"] for row in hudi_spark.read(table.path).to_pylist() if row["id"] == "a"]
    assert found == [8, 8]
