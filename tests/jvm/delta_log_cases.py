"""Delta-Spark on Delta logs whose paths have letters beyond ASCII."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from delta_format.paths import plain, spelled
from hudi_core.errors import ForeignCommitError
from hudi_core.services.mending.differences import Source
from tests.jvm.engines import Engine
from tests.tables import new_table

CITIES = ("São", "50%", "a b", "é\u0301\U0001f600")
NUMBERED = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])


def city_rows(n: int, *cities: str) -> pa.Table:
    return pa.Table.from_pylist([{"id": c, "city": c, "n": n} for c in cities], NUMBERED)


def made(path: Path) -> hudi.Table:
    table = new_table(path, NUMBERED, format="delta")
    table.insert(city_rows(1, *CITIES))
    table.upsert(city_rows(2, CITIES[0]))
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
    hudi.Table.open(table.path).upsert(city_rows(3, *CITIES))
    assert seen(delta_spark, tmp_path / "t") == dict.fromkeys(CITIES, 3)


def test_what_delta_spark_compacted_is_repaired(delta_spark: Engine, tmp_path: Path) -> None:
    """The files that it adds and removes are the same to it and to us."""
    table = made(tmp_path / "t")
    held = seen(delta_spark, tmp_path / "t")
    with delta_spark.configured({"spark.databricks.delta.optimize.minFileSize": "1"}):
        delta_spark.sql(f"OPTIMIZE delta.`{table.path}` WHERE city = '{CITIES[0]}'")
    delta_spark.sql(f"UPDATE delta.`{table.path}` SET n = 9 WHERE city = '{CITIES[0]}'")
    assert not table.validate().is_valid
    with pytest.raises(ForeignCommitError, match="1 row in 1 file added"):
        hudi.Table.open(table.path).repair()
    assert hudi.Table.open(table.path).repair(discard=True).left == ()
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


def named_by(checkpoint: Path) -> set[str]:
    """Applications and removed files that a checkpoint names."""
    found = pq.ParquetFile(checkpoint).read(columns=["txn.appId", "remove.path"]).to_pylist()
    applications = {one["txn"]["appId"] for one in found if one["txn"]}
    return applications | {one["remove"]["path"] for one in found if one["remove"]}


def dated_back(version: Path) -> set[str]:
    """Applications and removed files of times before the epoch, in one version."""
    actions = map(json.loads, version.read_text(encoding="utf-8").splitlines())
    found = (one.get("txn") or one.get("remove") or {} for one in actions)
    return {
        one.get("appId") or one["path"]
        for one in found
        if one.get("lastUpdated", one.get("deletionTimestamp", 0)) < 0
    }


def test_a_log_without_archived_instants(delta_spark: Engine, tmp_path: Path) -> None:
    """Versions that are kept, and entries that are dated back."""
    path, log = tmp_path / "t", tmp_path / "t/_delta_log"
    table = made(path)
    few = {
        "hoodie.cleaner.commits.retained": "2",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.metadata.compact.max.delta.commits": "1",
    }
    for n in range(3, 25):
        table.upsert(city_rows(n, *CITIES), options=few)
    held = dict.fromkeys(CITIES, 24)
    assert not (log / f"{0:020}.json").exists()
    assert seen(delta_spark, path) == held
    assert delta_spark.sql(f"vacuum delta.`{path}` dry run") == []
    reports = DeltaTable(table.path).history()
    kept = [one.requested_time for one in table.timeline.completed_writes()][-2:]
    past = [
        (table.to_arrow(as_of=one["hudi.instant"]), one["version"])
        for one in reports
        if one.get("hudi.action") == "commit" and one["hudi.instant"] in kept
    ]
    assert len(past) == 2
    for then, version in past:
        found = delta_spark.sql(f"select distinct n from delta.`{path}` version as of {version}")
        assert {n for (n,) in found} == set(then.column("n").to_pylist())
    history = delta_spark.query(f"describe history delta.`{path}`")
    assert history["version"].to_pylist() == [one["version"] for one in reports]
    # as if the checkpoint after them had never come to be: what is dated back is read, and not kept
    last = max(one for one in log.glob("*.json") if dated_back(one))
    for checkpoint in log.glob("*.checkpoint.parquet"):
        if checkpoint.name[:20] >= last.name[:20]:
            checkpoint.unlink()
    (log / "_last_checkpoint").unlink()
    before = named_by(max(log.glob("*.checkpoint.parquet")))
    assert before & dated_back(last)
    assert seen(delta_spark, path) == held
    delta_spark.write_checkpoint(path)
    newest = max(log.glob("*.checkpoint.parquet"))
    assert newest.name[:20] > last.name[:20]
    # what was removed since the checkpoint before stays where Spark has read both: until next time
    assert not named_by(newest) & before & dated_back(last)
    assert not any(one.startswith("hudi:") for one in named_by(newest) & dated_back(last))
    table.upsert(city_rows(30, *CITIES), options=few)
    assert seen(delta_spark, path) == dict.fromkeys(CITIES, 30)
    assert table.validate().is_valid
