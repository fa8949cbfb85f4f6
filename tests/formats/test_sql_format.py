"""The SQL format: lost answers, writers that meet, services, statistics, and its place."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_sql_format import database as databases
from hudi_sql_format.commit import Record, record
from hudi_sql_format.conformance import ask_sqlite, database_of, rows_of
from hudi_sql_format.database import Database
from sqlalchemy.exc import OperationalError

import hudi_core as hudi
from hudi_core.spi import (
    Action,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptMetadataError,
    FileColumns,
    Instant,
    InstantTime,
    InvalidOptionError,
    State,
    StorageError,
    TableServiceError,
    ValueRanges,
)
from hudi_core.spi.testing import OpenTable, WriterDied, dies_before, open_table
from tests.tables import new_table, rows

_KEYS = {"id": pa.string(), "part": pa.string(), "number": pa.int64(), "real": pa.float64()}
_VALUES = {"text": pa.string(), "day": pa.date32(), "price": pa.decimal128(20, 4)}
SQL_COLUMNS = pa.schema({**_KEYS, **_VALUES, "flag": pa.bool_(), "data": pa.binary()})


@pytest.fixture
def table(path: Path) -> hudi.Table:
    return new_table(path, SQL_COLUMNS, format="sql")


def row(key: str, part: str = "a", **values: Any) -> pa.Table:
    return rows(key, schema=SQL_COLUMNS, part=part, **values)


def ranges(path: Path, column: str, kind: pa.DataType) -> tuple[FileColumns, ValueRanges]:
    opened = open_table(str(path), {})
    lister = opened.host.get_metadata_factory().create(opened.client)
    files = lister.list_columns(lister.list_partitions())
    found = lister.file_ranges(files, column, kind)
    assert found is not None
    return files, found


def pending(path: Path) -> tuple[OpenTable, Instant, Any]:
    opened = open_table(str(path), {})
    instant = opened.client.timeline().completed_writes()[-1]
    return opened, instant, opened.client.read_commit(instant)


@contextmanager
def requests_lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the database fail at the end of a transaction, before it is done."""
    changing = Database.changing

    @contextmanager
    def failing(self: Database) -> Iterator[Any]:
        with self._explained(), changing(self) as connection:
            yield connection
            raise OperationalError("COMMIT", {}, Exception("connection lost"))

    with monkeypatch.context() as patched:
        patched.setattr(Database, "changing", failing)
        yield


def test_a_request_that_was_lost_leaves_an_unknown_state_that_the_next_write_publishes(
    table: hudi.Table, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.insert(row("1"))
    with requests_lost(monkeypatch), pytest.raises(CommitStateUnknownError):
        table.upsert(row("1", number=2))
    assert [one["number"] for one in rows_of(path)] == [None]
    hudi.Table.open(path).insert(row("2", number=3))
    assert sorted(one["number"] for one in rows_of(path)) == [2, 3]


def test_of_writers_at_once_one_makes_the_next_state(table: hudi.Table, path: Path) -> None:
    table.insert(row("1"))
    opened = open_table(str(path), {})
    expected = opened.host.open(opened.client).version
    clients = [open_table(str(path), {}).client for _ in range(8)]

    def try_(number: int) -> bool:
        time = InstantTime(f"209901010000000{number:02}")
        instant = Instant(time, Action.CLEAN, State.COMPLETED, time)
        try:
            record(Database(clients[number]), Record(instant, expected))
        except CommitConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(try_, range(8)))
    assert sum(done) == 1
    assert opened.host.open(opened.client).version == str(int(expected) + 1)


def test_fenced_off_is_not_complete_below_a_watermark(table: hudi.Table, path: Path) -> None:
    table.insert(row("1"))
    with dies_before(), pytest.raises(WriterDied):
        table.upsert(row("1", number=2))
    opened, instant, _ = pending(path)
    opened.host.before_rollback(opened.client, replace(instant, state=State.INFLIGHT))
    opened.host.archive_instants(opened.client, [instant])
    assert opened.host.find_publication(opened.client, instant) is None


def test_a_state_of_cleaned_files_is_not_gone_back_to(table: hudi.Table, path: Path) -> None:
    table.insert(row("1", number=1))
    for number in (2, 3, 4):
        last = table.upsert(row("1", number=number)).instant
    hudi.Table.open(
        path,
        {
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": "1",
        },
    ).clean()
    [[files]] = ask_sqlite(path, "SELECT count(*) FROM hudi_files")
    [[stated]] = ask_sqlite(path, "SELECT count(DISTINCT file_id) FROM hudi_bounds")
    assert files == stated == 1 == len(list(path.glob("*/*.parquet")))
    opened = open_table(str(path), {})
    with pytest.raises(TableServiceError):
        opened.host.before_rollback(opened.client, last)
    assert [one["number"] for one in rows_of(path)] == [4]


def test_a_restore_takes_later_states_with_their_files(table: hudi.Table, path: Path) -> None:
    table.insert(row("1", number=1))
    saved = table.upsert(row("1", number=2)).instant
    table.savepoint(saved)
    for number in (3, 4):
        table.upsert(row("1", number=number))
    table.restore(saved)
    assert [one["number"] for one in rows_of(path)] == [2] == table.to_arrow()["number"].to_pylist()
    [[files]] = ask_sqlite(path, "SELECT count(*) FROM hudi_files")
    assert files == 2 == len(list(path.glob("*/*.parquet")))
    table.upsert(row("1", number=5))
    assert [one["number"] for one in rows_of(path)] == [5]


def test_a_file_group_whose_rows_are_all_deleted_holds_none(table: hudi.Table, path: Path) -> None:
    table.insert(row("1", "a"))
    table.insert(row("2", "b"))
    table.delete(row("1", "a"))
    for _ in range(2):
        now = hudi.Table.open(path)
        assert now.to_arrow()["id"].to_pylist() == ["2"] == [one["id"] for one in rows_of(path)]
        assert now.validate().differences == ()
        hudi.Table.open(path).repair(force=True)
    table.upsert(row("1", "a"))
    assert sorted(hudi.Table.open(path).to_arrow()["id"].to_pylist()) == ["1", "2"]


def test_a_deletion_of_all_rows_is_rolled_back(table: hudi.Table, path: Path) -> None:
    table.insert(row("1"))
    table.rollback(table.delete(row("1")).instant)
    assert table.to_arrow()["id"].to_pylist() == ["1"] == [one["id"] for one in rows_of(path)]
    [[files]] = ask_sqlite(path, "SELECT count(*) FROM hudi_files")
    assert files == 1


def test_a_restore_of_what_was_forgotten_is_refused(table: hudi.Table, path: Path) -> None:
    saved = table.insert(row("1", number=1)).instant
    table.savepoint(saved)
    table.upsert(row("1", number=2))
    database_of(path).unlink()
    table = hudi.Table.open(path)
    table.repair()
    with pytest.raises(TableServiceError):
        table.restore(saved)
    assert [one["number"] for one in rows_of(path)] == [2] == table.to_arrow()["number"].to_pylist()
    table.upsert(row("1", number=3))
    assert [one["number"] for one in rows_of(path)] == [3]


def test_a_rollback_brings_the_columns_of_before_back(table: hudi.Table, path: Path) -> None:
    table.insert(row("1", number=1))
    before = ask_sqlite(path, "SELECT columns FROM hudi_tables")
    wider = row("1", number=2).append_column("more", pa.array([1], pa.int64()))
    instant = table.upsert(wider).instant
    assert ask_sqlite(path, "SELECT columns FROM hudi_tables") != before
    table.rollback(instant)
    assert ask_sqlite(path, "SELECT columns FROM hudi_tables") == before


VALUES = {
    "number": [-(2**63), 0, 2**63 - 1, None],
    "real": [-math.inf, -0.0, 0.0, 5e-324, 1 / 3, math.inf, math.nan, None],
    "text": ["", "a\0b", "é", "𝄞" * 300, "z" * 300, None],
    "day": [-719162, 0, 2932896, None],
    "price": ["-9999999999999999.9999", "0.0000", "0.1000", None],
    "flag": [False, True, None],
    "data": [b"", b"\0", b"\xff" * 300, None],
}


@pytest.mark.parametrize("column", VALUES)
def test_no_row_is_lost_by_a_filter(table: hudi.Table, path: Path, column: str) -> None:
    kind = SQL_COLUMNS.field(column).type
    raw = VALUES[column]
    values = (
        pa.array(raw, pa.int32()).cast(kind)
        if column == "day"
        else (pa.array(raw, pa.string()).cast(kind) if column == "price" else pa.array(raw, kind))
    )
    for at, one in enumerate(values):
        table.insert(row(str(at), f"p{at}", **{column: one.as_py()}))
    files, found = ranges(path, column, kind)
    assert len(files) == len(values) == len(found)
    of_part = {int(str(files.partitions[owner])[1:]): at for at, owner in enumerate(files.owners)}
    for at, one in enumerate(values):
        place = of_part[at]
        if one.is_valid:
            assert found.may_hold(pa.array([one.as_py()], kind))[place]
        else:
            assert found.may_be_null[place]
            assert not found.may_have_value[place]
    for one in values:
        if one.is_valid and not (column == "real" and math.isnan(one.as_py())):
            kept = table.to_arrow(filter=[(column, "==", one.as_py())])
            expected = [
                other for other in values if other.is_valid and other.as_py() == one.as_py()
            ]
            assert kept.num_rows == len(expected)


@pytest.mark.parametrize("column", ["number", "text", "flag", "day"])
def test_ranges_of_many_files_are_those_of_few(
    table: hudi.Table, path: Path, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(5):
        table.insert(row(str(at), f"p{at}", number=at or None, text=str(at), flag=at > 2))
    kind = SQL_COLUMNS.field(column).type
    files, few = ranges(path, column, kind)
    monkeypatch.setattr("hudi_sql_format.lister._FEW", 0)
    same, many = ranges(path, column, kind)
    assert same.paths().equals(files.paths())
    assert (many.minimum, many.maximum) == (few.minimum, few.maximum)
    assert np.array_equal(many.may_be_null, few.may_be_null)
    assert np.array_equal(many.may_have_value, few.may_have_value)
    assert few.may_be_null.tolist() == [column in ("number", "day"), *[column == "day"] * 4]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://me:secret@host/db", "password"),
        ("mysql://host/db", "PostgreSQL is"),
        ("postgresql:///db", "no host"),
        ("postgresql://host/db?passfile=/etc/passwd", "passfile"),
        ("nonsense", "no URL"),
    ],
)
def test_an_url_that_cannot_be_used_is_refused(path: Path, url: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=why):
        new_table(path, SQL_COLUMNS, {"hoodie.table.format.sql.url": url}, format="sql")
    assert not path.exists()


def test_a_server_that_does_not_answer_is_an_error_before_anything_is_made(path: Path) -> None:
    nobody = {"hoodie.table.format.sql.url": "postgresql://nobody@127.0.0.1:1/none"}
    with pytest.raises(StorageError, match="does not answer"):
        new_table(path, SQL_COLUMNS, nobody, format="sql")
    assert not path.exists()


def test_a_link_to_a_database_is_refused(table: hudi.Table, path: Path, tmp_path: Path) -> None:
    table.insert(row("1"))
    database_of(path).rename(tmp_path / "other.db")
    database_of(path).symlink_to(tmp_path / "other.db")
    with pytest.raises(hudi.errors.UnsafePathError):
        hudi.Table.open(path).to_arrow()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE hudi_files SET name = '../../' || name",
        "UPDATE hudi_bounds SET low_number = 'x' WHERE kind = 'integer'",
        "UPDATE hudi_instants SET action = 'dance'",
        "DROP TABLE hudi_files",
    ],
)
def test_damage_is_an_error_and_is_repaired(table: hudi.Table, path: Path, damage: str) -> None:
    table.insert(row("1", number=7))
    table.insert(row("2", "b", number=8))
    ask_sqlite(path, damage)
    with pytest.raises(CorruptMetadataError):
        hudi.Table.open(path).to_arrow(filter=[("number", "==", 7)])
    hudi.Table.open(path).repair()
    assert sorted(one["number"] for one in rows_of(path)) == [7, 8]


def test_a_file_that_is_no_database_is_repaired(table: hudi.Table, path: Path) -> None:
    table.insert(row("1", number=7))
    database_of(path).write_bytes(b"no database" * 100)
    with pytest.raises(CorruptMetadataError):
        hudi.Table.open(path).to_arrow()
    hudi.Table.open(path).repair()
    assert [one["number"] for one in rows_of(path)] == [7]


def test_a_moved_table_finds_its_database(table: hudi.Table, path: Path, tmp_path: Path) -> None:
    """Its rows say the former folder; a name of its own does not."""
    named = {"hoodie.table.format.sql.table": "mine"}
    new_table(tmp_path / "named", row("1", number=7), named, format="sql")
    (tmp_path / "named").rename(tmp_path / "moved")
    assert hudi.Table.open(tmp_path / "moved").to_arrow()["number"].to_pylist() == [7]


def test_the_database_is_plain_sqlite(table: hudi.Table, path: Path) -> None:
    table.insert(row("1"))
    with closing(sqlite3.connect(database_of(path))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert databases.FILE == ".hoodie/sql/table.db"


# --- split tables ---------------------------------------------------------------------------------

OPTIONS = {
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
}


@pytest.fixture
def split(path: Path) -> hudi.Table:
    """A table of one file of five rows, by the format."""
    made = new_table(
        path, SQL_COLUMNS, OPTIONS, format="sql", table_type="MERGE_ON_READ", partition_by=None
    )
    made.insert(rows("a", "b", "c", "d", "e", schema=SQL_COLUMNS, part="p", number=1))
    return made


def keys(table: hudi.Table, instant: Instant | None = None) -> list[str]:
    return sorted(table.to_arrow("id", as_of=instant)["id"].to_pylist())


def keys_at(path: Path, instant: Instant) -> list[str]:
    """The keys of a former state by SQL alone."""
    [[version]] = ask_sqlite(
        path, f"SELECT version FROM hudi_instants WHERE instant = '{instant.requested_time}'"
    )
    dead = {
        *ask_sqlite(
            path, f"SELECT file_id, position FROM hudi_deleted_rows WHERE deleted <= {version}"
        )
    }
    files = ask_sqlite(
        path,
        f"SELECT id, name FROM hudi_files WHERE added <= {version} "
        f"AND (removed IS NULL OR removed > {version})",
    )
    return sorted(
        key
        for file, name in files
        for at, key in enumerate(pq.ParquetFile(path / name).read(["id"])["id"].to_pylist())
        if (file, at) not in dead
    )


def dead_rows(path: Path) -> list[tuple[Any, ...]]:
    return ask_sqlite(path, "SELECT file_id, position FROM hudi_deleted_rows ORDER BY 1, 2")


def test_former_states_of_split_tables_are_found_by_sql(split: hudi.Table, path: Path) -> None:
    [first] = split.timeline.completed_writes()
    updated = split.upsert(row("b", part="p", number=2)).instant
    deleted = split.delete(row("a", part="p")).instant
    compacted = split.compact(options=OPTIONS).result
    assert compacted is not None
    last = split.delete(row("c", part="p")).instant
    expected = {first: "abcde", updated: "abcde", deleted: "bcde", last: "bde"}
    for instant, wanted in {**expected, compacted.instant: "bcde"}.items():
        assert keys_at(path, instant) == keys(split, instant) == [*wanted]
    assert split.validate().is_valid
    assert split.count() == 3


def test_rows_of_split_tables_come_back_with_the_state_that_had_them(
    split: hudi.Table, path: Path
) -> None:
    updated = split.upsert(row("b", part="p", number=2)).instant
    deleted = split.delete(row("a", part="p")).instant
    assert dead_rows(path) == [(1, 0), (1, 1)]
    opened = open_table(str(path), {})
    with pytest.raises(TableServiceError, match="later versions build on it"):
        opened.host.before_rollback(opened.client, updated, None)
    split.rollback(deleted)
    assert dead_rows(path) == [(1, 1)]
    split.delete(rows("c", "d", schema=SQL_COLUMNS, part="p"))
    split.compact(options=OPTIONS)
    split.restore(updated)
    assert dead_rows(path) == [(1, 1)]
    assert keys(split) == [*"abcde"]
    assert split.validate().is_valid


def test_dead_rows_go_with_the_files_that_are_cleaned(split: hudi.Table, path: Path) -> None:
    split.delete(row("a", part="p"))
    split.compact(options=OPTIONS)
    split.delete(row("b", part="p"))
    assert len(dead_rows(path)) == 2
    assert ask_sqlite(path, "SELECT count(*) FROM hudi_files WHERE name LIKE '%.log.%'") == [(2,)]
    split.clean(options={"hoodie.clean.commits.retained": "1"})
    [[last]] = ask_sqlite(path, "SELECT id FROM hudi_files WHERE name LIKE '%.parquet'")
    assert dead_rows(path) == [(last, 0)]
    assert ask_sqlite(path, "SELECT count(*) FROM hudi_files WHERE name LIKE '%.log.%'") == [(1,)]
    assert keys(split) == [*"cde"]
    assert split.validate().is_valid


def test_the_metadata_of_split_tables_is_made_of_their_logs(split: hudi.Table, path: Path) -> None:
    split.upsert(row("b", part="p", number=2))
    split.delete(rows("a", "b", schema=SQL_COLUMNS, part="p"))
    before = dead_rows(path)
    assert len(before) == 3
    database_of(path).unlink()
    again = hudi.Table.open(str(path))
    again.repair()
    assert len(dead_rows(path)) == 3
    again.convert("native")
    again.convert("sql")
    assert [one["id"] for one in rows_of(path)] == keys(again) == [*"cde"]
    assert again.validate().is_valid


def test_logs_with_rows_are_refused(path: Path) -> None:
    native = new_table(path, SQL_COLUMNS, OPTIONS, table_type="MERGE_ON_READ")
    native.insert(row("a", number=1))
    native.upsert(row("a", number=2))
    with pytest.raises(hudi.HudiError, match="merge on read"):
        native.convert("sql")


def test_a_database_of_an_earlier_release_gets_the_table_of_dead_rows(
    table: hudi.Table, path: Path
) -> None:
    table.insert(row("a", number=1))
    ask_sqlite(path, "DROP TABLE hudi_deleted_rows")
    again = hudi.Table.open(str(path))
    assert keys(again) == ["a"]
    assert again.validate().is_valid
    written = again.upsert(row("a", number=2)).instant
    again.rollback(written)
    again.upsert(row("a", number=3))
    again.clean(options={"hoodie.clean.commits.retained": "1"})
    assert again.validate().is_valid
    assert dead_rows(path) == []
