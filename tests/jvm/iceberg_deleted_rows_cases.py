"""Iceberg-Spark reads tables whose commits delete rows by position, in versions 2 and 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_core as hudi
from tests.formats.iceberg_tables import NOTED, Iceberg, bag, create, summary, typed, without_meta
from tests.jvm.engines import Engine

SPLIT = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
VERSION = "hoodie.table.format.iceberg.format-version"


def theirs(engine: Engine, path: Path, options: dict[str, str] | None = None) -> Counter[str]:
    return bag(without_meta(engine.read(path, options, source="iceberg")))


def ours(path: Path) -> Counter[str]:
    return bag(hudi.Table.open(str(path)).to_arrow().select(NOTED.names))


def life(table: hudi.Table) -> Iterator[str]:
    done: list[tuple[str, Callable[[], Any]]] = [
        ("insert", lambda: table.insert(typed(range(30)))),
        ("upsert", lambda: table.upsert(typed([1, 2, 3, 40], ts=1))),
        ("delete", lambda: table.delete(typed([4, 5]))),
        ("upsert again", lambda: table.upsert(typed([6, 7, 41], ts=2))),
        ("rollback", lambda: table.rollback(table.timeline.completed_writes()[-1])),
        ("upsert after it", lambda: table.upsert(typed([1, 8, 9], ts=3))),
        ("compaction", table.compact),
        ("upsert after that", lambda: table.upsert(typed([10, 11], ts=4))),
        ("clustering", table.cluster),
        ("delete after that", lambda: table.delete(typed([12]))),
    ]
    for name, run in done:
        run()
        yield name


@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_that_are_deleted_by_position(
    iceberg_spark: Engine, tmp_path: Path, version: str
) -> None:
    path = tmp_path / "table"
    table = create(path, **SPLIT, **{VERSION: version})
    held: dict[int, Counter[str]] = {}
    for operation in life(table):
        now = theirs(iceberg_spark, path)
        assert now == ours(path), operation
        current = Iceberg(path).table.current_snapshot()
        assert current is not None
        held[current.snapshot_id] = now
    kept = {one.snapshot_id for one in Iceberg(path).table.metadata.snapshots}
    travelled = sorted(held.keys() & kept)[:4]
    assert travelled
    for number in travelled:
        assert theirs(iceberg_spark, path, {"snapshot-id": str(number)}) == held[number]
    current = Iceberg(path).table.current_snapshot()
    assert current is not None
    assert summary(current)["total-position-deletes"] == "1"
