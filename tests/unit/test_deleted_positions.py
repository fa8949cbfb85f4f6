"""Positions of deleted rows, as formats get them of delete blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest
from pyroaring import BitMap64

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, UnsupportedTableError
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from hudi_core.spi.files import (
    all_deleted_positions,
    decode_bitmap,
    deleted_positions,
    encode_bitmap,
)
from hudi_core.view.file_system import ViewManager
from tests.tables import SCHEMA, new_table, rows

MODE: Final = "hoodie.table.merge-on-read.mode"
OPTIONS: Final = {"hoodie.compact.inline": "false"}


def table_of(path: Path) -> hudi.Table:
    """A table of five rows in one file, for logs."""
    table = new_table(path, SCHEMA, OPTIONS, table_type="MERGE_ON_READ", partition_by=None)
    table.insert(rows("a", "b", "c", "d", "e", part="p", ts=1))
    return table


def last_commit(table: hudi.Table) -> CommitMetadata:
    """The body of a table's newest commit."""
    client = open_table(table.path, {}).client
    return client.read_commit(client.timeline().completed_writes()[-1])


def found(table: hudi.Table) -> tuple[list[int], list[int]]:
    """Positions that the last commit deleted, and all of the table's one slice."""
    client, slices = open_table(table.path, {}).client, table.file_slices()
    by_commit = deleted_positions(client, last_commit(table), open_table(table.path, {}).views())
    assert deleted_positions(client, last_commit(table)).keys() == by_commit.keys()
    [mine], [every] = by_commit.values(), all_deleted_positions(client, slices).values()
    return mine.tolist(), every.tolist()


def test_deletes_are_found_by_commit_and_by_slice(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    [file] = [one.base_file.path for one in table.file_slices() if one.base_file is not None]
    table.delete(rows("b"))
    table.delete(rows("e", "a"))
    assert found(table) == ([0, 4], [0, 1, 4])
    assert all_deleted_positions(open_table(table.path, {}).client, table.file_slices()).keys() == {
        file
    }


def test_deletes_are_found_in_the_base_file_of_a_compaction(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.delete(rows("a"))
    planned = table.compact(schedule_only=True)
    assert planned.result is None
    table.delete(rows("d"))
    body = last_commit(table)
    timeline = open_table(table.path, {}).timeline()
    hudi.Table.open(table.path, OPTIONS).run_compactions()
    opened, after = open_table(table.path, {}), hudi.Table.open(table.path).file_slices()
    client = opened.client
    before = ViewManager(client.read_commit, opened.lister(), lambda: timeline)
    [file] = [one.base_file.path for one in after if one.base_file is not None]
    assert [one.tolist() for one in deleted_positions(client, body, before).values()] == [[3]]
    assert [one.tolist() for one in deleted_positions(client, body, opened.views()).values()] == [
        [2]
    ]
    assert [one.tolist() for one in all_deleted_positions(client, after).values()] == [[2]]
    # the compaction itself has the row that was deleted beside it, and none of before
    [compacted] = [one for one in opened.timeline().instants if one.action is Action.COMMIT]
    merged = deleted_positions(client, client.read_commit(compacted), before)
    assert {path: one.tolist() for path, one in merged.items()} == {file: [2]}


def test_rows_in_logs_are_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert(rows("a", part="p", ts=2))
    client = open_table(table.path, {}).client
    with pytest.raises(UnsupportedTableError, match="has rows in the log file"):
        all_deleted_positions(client, table.file_slices())


def test_bitmaps_are_those_of_other_libraries() -> None:
    positions = np.array([0, 7, 65_536, 1 << 33], np.int64)
    assert BitMap64.deserialize(encode_bitmap(positions)) == BitMap64(positions.tolist())
    assert decode_bitmap(BitMap64(positions.tolist()).serialize(), "x").tolist() == [*positions]


def test_the_mode_needs_logs_and_rows_that_move(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="only MERGE_ON_READ has modes"):
        new_table(tmp_path / "t", SCHEMA, {MODE: "split"})
    buckets = {MODE: "split", "hoodie.index.type": "BUCKET"}
    with pytest.raises(InvalidOptionError, match="updated rows go to another one"):
        new_table(tmp_path / "t", SCHEMA, buckets, table_type="MERGE_ON_READ")
    assert not (tmp_path / "t").exists()
