"""Where rows come from: every source is read once, whatever a write asks of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.datasource import SaveMode
from hudi_core.engine.local import LocalEngine
from tests.tables import new_table

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["rome", "oslo", "rome"]})
OPTIONS = {
    "hoodie.table.name": "cities",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


class OneShot:
    """Gives its rows to the first who asks and none to others, as a cursor does."""

    def __init__(self) -> None:
        self.rows, self.asked = ROWS, 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        rows, self.rows, self.asked = self.rows, self.rows.slice(0, 0), self.asked + 1
        return rows.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert", "insert_overwrite"])
def test_rows_that_can_be_read_once_are_all_written(tmp_path: Path, operation: str) -> None:
    table = new_table(tmp_path / "t", ROWS.schema, partition_by=None)
    source = OneShot()
    assert getattr(table, operation)(source).inserted == 3
    assert source.asked == 1
    assert table.to_arrow().num_rows == 3
    assert table.delete(OneShot()).deleted == 3
    assert table.plan(operation, OneShot()).inserted == 3


@pytest.mark.parametrize("mode", ["append", "overwrite", "errorifexists"])
def test_a_table_is_made_from_rows_that_can_be_read_once(tmp_path: Path, mode: SaveMode) -> None:
    source = OneShot()
    result = hudi.write(source, str(tmp_path / "t"), mode, OPTIONS)
    assert result is not None
    assert (result.inserted, source.asked) == (3, 1)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_table_takes_rows_that_can_be_read_once(tmp_path: Path, mode: SaveMode) -> None:
    hudi.write(ROWS.slice(0, 1), str(tmp_path / "t"), "append", OPTIONS)
    source = OneShot()
    assert hudi.write(source, str(tmp_path / "t"), mode, OPTIONS) is not None
    assert source.asked == 1
    assert hudi.Table.open(str(tmp_path / "t")).to_arrow().num_rows == 3


def test_partitions_are_deleted_by_name_without_rows(tmp_path: Path) -> None:
    hudi.write(ROWS, str(tmp_path / "t"), "append", OPTIONS)
    options = {
        **OPTIONS,
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "rome",
    }
    assert hudi.write(None, str(tmp_path / "t"), "append", options) is not None
    assert hudi.Table.open(str(tmp_path / "t")).to_arrow(columns=["id"]).to_pylist() == [
        {"id": "b"}
    ]


def test_the_engine_runs_where_the_system_does_not_tell_its_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert LocalEngine().parallelism == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert LocalEngine().parallelism == 1
