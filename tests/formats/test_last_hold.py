"""Writes of a table that others change between them: what one has left is used while it is so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.tables import FORMATS, SCHEMA, new_table, pairs

STORED = ("native", "native, no metadata table", "iceberg", "delta", "iceberg,delta")
Change = Callable[[hudi.Table], object]


def batch(ts: int, *ids: str) -> pa.Table:
    """Rows of two partitions."""
    parts = ["xy"[ord(one) % 2] for one in ids]
    return pa.table({"id": list(ids), "part": parts, "ts": [ts] * len(ids)}, SCHEMA)


def table_of(path: Path, stored: str, **options: str) -> hudi.Table:
    format_, _, without = stored.partition(", no")
    more = {"hoodie.metadata.enable": "false"} if without else {}
    return new_table(path, SCHEMA, {"hoodie.fs.fsync": "false", **more, **options}, format=format_)


def held(path: str) -> list[tuple[object, ...]]:
    """Rows by who has not written them; the table is sound."""
    other = hudi.Table.open(path)
    assert other.validate().is_valid
    return pairs(other.to_arrow(), "id", "ts")


def upserted(table: hudi.Table) -> None:
    table.upsert(batch(2, "c", "d"))


def rolled_back(table: hudi.Table) -> None:
    table.rollback(table.timeline.instants[-1].requested_time)


OTHERS: dict[str, tuple[Change, list[tuple[str, int]]]] = {
    "nobody": (lambda _: None, [("a", 5), ("b", 1), ("c", 1), ("e", 5)]),
    "upserts": (upserted, [("a", 5), ("b", 1), ("c", 2), ("d", 2), ("e", 5)]),
    "deletes": (
        lambda table: table.delete(batch(2, "b", "c")),
        [("a", 5), ("e", 5)],
    ),
    "replaces": (
        lambda table: table.insert_overwrite(batch(2, "g")),
        [("a", 5), ("b", 1), ("e", 5), ("g", 2)],
    ),
    "empties": (
        lambda table: table.delete_partitions(["x", "y"]),
        [("a", 5), ("e", 5)],
    ),
    "rolls back": (rolled_back, [("a", 5), ("e", 5)]),
    "cleans": (lambda table: table.clean(), [("a", 5), ("b", 1), ("c", 1), ("e", 5)]),
    "optimizes": (lambda table: table.optimize(), [("a", 5), ("b", 1), ("c", 1), ("e", 5)]),
    "adds a column": (
        lambda table: table.alter(add_columns={"word": pa.string()}),
        [("a", 5), ("b", 1), ("c", 1), ("e", 5)],
    ),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("who", OTHERS)
def test_a_write_after_others_builds_on_what_they_have_left(
    who: str, stored: str, tmp_path: Path
) -> None:
    change, expected = OTHERS[who]
    table = table_of(tmp_path / "t", stored)
    table.insert(batch(0, "z"))
    table.delete(batch(1, "z"))
    table.upsert(batch(1, "a", "b", "c"))
    change(hudi.Table.open(table.path))

    wanted = batch(5, "a", "e")
    if who == "adds a column":
        wanted = wanted.append_column("word", pa.array(["new", None], pa.string()))
    table.upsert(wanted)

    assert held(table.path) == expected


@pytest.mark.parametrize("stored", STORED)
def test_a_table_that_is_made_again_is_not_the_one_that_was_left(
    stored: str, tmp_path: Path
) -> None:
    table = table_of(tmp_path / "t", stored)
    table.upsert(batch(1, "a", "b", "c"))
    hudi.Table.open(table.path).drop()
    table_of(tmp_path / "t", stored).upsert(batch(2, "b", "d"))
    table = hudi.Table.open(tmp_path / "t")
    table.upsert(batch(3, "b"))
    table.upsert(batch(4, "d", "e"))
    assert held(table.path) == [("b", 3), ("d", 4), ("e", 4)]


@pytest.mark.parametrize("format_", FORMATS)
def test_groups_that_lost_their_last_row_are_written_again(format_: str, tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", format_)
    for ts in range(1, 4):
        table.upsert(batch(ts, "a", "b"))
        table.delete(batch(ts, "a", "b"))
    table.upsert(batch(9, "b", "d"))
    table.upsert(batch(10, "a", "d"))
    assert held(table.path) == [("a", 10), ("b", 9), ("d", 10)]


@pytest.mark.parametrize("stored", STORED)
def test_cleans_and_archivals_of_a_long_lived_table_leave_its_states(
    stored: str, tmp_path: Path
) -> None:
    options = {
        "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "6",
        "hoodie.metadata.compact.max.delta.commits": "4",
    }
    table = table_of(tmp_path / "t", stored, **options)
    for ts in range(14):
        table.upsert(batch(ts, "a", "bcde"[ts % 4]))
        if ts == 9:
            hudi.Table.open(table.path).upsert(batch(ts, "f"))
    expected = [("a", 13), ("b", 12), ("c", 13), ("d", 10), ("e", 11), ("f", 9)]
    assert held(table.path) == expected
    files = [path for path in Path(table.path).rglob("*.parquet") if ".hoodie" not in path.parts]
    # of each file group what the states need that are kept: cleans have gone on
    assert len([one for one in files if "checkpoint" not in one.name]) <= 10
