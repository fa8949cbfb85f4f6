"""Options of reads that a table was opened with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core import Table
from hudi_core.errors import InvalidOptionError
from tests.tables import new_table, rows

KIND = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three rows, of which a log changes one, and another deletes one."""
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    made = new_table(tmp_path / "t", schema, table_type="MERGE_ON_READ")
    made.insert(rows("a", "b", "c", v=1, schema=schema))
    made.upsert(rows("a", v=2, schema=schema))
    made.delete(where="id = 'c'")
    return made


def values(found: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def test_base_files_alone(table: Table) -> None:
    opened = Table.open(table.path, {KIND: "read_optimized"})
    wanted = [("a", 1), ("b", 1), ("c", 1)]
    assert values(hudi.read(None, table.path, {KIND: "read_optimized"})) == wanted
    assert values(opened.to_arrow()) == wanted
    assert values(opened.to_batches().read_all()) == wanted
    assert values(opened.scan().to_table()) == wanted
    assert values(pa.table(opened)) == wanted
    assert opened.count() == opened.count([("v", "=", 1)]) == 3
    assert values(opened.head(9)) == wanted
    # what is written follows the rows as they are
    assert opened.update({"v": "v + 1"}, where="id = 'a'").updated == 1
    assert values(Table.open(table.path).to_arrow()) == [("a", 3), ("b", 1)]
    opened.compact()
    assert values(opened.to_arrow()) == [("a", 3), ("b", 1)]


def test_rows_as_they_were_written(table: Table) -> None:
    opened = Table.open(table.path, {"hoodie.datasource.merge.type": "skip_merge"})
    wanted = [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
    assert values(opened.to_arrow()) == values(opened.scan().to_table()) == wanted
    assert opened.count() == 4


def test_a_past_state(table: Table) -> None:
    first, _, last = table.timeline.completed_writes()
    opened = Table.open(table.path, {"as.of.instant": first.requested_time})
    assert values(opened.to_arrow()) == values(opened.scan().to_table())
    assert values(opened.to_arrow()) == [("a", 1), ("b", 1), ("c", 1)]
    assert opened.count() == 3
    assert values(opened.to_arrow(as_of=last)) == [("a", 2), ("b", 1)]


def test_a_window_of_changes(table: Table) -> None:
    first, second, last = table.timeline.completed_writes()
    begin, end = (one.effective_completion_time for one in (first, second))
    window = {KIND: "incremental", BEGIN: begin, END: end}
    opened = Table.open(table.path, window)
    assert values(opened.incremental()) == [("a", 2)]
    assert opened.changes()["op"].to_pylist() == ["u"]
    assert opened.incremental(second, last, deletes=True)["id"].to_pylist() == ["c"]
    for read in (opened.to_arrow, opened.to_batches, opened.count, opened.scan):
        with pytest.raises(InvalidOptionError, match=r"Table\.incremental"):
            read()


def test_a_window_without_its_kind(table: Table) -> None:
    opened = Table.open(table.path, {BEGIN: "earliest"})
    with pytest.raises(InvalidOptionError, match="no meaning"):
        opened.to_arrow()
