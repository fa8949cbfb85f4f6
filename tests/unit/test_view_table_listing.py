"""One walk over all folders: each listed once, and the same partitions as a lister finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.model.files import FileStatus, PartitionPath
from hudi_core.storage.posix import PosixStorage
from hudi_core.view.committed_files import TableListing
from hudi_core.view.storage_lister import StorageLister
from tests.tables import new_table

Item = TypeVar("Item")
Answer = TypeVar("Answer")

DATA = "11111111-0000-4000-8000-000000000000-0_0-0-0_20260101000000000.parquet"
MARK = ".hoodie_partition_metadata"


class Counting(PosixStorage):
    """Counts what it is asked for."""

    calls: Counter[tuple[str, str]]

    def __init__(self, root: str, *options: Any, **more: Any) -> None:
        super().__init__(root, False)
        self.calls = Counter()

    def list(self, prefix: str = "", *more: Any, **named: Any) -> Iterator[FileStatus]:
        """Count it."""
        self.calls["list", prefix] += 1
        return super().list(prefix, *more, **named)

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Count it."""
        self.calls["folders", prefix] += 1
        return super().list_folders(prefix)


def put(root: Path, *files: str) -> None:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1234")


@pytest.fixture
def storage(tmp_path: Path) -> Counting:
    put(
        tmp_path,
        *(f"a/{MARK}", f"a/{DATA}", f"a/below/{DATA}"),
        *(f"b/2026/{MARK}", f"b/2026/{DATA}", f"b/2027/{DATA}", "b/other.txt"),
        *(f"empty/{MARK}", f".hoodie/metadata/files/{MARK}", DATA, "c/d/no.txt"),
    )
    return Counting(str(tmp_path))


def test_it_finds_what_a_lister_finds(storage: Counting) -> None:
    lister, listing = StorageLister(storage, True), TableListing(storage, True)
    partitions = listing.list_partitions()
    assert partitions == ["a", "b/2026", "b/2027", "empty"] == lister.list_partitions()
    assert listing.list_files(partitions) == lister.list_files(partitions)


def test_each_folder_of_a_partition_is_listed_once(storage: Counting) -> None:
    listing = TableListing(storage, True)
    for _ in range(2):
        listing.list_files(listing.list_partitions())
    assert set(storage.calls.values()) == {1}
    assert {folder for what, folder in storage.calls if what == "list"} == {
        *("a", "b", "b/2026", "b/2027", "c", "c/d", "empty")
    }
    assert ("folders", "a") not in storage.calls


def test_a_folder_that_is_no_partition_is_listed_when_it_is_asked_for(storage: Counting) -> None:
    found = TableListing(storage, True).list_files([PartitionPath("a/below"), PartitionPath("no")])
    assert [one.path for one in found[PartitionPath("a/below")]] == [f"a/below/{DATA}"]
    assert found[PartitionPath("no")] == ()


def test_a_table_without_partitions_is_its_own(storage: Counting) -> None:
    listing = TableListing(storage, False)
    assert listing.list_partitions() == [""]
    (files,) = listing.list_files([PartitionPath("")]).values()
    assert [one.path for one in files] == [DATA]


def test_a_map_runs_one_level_of_folders_at_a_time(storage: Counting) -> None:
    levels: list[list[Any]] = []

    def run_map(function: Callable[[Item], Answer], items: Sequence[Item], /) -> Iterable[Answer]:
        levels.append(list(items))
        return map(function, items)

    TableListing(storage, True, run_map).list_partitions()
    assert levels == [["a", "b", "c", "empty"], ["b/2026", "b/2027", "c/d"]]


def test_a_metadata_table_is_made_by_one_listing_of_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string())])
    off = {"hoodie.metadata.enable": "false"}
    path = str(tmp_path / "t")
    table = new_table(path, schema, off)
    table.upsert(pa.table({"id": ["1", "2"], "part": ["x", "y"]}, schema))
    made: list[Counting] = []

    def counting(root: str, *_: Any, **__: Any) -> Counting:
        made.append(Counting(root))
        return made[-1]

    monkeypatch.setattr("hudi_core.services.opening.open_storage", counting)
    on = {
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    }
    hudi.Table.open(path, on).delete(pa.table({"id": ["none"], "part": ["z"]}, schema))
    calls = sum((one.calls for one in made), Counter[tuple[str, str]]())
    assert [calls["list", name] for name in "xy"] == [1, 1]
