"""Files and statistics as the manifests tell them, and what a commit costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError
from hudi_core.model.file_index import FileIndex
from hudi_core.view.storage_lister import StorageLister
from iceberg_format import manifests
from iceberg_format.files import TableFiles
from iceberg_format.lineage import ancestors
from iceberg_format.table import IcebergTable
from tests.formats.iceberg_tables import Iceberg, bag, create, lose, opened, rows


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
    table.bulk_insert(rows(range(10)))
    table.upsert(rows([1, 2], 1))
    table.insert_overwrite_table(rows([3, 4]))
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
        table.upsert(rows([1], ts))
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
    table.bulk_insert(rows(range(12)))
    kept = hudi.Table.open(str(tmp_path / "t")).file_slices(filter=pc.field("id") == "k007")
    assert len(kept) == 1


def test_a_commit_writes_only_the_manifests_it_touches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "CHUNK", 4)
    monkeypatch.setattr(manifests, "SMALL", 0)  # none is put together with others
    path = tmp_path / "t"
    table = create(path, "day")
    table.bulk_insert(rows(range(40)))
    read: Counter[str] = Counter()
    plain = ManifestFile.fetch_manifest_entry

    def counted(manifest: ManifestFile, *given: Any, **named: Any) -> Iterable[Any]:
        read[manifest.manifest_path] += 1
        return plain(manifest, *given, **named)

    before = manifests_of(path)
    assert len(before) == 10
    table.upsert(rows([17], 1))
    after = manifests_of(path)
    assert len(before - after) == 1
    assert len(after - before) == 2
    lose(path)
    monkeypatch.setattr(manifests, "CACHE", manifests.EntryCache())
    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", counted)
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


def test_small_manifests_are_put_together(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path, "day")
    for key in range(25):
        table.bulk_insert(rows([key]))
    assert len(manifests_of(path)) < manifests.FOLD_FROM
    assert bag(Iceberg(path).rows(["id"])) == bag(rows(range(25)).select(["id"]))


def test_a_commit_parses_no_metadata_that_this_process_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    table = create(path, "day")
    table.bulk_insert(rows(range(12)))
    parsed: list[str] = []
    plain = TableMetadataUtil.parse_raw

    def counted(text: str) -> TableMetadata:
        parsed.append(text)
        return plain(text)

    with monkeypatch.context() as counting:
        counting.setattr(TableMetadataUtil, "parse_raw", counted)
        table.upsert(rows([3], 1))
    assert parsed == []
    now = opened(path)
    state = IcebergTable.open(now.client).load()
    stored = Path(state.location.removeprefix("file://")).read_text()
    assert plain(stored) == state.metadata


def test_manifests_are_read_once_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests.CACHE, "_size", 1)
    path = tmp_path / "t"
    table = create(path, "day")
    for number in range(3):
        table.bulk_insert(rows(range(12 * number, 12 * number + 12)))
    read: list[str] = []
    plain = ManifestFile.fetch_manifest_entry

    def counted(manifest: ManifestFile, *given: Any, **named: Any) -> Iterable[Any]:
        read.append(manifest.manifest_path)
        return plain(manifest, *given, **named)

    files = listed(opened(path).lister())
    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", counted)
    now = opened(path)
    assert listed(now.lister()) == files == listed(StorageLister(now.client.storage, True))
    assert read == []
