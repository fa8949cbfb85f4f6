"""Manifests of an Iceberg table, what a commit costs, and services hook by hook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

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
from hudi_core.model.file_index import FileIndex
from hudi_core.model.format import WATERMARK_KEY
from hudi_core.model.instant import Action, Instant, State
from hudi_core.view.storage_lister import StorageLister
from iceberg_format import manifests
from iceberg_format.files import TableFiles
from iceberg_format.kept_files import forget_files
from iceberg_format.lineage import ancestors
from iceberg_format.manifest_files import read_entries
from iceberg_format.manifests import EntryCache
from iceberg_format.metadata import ManifestLister
from iceberg_format.table import IcebergTable
from tests.formats.iceberg_tables import Iceberg, bag, create, lose, opened, ours, summary, typed


def listed(lister: FileIndex) -> dict[str, int]:
    found = lister.list_files(lister.list_partitions())
    return {
        file.path: file.size
        for files in found.values()
        for file in files
        if file.path.endswith(".parquet")
    }


@pytest.mark.parametrize("partition_by", ["city", None])
def test_manifests_tell_the_same_files_as_storage(partition_by: str | None, tmp_path: Path) -> None:
    table = create(tmp_path / "t", partition_by)
    table.bulk_insert(typed(range(10)))
    table.upsert(typed([1, 2], 1))
    table.insert_overwrite_table(typed([3, 4]))
    now = opened(tmp_path / "t")
    stored = StorageLister(now.client.storage, now.client.config.is_partitioned)
    assert now.lister().named_files() is not None  # the format's own
    assert listed(now.lister()) == listed(stored)
    assert list(now.lister().list_partitions()) == [
        each for each in stored.list_partitions() if each != "metadata"
    ]


def test_a_lineage_that_goes_round_ends(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    for ts in range(1, 4):
        table.upsert(typed([1], ts))
    metadata = IcebergTable.open(opened(tmp_path / "t").client).load().metadata
    line = list(ancestors(metadata))
    oldest, newest = line[-1], line[0]
    damaged = oldest.model_copy(update={"parent_snapshot_id": newest.snapshot_id})
    snapshots = [damaged if one is oldest else one for one in metadata.snapshots]
    again = ancestors(metadata.model_copy(update={"snapshots": snapshots}))
    ids = [one.snapshot_id for one in islice(again, 2 * len(line))]
    assert ids == [one.snapshot_id for one in line]


def test_paths_of_this_machine_as_java_spells_them(tmp_path: Path) -> None:
    create(tmp_path / "t")
    files = TableFiles(opened(tmp_path / "t").client)
    for start in ("file:", "file://"):
        assert files.path(f"{start}{tmp_path}/t/metadata/a.avro") == "metadata/a.avro"
    for uri in (
        f"file:{tmp_path}/other/a.avro",
        f"file:{tmp_path}/t/../other/a.avro",
        f"file:/{tmp_path}/t/a.avro",
        f"file://host{tmp_path}/t/a.avro",
    ):
        with pytest.raises(CorruptMetadataError, match="not below"):
            files.path(uri)


def test_ranges_leave_files_out(tmp_path: Path) -> None:
    table = create(tmp_path / "t", "day")
    table.bulk_insert(typed(range(12)))
    kept = hudi.Table.open(tmp_path / "t").file_slices(filter=pc.field("id") == "k007")
    assert len(kept) == 1


def test_a_commit_writes_few_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "CHUNK", 4)
    monkeypatch.setattr(manifests, "SMALL", 0)  # none is put together with others
    path = tmp_path / "t"
    table = create(path, "day")
    table.bulk_insert(typed(range(40)))
    read: Counter[str] = Counter()
    plain = read_entries

    def counted(files: TableFiles, manifest: ManifestFile) -> Iterable[Any]:
        read[manifest.manifest_path] += 1
        return plain(files, manifest)

    before = manifests_of(path)
    assert len(before) == 10
    table.upsert(typed([17], 1))
    after = manifests_of(path)
    assert len(before - after) == 1
    assert len(after - before) == 2
    lose(path)
    monkeypatch.setattr(manifests, "CACHE", manifests.EntryCache())
    monkeypatch.setattr(manifests, "read_entries", counted)
    now = opened(path)
    instant = now.client.timeline().completed_writes()[-1]
    now.host.complete_write(now.client, now.client.read_commit(instant), instant, ())
    assert list(read.values()) == [1]
    assert set(read) == before - after


def manifests_of(path: Path) -> set[str]:
    table = Iceberg(path).table
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    return {one.manifest_path for one in snapshot.manifests(table.io)}


def test_small_manifests_are_put_together(path: Path) -> None:
    table = create(path, "day")
    for key in range(25):
        table.bulk_insert(typed([key]))
    assert len(manifests_of(path)) < manifests.FOLD_FROM
    assert bag(Iceberg(path).rows(["id"])) == bag(typed(range(25)).select(["id"]))


def test_a_commit_parses_no_metadata_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(path, "day")
    table.bulk_insert(typed(range(12)))
    parsed: list[str] = []
    plain = TableMetadataUtil.parse_raw

    def counted(text: str) -> TableMetadata:
        parsed.append(text)
        return plain(text)

    with monkeypatch.context() as counting:
        counting.setattr(TableMetadataUtil, "parse_raw", counted)
        table.upsert(typed([3], 1))
    assert parsed == []
    now = opened(path)
    state = IcebergTable.open(now.client).load()
    stored = Path(state.location.removeprefix("file://")).read_text()
    assert plain(stored) == state.metadata


def test_manifests_are_read_once_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests.CACHE, "_size", 1)
    path = tmp_path / "t"
    table = create(path, "day")
    for number in range(3):
        table.bulk_insert(typed(range(12 * number, 12 * number + 12)))
    read: list[str] = []
    plain = read_entries

    def counted(files: TableFiles, manifest: ManifestFile) -> Iterable[Any]:
        read.append(manifest.manifest_path)
        return plain(files, manifest)

    files = listed(opened(path).lister())
    monkeypatch.setattr(manifests, "read_entries", counted)
    now = opened(path)
    assert listed(now.lister()) == files == listed(StorageLister(now.client.storage, True))
    assert read == []


CLEANED = CleanMetadata("", 0, 0, "", "", {})
SAVED = SavepointMetadata("tester", 0, "", {})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A table of one file group that four writes have rebuilt, and of one more."""
    where = tmp_path / "t"
    table = create(where)
    table.bulk_insert(typed([0, 5]))
    for ts in (1, 2, 3):
        table.upsert(typed([0], ts))
    table.upsert(typed([1], 1))
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


def test_a_clean_expires_what_names_its_files_and_all_stays_complete(written: Path) -> None:
    first, second, *others = writes(written)
    table = opened(written)
    plan = cleaning(*files_of(written, first), *files_of(written, second))
    table.host.before_clean(table.client, plan, service(written, Action.CLEAN, State.INFLIGHT))
    assert instants(written) == [one.requested_time for one in others]
    properties = Iceberg(written).table.metadata.properties
    assert properties[WATERMARK_KEY] == second.completion_time
    assert opened(written).timeline().completed_writes() == writes(written)
    found = table.host.find_publication(table.client, first)
    assert found is not None
    for name in (*files_of(written, first), *files_of(written, second)):
        (written / name).unlink()
    for snapshot in Iceberg(written).table.metadata.snapshots:
        assert Iceberg(written).rows(["id"], snapshot.snapshot_id).num_rows
    location = Iceberg(written).table.metadata_location
    table.host.before_clean(table.client, plan, service(written, Action.CLEAN, State.INFLIGHT))
    assert Iceberg(written).table.metadata_location == location
    hudi.Table.open(written).upsert(typed([5], 4))
    assert ours(written) == bag(pa.concat_tables([typed([0], 3), typed([1], 1), typed([5], 4)]))


def test_archived_instants_are_forgotten_and_stay_complete(written: Path) -> None:
    table = opened(written)
    clean = service(written, Action.CLEAN)
    table.host.complete_clean(table.client, CLEANED, clean)
    gone = writes(written)[:3]
    table.host.archive_instants(table.client, gone)
    assert instants(written) == [one.requested_time for one in writes(written)[3:]]
    assert opened(written).timeline().completed_writes() == writes(written)
    before = Iceberg(written).table.metadata_location
    table.host.archive_instants(table.client, gone)
    assert Iceberg(written).table.metadata_location == before
    table.host.archive_instants(table.client, writes(written))
    assert len(Iceberg(written).table.metadata.snapshots) == 1
    assert opened(written).timeline().completed_writes() == writes(written)
    assert bag(Iceberg(written).rows(["id"])) == bag(typed([0, 5, 1]).select(["id"]))
    far = type(clean.requested_time)("29991231235959999")
    last = Instant(far, Action.CLEAN, State.COMPLETED, far)
    table.host.complete_clean(table.client, CLEANED, last)
    table.host.archive_instants(table.client, [clean, last])
    properties = Iceberg(written).table.metadata.properties
    assert not [key for key in properties if key.startswith("hudi.instant.")]


def test_cleans_that_are_archived_before_older_writes_take_no_state_along(written: Path) -> None:
    table = opened(written)
    clean = service(written, Action.CLEAN)
    table.host.complete_clean(table.client, CLEANED, clean)
    first, *kept = writes(written)
    table.host.archive_instants(table.client, [first, clean])
    assert instants(written) == [one.requested_time for one in kept]
    properties = Iceberg(written).table.metadata.properties
    assert not [key for key in properties if key.startswith("hudi.instant.")]
    hudi.Table.open(written).rollback(kept[-1])
    assert ours(written) == bag(pa.concat_tables([typed([0], 3), typed([5])]))
    assert hudi.Table.open(written).validate().differences == ()


def test_a_savepoint_is_restored_in_one_change(written: Path) -> None:
    table = opened(written)
    first, second, *later = writes(written)
    saved = Instant(
        second.requested_time, Action.SAVEPOINT, State.COMPLETED, later[-1].completion_time
    )
    receipt = table.host.complete_savepoint(table.client, SAVED, saved)
    assert table.host.complete_savepoint(table.client, SAVED, saved) == receipt
    tag = f"savepoint-{second.requested_time}"
    pinned = Iceberg(written).table.metadata.snapshot_by_name(tag)
    assert pinned is not None
    assert summary(pinned)["hudi.instant"] == second.requested_time
    undone = tuple(InstantInfo(one.requested_time, one.action.value) for one in reversed(later))
    plan = RestorePlan(instants_to_rollback=undone)
    table.host.before_restore(table.client, plan, service(written, Action.RESTORE, State.INFLIGHT))
    ice = Iceberg(written)
    assert bag(ice.rows(["id", "ts"])) == bag(
        pa.concat_tables([typed([0], 1), typed([5])]).select(["id", "ts"])
    )
    assert instants(written) == [first.requested_time, second.requested_time]
    assert pinned.snapshot_id in {one.snapshot_id for one in ice.table.metadata.snapshots}
    location = ice.table.metadata_location
    table.host.before_restore(table.client, plan, service(written, Action.RESTORE, State.INFLIGHT))
    assert Iceberg(written).table.metadata_location == location
    for one in later:
        assert table.host.find_publication(table.client, one) is None
    done = service(written, Action.RESTORE)
    metadata_of_it = RestoreMetadata("", 0, ())
    table.host.complete_restore(table.client, metadata_of_it, done)
    assert table.host.find_publication(table.client, done) is not None
    table.host.complete_delete_savepoint(table.client, saved)
    table.host.complete_delete_savepoint(table.client, saved)
    assert tag not in Iceberg(written).table.metadata.refs


@pytest.mark.parametrize("held", [None, HeldMetadata()], ids=["reader", "writer"])
def test_files_of_snapshots_that_expire_meanwhile_are_not_missed(
    written: Path, monkeypatch: pytest.MonkeyPatch, held: HeldMetadata | None
) -> None:
    first, second, *others = writes(written)
    client = opened(written).client
    # a writer goes on with what it read under the lock
    client = client if held is None else client.holding(held)
    lister = ManifestLister(IcebergTable.open(client))
    assert list(lister.named_files())
    table = opened(written)
    plan = cleaning(*files_of(written, first), *files_of(written, second))
    table.host.before_clean(table.client, plan, service(written, Action.CLEAN, State.INFLIGHT))
    forget_files()
    monkeypatch.setattr("iceberg_format.manifests.CACHE", EntryCache())
    found = {
        one.path for files in lister.list_files(lister.list_partitions()).values() for one in files
    }
    assert found >= {file for one in others for file in files_of(written, one)}
    # what the table still names is an error
    damaged = ManifestLister(IcebergTable.open(opened(written).client))
    assert list(damaged.named_files())
    for one in (written / "metadata").glob("snap-*"):
        one.unlink()
    forget_files()
    monkeypatch.setattr("iceberg_format.manifests.CACHE", EntryCache())
    with pytest.raises(PathNotFoundError):
        damaged.list_files(damaged.list_partitions())
