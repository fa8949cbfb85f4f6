"""What is kept of a Delta log between two looks at it, and when it is not used again."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pytest

import hudi_core as hudi
from delta_format import handles
from delta_format.log import Head, open_log
from hudi_core.errors import CorruptMetadataError, StorageError
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from tests.forked_commands import ForkedCommands
from tests.formats.delta_tables import assert_all_read, content, delta_table, typed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    delta_table(path).insert(typed(0, 1, 2))
    return path


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Whatever is opened as a whole."""
    handles.forget_handles()
    found: list[str] = []
    real = deltalake.DeltaTable

    def counted(uri: str, **more: object) -> deltalake.DeltaTable:
        found.append(uri)
        return real(uri, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(handles, "DeltaTable", counted)
    yield found
    handles.forget_handles()


def head(path: Path) -> Head:
    return open_log(open_table(str(path), {}).client)


def new_column(name: str) -> deltalake.Field:
    return deltalake.Field(name, deltalake.schema.PrimitiveType("long"))


def test_a_second_look_opens_nothing(path: Path, openings: list[str]) -> None:
    versions = [head(path).version for _ in range(3)]
    assert len(set(versions)) == 1
    assert len(openings) == 1


def test_what_others_have_written_since_is_seen(
    path: Path, tmp_path: Path, openings: list[str], commands: ForkedCommands
) -> None:
    before = head(path).version
    code = (
        "import sys, hudi_core as hudi\n"
        "from tests.formats.delta_tables import typed\n"
        "hudi.Table.open(sys.argv[1]).upsert(typed(1, 7, ts=1))\n"
    )
    commands.run(code, str(path), cwd=tmp_path, environment=os.environ).check_returncode()
    now = head(path)
    assert now.version == before + 1
    assert len(openings) == 1
    kept, anew = (
        content(one.to_pyarrow_table()) for one in (now.table, deltalake.DeltaTable(str(path)))
    )
    assert kept == anew


@pytest.mark.parametrize("others", [0, 1, 9])
def test_a_second_look_asks_no_more_for_more_versions(
    path: Path, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles.forget_handles()
    first = head(path)
    at = first.version
    for ts in range(others):
        hudi.Table.open(path).upsert(typed(1, ts, ts=ts + 1))
    handles.forget_handles()
    del first  # is kept at the version that it has read
    gc.collect()
    asked = Counter[str]()

    def counted(name: str) -> Any:
        real = getattr(PosixStorage, name)

        def ask(storage: PosixStorage, where: str, *given: Any, **more: Any) -> Any:
            asked[name] += "_delta_log" in where
            return real(storage, where, *given, **more)

        return ask

    for name in ("head", "list"):
        monkeypatch.setattr(PosixStorage, name, counted(name))
    assert head(path).version == at + others
    assert asked == Counter(head=1, list=min(others, 1))


def test_two_users_never_share_one(path: Path, openings: list[str]) -> None:
    first, second = head(path), head(path)
    assert first.table is not second.table
    at = first.version
    hudi.Table.open(path).insert(typed(5))
    assert (first.version, second.version) == (at, at)
    assert head(path).version == at + 1


def test_writes_open_the_log_seldom_and_all_see_them(path: Path, openings: list[str]) -> None:
    table = hudi.Table.open(path)
    table.upsert(typed(1, ts=1))
    gc.collect()
    openings.clear()
    for ts in range(2, 14):  # past a checkpoint
        hudi.Table.open(path).upsert(typed(1, ts, ts=ts))
    # all of it when a write begins
    assert len(openings) == 12
    assert_all_read(path, content(hudi.Table.open(path).to_arrow()))
    # the checkpoint holds all transactions and every file that is removed and still there
    assert list((path / "_delta_log").glob("*.checkpoint.parquet"))
    handles.forget_handles()
    anew = head(path)
    assert all(anew.recorded(one) for one in table.timeline.completed_writes())
    assert deltalake.DeltaTable(str(path)).vacuum(dry_run=True) == []


def test_a_write_reads_new_reports_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hudi.Table.open(path)
    for ts in range(1, 4):
        table.upsert(typed(1, ts=ts))
    asked: list[int | None] = []
    real = deltalake.DeltaTable.history

    def counted(self: deltalake.DeltaTable, limit: int | None = None) -> list[dict[str, Any]]:
        asked.append(limit)
        return real(self, limit)

    monkeypatch.setattr(deltalake.DeltaTable, "history", counted)
    for ts in range(4, 6):
        hudi.Table.open(path).upsert(typed(1, ts=ts))
    assert asked == [1, 1]
    kept = head(path).reports
    assert list(kept.newest(None)) == real(deltalake.DeltaTable(str(path)))


def test_reports_of_another_log_in_the_same_place_are_not_used(path: Path, tmp_path: Path) -> None:
    before = head(path).reports.newest(None)
    other = tmp_path / "other"
    delta_table(other).insert(typed(7, 8))
    hudi.Table.open(other).upsert(typed(7, ts=1))
    shutil.rmtree(path)
    shutil.move(other, path)
    now = head(path).reports.newest(None)
    assert list(now) == deltalake.DeltaTable(str(path)).history()
    assert now[1:] != before


@pytest.mark.parametrize("repeats", [1, 3])
def test_another_log_in_the_same_place_is_opened_as_a_whole(
    path: Path, openings: list[str], repeats: int
) -> None:
    head(path)
    shutil.rmtree(path)
    table = delta_table(path)
    for number in range(repeats):
        table.insert(typed(10 + number))
    openings.clear()
    assert head(path).version == repeats
    assert len(openings) <= 1
    assert_all_read(path, content(table.to_arrow()))
    shutil.rmtree(path / "_delta_log")
    with pytest.raises(CorruptMetadataError):
        head(path)


def test_a_validation_finds_damage_to_what_is_known(path: Path, openings: list[str]) -> None:
    table = hudi.Table.open(path)
    head(path)
    first = path / "_delta_log" / "00000000000000000000.json"
    first.write_bytes(b"{")
    assert not table.validate().is_valid
    assert table.repair().left == ()
    assert head(path).version == deltalake.DeltaTable(str(path)).version()
    assert table.validate().is_valid


def test_a_log_that_takes_anothers_place_while_it_is_opened_is_not_kept(
    path: Path, openings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = handles.library_table

    def slow(*arguments: Any) -> deltalake.DeltaTable:
        monkeypatch.setattr(handles, "library_table", real)
        found = real(*arguments)
        shutil.rmtree(path)
        delta_table(path).insert(typed(20, 21))
        return found

    monkeypatch.setattr(handles, "library_table", slow)
    head(path)
    now = deltalake.DeltaTable(str(path))
    found = head(path).table
    assert found.version() == now.version()
    assert sorted(found.file_uris()) == sorted(now.file_uris())


def test_a_handle_that_columns_moved_is_not_used_again(path: Path, openings: list[str]) -> None:
    moved = head(path)
    at = moved.version
    moved.table.alter.add_columns(new_column("more"))
    assert moved.version == at + 1
    del moved
    (path / "_delta_log" / f"{at + 1:020}.json").unlink()  # as its owner takes it back
    deltalake.DeltaTable(str(path)).alter.add_columns(new_column("other"))
    names = [one.name for one in head(path).table.schema().fields]
    assert "other" in names
    assert "more" not in names


def test_a_log_cleaned_behind_a_handle_is_read_next(path: Path, openings: list[str]) -> None:
    table = hudi.Table.open(path)
    for ts in range(1, 4):
        table.upsert(typed(1, ts=ts))
    held = content(table.to_arrow())
    log = path / "_delta_log"
    deltalake.DeltaTable(str(path), version=3).create_checkpoint()
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    for _ in range(2):
        with contextlib.suppress(CorruptMetadataError):
            hudi.Table.open(path).to_arrow()
    assert content(hudi.Table.open(path).to_arrow()) == held


def test_a_proof_that_fails_costs_an_opening_and_nothing_else(
    path: Path, openings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = head(path).version
    real = PosixStorage.version

    def failing(self: PosixStorage, name: str) -> tuple[bytes, str]:
        if name.startswith("_delta_log/"):
            raise StorageError("The store does not answer", "Try again.")
        return real(self, name)

    monkeypatch.setattr(PosixStorage, "version", failing)
    assert [head(path).version for _ in range(2)] == [at, at]
    assert len(openings) == 3


def test_few_are_kept(tmp_path: Path, openings: list[str]) -> None:
    for number in range(6):
        delta_table(tmp_path / str(number))
        head(tmp_path / str(number))
    openings.clear()
    for number in reversed(range(6)):
        head(tmp_path / str(number))
    assert len(openings) == 2
