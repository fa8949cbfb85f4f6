"""Delta-Spark on Delta logs whose paths have letters beyond ASCII."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from deltalake import DeltaTable

import hudi_core as hudi
from delta_format.paths import plain, spelled
from hudi_core.services.differences import Source
from tests.jvm.engines import Engine

CITIES = ("São", "50%", "a b", "é\u0301\U0001f600")
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])


def rows(n: int, *cities: str) -> pa.Table:
    return pa.Table.from_pylist([{"id": c, "city": c, "n": n} for c in cities], SCHEMA)


def made(path: Path) -> hudi.Table:
    table = hudi.Table.create(
        str(path), SCHEMA, record_key="id", partition_by="city", format="delta"
    )
    table.insert(rows(1, *CITIES))
    table.upsert(rows(2, CITIES[0]))
    return table


def seen(engine: Engine, path: Path) -> dict[str, int]:
    return {str(key): n for key, n in engine.values(path, ["id", "n"], source="delta")}


def vacuum(engine: Engine, path: Path) -> None:
    with engine.configured({"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        engine.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")


def test_a_vacuum_keeps_what_the_log_names(delta_spark: Engine, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    held = {**dict.fromkeys(CITIES, 1), CITIES[0]: 2}
    assert seen(delta_spark, tmp_path / "t") == held
    before = set((tmp_path / "t").rglob("*-0_*.parquet"))
    vacuum(delta_spark, tmp_path / "t")
    [gone] = before - set((tmp_path / "t").rglob("*-0_*.parquet"))
    assert gone.parent.name == CITIES[0]
    assert seen(delta_spark, tmp_path / "t") == held
    assert not hudi.Table.open(table.path).validate().of(Source.FORMAT)
    hudi.Table.open(table.path).upsert(rows(3, *CITIES))
    assert seen(delta_spark, tmp_path / "t") == dict.fromkeys(CITIES, 3)


def test_what_delta_spark_compacted_is_repaired(delta_spark: Engine, tmp_path: Path) -> None:
    """The files that it adds and removes are the same to it and to us."""
    table = made(tmp_path / "t")
    held = seen(delta_spark, tmp_path / "t")
    with delta_spark.configured({"spark.databricks.delta.optimize.minFileSize": "1"}):
        delta_spark.sql(f"OPTIMIZE delta.`{table.path}` WHERE city = '{CITIES[0]}'")
    delta_spark.sql(f"UPDATE delta.`{table.path}` SET n = 9 WHERE city = '{CITIES[0]}'")
    assert not table.validate().is_valid
    assert hudi.Table.open(table.path).repair().left == ()
    assert seen(delta_spark, tmp_path / "t") == held
    vacuum(delta_spark, tmp_path / "t")
    assert seen(delta_spark, tmp_path / "t") == held


def test_a_log_of_an_earlier_release_is_vacuumed_after_a_repair(
    delta_spark: Engine, tmp_path: Path
) -> None:
    """Its paths are encoded as deltalake does it."""
    table = made(tmp_path / "t")
    for file in Path(table.path, "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for action in lines:
            for kind in {"add", "remove"} & action.keys():
                action[kind]["path"] = quote(plain(action[kind]["path"]))
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    held = seen(delta_spark, tmp_path / "t")
    assert hudi.Table.open(table.path).repair().left == ()
    named = pa.table(DeltaTable(table.path).get_add_actions()).column("path").to_pylist()
    assert named == [spelled(plain(path)) for path in named]
    vacuum(delta_spark, tmp_path / "t")
    assert seen(delta_spark, tmp_path / "t") == held
