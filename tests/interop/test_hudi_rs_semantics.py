"""What becomes of rows that meet each other, judged by what hudi-rs reads afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.schema.table_schema import IS_DELETED

VERSIONS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("value", pa.string())])
FLAGGED = VERSIONS.append(pa.field(IS_DELETED, pa.bool_()))
EVENT_TIME: Mapping[str, Any] = {"ordering_field": "ts"}
COMMIT_TIME: Mapping[str, Any] = {
    "ordering_field": "ts",
    "options": {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
}
UNORDERED: Mapping[str, Any] = {}


class Watched:
    """A table of one file group unless told otherwise, read by both readers."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path / "table"
        settings["options"] = {"hoodie.fs.fsync": "false", **settings.get("options", {})}
        self.table = hudi.Table.create(str(self.path), VERSIONS, record_key="id", **settings)

    def write(
        self, operation: str, *rows: tuple[Any, ...], options: Mapping[str, Any] | None = None
    ) -> hudi.CommitResult:
        schema = FLAGGED if rows and len(rows[0]) == 4 else VERSIONS
        named = [dict(zip(schema.names, row, strict=True)) for row in rows]
        batch = pa.Table.from_pylist(named, schema)
        result: hudi.CommitResult = getattr(self.table, operation)(batch, options=options)
        return result

    def rows(self) -> list[tuple[Any, ...]]:
        batches = hudi_rs.HudiTable(str(self.path)).read()
        foreign = [row for batch in batches for row in batch.to_pylist()]
        own = self.table.to_arrow().to_pylist()
        key = "_hoodie_commit_seqno"
        assert sorted(foreign, key=lambda row: row[key]) == sorted(own, key=lambda row: row[key])
        found = [tuple(row[name] for name in VERSIONS.names) for row in own]
        return sorted(found, key=lambda row: tuple(map(str, row)))

    def files(self) -> list[str]:
        return sorted(
            one.base_file_name for one in hudi_rs.HudiTable(str(self.path)).get_file_slices()
        )


def counts(result: hudi.CommitResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


@pytest.mark.parametrize(
    ("settings", "incoming", "wins"),
    [
        (EVENT_TIME, 6, True),
        (EVENT_TIME, 5, True),
        (EVENT_TIME, 4, False),
        (EVENT_TIME, None, True),
        (COMMIT_TIME, 4, True),
        (UNORDERED, 4, True),
    ],
    ids=["newer", "tie", "older", "null", "older-by-commit-time", "older-unordered"],
)
def test_a_row_meets_a_stored_one(
    settings: Mapping[str, Any], incoming: int | None, wins: bool, tmp_path: Path
) -> None:
    watched = Watched(tmp_path, **settings)
    watched.write("insert", ("a", 5, "stored"), ("b", 5, "other"))
    result = watched.write("upsert", ("a", incoming, "incoming"))

    assert counts(result) == (0, int(wins), 0)
    kept = ("a", incoming, "incoming") if wins else ("a", 5, "stored")
    assert watched.rows() == sorted([kept, ("b", 5, "other")], key=lambda row: str(row[0]))


def test_any_row_wins_over_a_stored_null(tmp_path: Path) -> None:
    watched = Watched(tmp_path, **EVENT_TIME)
    watched.write("insert", ("a", None, "stored"))
    watched.write("upsert", ("a", -1, "incoming"))
    assert watched.rows() == [("a", -1, "incoming")]


@pytest.mark.parametrize(
    ("settings", "batch", "winner"),
    [
        (EVENT_TIME, [(7, "x"), (9, "y"), (8, "z")], "y"),
        (EVENT_TIME, [(9, "x"), (9, "y"), (8, "z")], "y"),
        (EVENT_TIME, [(None, "x"), (-5, "y"), (None, "z")], "y"),
        (COMMIT_TIME, [(7, "x"), (9, "y"), (8, "z")], "z"),
        (UNORDERED, [(7, "x"), (9, "y"), (8, "z")], "z"),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_rows_of_one_batch_with_one_key_become_one(
    settings: Mapping[str, Any],
    batch: list[tuple[int | None, str]],
    winner: str,
    stored: bool,
    tmp_path: Path,
) -> None:
    watched = Watched(tmp_path, **settings)
    watched.write("insert", ("a" if stored else "b", -10, "stored"))
    result = watched.write("upsert", *[("a", ts, value) for ts, value in batch])

    assert counts(result) == ((0, 1, 0) if stored else (1, 0, 0))
    assert [row[2] for row in watched.rows() if row[0] == "a"] == [winner]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
@pytest.mark.parametrize("combine", [False, True])
def test_inserts_combine_only_when_told_to(operation: str, combine: bool, tmp_path: Path) -> None:
    watched = Watched(tmp_path, **EVENT_TIME)
    options = {"hoodie.combine.before.insert": combine}
    batch = [("a", 3, "late"), ("a", 9, "new"), ("b", 1, "b")]
    result = watched.write(operation, *batch, options=options)

    expected = [("a", 9, "new"), ("b", 1, "b")] if combine else sorted(batch)
    assert watched.rows() == sorted(expected)
    assert counts(result) == (len(expected), 0, 0)


def test_upsert_without_combining_takes_the_last_row_of_a_stored_key(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.write("insert", ("a", 1, "stored"), ("b", 1, "b"))
    options = {"hoodie.combine.before.upsert": "false"}
    result = watched.write("upsert", ("a", 2, "first"), ("a", 3, "second"), options=options)

    assert watched.rows() == [("a", 3, "second"), ("b", 1, "b")]
    assert counts(result) == (0, 1, 0)


@pytest.mark.parametrize("combine", [False, True])
def test_delete_counts_a_key_once(combine: bool, tmp_path: Path) -> None:
    watched = Watched(tmp_path, **EVENT_TIME)
    watched.write("insert", ("a", 5, "a"), ("b", 5, "b"))
    keys = pa.table({"id": ["a", "a", "nobody"]})
    result = watched.table.delete(keys, options={"hoodie.combine.before.delete": combine})

    # whatever its ordering value would be, and without one: a delete by operation always wins
    assert counts(result) == (0, 0, 1)
    assert watched.rows() == [("b", 5, "b")]


def test_deleting_every_row_leaves_a_table_that_works(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.write("insert", ("a", 1, "a"))
    watched.write("delete", ("a", 1, None))
    assert watched.rows() == []
    assert counts(watched.write("upsert", ("a", 0, "again"))) == (1, 0, 0)
    assert watched.rows() == [("a", 0, "again")]


def test_the_delete_flag(tmp_path: Path) -> None:
    watched = Watched(tmp_path, **EVENT_TIME)
    watched.write("insert", ("a", 5, "a"), ("b", 5, "b"), ("c", 5, "c"), ("d", 5, "d"))
    result = watched.write(
        "upsert",
        ("a", 6, None, True),
        ("b", 4, None, True),  # late: the stored row stays
        ("c", 6, "newer", False),
        ("d", 6, "unflagged", None),
        ("nobody", 6, None, True),
        ("new", 1, "new", False),
        ("both", 2, "dead", True),
        ("both", 1, "late", False),
    )

    assert counts(result) == (1, 2, 1)
    assert watched.rows() == [
        ("b", 5, "b"),
        ("c", 6, "newer"),
        ("d", 6, "unflagged"),
        ("new", 1, "new"),
    ]
    assert IS_DELETED not in watched.table.schema.names


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_flagged_rows_are_never_inserted(operation: str, tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    result = watched.write(operation, ("a", 1, "a", None), ("b", 1, "b", True))
    assert counts(result) == (1, 0, 0)
    assert watched.rows() == [("a", 1, "a")]


def test_inserts_fill_a_small_file_first(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    first = watched.write("insert", ("a", 1, "a"))
    second = watched.write("insert", ("b", 1, "b"))

    assert [stat.file_id for stat in first.metadata.stats] == [
        stat.file_id for stat in second.metadata.stats
    ]
    assert second.metadata.stats[0].prev_commit == first.instant.requested_time
    assert len(watched.files()) == 1

    watched.write("insert", ("c", 1, "c"), options={"hoodie.parquet.small.file.limit": "0"})
    assert len(watched.files()) == 2
    watched.write("bulk_insert", ("d", 1, "d"))
    assert len(watched.files()) == 3
    assert [row[0] for row in watched.rows()] == ["a", "b", "c", "d"]


def test_new_files_hold_as_many_rows_as_fill_them(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    many = [(f"k{number}", 1, "v") for number in range(10)]
    options = {
        "hoodie.parquet.max.file.size": str(3 * 1024),
        "hoodie.copyonwrite.record.size.estimate": "1024",
    }
    result = watched.write("insert", *many, options=options)
    assert sorted(stat.num_writes or 0 for stat in result.metadata.stats) == [2, 2, 3, 3]
    assert len(watched.files()) == 4


@pytest.mark.parametrize("keeps", [True, False])
def test_whether_an_insert_may_bring_a_key_again(keeps: bool, tmp_path: Path) -> None:
    watched = Watched(tmp_path, **EVENT_TIME)
    watched.write("insert", ("a", 5, "stored"), ("b", 5, "stored"))
    options = {"hoodie.merge.allow.duplicate.on.inserts": keeps}
    batch = [("a", 6, "newer"), ("b", 4, "older"), ("c", 1, "new"), ("c", 2, "newer")]
    result = watched.write("insert", *batch, options=options)

    stored = [("a", 5, "stored"), ("b", 5, "stored")]
    if keeps:
        assert watched.rows() == sorted([*stored, *batch])
        assert counts(result) == (4, 0, 0)
    else:
        assert watched.rows() == [("a", 6, "newer"), ("b", 5, "stored"), ("c", 2, "newer")]
        assert counts(result) == (1, 1, 0)


def test_an_upsert_of_late_rows_alone_writes_no_file(tmp_path: Path) -> None:
    watched = Watched(tmp_path, **EVENT_TIME)
    watched.write("insert", ("a", 5, "stored"))
    files = watched.files()
    result = watched.write("upsert", ("a", 1, "late"))
    assert (counts(result), result.files) == ((0, 0, 0), 0)
    assert watched.files() == files
    assert watched.rows() == [("a", 5, "stored")]


@pytest.mark.parametrize("version", ["8", "9"])
def test_null_and_empty_parts_of_a_key(version: str, tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.string()), ("y", pa.int32()), ("part", pa.string())])
    path = tmp_path / "table"
    table = hudi.Table.create(
        str(path),
        schema,
        record_key=["x", "y"],
        partition_by="part",
        options={"hoodie.write.table.version": version, "hoodie.fs.fsync": "false"},
    )
    keys = [("a", 1), (None, 1), ("", 1), ("a", None)]
    batch = pa.Table.from_pylist([{"x": x, "y": y, "part": None} for x, y in keys], schema)
    table.insert(batch)
    result = table.upsert(batch)

    assert counts(result) == (0, 4, 0)
    read = [row for part in hudi_rs.HudiTable(str(path)).read() for row in part.to_pylist()]
    assert {row["_hoodie_record_key"] for row in read} == {
        "x:a,y:1",
        "x:__null__,y:1",
        "x:__empty__,y:1",
        "x:a,y:__null__",
    }
    assert {row["_hoodie_partition_path"] for row in read} == {"__HIVE_DEFAULT_PARTITION__"}
    assert table.to_arrow(filter=[("part", "is null", None)]).num_rows == 4


def test_rolling_back_the_last_write_brings_the_rows_back(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.write("insert", ("a", 1, "a"), ("b", 1, "b"))
    before, files = watched.rows(), watched.files()
    last = watched.write("upsert", ("a", 2, "changed"), ("c", 2, "new"))
    assert watched.rows() != before

    watched.table.rollback(last.instant.requested_time)

    assert (watched.rows(), watched.files()) == (before, files)
    written = {Path(stat.path or "").name for stat in last.metadata.stats}
    assert not any((watched.path / name).exists() for name in written)
    changed = watched.table.incremental()
    assert sorted(changed.column("id").to_pylist()) == ["a", "b"]
    assert counts(watched.write("upsert", ("c", 2, "new"))) == (1, 0, 0)
    assert [row[0] for row in watched.rows()] == ["a", "b", "c"]


def test_only_the_last_write_can_be_rolled_back(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    first = watched.write("insert", ("a", 1, "a"))
    second = watched.write("insert", ("b", 1, "b"))
    with pytest.raises(hudi.HudiError, match=second.instant.requested_time):
        watched.table.rollback(first.instant.requested_time)
    assert len(watched.rows()) == 2
    watched.table.rollback(second.instant.requested_time)
    watched.table.rollback(first.instant.requested_time)
    assert watched.rows() == []
