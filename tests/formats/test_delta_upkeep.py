"""Delta logs that others write, that are damaged, or that forget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import delta_format.commit
import delta_format.plugin
import hudi_core as hudi
import hudi_core.txn.publication
from delta_format.log import open_log
from delta_format.reports import forget_reports
from hudi_core.errors import (
    CommitError,
    CorruptMetadataError,
    ForeignCommitError,
    HudiError,
    InvalidOptionError,
    StorageError,
    TableServiceError,
)
from hudi_core.model.actions import CleanerPlan, CleanFileInfo, CleanMetadata
from hudi_core.model.commit import ReplaceCommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from tests.formats.columns import SCHEMA
from tests.formats.delta_steps import actions_of, cut_short, last_write, opened, version
from tests.formats.delta_tables import (
    assert_all_read,
    by_deltalake,
    content,
    new_table,
    rows,
    versions,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def table(path: Path) -> hudi.Table:
    made = new_table(path)
    made.insert(rows(0, 1, 2))
    return made


def test_a_foreign_version_stops_writes_by_its_name(path: Path, table: hudi.Table) -> None:
    foreign = by_deltalake(path).slice(0, 1)
    write_deltalake(str(path), foreign, mode="append")
    count = len(list(path.rglob("*.parquet")))
    with pytest.raises(ForeignCommitError, match=r"Version 2 .*WRITE"):
        table.insert(rows(3))
    assert len(list(path.rglob("*.parquet"))) == count
    # the way out that the error names
    (path / "_delta_log" / f"{2:020d}.json").unlink()
    for file in path.rglob("part-*.parquet"):
        file.unlink()  # hudi-rs does not read a folder with files that Hudi did not name
    table.insert(rows(3))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_vacuum_of_another_engine_finds_nothing(path: Path, table: hudi.Table) -> None:
    table.upsert(rows(0, 1, 2, ts=1))
    handle = DeltaTable(str(path))
    assert handle.vacuum(full=True, dry_run=True) == []
    with pytest.raises(Exception, match="retention"):
        handle.vacuum(retention_hours=24 * 3650, dry_run=False)
    handle.vacuum(full=True, dry_run=False)
    table.insert(rows(3))
    assert content(by_deltalake(path, 1)) == content(rows(0, 1, 2))


def test_retention_is_an_option(path: Path) -> None:
    key = "hoodie.table.format.delta.deleted-file-retention-days"
    new_table(path, more={key: "60"})
    properties = DeltaTable(str(path)).metadata().configuration
    assert properties["delta.deletedFileRetentionDuration"] == "interval 60 days"
    with pytest.raises(InvalidOptionError, match=key):
        new_table(path.parent / "other", more={key: "soon"})


def test_a_table_whose_log_is_gone_is_no_empty_table(path: Path, table: hudi.Table) -> None:
    (path / "_delta_log").rename(path.parent / "aside")
    with pytest.raises(CorruptMetadataError, match="_delta_log"):
        table.to_arrow()
    with pytest.raises(CorruptMetadataError, match="_delta_log"):
        table.insert(rows(3))


def test_a_damaged_log_is_named(path: Path, table: hudi.Table) -> None:
    (path / "_delta_log" / f"{1:020d}.json").write_text("{not json", encoding="utf-8")
    with pytest.raises(CorruptMetadataError, match="_delta_log"):
        table.to_arrow()


def test_a_file_that_is_not_as_the_commit_says_is_not_published(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    wanted: list[Any] = []

    def dies(*arguments: Any) -> None:
        wanted[:] = arguments
        raise StorageError("The store is gone", "Wait for it.")

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.plugin, "record", dies)
        with pytest.raises(HudiError):
            table.insert(rows(3))
    [new] = wanted[2].new_files
    file = path / new.path
    whole = file.read_bytes()
    file.write_bytes(whole + b"more")
    with pytest.raises(CommitError, match=f"should have {len(whole)} bytes and has {new.size + 4}"):
        delta_format.commit.record(*wanted)
    file.unlink()
    with pytest.raises(CommitError, match="is not there"):
        delta_format.commit.record(*wanted)
    assert version(path) == 1
    file.write_bytes(whole)
    delta_format.commit.record(*wanted)
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_a_clean_that_would_delete_a_present_file_is_refused(path: Path, table: hudi.Table) -> None:
    old = {file.path for slice_ in table.file_slices() if (file := slice_.base_file)}
    table.upsert(rows(0, ts=1))
    now = {file.path for slice_ in table.file_slices() if (file := slice_.base_file)}
    seen, instant = (
        opened(path),
        Instant(InstantTime("20991231000000000"), Action.CLEAN, State.INFLIGHT),
    )

    def plan(file: str) -> CleanerPlan:
        folder = file.rpartition("/")[0]
        planned = {folder: (CleanFileInfo(f"{path}/{file}", False),)}
        return CleanerPlan(
            None, "", "KEEP_LATEST_COMMITS", file_paths_to_be_deleted_per_partition=planned
        )

    seen.host.before_clean(seen.client, plan(min(old - now)), instant)
    with pytest.raises(TableServiceError, match="names"):
        seen.host.before_clean(seen.client, plan(min(now)), instant)


def test_a_clustering_changes_files_and_no_data(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert_overwrite_table(rows(0, 1, 2)))
    instant, seen = last_write(path), opened(path)
    metadata = seen.client.read_commit(instant)
    assert isinstance(metadata, ReplaceCommitMetadata)
    seen.host.complete_clustering(seen.client, metadata, instant)
    files = [
        action[kind]
        for action in actions_of(path, version(path))
        for kind in {"add", "remove"} & action.keys()
    ]
    assert len(files) == 6
    assert not any(file["dataChange"] for file in files)
    assert_all_read(path, content(rows(0, 1, 2)))


def test_what_the_log_forgets_is_complete_up_to_the_watermark(
    path: Path, table: hudi.Table
) -> None:
    known = last_write(path)
    seen = opened(path)
    never = replace(known, requested_time=InstantTime("20200101000000000"))
    assert not open_log(seen.client).holds(never)
    seen.host.archive_instants(seen.client, [known])
    seen.host.archive_instants(seen.client, [known])
    assert version(path) == 2
    after = open_log(seen.client)
    assert after.holds(never)
    assert not after.holds(replace(never, completion_time=InstantTime("20991231000000000")))
    table.insert(rows(3))
    assert_all_read(path, content(rows(0, 1, 2, 3)))


def test_checkpoints_come_by_themselves_and_keep_every_instant(path: Path) -> None:
    table = new_table(path, partitioned=False)
    table.insert(rows(0, 1, 2))
    first, seen = last_write(path), opened(path)
    for number in range(20):
        clean = Instant(
            InstantTime(f"20990101000000{number:03d}"),
            Action.CLEAN,
            State.COMPLETED,
            InstantTime(f"20990101000001{number:03d}"),
        )
        seen.host.complete_clean(seen.client, CleanMetadata("20990101000000000", 0, 0, ""), clean)
    checkpoints = sorted((path / "_delta_log").glob("*.checkpoint.parquet"))
    assert len(versions(path)) - int(checkpoints[-1].name[:20]) <= 10
    for old in (path / "_delta_log").glob("0000000000000000000[0-9].json"):
        old.unlink()  # as another engine's clean-up of the log would
    forget_reports()
    found = seen.host.find_publication(seen.client, first)
    assert found is not None
    assert found.completion_time is None
    table.upsert(rows(0, 3, ts=1))
    assert_all_read(path, content(pa.concat_tables([rows(0, 3, ts=1), rows(1, 2)])))


def test_the_place_of_the_log_is_kept(path: Path, table: hudi.Table) -> None:
    assert hudi.Table.open(str(path)).config.raw["hoodie.table.format.delta.location"] == str(path)
    assert len(versions(path)) == 2


def test_a_file_with_two_values_of_a_partition_is_refused() -> None:
    from delta_format.partition import partition_values  # noqa: PLC0415
    from hudi_core.model.stats import ColumnStats  # noqa: PLC0415

    known = ColumnStats("a", "b", 2, 0, 0, 0, 0)
    with pytest.raises(CommitError, match="city"):
        partition_values("p/f.parquet", {"city": known}, SCHEMA, ["city"])
