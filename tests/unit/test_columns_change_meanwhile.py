"""Writes whose columns were planned before somebody else changed those of the table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import SchemaError
from hudi_core.txn.begin import begin
from hudi_core.txn.transaction import Transaction
from hudi_core.write.client import WriteClient

ROWS = pa.table({"id": ["a"], "part": ["x"], "n": pa.array([1], pa.int32())})
MORE = pa.table({"id": ["b"], "part": ["x"], "n": pa.array([2], pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    path = str(tmp_path / "table")
    made = hudi.Table.create(path, ROWS.schema, name="t", record_key="id", partition_by="part")
    made.insert(ROWS)
    return made


def alter_first(monkeypatch: pytest.MonkeyPatch, path: str, **change: object) -> None:
    """Let somebody change the columns before the next write has the lock."""

    def begun(*arguments: Any, **named: Any) -> Transaction:
        monkeypatch.undo()
        hudi.Table.open(path).alter(**change)  # type: ignore[arg-type]
        return begin(*arguments, **named)

    monkeypatch.setattr(sys.modules[WriteClient.__module__], "begin", begun)


def test_rows_are_written_with_the_types_that_the_table_has_by_then(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter_first(monkeypatch, table.path, promote={"n": pa.int64()})
    table.insert(MORE)
    found = hudi.Table.open(table.path).to_arrow(columns=["id", "n"]).sort_by("id")
    assert found.schema.field("n").type == pa.int64()
    assert found.to_pydict() == {"id": ["a", "b"], "n": [1, 2]}


def test_rows_that_lack_a_new_column_are_refused_before_a_file_is_written(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(Path(table.path).rglob("*.parquet"))
    alter_first(monkeypatch, table.path, add_columns={"word": pa.string()})
    with pytest.raises(SchemaError, match="word"):
        table.insert(MORE)
    assert sorted(Path(table.path).rglob("*.parquet")) == files
    again = hudi.Table.open(table.path)
    assert not [one for one in again.timeline.instants if not one.is_completed]
    assert again.to_arrow().num_rows == 1
