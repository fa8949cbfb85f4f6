"""Partitions and files found by listing folders."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from hudi_core.model.files import PARTITION_METADATA_FILE, PartitionPath
from hudi_core.storage.posix import PosixStorage
from hudi_core.view.storage_lister import StorageLister

Item = TypeVar("Item")
Answer = TypeVar("Answer")

BASE = "6f1c0b0a-0000-4000-8000-000000000000-0_0-1-2_20260101000000000.parquet"


@pytest.fixture
def storage(tmp_path: Path) -> PosixStorage:
    (tmp_path / ".hoodie").mkdir()
    return PosixStorage(str(tmp_path), fsync=False)


def put(storage: PosixStorage, *paths: str) -> None:
    for path in paths:
        storage.put(path, b"x")


def test_partitions_are_the_folders_with_partition_metadata(storage: PosixStorage) -> None:
    put(storage, "us/" + PARTITION_METADATA_FILE, "eu/2026/" + PARTITION_METADATA_FILE, "xx/note")
    put(storage, ".hoodie/metadata/files/" + PARTITION_METADATA_FILE, ".hoodie/" + BASE)

    assert StorageLister(storage, partitioned=True).list_partitions() == ["eu/2026", "us"]


def test_folders_with_base_files_are_partitions_too(storage: PosixStorage) -> None:
    put(storage, f"a=1/b=2/{BASE}", f"a=1/b=3/{BASE}", "a=2/b=1/other.parquet")

    assert StorageLister(storage, partitioned=True).list_partitions() == ["a=1/b=2", "a=1/b=3"]


def test_nothing_below_a_partition_is_one(storage: PosixStorage) -> None:
    put(storage, "us/" + PARTITION_METADATA_FILE, f"us/inner/{BASE}")

    assert StorageLister(storage, partitioned=True).list_partitions() == ["us"]


def test_the_root_of_a_partitioned_table_is_no_partition(storage: PosixStorage) -> None:
    put(storage, PARTITION_METADATA_FILE, BASE, "us/" + PARTITION_METADATA_FILE)

    assert StorageLister(storage, partitioned=True).list_partitions() == ["us"]


def test_a_table_without_partitions_is_one_partition(storage: PosixStorage) -> None:
    lister = StorageLister(storage, partitioned=False)
    assert lister.list_partitions() == [""]
    put(storage, BASE, "folder/" + BASE)

    (files,) = lister.list_files(lister.list_partitions()).values()

    assert [(file.path, file.size) for file in files] == [(BASE, 1)]


def test_files_by_partition(storage: PosixStorage) -> None:
    put(storage, f"us/{BASE}", f"us/deeper/{BASE}", "eu/x")
    nowhere = PartitionPath("nowhere")

    found = StorageLister(storage, partitioned=True).list_files(
        [PartitionPath("us"), PartitionPath("eu"), nowhere]
    )

    paths = {partition: [file.path for file in files] for partition, files in found.items()}
    assert paths == {"us": [f"us/{BASE}"], "eu": ["eu/x"], "nowhere": []}


def test_an_engine_runs_the_calls_of_each_level(storage: PosixStorage) -> None:
    put(storage, *(f"a={n}/b=1/{PARTITION_METADATA_FILE}" for n in range(20)))
    sizes = []

    def run_map(function: Callable[[Item], Answer], items: Sequence[Item], /) -> Iterable[Answer]:
        sizes.append(len(items))
        sent = pickle.loads(pickle.dumps(function))  # as to another process
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(sent, items))

    lister = StorageLister(storage, partitioned=True, run_map=run_map)
    partitions = lister.list_partitions()

    assert partitions == sorted(f"a={n}/b=1" for n in range(20))
    assert list(lister.list_files(partitions)) == partitions
    assert sizes == [20, 20, 20]
