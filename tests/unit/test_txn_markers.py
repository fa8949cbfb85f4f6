"""Markers name the files of one write, and no others whatever lies in their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hudi_core.errors import CorruptMetadataError
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.temp_folders import temp_folder
from hudi_core.txn.markers import Marker, MarkerKind, Markers

INSTANT, OTHER = InstantTime("20260301120000000"), InstantTime("20260301120000001")
BASE = f"7f3c-0_1-2-3_{INSTANT}.parquet"
LOG = f".7f3c-0_{INSTANT}.log.1_1-2-3"


@pytest.fixture
def storage(tmp_path: Path) -> PosixStorage:
    return PosixStorage(str(tmp_path))


def marker(partition: str, name: str, kind: MarkerKind) -> Marker:
    return Marker(PartitionPath(partition), name, kind)


def test_they_lie_where_hudi_looks_for_them(storage: PosixStorage, tmp_path: Path) -> None:
    markers = Markers(storage, INSTANT)
    expected = {
        marker("", BASE, MarkerKind.CREATE),
        marker("a=1/b=2", BASE, MarkerKind.MERGE),
        marker("a=1", LOG, MarkerKind.APPEND),
    }
    for one in expected:
        markers.create(one.partition_path, one.file_name, one.kind)
    assert markers.list() == expected
    folder = tmp_path / ".hoodie/.temp" / INSTANT
    assert sorted(
        os.path.relpath(path, folder) for path in folder.rglob("*") if path.is_file()
    ) == [f"{BASE}.marker.CREATE", f"a=1/{LOG}.marker.APPEND", f"a=1/b=2/{BASE}.marker.MERGE"]
    assert all(path.stat().st_size == 0 for path in folder.rglob("*.marker.*"))


def test_a_retried_task_marks_again(storage: PosixStorage) -> None:
    for _ in range(2):
        Markers(storage, INSTANT).create(PartitionPath("p"), BASE, MarkerKind.CREATE)
    assert len(Markers(storage, INSTANT).list()) == 1


def test_other_temporary_files_are_no_markers_but_go_with_them(storage: PosixStorage) -> None:
    storage.put(f"{temp_folder(INSTANT)}/.stage/0-1-0.arrow", b"rows")
    markers = Markers(storage, INSTANT)
    assert markers.list() == set()
    markers.create(PartitionPath("p"), BASE, MarkerKind.CREATE)
    Markers(storage, OTHER).create(
        PartitionPath("p"), BASE.replace(INSTANT, OTHER), MarkerKind.CREATE
    )
    markers.delete_all()
    assert markers.list() == set()
    assert list(storage.list(temp_folder(INSTANT), recursive=True)) == []
    assert len(Markers(storage, OTHER).list()) == 1
    markers.delete_all()


@pytest.mark.parametrize(
    "path",
    [
        f"p/{BASE.replace(INSTANT, OTHER)}.marker.CREATE",  # a file of somebody else's write
        f"p/{LOG.replace(INSTANT, OTHER)}.marker.APPEND",
        f".hoodie/{BASE}.marker.CREATE",
        f"p/{BASE}.marker.DELETE",
        f"p/{BASE}.marker.",
        "p/hoodie.properties.marker.CREATE",
        "p/.marker.CREATE",
        f"p/{BASE}.marker.CREATE.marker.CREATE",
    ],
)
def test_a_forged_marker_is_an_error(storage: PosixStorage, path: str) -> None:
    full = f"{temp_folder(INSTANT)}/{path}"
    storage.put(full, b"")
    with pytest.raises(CorruptMetadataError, match="Nothing was deleted") as caught:
        Markers(storage, INSTANT).list()
    assert caught.value.path == f"{storage.root}/{full}"


def test_they_work_without_folders() -> None:
    storage = ObjectStorage("memory://markers/table")
    markers = Markers(storage, INSTANT)
    markers.create(PartitionPath("a=1"), BASE, MarkerKind.CREATE)
    assert markers.list() == {marker("a=1", BASE, MarkerKind.CREATE)}
    markers.delete_all()
    assert markers.list() == set()
