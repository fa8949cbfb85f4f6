"""Hudi-Spark and this project take turns on one table whose instants are in local time.

Once west and once east of UTC: in both, times made in UTC would be hours away from Hudi's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.table_keys import TableKeys
from hudi_core.errors import TimelineError
from tests.jvm.engines import HUDI, Engine

TURNS = 50
WEST, EAST = "America/Los_Angeles", "Asia/Tokyo"
OPTIONS = {
    "hoodie.table.name": "turns",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.compact.max.delta.commits": "6",
}


@pytest.fixture(params=[WEST, EAST])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(HUDI, tmp_path / "spark", zone=request.param)
    yield engine
    engine.stop()


def batch(turn: int) -> pa.Table:
    """Return rows of which two were there before and two are new."""
    ids = [turn, turn + 1, 1000 + turn, 2000 + turn]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": ["Rome" if one % 2 else "Oslo" for one in ids],
            "v": [f"{turn}:{one}" for one in ids],
            "ts": pa.array([turn] * len(ids), pa.int64()),
        }
    )


def test_turns_in_one_declared_zone_lose_nothing(engine: Engine, tmp_path: Path) -> None:
    path, expected = tmp_path / "table", dict[int, str]()
    given = {TableKeys.local_zone.key: engine.zone, "hoodie.index.type": "RECORD_INDEX"}
    for turn in range(TURNS):
        rows = batch(turn)
        if turn % 2 == 0:
            engine.save(rows, path, OPTIONS)
        else:
            hudi.Table.open(str(path), options=given).upsert(rows)
        expected |= dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
        found = hudi.Table.open(str(path), options=given).to_arrow(["id", "v"])
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(expected.items())
        if turn % 10 in (0, 9):
            assert engine.values(path, ["id", "v"]) == sorted(expected.items(), key=repr)
    table = hudi.Table.open(str(path), options=given)
    assert table.config.timezone == "LOCAL"
    times = [one.requested_time for one in table.timeline.completed_writes()]
    assert len(times) > TURNS / 4  # the others have been archived
    assert times == sorted(times)
    assert table.validate().differences == ()
    before = {one for one in path.rglob("*") if ".locks" not in one.parts}
    for zone in (*{WEST, EAST} - {engine.zone}, "UTC"):
        other = hudi.Table.open(str(path), options={**given, TableKeys.local_zone.key: zone})
        with pytest.raises(TimelineError, match=zone):
            other.upsert(batch(99))
    assert {one for one in path.rglob("*") if ".locks" not in one.parts} == before


def test_the_first_commit_of_a_table_tells_its_zone(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "table"
    engine.save(batch(0), path, OPTIONS)
    with pytest.raises(TimelineError, match=r"clocks at UTC.*declared for its instants is UTC"):
        hudi.Table.open(str(path), options={TableKeys.local_zone.key: "UTC"}).upsert(batch(1))
    hudi.Table.open(str(path), options={TableKeys.local_zone.key: engine.zone}).upsert(batch(1))
    assert len(engine.values(path, ["id"])) == 7
