"""Clean, archive, savepoint, restore and clustering of an Iceberg table, hook by hook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, PathNotFoundError
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    SavepointMetadata,
)
from hudi_core.model.client import HeldMetadata
from hudi_core.model.commit import ReplaceCommitMetadata, WriteStat
from hudi_core.model.format import WATERMARK_KEY
from hudi_core.model.instant import Action, Instant, State
from iceberg_format.kept_files import forget_files
from iceberg_format.manifests import EntryCache
from iceberg_format.metadata import ManifestLister
from iceberg_format.table import IcebergTable
from tests.formats.iceberg_tables import Iceberg, bag, create, opened, ours, rows, summary

CLEANED = CleanMetadata("", 0, 0, "", "", {})
SAVED = SavepointMetadata("tester", 0, "", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of one file group that four writes have rebuilt, and of one more."""
    where = tmp_path / "t"
    table = create(where)
    table.bulk_insert(rows([0, 5]))
    for ts in (1, 2, 3):
        table.upsert(rows([0], ts))
    table.upsert(rows([1], 1))
    return where


def writes(path: Path) -> tuple[Instant, ...]:
    return opened(path).client.timeline().completed_writes()


def service(path: Path, action: Action, state: State = State.COMPLETED) -> Instant:
    """An instant of a service that follows every write."""
    time = writes(path)[-1].completion_time
    assert time is not None
    later = type(time)(f"{int(time) + 1:017d}")
    return Instant(later, action, state, later if state is State.COMPLETED else None)


def files_of(path: Path, instant: Instant) -> tuple[str, ...]:
    commit = opened(path).client.read_commit(instant)
    return tuple(str(stat.path) for stat in commit.stats)


def cleaning(*paths: str) -> CleanerPlan:
    named: dict[str, tuple[str, ...]] = {}
    for each in paths:
        partition, _, name = each.rpartition("/")
        named[partition] = (*named.get(partition, ()), name)
    return CleanerPlan(None, "", "KEEP_LATEST_COMMITS", named)


def instants(path: Path) -> list[str]:
    return [summary(one)["hudi.instant"] for one in Iceberg(path).lineage]


def test_a_clean_expires_what_names_its_files_and_all_stays_complete(path: Path) -> None:
    first, second, *others = writes(path)
    table = opened(path)
    plan = cleaning(*files_of(path, first), *files_of(path, second))
    table.host.before_clean(table.client, plan, service(path, Action.CLEAN, State.INFLIGHT))
    assert instants(path) == [one.requested_time for one in others]
    properties = Iceberg(path).table.metadata.properties
    assert properties[WATERMARK_KEY] == second.completion_time
    assert opened(path).timeline().completed_writes() == writes(path)
    found = table.host.find_publication(table.client, first)
    assert found is not None
    for name in (*files_of(path, first), *files_of(path, second)):
        (path / name).unlink()
    for snapshot in Iceberg(path).table.metadata.snapshots:
        assert Iceberg(path).rows(["id"], snapshot.snapshot_id).num_rows
    location = Iceberg(path).table.metadata_location
    table.host.before_clean(table.client, plan, service(path, Action.CLEAN, State.INFLIGHT))
    assert Iceberg(path).table.metadata_location == location
    hudi.Table.open(str(path)).upsert(rows([5], 4))
    assert ours(path) == bag(pa.concat_tables([rows([0], 3), rows([1], 1), rows([5], 4)]))


def test_archived_instants_are_forgotten_and_stay_complete(path: Path) -> None:
    table = opened(path)
    clean = service(path, Action.CLEAN)
    table.host.complete_clean(table.client, CLEANED, clean)
    gone = writes(path)[:3]
    table.host.archive_instants(table.client, gone)
    assert instants(path) == [one.requested_time for one in writes(path)[3:]]
    assert opened(path).timeline().completed_writes() == writes(path)
    before = Iceberg(path).table.metadata_location
    table.host.archive_instants(table.client, gone)
    assert Iceberg(path).table.metadata_location == before
    table.host.archive_instants(table.client, writes(path))
    assert len(Iceberg(path).table.metadata.snapshots) == 1
    assert opened(path).timeline().completed_writes() == writes(path)
    assert bag(Iceberg(path).rows(["id"])) == bag(rows([0, 5, 1]).select(["id"]))
    far = type(clean.requested_time)("29991231235959999")
    last = Instant(far, Action.CLEAN, State.COMPLETED, far)
    table.host.complete_clean(table.client, CLEANED, last)
    table.host.archive_instants(table.client, [clean, last])
    properties = Iceberg(path).table.metadata.properties
    assert not [key for key in properties if key.startswith("hudi.instant.")]


def test_cleans_that_are_archived_before_older_writes_take_no_state_along(path: Path) -> None:
    table = opened(path)
    clean = service(path, Action.CLEAN)
    table.host.complete_clean(table.client, CLEANED, clean)
    first, *kept = writes(path)
    table.host.archive_instants(table.client, [first, clean])
    assert instants(path) == [one.requested_time for one in kept]
    properties = Iceberg(path).table.metadata.properties
    assert not [key for key in properties if key.startswith("hudi.instant.")]
    hudi.Table.open(str(path)).rollback(kept[-1])
    assert ours(path) == bag(pa.concat_tables([rows([0], 3), rows([5])]))
    assert hudi.Table.open(str(path)).validate().differences == ()


def test_a_savepoint_is_restored_in_one_change(path: Path) -> None:
    table = opened(path)
    first, second, *later = writes(path)
    saved = Instant(
        second.requested_time, Action.SAVEPOINT, State.COMPLETED, later[-1].completion_time
    )
    receipt = table.host.complete_savepoint(table.client, SAVED, saved)
    assert table.host.complete_savepoint(table.client, SAVED, saved) == receipt
    tag = f"savepoint-{second.requested_time}"
    pinned = Iceberg(path).table.metadata.snapshot_by_name(tag)
    assert pinned is not None
    assert summary(pinned)["hudi.instant"] == second.requested_time
    undone = tuple(InstantInfo(one.requested_time, one.action.value) for one in reversed(later))
    plan = RestorePlan(instants_to_rollback=undone)
    table.host.before_restore(table.client, plan, service(path, Action.RESTORE, State.INFLIGHT))
    ice = Iceberg(path)
    assert bag(ice.rows(["id", "ts"])) == bag(
        pa.concat_tables([rows([0], 1), rows([5])]).select(["id", "ts"])
    )
    assert instants(path) == [first.requested_time, second.requested_time]
    assert pinned.snapshot_id in {one.snapshot_id for one in ice.table.metadata.snapshots}
    location = ice.table.metadata_location
    table.host.before_restore(table.client, plan, service(path, Action.RESTORE, State.INFLIGHT))
    assert Iceberg(path).table.metadata_location == location
    for one in later:
        assert table.host.find_publication(table.client, one) is None
    done = service(path, Action.RESTORE)
    metadata_of_it = RestoreMetadata("", 0, ())
    table.host.complete_restore(table.client, metadata_of_it, done)
    assert table.host.find_publication(table.client, done) is not None
    table.host.complete_delete_savepoint(table.client, saved)
    table.host.complete_delete_savepoint(table.client, saved)
    assert tag not in Iceberg(path).table.metadata.refs


def test_a_clustering_replaces_files_and_no_rows(path: Path) -> None:
    hudi.Table.open(str(path)).bulk_insert(rows([10, 15]))
    table = opened(path)
    before = bag(Iceberg(path).rows(["id", "ts"]))
    rome = [one for one in table.views().view().latest_slices() if one.partition_path == "rome"]
    assert len(rome) == 2
    parts = [pq.read_table(path / one.base_file.path) for one in rome if one.base_file]
    done = service(path, Action.REPLACECOMMIT)
    name = f"clustered-0_0-1-2_{done.requested_time}.parquet"
    pq.write_table(pa.concat_tables(parts), path / "rome" / name)
    size = (path / "rome" / name).stat().st_size
    count = sum(part.num_rows for part in parts)
    stat = WriteStat(
        "clustered-0",
        f"rome/{name}",
        "null",
        num_writes=count,
        partition_path="rome",
        file_size_in_bytes=size,
        total_write_bytes=size,
    )
    metadata = ReplaceCommitMetadata(
        {"rome": (stat,)},
        operation_type="CLUSTER",
        partition_to_replace_file_ids={"rome": tuple(one.file_id for one in rome)},
    )
    receipt = table.host.complete_clustering(table.client, metadata, done)
    newest = Iceberg(path).lineage[-1]
    assert newest.summary is not None
    assert newest.summary.operation.value == "replace"
    assert summary(newest)["hudi.operation"] == "CLUSTER"
    assert bag(Iceberg(path).rows(["id", "ts"])) == before
    assert {one for one in Iceberg(path).paths() if one.startswith("rome/")} == {f"rome/{name}"}
    assert table.host.complete_clustering(table.client, metadata, done) == receipt
    again = replace(done, requested_time=done.completion_time or done.requested_time)
    other = replace(again, completion_time=type(again.requested_time)("29991231235959999"))
    twice = replace(other, action=Action.COMMIT)
    with pytest.raises(CorruptMetadataError, match="has no file of rome/"):
        table.host.complete_clustering(table.client, metadata, twice)


@pytest.mark.parametrize("held", [None, HeldMetadata()], ids=["reader", "writer"])
def test_files_of_snapshots_that_expire_meanwhile_are_not_missed(
    path: Path, monkeypatch: pytest.MonkeyPatch, held: HeldMetadata | None
) -> None:
    first, second, *others = writes(path)
    client = opened(path).client
    # a writer goes on with what it read under the lock
    client = client if held is None else client.holding(held)
    lister = ManifestLister(IcebergTable.open(client))
    assert list(lister.named_files())
    table = opened(path)
    plan = cleaning(*files_of(path, first), *files_of(path, second))
    table.host.before_clean(table.client, plan, service(path, Action.CLEAN, State.INFLIGHT))
    forget_files()
    monkeypatch.setattr("iceberg_format.manifests.CACHE", EntryCache())
    found = {
        one.path for files in lister.list_files(lister.list_partitions()).values() for one in files
    }
    assert found >= {file for one in others for file in files_of(path, one)}
    # what the table still names is an error
    damaged = ManifestLister(IcebergTable.open(opened(path).client))
    assert list(damaged.named_files())
    for one in (path / "metadata").glob("snap-*"):
        one.unlink()
    forget_files()
    monkeypatch.setattr("iceberg_format.manifests.CACHE", EntryCache())
    with pytest.raises(PathNotFoundError):
        damaged.list_files(damaged.list_partitions())
