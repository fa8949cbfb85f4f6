"""Delta logs that others write, that are damaged, or that forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_format.commit
import delta_format.plugin
import hudi_core as hudi
import hudi_core.txn.publication
from delta_format.partition import partition_values
from delta_format.reports import forget_reports
from hudi_core.errors import CommitError, CorruptMetadataError, HudiError, StorageError
from hudi_core.model.actions import CleanMetadata
from hudi_core.model.commit import ReplaceCommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.stats import ColumnStats
from tests.formats.columns import SCHEMA
from tests.formats.delta_steps import actions_of, cut_short, last_write, opened, version
from tests.formats.delta_tables import assert_all_read, content, new_table, rows, versions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def table(path: Path) -> hudi.Table:
    made = new_table(path)
    made.insert(rows(0, 1, 2))
    return made


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
    known = ColumnStats("a", "b", 2, 0, 0, 0, 0)
    with pytest.raises(CommitError, match="city"):
        partition_values("p/f.parquet", {"city": known}, SCHEMA, ["city"])
