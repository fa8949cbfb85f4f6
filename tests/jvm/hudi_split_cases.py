"""Hudi-Spark and split tables: it reads them, and which of its writers may write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import hudi_core as hudi
from tests.foreign import by_hudi_rs
from tests.jvm.engines import Engine, EngineError
from tests.tables import SCHEMA, new_table, rows

MODE: Final = {"hoodie.table.merge-on-read.mode": "split"}
RECORD_INDEX: Final = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}

UPSERT: Final = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.compact.inline": "false",
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


INDEXES: Final = {
    "kept": RECORD_INDEX,
    "built": {},
    "built with a metadata table": {"hoodie.metadata.enable": "false"},
}
"""What we keep of the record index when Hudi-Spark comes."""


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("order", ["ts", None])
@pytest.mark.parametrize("index", INDEXES)
def test_it_writes_them(
    hudi_spark: Engine, tmp_path: Path, index: str, order: str | None, version: str
) -> None:
    """It finds the record index among the table's properties, and builds it where there is none."""
    table = split(tmp_path / "t", version, INDEXES[index], order)
    hudi_spark.read(table.path)  # or a first write of its process could not upgrade the table
    hudi_spark.save(rows("a", "b", "d", part="x", ts=8), table.path, UPSERT, mode="append")
    expected = {"a": 8, "b": 8, "c": 6, "d": 8, "e": 7}
    assert held(hudi_spark.read(table.path).to_pylist()) == expected
    again = hudi.Table.open(table.path, INDEXES[index])
    assert held(again.to_arrow().to_pylist()) == expected
    again.upsert(rows("a", "f", part="x", ts=9))
    expected |= {"a": 9, "f": 9}
    assert held(hudi_spark.read(table.path).to_pylist()) == expected
    hudi_spark.save(rows("a", "e", part="x", ts=10), table.path, UPSERT, mode="append")
    again.compact()
    expected |= {"a": 10, "e": 10}
    assert held(hudi_spark.read(table.path).to_pylist()) == expected
    assert held(hudi.Table.open(table.path).to_arrow().to_pylist()) == expected


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_its_other_indexes_are_refused(hudi_spark: Engine, tmp_path: Path, index: str) -> None:
    """They look at the keys of base files, dead ones too; the table's properties keep them away."""
    table = split(tmp_path / "t", "9", {})
    given = {**UPSERT, "hoodie.index.type": index}
    with pytest.raises(EngineError, match="Config conflict"):
        hudi_spark.save(rows("a", part="x", ts=8), table.path, given, mode="append")
    assert held(hudi_spark.read(table.path).to_pylist())["a"] == 7


def test_its_other_indexes_find_dead_rows(hudi_spark: Engine, tmp_path: Path) -> None:
    """Without that property an upsert of a key that two base files have adds a row."""
    table = split(tmp_path / "t", "9", {})
    file = Path(table.path, ".hoodie/hoodie.properties")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(one for one in lines if "index" not in one))
    given = {**UPSERT, "hoodie.index.type": "SIMPLE"}
    hudi_spark.save(rows("a", part="x", ts=8), table.path, given, mode="append")
    found = [row["ts"] for row in hudi_spark.read(table.path).to_pylist() if row["id"] == "a"]
    assert found == [8, 8]


@pytest.mark.parametrize("version", ["8", "9"])
def test_its_statements(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Of SQL: they take the properties of the table, too."""
    table = split(tmp_path / "t", version, {})
    name = f"split_{version}"
    hudi_spark.sql(f"create table {name} using hudi location 'file://{table.path}'")
    merge = (
        f"merge into {name} t using (select 'e' id, 'x' part, 11L ts union all "
        "select 'z', 'x', 11L) s on t.id = s.id "
        "when matched then update set * when not matched then insert *"
    )
    expected = {"a": 7, "c": 6, "d": 5, "e": 7}
    assert held(hudi_spark.read(table.path).to_pylist()) == expected
    for statement, changed in (
        (f"update {name} set ts = 9 where id = 'a'", {"a": 9}),
        (f"delete from {name} where id = 'd'", {"d": None}),
        (merge, {"e": 11, "z": 11}),
    ):
        hudi_spark.sql(statement)
        expected = {key: ts for key, ts in {**expected, **changed}.items() if ts is not None}
        assert held(hudi_spark.read(table.path).to_pylist()) == expected
        assert held(hudi.Table.open(table.path).to_arrow().to_pylist()) == expected
    hudi_spark.sql(f"drop table {name}")
