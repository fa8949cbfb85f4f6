"""Tables and datasets that stay open and are read again: what they plan anew, and what they see."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_core as hudi
from hudi_core.read import known_state
from hudi_core.read.query import SnapshotQuery
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView
from tests.tables import new_table

FORMATS = ("native", "iceberg", "delta")
UPSERT = """
import sys
import pyarrow as pa
import hudi_core as hudi

rows = pa.table({"id": [1], "city": ["oslo"], "v": [100.0]})
hudi.Table.open(sys.argv[1], {}).upsert(rows)
"""


def rows(*numbers: int, city: str) -> pa.Table:
    return pa.table(
        {"id": [*numbers], "city": [city] * len(numbers), "v": [n / 2 for n in numbers]}
    )


def make(path: Path, format_name: str, **options: Any) -> hudi.Table:
    made = new_table(path, rows(1, city="").schema, options, format=format_name)
    made.insert(pa.concat_tables([rows(1, 2, city="oslo"), rows(3, 4, city="rome")]))
    made.bulk_insert(rows(5, 6, city="rome"))
    return made


@contextmanager
def listings() -> Iterator[list[object]]:
    """Count how often the file groups of partitions are asked for."""
    found: list[object] = []
    plain = FileSystemView.file_groups

    def counted(view: FileSystemView, *args: Any) -> Any:
        found.append(args)
        return plain(view, *args)

    with mock.patch.object(FileSystemView, "file_groups", counted):
        yield found


def values(table: Any, **query: Any) -> list[Any]:
    read = table.to_arrow if isinstance(table, hudi.Table) else table.to_table
    return sorted(read(columns=["id", "v"], **query).to_pydict().items())


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_unchanged_table_is_planned_once(tmp_path: Path, format_name: str) -> None:
    table = hudi.Table.open(make(tmp_path / "t", format_name).path)
    before = hudi.Table.open(table.path)
    with listings() as listed:
        first = table.to_arrow(["id", "v"])
        assert listed
        listed.clear()
        for _ in range(3):
            assert table.to_arrow(["id", "v"]).equals(first)
            assert table.scan().to_table(["id", "v"]).equals(first)
            assert table.count() == 6
            assert table.head(2).num_rows == 2
        assert not listed
    assert before.to_arrow(["id", "v"]).equals(first)


@pytest.mark.parametrize("format_name", FORMATS)
def test_statistics_of_an_unchanged_table_are_asked_for_once(
    tmp_path: Path, format_name: str
) -> None:
    table = hudi.Table.open(make(tmp_path / "t", format_name).path)
    wanted = [("v", ">", 2.0)]
    index = type(table._session.opened.lister())
    first = table.file_slices(filter=wanted)
    assert len(first) == 1
    asked = mock.Mock(wraps=index.file_ranges)

    def file_ranges(*args: Any) -> Any:
        return asked(*args)

    with mock.patch.object(index, "file_ranges", file_ranges):
        assert table.file_slices(filter=wanted) == first
        assert table.file_slices(filter=[("v", "<", 1.0)])[0].group.partition_path == "oslo"
        assert asked.call_count == 0
        assert table.file_slices(filter=[("id", ">", 4)]) == first
        assert asked.call_count > 0


@pytest.mark.parametrize("format_name", FORMATS)
def test_what_another_process_commits_is_seen_by_the_next_read(
    tmp_path: Path, format_name: str
) -> None:
    made = make(tmp_path / "t", format_name)
    table = hudi.Table.open(made.path)
    stays = table.scan()
    before = values(table)
    assert values(stays) == before
    subprocess.run([sys.executable, "-c", UPSERT, made.path], check=True)

    assert values(table, filter=[("id", "=", 1)]) == [("id", [1]), ("v", [100.0])]
    assert values(table, filter=[("v", ">", 50.0)]) == [("id", [1]), ("v", [100.0])]
    assert values(stays) == before  # the dataset is of one state
    now = stays.refreshed()
    assert now is not stays
    assert values(now) == values(table)
    assert now.refreshed() is now


@pytest.mark.parametrize("format_name", FORMATS)
def test_rollbacks_and_replacements_are_seen(tmp_path: Path, format_name: str) -> None:
    made = make(tmp_path / "t", format_name)
    table = hudi.Table.open(made.path)
    assert table.count() == 6
    last = made.delete(rows(5, 6, city="rome"))
    assert table.count() == 4
    made.rollback(last.instant)
    assert table.count() == 6
    assert table.to_arrow(["id"]).num_rows == 6
    made.insert_overwrite(rows(7, city="rome"))
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == [1, 2, 7]
    before = table.scan()
    made.alter(add_columns={"w": pa.int64()})
    assert "w" in table.to_arrow().column_names
    assert "w" not in before.to_table().column_names
    assert before.refreshed().schema.names[-1] == "w"


def test_a_refreshed_dataset_keeps_its_filter_and_its_past_state(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "native")
    first = table.timeline.completed_writes()[0]
    few = table.scan([("city", "=", "rome")]).filter(pc.field("id") > 3)
    past = table.scan(as_of=first)
    table.upsert(rows(9, city="rome"))
    table.upsert(rows(10, city="oslo"))

    assert sorted(few.to_table(["id"])["id"].to_pylist()) == [4, 5, 6]
    assert sorted(few.refreshed().to_table(["id"])["id"].to_pylist()) == [4, 5, 6, 9]
    assert past.refreshed().count_rows() == past.count_rows() == 4


def test_long_lists_of_files_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path / "t", "native")
    monkeypatch.setattr(known_state, "_MAX_FILES", 1)
    with listings() as listed:
        first = table.file_slices()
        count = len(listed)
        assert table.file_slices() == first
        assert len(listed) == 2 * count
    monkeypatch.setattr(known_state, "_MAX_FILES", len(first))
    with listings() as listed:
        table.file_slices()
        listed.clear()
        assert table.file_slices() == first
        assert not listed


def test_a_repaired_metadata_table_is_asked_again(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "native")
    first = table.file_slices()
    with listings() as listed:
        table.file_slices()
        assert not listed
        table.repair_metadata()
        listed.clear()
        assert table.file_slices() == first
        assert listed


def test_a_table_that_is_validated_is_listed_by_each_query(tmp_path: Path) -> None:
    path = make(tmp_path / "t", "native").path
    table = hudi.Table.open(path, {"hoodie.metadata.validate": "true"})
    with listings() as listed:
        table.file_slices()
        count = len(listed)
        table.file_slices()
        assert len(listed) == 2 * count


def test_a_state_that_another_thread_has_found_is_not_taken_for_the_own(tmp_path: Path) -> None:
    made = make(tmp_path / "t", "native")
    table = hudi.Table.open(made.path)
    assert table.count() == 6
    # a copy, for what is the very same object is not compared
    opened = table._session.opened.seeing(copy(table._session.opened.client.timeline()))
    made.upsert(rows(9, city="rome"))
    latest, plain = table._session.latest, Timeline.__eq__
    newer = table._session.opened.client.timeline()
    others: list[SnapshotQuery] = []

    def compared(one: Timeline, other: object) -> bool:
        same = plain(one, other)
        if same and not others:
            # the other thread looks at the newer timeline, between two looks of this one
            with mock.patch.object(Timeline, "__eq__", plain):
                others.append(latest.query(table._session.opened.seeing(newer)))
        return same

    with mock.patch.object(Timeline, "__eq__", compared):
        query = latest.query(opened)
    assert others
    assert query.count() == 6
    assert others[0].count() == 7
    assert table.count() == 7
