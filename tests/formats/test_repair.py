"""What is lost or wrong of a table's metadata comes back from the timeline and the files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.errors import CorruptMetadataError, HudiError
from hudi_core.services.mending.differences import Source
from tests.formats.dying_writers import Died, MortalStorage
from tests.formats.service_tables import TAGGED, TWO_STEP, agree, bag, batch, by_iceberg, two_writes
from tests.hudi_tables import TXNS


@pytest.fixture(params=TWO_STEP)
def table(request: pytest.FixtureRequest, path: Path) -> hudi.Table:
    return two_writes(path, request.param)


def metadata_of(table: hudi.Table) -> Path:
    return Path(table.path) / ("metadata" if table.format == "iceberg" else "_delta_log")


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def empty_every_file(folder: Path) -> None:
    for one in folder.iterdir():
        one.write_bytes(b"")


def damage_what_is_read_first(folder: Path) -> None:
    names = ("v3.metadata.json", "00000000000000000002.json")
    for name in names:
        if (folder / name).exists():
            (folder / name).write_bytes(b"{")


def damage_what_names_the_files(folder: Path) -> None:
    for one in [*folder.glob("*.avro"), *folder.glob("*02.json")]:
        one.write_bytes(one.read_bytes()[: one.stat().st_size // 2])


DAMAGE = (remove, empty_every_file, damage_what_is_read_first, damage_what_names_the_files)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_metadata_is_made_anew(table: hudi.Table, damage: Callable[[Path], None]) -> None:
    path = Path(table.path)
    held = agree(path)
    damage(metadata_of(table))
    with pytest.raises(HudiError):
        hudi.Table.open(table.path).upsert(batch(3, "a"))
    done = hudi.Table.open(table.path).repair()
    assert (done.format_metadata, done.metadata_table, done.left) == (True, False, ())
    assert any(one.source is Source.FORMAT for one in done.found)
    assert agree(path) == held
    again = hudi.Table.open(table.path)
    assert all(one.is_completed for one in again.timeline.instants)
    again.upsert(batch(3, "a", "new"))
    agree(path)
    assert again.validate().is_valid


def test_an_older_state_is_brought_to_the_table_s(table: hudi.Table, tmp_path: Path) -> None:
    """As from a backup: all that is there is sound, and does not know the last writes."""
    shutil.copytree(metadata_of(table), tmp_path / "backup")
    table.upsert(batch(3, "a", "new"))
    table.delete(batch(4, "x"))
    held = agree(Path(table.path))
    shutil.rmtree(metadata_of(table))
    shutil.copytree(tmp_path / "backup", metadata_of(table))
    done = hudi.Table.open(table.path).repair()
    assert done.left == ()
    assert agree(Path(table.path)) == held


@pytest.mark.parametrize("part", ["files", "column_stats", "record_index", "hoodie.properties"])
def test_a_damaged_metadata_table_is_made_anew(path: Path, part: str) -> None:
    more = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    }
    table = two_writes(path, "iceberg", **more)
    partitions = table.config.metadata_partitions
    folder = path / ".hoodie/metadata"
    broken = (
        [*(folder / part).glob("*")]
        if part != "hoodie.properties"
        else [folder / ".hoodie/hoodie.properties"]
    )
    for one in broken:
        if not one.name.startswith(".hoodie_partition"):
            one.write_bytes(b"\0" * 64)
    held = agree_without_us(table)
    done = hudi.Table.open(table.path).repair()
    assert (done.metadata_table, done.format_metadata, done.left) == (True, False, ())
    assert agree(path) == held
    again = hudi.Table.open(table.path)
    assert set(again.config.metadata_partitions) == set(partitions)
    again.upsert(batch(3, "a"))
    assert again.validate().is_valid


def test_a_record_index_by_partitions_comes_back_as_one(path: Path) -> None:
    option = {"hoodie.metadata.record.level.index.enable": "true"}
    table = two_writes(path, "delta", **option)
    folder = path / ".hoodie/metadata/record_index"

    def groups() -> set[str]:
        return {one.name.strip(".").partition("_")[0] for one in folder.glob("*record-index*")}

    before = groups()
    assert any("rome" in name for name in before)
    for one in (path / ".hoodie/metadata/files").glob("*"):
        one.write_bytes(b"\0" * 64)
    done = hudi.Table.open(table.path).repair()
    assert (done.metadata_table, done.left) == (True, ())
    assert groups() == before
    hudi.Table.open(table.path).upsert(batch(3, "a"))
    agree(path)


def agree_without_us(table: hudi.Table) -> Any:
    return bag(by_iceberg(Path(table.path)), TAGGED.names)


def test_secondary_indexes_come_back(real_tables: Callable[[str], Path]) -> None:
    path = real_tables(TXNS)
    table = hudi.Table.open(path)
    rows = bag(table.to_arrow())
    before = set(table.config.metadata_partitions)
    for one in (path / ".hoodie/metadata/files").glob("*"):
        one.write_bytes(b"\0" * 64)
    done = table.repair()
    assert (done.metadata_table, done.left) == (True, ())
    assert set(table.config.metadata_partitions) == before
    assert bag(table.to_arrow()) == rows


def test_a_lost_data_file_cannot_be_made_and_is_told(table: hudi.Table) -> None:
    (slice_, *_) = table.file_slices()
    assert slice_.base_file is not None
    (Path(table.path) / slice_.base_file.path).unlink()
    result = CliRunner().invoke(app, ["table", "repair", table.path, "--json"])
    assert result.exit_code == ExitCode.VALIDATION_FAILED
    document = json.loads(result.stdout)
    assert any(slice_.base_file.name.file_id in one["subject"] for one in document["left"])


def test_a_sound_table_is_left_as_it_is(table: hudi.Table) -> None:
    log = sorted(one.name for one in metadata_of(table).iterdir())
    done = table.repair()
    assert (done.is_needed, done.found, done.left) == (False, (), ())
    assert sorted(one.name for one in metadata_of(table).iterdir()) == log
    assert table.repair(force=True).format_metadata
    assert sorted(one.name for one in metadata_of(table).iterdir()) != log
    agree(Path(table.path))


def test_a_dry_run_changes_nothing(table: hudi.Table) -> None:
    shutil.rmtree(metadata_of(table))
    before = {str(one): one.stat().st_mtime_ns for one in Path(table.path).rglob("*")}
    result = CliRunner().invoke(app, ["table", "repair", table.path, "--dry-run"])
    assert f"Would rebuild: {table.format}." in result.stdout
    assert {str(one): one.stat().st_mtime_ns for one in Path(table.path).rglob("*")} == before


def test_a_native_table_has_nothing_but_its_metadata_table(native: hudi.Table) -> None:
    assert not native.repair(force=True).format_metadata


def test_damaged_properties_are_no_matter_of_repair(path: Path) -> None:
    table = two_writes(path, "delta")
    (path / ".hoodie/hoodie.properties").write_bytes(b"hoodie.table.name=t\n")
    with pytest.raises(CorruptMetadataError):
        table.repair()


def test_a_repair_that_died_is_run_again(
    table: hudi.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = agree(Path(table.path))
    shutil.rmtree(metadata_of(table))
    storage = MortalStorage(monkeypatch)
    for calls in range(1, 50):
        copy = tmp_path / f"t{calls}"
        shutil.copytree(table.path, copy)
        storage.left = calls
        try:
            hudi.Table.open(copy).repair()
        except Died:
            storage.left = 0
            hudi.Table.open(copy).repair()
        assert agree(copy) == held
        if storage.left > 0:
            break
    assert calls > 1


def test_a_table_that_was_moved_is_one_again(table: hudi.Table, tmp_path: Path) -> None:
    """Iceberg's metadata names files by their whole paths."""
    rows = agree(Path(table.path))
    moved = tmp_path / "elsewhere/t"
    shutil.copytree(table.path, moved)
    shutil.rmtree(table.path)
    hudi.Table.open(moved).repair()
    assert agree(moved) == rows
    hudi.Table.open(moved).upsert(batch(5, "a"))
    agree(moved)


def test_columns_that_changed_are_in_the_new_metadata(table: hudi.Table) -> None:
    table.alter(add_columns={"note": pa.string()})
    table.upsert(batch(3, "a").append_column("note", pa.array(["n"])))
    shutil.rmtree(metadata_of(table))
    again = hudi.Table.open(table.path)
    again.repair()
    rows = again.to_arrow()
    assert rows.column_names[-1] == "note"
    agree(Path(table.path))


def test_older_rows_do_not_take_the_place_of_a_lost_file(table: hudi.Table) -> None:
    table.upsert(batch(7, "a"))
    newest = max(table.file_slices(), key=lambda one: one.base_instant).base_file
    assert newest is not None
    lost, kept = Path(table.path) / newest.path, Path(table.path).parent / "kept"
    lost.rename(kept)
    done = hudi.Table.open(table.path).repair()
    assert not done.metadata_table
    assert not done.format_metadata
    assert any(newest.path in one.subject for one in done.left)
    if table.format == "delta":
        shutil.rmtree(Path(table.path) / "_delta_log")
        assert len(hudi.Table.open(table.path).repair().left) > 1
    else:
        kept.rename(lost)
        assert hudi.Table.open(table.path).validate().differences == ()
        lost.rename(kept)
    assert hudi.Table.open(table.path).repair(force=True).metadata_table
