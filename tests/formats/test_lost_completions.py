"""The completed file of a commit is lost: nothing is deleted, and it can be put back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.errors import CorruptMetadataError, LostCompletionError, TableServiceError
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.model.instant import State
from hudi_core.txn.transaction import Transaction
from tests.foreign import by_hudi_rs
from tests.formats.dying_writers import death_in
from tests.formats.history_readers import FOREIGN, content
from tests.formats.two_steps import READABLE, Write, batch, small_table
from tests.tables import new_table
from tests.unit.refusals import files

EVERY = [*READABLE, "native"]
LAST: dict[str, Write] = {
    "upsert": lambda t: t.upsert(batch(2, "a", "c", "y")),
    "delete": lambda t: t.delete(batch(2, "a")),
    "insert_overwrite": lambda t: t.insert_overwrite(batch(2, "a", "d")),
    "insert_overwrite_table": lambda t: t.insert_overwrite_table(batch(2, "e")),
    "delete_partitions": lambda t: t.delete_partitions(["oslo"]),
}
PUT_BACK = [
    (name, operation)
    for name in (*EVERY, "iceberg,delta")
    for operation in LAST
    # nothing of a native table tells which partitions were deleted
    if (name, operation) != ("native", "delete_partitions")
]


def rows_now(table: hudi.Table) -> object:
    return content(hudi.Table.open(table.path).to_arrow().to_pylist())


def lose(table: hudi.Table, number: int = -1) -> tuple[str, Path]:
    """Delete the completed file of a write; give its time and the file."""
    instant = hudi.Table.open(table.path).timeline.completed_writes()[number]
    [file] = Path(table.path, ".hoodie/timeline").glob(f"{instant.requested_time}_*commit")
    file.unlink()
    return instant.requested_time, file


def metadata(table: hudi.Table, number: int = -1) -> CommitMetadata:
    opened = hudi.Table.open(table.path)
    instant = opened.timeline.completed_writes()[number]
    return opened._session.opened.client.read_commit(instant)


def known(stat: WriteStat) -> WriteStat:
    """What can be known of a file afterwards: not how long it took."""
    return replace(stat, runtime_stats=None, min_event_time=None, max_event_time=None)


def comparable(found: CommitMetadata) -> object:
    stats = {
        path: sorted(map(known, some), key=lambda one: one.path or "")
        for path, some in found.partition_to_write_stats.items()
    }
    replaced = getattr(found, "partition_to_replace_file_ids", None)
    return stats, found.schema_json, found.operation_type, replaced


@pytest.mark.parametrize(("format_name", "operation"), PUT_BACK)
def test_a_repair_puts_it_back(tmp_path: Path, format_name: str, operation: str) -> None:
    table = small_table(tmp_path / "t", format_name)
    LAST[operation](table)
    expected, was = rows_now(table), metadata(table)
    instant, file = lose(table)
    before = files(tmp_path)
    with pytest.raises(LostCompletionError, match=instant):
        hudi.Table.open(table.path).upsert(batch(3, "b"))
    report = hudi.Table.open(table.path).validate()
    assert [instant in one.subject for one in report.differences] == [True]
    assert files(tmp_path) == before
    done = hudi.Table.open(table.path).repair()
    assert done.commits == (instant,)
    assert done.left == ()
    assert not done.metadata_table
    assert not done.format_metadata
    assert comparable(metadata(table)) == comparable(was)
    if format_name != "native":  # which records the time elsewhere
        assert file.exists()
    assert rows_now(table) == expected
    for one in format_name.split(","):
        for reader, seen in FOREIGN[one].read(tmp_path / "t").items():
            assert seen == expected, reader
    hudi.Table.open(table.path).upsert(batch(3, "b"))
    assert hudi.Table.open(table.path).validate().differences == ()


@pytest.mark.parametrize("format_name", EVERY)
def test_readers_are_not_given_the_rows_of_before(path: Path, format_name: str) -> None:
    table = small_table(path, format_name)
    before = table.timeline.completed_writes()[-1]
    instant = LAST["upsert"](table).instant.requested_time
    lose(table)
    reads: list[Callable[[hudi.Table], object]] = [
        hudi.Table.to_arrow,
        hudi.Table.count,
        lambda t: t.to_arrow(filter=[("id", "=", "b")]),
        lambda t: t.scan().to_table(),
        lambda t: t.incremental(before),
        lambda t: t.changes(before),
    ]
    for read in reads:
        with pytest.raises(LostCompletionError, match=instant):
            read(hudi.Table.open(table.path))


def test_states_before_and_writers_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(path, "native")
    before, expected = table.timeline.completed_writes()[-1], rows_now(table)
    seen: list[object] = []

    def look(transaction: Transaction, *given: Any) -> Any:
        # the metadata table is complete, and the commit is not
        seen.append(rows_now(table))
        seen.append(content(hudi.Table.open(table.path).incremental(before).to_pylist()))
        return complete(transaction, *given)

    complete = Transaction._complete
    monkeypatch.setattr(Transaction, "_complete", look)
    LAST["upsert"](table)
    assert seen == [expected, content([])]
    lose(table)
    assert content(hudi.Table.open(table.path).to_arrow(as_of=before).to_pylist()) == expected


def test_what_was_rolled_back_is_not_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback that died at its very end leaves the write pending, without its files."""
    table = small_table(path, "native")
    before, expected = table.timeline.completed_writes()[-1], rows_now(table)
    LAST["upsert"](table)

    def die(*_: object) -> None:
        raise SystemExit

    last = table.timeline.completed_writes()[-1]
    monkeypatch.setattr("hudi_core.actions.rollback.remove_from_timeline", die)
    with pytest.raises(SystemExit):
        hudi.Table.open(table.path).rollback(last)
    assert not hudi.Table.open(table.path).timeline.instants[-2].is_completed
    assert rows_now(table) == expected
    assert hudi.Table.open(table.path).incremental(before).num_rows == 0


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_a_restore_takes_out_is_not_lost(path: Path, kind: str) -> None:
    """One that died has hidden commits whose files are there, and in the metadata table."""
    table = new_table(path, batch(1, "a", "b", "x"), table_type=kind)
    before, expected = table.timeline.completed_writes()[-1], rows_now(table)
    LAST["upsert"](table)
    if kind == "MERGE_ON_READ":
        table.compact()
    with death_in("hudi_core.txn.recovery.restore.delete_together"):
        hudi.Table.open(table.path).restore(before)
    assert [one.is_completed for one in table.timeline.instants][:2] == [True, False]
    assert rows_now(table) == expected
    assert content(by_hudi_rs(table.path)) == expected
    now = hudi.Table.open(table.path)
    assert now.incremental(before).num_rows == 0
    LAST["upsert"](now)
    assert now.validate().is_valid


@pytest.mark.parametrize("format_name", READABLE)
def test_what_completes_between_two_looks_is_not_lost(path: Path, format_name: str) -> None:
    table = small_table(path, format_name)
    written = LAST["upsert"](table).instant
    opened = hudi.Table.open(table.path)._session.opened
    now = opened.client.timeline()
    pending = replace(
        now,
        instants=tuple(one.to(State.INFLIGHT) if one == written else one for one in now.instants),
    )
    seen = opened.seeing(pending).timeline()
    assert [one.is_completed for one in seen.instants] == [True, False]


@pytest.mark.parametrize("format_name", EVERY)
def test_an_explicit_rollback_gives_the_commit_up(path: Path, format_name: str) -> None:
    table = small_table(path, format_name)
    expected = rows_now(table)
    LAST["upsert"](table)
    instant, _ = lose(table)
    hudi.Table.open(table.path).rollback(instant)
    assert rows_now(table) == expected
    for reader, seen in FOREIGN[format_name].read(path).items():
        assert seen == expected, reader
    assert hudi.Table.open(table.path).validate().differences == ()


@pytest.mark.parametrize("metadata_table", ["true", "false"])
def test_one_that_later_commits_build_on(path: Path, metadata_table: str) -> None:
    table = small_table(path, "native", **{"hoodie.metadata.enable": metadata_table})
    LAST["upsert"](table)
    hudi.Table.open(table.path).upsert(batch(3, "b", "z"))
    expected, was = rows_now(table), metadata(table, 1)
    instant, _ = lose(table, 1)
    with pytest.raises(LostCompletionError, match="builds on files of it"):
        hudi.Table.open(table.path).upsert(batch(4, "b"))
    with pytest.raises(TableServiceError, match="came after it"):
        hudi.Table.open(table.path).rollback(instant)
    assert hudi.Table.open(table.path).repair().commits == (instant,)
    assert comparable(metadata(table, 1)) == comparable(was)
    assert rows_now(table) == expected


def test_new_columns_come_back_with_it(path: Path) -> None:
    table = small_table(path, "native")
    added = batch(2, "a").append_column("more", pa.array([7]))
    table.upsert(added)
    expected = rows_now(table)
    lose(table)
    hudi.Table.open(table.path).repair()
    assert rows_now(table) == expected


@pytest.mark.parametrize("format_name", READABLE)
def test_columns_that_no_file_has_are_not_made_up(path: Path, format_name: str) -> None:
    table = small_table(path, format_name)
    table.alter(add_columns={"more": pa.int64()})
    instant, file = lose(table)
    with pytest.raises(CorruptMetadataError, match=f"{instant} is lost, and it cannot be put back"):
        hudi.Table.open(table.path).repair()
    assert not file.exists()


def test_the_command_says_what_it_puts_back(path: Path) -> None:
    table = small_table(path, "delta")
    LAST["upsert"](table)
    instant, _ = lose(table)
    shown = CliRunner().invoke(app, ["table", "repair", table.path, "--dry-run"])
    assert f"Would rebuild: the completed file of {instant}" in shown.output
    done = CliRunner().invoke(app, ["table", "repair", table.path])
    assert done.exit_code == 0
    assert f"rebuilt: the completed file of {instant}" in done.output


STRAYS: dict[str, Callable[[Path], object]] = {
    "folder": lambda path: path.mkdir(),
    "pipe": os.mkfifo,
    "link to nothing": lambda path: path.symlink_to(path.with_name("nothing")),
}


@pytest.mark.parametrize("stray", STRAYS)
def test_an_instant_that_is_no_file_is_damage(path: Path, stray: str) -> None:
    table = small_table(path, "native")
    LAST["upsert"](table)
    _, file = lose(table)
    STRAYS[stray](file)
    for use in (hudi.Table.to_arrow, lambda t: t.upsert(batch(3, "a")), hudi.Table.validate):
        with pytest.raises(CorruptMetadataError, match="is no file") as caught:
            use(hudi.Table.open(table.path))
        assert str(file) in str(caught.value)
