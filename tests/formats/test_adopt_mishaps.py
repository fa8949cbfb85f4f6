"""Folders that become Hudi tables: writers that die or meet, forged tables, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    DataFileError,
    HudiError,
    NotATableError,
    OptionConflictError,
    RecordKeyError,
    SchemaError,
    UnsafePathError,
    UnsupportedTableError,
)
from hudi_core.services.adopt_plan import plan_in_place
from hudi_core.storage.posix import PosixStorage
from tests.formats.adopt_folders import ALL, ENCODED, ROWS, agree, plain
from tests.formats.dying_writers import Died, MortalStorage, death_in
from tests.formats.service_tables import READERS, bag


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.mark.parametrize("table_format", ALL)
def test_an_adoption_that_died_goes_on_as_it_was_begun(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    plain(path)
    storage = MortalStorage(monkeypatch)
    options = {**ENCODED, "hoodie.metadata.enable": "false", "hoodie.fs.fsync": "false"}
    arguments: dict[str, Any] = {"record_key": "id", "format": table_format, "options": options}
    for calls in range(1, 200):
        copy = tmp_path / f"t{calls}"
        shutil.copytree(path, copy)
        storage.left = calls
        try:
            hudi.Table.adopt(str(copy), **arguments)
        except Died:
            storage.left = 0
            if (copy / ".hoodie/hoodie.properties").exists():
                # it is a table from then on
                found = hudi.Table.open(str(copy)).to_arrow()
                assert bag(found, ROWS.column_names) == bag(ROWS)
            if (copy / ".hoodie/adoption.json").exists() or not (
                copy / ".hoodie/hoodie.properties"
            ).exists():
                hudi.Table.adopt(str(copy), **arguments)
            for read in READERS[table_format][:2]:
                assert bag(read(copy), ROWS.column_names) == bag(ROWS), calls
        else:
            break
    assert calls > 15


def test_it_goes_on_with_what_was_begun_and_nothing_else(path: Path) -> None:
    plain(path)
    with death_in("hudi_core.services.adopt._commit"):
        hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    with pytest.raises(OptionConflictError):
        hudi.Table.adopt(str(path), record_key="n", options=ENCODED)
    hudi.Table.adopt(str(path), record_key="id")
    agree(path)


def test_another_file_under_an_old_name_is_never_deleted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(path)
    old = path / "city=rome/part-00000-abc.snappy.parquet"
    delete = PosixStorage.delete

    def dying(self: PosixStorage, name: str) -> bool:
        if name == "city=rome/part-00000-abc.snappy.parquet":
            raise Died
        return delete(self, name)

    monkeypatch.setattr(PosixStorage, "delete", dying)
    with pytest.raises(Died):
        hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    monkeypatch.undo()
    # whoever writes the folder puts a new file in its place
    pq.write_table(ROWS.slice(1, 1), path / "new")
    (path / "new").replace(old)
    with pytest.raises(CommitConflictError, match="another file"):
        hudi.Table.adopt(str(path), record_key="id")
    assert pq.read_table(old, partitioning=None).num_rows == 1
    old.rename(path.parent / "saved.parquet")
    hudi.Table.adopt(str(path), record_key="id")
    agree(path)


def test_who_comes_second_finds_a_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(path)
    _while_looked_at(
        monkeypatch, lambda: hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    )
    with pytest.raises(NotATableError, match="already"):
        hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    assert not (path / ".hoodie/adoption.json").exists()
    agree(path)


def test_files_that_come_while_a_folder_is_looked_at_are_not_passed_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(path)
    late = path / "city=rome/late.parquet"
    _while_looked_at(monkeypatch, lambda: pq.write_table(ROWS.slice(0, 1), late))
    with pytest.raises(CommitConflictError, match="were changed"):
        hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    assert late.exists()
    assert not (path / ".hoodie/adoption.json").exists()


@pytest.mark.parametrize("step", ["_place", "_commit"])
def test_a_version_that_comes_meanwhile_is_not_lost(path: Path, step: str) -> None:
    rows = ROWS.select(["id", "n"])
    write_deltalake(path, rows.slice(0, 2))
    before = {one.name for one in path.glob("*.parquet")}
    more = rows.slice(2, 2)

    # its writer comes when the record is made; before the files have names, or before the commit
    with death_in(f"hudi_core.services.adopt.{step}"):
        hudi.Table.adopt(str(path), record_key="id")
    write_deltalake(path, more, mode="append")
    with pytest.raises(CommitConflictError, match="new version"):
        hudi.Table.adopt(str(path), record_key="id")
    assert bag(DeltaTable(path).to_pyarrow_table()) == bag(rows)
    assert {one.name for one in path.glob("*.parquet")} > before
    hudi.Table.adopt(str(path), record_key="id")
    agree(path, rows)


def test_a_version_that_comes_after_the_commit_is_not_lost(path: Path) -> None:
    rows = ROWS.select(["id", "n"])
    write_deltalake(path, rows.slice(0, 2))

    with death_in("hudi_core.services.adopt._make_format"):
        hudi.Table.adopt(str(path), record_key="id")
    write_deltalake(path, rows.slice(2, 2), mode="append")
    with pytest.raises(CommitConflictError, match="new version"):
        hudi.Table.adopt(str(path), record_key="id")
    hudi.Table.adopt(str(path), record_key="id")
    agree(path, rows)
    assert len({one.name[:17] for one in (path / ".hoodie/timeline").glob("*commit*")}) == 1


@pytest.mark.parametrize("named", ["../outside.parquet", "%2E%2E/outside.parquet", "link.parquet"])
def test_a_forged_table_does_not_lead_out_of_the_folder(
    path: Path, tmp_path: Path, named: str
) -> None:
    write_deltalake(path, ROWS.select(["id", "n"]).slice(0, 1))
    outside = tmp_path / "outside.parquet"
    pq.write_table(ROWS.select(["id", "n"]).slice(1, 1), outside)
    (path / "link.parquet").symlink_to(outside)
    add = {
        "path": named,
        "partitionValues": {},
        "size": outside.stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
    }
    (path / "_delta_log/00000000000000000001.json").write_text(json.dumps({"add": add}))
    for rewrite in (None, str(tmp_path / "new")):
        with pytest.raises(UnsafePathError):
            hudi.Table.adopt(str(path), record_key="id", rewrite=rewrite)
    assert outside.exists()


def _while_looked_at(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen once, between looking at a folder and locking it."""

    def planned(folder: Any) -> Any:
        plan = plan_in_place(folder)
        monkeypatch.undo()
        happens()
        return plan

    monkeypatch.setattr("hudi_core.services.adopt.plan_in_place", planned)


def test_a_forged_record_does_not_lead_out_of_the_folder(path: Path, tmp_path: Path) -> None:
    plain(path)
    outside = tmp_path / "outside.parquet"
    pq.write_table(ROWS, outside)
    (path / ".hoodie").mkdir()
    base = "00000000-0000-0000-0000-000000000000-0_0-0-0_20240101000000000.parquet"
    record = {
        "version": 1,
        "instant": "20240101000000000",
        "source": "parquet",
        "properties": {"hoodie.table.name": "t"},
        "files": [["../outside.parquet", "", base, outside.stat().st_size, 4]],
    }
    (path / ".hoodie/adoption.json").write_text(json.dumps(record))
    with pytest.raises(HudiError):
        hudi.Table.adopt(str(path), record_key="id")
    record["files"] = [["city=rome/x.parquet", "../..", base, 1, 1]]
    (path / ".hoodie/adoption.json").write_text(json.dumps(record))
    with pytest.raises(HudiError):
        hudi.Table.adopt(str(path), record_key="id")
    (path / ".hoodie/adoption.json").write_text("{")
    with pytest.raises(CorruptMetadataError, match="adoption"):
        hudi.Table.adopt(str(path), record_key="id")
    assert outside.exists()


@pytest.mark.parametrize(
    ("spoil", "error", "told"),
    [
        (shutil.rmtree, NotATableError, "no data file"),
        (
            lambda path: (path / "city=rome/b.parquet").write_bytes(b"no"),
            DataFileError,
            "b.parquet",
        ),
        (
            lambda path: pq.write_table(pa.table({"id": [1]}), path / "city=rome/b.parquet"),
            SchemaError,
            "Column id has the type",
        ),
        (
            lambda path: pq.write_table(ROWS, path / "top.parquet"),
            SchemaError,
            "different partition columns",
        ),
    ],
)
def test_what_cannot_be_adopted_is_told(
    path: Path, spoil: Callable[[Path], Any], error: type[Exception], told: str
) -> None:
    plain(path)
    spoil(path)
    with pytest.raises(error, match=told):
        hudi.Table.adopt(str(path), record_key="id", options=ENCODED)


def test_keys_and_tables_that_there_are_not(path: Path) -> None:
    plain(path)
    with pytest.raises(RecordKeyError, match="nothing_of_the_kind"):
        hudi.Table.adopt(str(path), record_key="nothing_of_the_kind")
    with pytest.raises(UnsupportedTableError, match="no record key"):
        hudi.Table.adopt(str(path), options=ENCODED)
    with pytest.raises(NotATableError, match="no table of the format delta"):
        hudi.Table.adopt(str(path), record_key="id", source="delta")
    hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    with pytest.raises(NotATableError, match="is a Hudi table already"):
        hudi.Table.adopt(str(path), record_key="id")


def test_of_several_tables_one_is_named(path: Path) -> None:
    write_deltalake(str(path), ROWS)
    (path / "metadata").mkdir()
    (path / "metadata/v1.metadata.json").write_text("{}")
    with pytest.raises(CorruptMetadataError):
        hudi.Table.adopt(str(path), record_key="id")
    hudi.Table.adopt(str(path), record_key="id", source="delta")
    agree(path)


def test_readers_of_a_format_are_not_left_behind(path: Path) -> None:
    write_deltalake(str(path), ROWS)
    for other in ("native", "iceberg"):
        with pytest.raises(UnsupportedTableError, match=f"adopt it as delta.*--to {other}"):
            hudi.Table.adopt(str(path), record_key="id", format=other)
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == ROWS.num_rows
