"""The file-system view, and the listers below it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    FileGroupId,
    FileId,
    FileStatus,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.committed_files import TableListing
from hudi_core.view.file_system import DuplicateBaseFile, FileSystemView, WrittenFiles
from hudi_core.view.storage_lister import StorageLister
from tests.calls import disk_requests
from tests.tables import new_table

P = PartitionPath("region=eu")
A, B = FileId("aaaa-0"), FileId("bbbb-0")


def at(n: int) -> InstantTime:
    return InstantTime(f"202601010000{n:05d}")


T1, T2, T3, T4, T5 = (at(n * 10) for n in range(1, 6))


class Listing(FileIndex):
    """A lister over a list of paths; counts what it is asked."""

    def __init__(self, *names: str, partition: PartitionPath = P) -> None:
        self.files = {partition: [FileStatus(join_path(partition, name), 10) for name in names]}
        self.asked: list[PartitionPath] = []

    def list_partitions(self) -> Sequence[PartitionPath]:
        return sorted(self.files)

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        self.asked += partitions
        return {path: self.files.get(path, []) for path in partitions}


def commits(*times: InstantTime, pending: Sequence[InstantTime] = ()) -> Timeline:
    done = [
        Instant(time, Action.COMMIT, State.COMPLETED, InstantTime(str(int(time) + 5)))
        for time in times
    ]
    return Timeline.of([*done, *(Instant(t, Action.COMMIT, State.INFLIGHT) for t in pending)])


def base(file_id: FileId, time: InstantTime, token: str = "0-1-2") -> str:
    return f"{file_id}_{token}_{time}.parquet"


def seen(view: FileSystemView, as_of: InstantTime | None = None) -> list[tuple[str, str]]:
    return [(found.file_id, found.base_instant) for found in view.latest_slices(as_of=as_of)]


def test_each_group_gives_its_newest_committed_slice() -> None:
    listing = Listing(base(A, T1), base(A, T3), base(B, T2), ".hoodie_partition_metadata", "x.crc")

    view = FileSystemView(listing, commits(T1, T2, T3), {})

    assert seen(view) == [(A, T3), (B, T2)]
    assert [found.base_instant for found in view.all_slices()] == [T3, T1, T2]
    assert view.latest_slices([PartitionPath("region=nowhere")]) == ()
    view = FileSystemView(Listing(f".{A}_{T2}.log.1_0-1-2"), commits(T1, T2), {})
    (found,) = view.latest_slices()  # log files alone are a slice
    assert (found.base_instant, found.base_file) == (T2, None)


def test_pending_and_unknown_instants_are_invisible() -> None:
    listing = Listing(base(A, T1), base(A, T3), base(B, T4))

    view = FileSystemView(listing, commits(T1, pending=[T3]), {})

    assert seen(view) == [(A, T1)]
    assert [group.id.file_id for group in view.file_groups()] == [A]
    # what is before the timeline is archived, and was committed
    view = FileSystemView(Listing(base(A, T1), base(B, T3)), commits(T2, T3), {})
    assert seen(view) == [(A, T1), (B, T3)]


def test_as_of_compares_requested_times() -> None:
    view = FileSystemView(Listing(base(A, T1), base(A, T3), base(B, T2)), commits(T1, T2, T3), {})

    assert seen(view, at(9)) == []
    assert seen(view, T1) == [(A, T1)]
    assert seen(view, at(29)) == [(A, T1), (B, T2)]
    assert seen(view, T3) == [(A, T3), (B, T2)]


def test_replaced_groups_are_gone_from_the_replacing_instant_on() -> None:
    by = Instant(T3, Action.REPLACECOMMIT, State.COMPLETED, at(35))
    listing = Listing(base(A, T1), base(B, T3))

    view = FileSystemView(listing, commits(T1, T3), {FileGroupId(P, A): by})

    assert seen(view) == [(B, T3)]
    assert seen(view, T3) == [(B, T3)]
    assert seen(view, at(29)) == [(A, T1)]
    assert [group.id.file_id for group in view.file_groups()] == [A, B]
    assert view.replaced == {FileGroupId(P, A): by}


def test_a_group_is_identified_with_its_partition() -> None:
    other = PartitionPath("region=us")
    by = Instant(T3, Action.REPLACECOMMIT, State.COMPLETED, at(35))
    listing = Listing(base(A, T1))
    listing.files[other] = [FileStatus(join_path(other, base(A, T1)), 10)]

    view = FileSystemView(listing, commits(T1, T3), {FileGroupId(P, A): by})

    assert [found.partition_path for found in view.latest_slices()] == [other]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (None, "0-1-11"),
        (lambda _: None, "0-1-11"),
        (lambda time: {join_path(P, base(A, time, "0-1-9"))}, "0-1-9"),
    ],
)
def test_two_base_files_of_one_instant_are_an_anomaly(
    names: WrittenFiles | None, kept: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = ["0-1-9", "3-1-2", "0-1-11"]  # numbers, not texts: attempt 11 is after attempt 9
    listing = Listing(*(base(A, T1, token) for token in tokens))

    view = FileSystemView(listing, commits(T1), {}, names)

    (found,) = view.latest_slices()
    paths = {token: join_path(P, base(A, T1, token)) for token in tokens}
    assert found.base_file is not None
    assert found.base_file.path == paths[kept]
    ignored = tuple(sorted(path for token, path in paths.items() if token != kept))
    assert view.duplicates == (DuplicateBaseFile(FileGroupId(P, A), T1, paths[kept], ignored),)
    assert T1 in caplog.text


def test_metadata_is_asked_only_about_duplicates() -> None:
    def fail(time: InstantTime) -> None:
        raise AssertionError(time)

    view = FileSystemView(Listing(base(A, T1), base(A, T2)), commits(T1, T2), {}, fail)

    assert seen(view) == [(A, T2)]
    assert view.duplicates == ()


def test_log_files_belong_to_the_base_file_requested_before_they_were_complete() -> None:
    # T4 is a log that was written while the compaction at T3 ran and completed after its request
    logs = [f".{A}_{time}.log.{n}_0-1-2" for time, n in ((T2, 1), (T4, 2), (T4, 1), (T5, 1))]
    listing = Listing(base(A, T1), base(A, T3), *logs, f".{A}_{T4}.log.1_0-1-2.cdc")

    view = FileSystemView(listing, commits(T1, T2, T3, T4), {})

    newest, oldest = view.all_slices()
    assert [(log.name.instant, log.name.version) for log in newest.log_files] == [(T4, 1), (T4, 2)]
    assert [log.name.instant for log in oldest.log_files] == [T2]
    assert newest.total_size == 30


def test_log_files_that_hudi_named_after_their_slice_before_version_8() -> None:
    """Metadata tables have compactions whose times end with a suffix, and logs of their slices."""
    # requested while the compaction before was at work, as a table's instant was then
    first, second = (InstantTime(f"{time}001") for time in (T1, InstantTime(str(int(T1) + 2))))
    logs = [f".{A}_{time}.log.1_0-1-2" for time in (first, second)]
    listing = Listing(*(f"{A}_0-1-2_{time}.hfile" for time in (first, second)), *logs)
    done = [(first, T1), (second, T2)]
    timeline = Timeline.of(
        [
            Instant(time, Action.COMMIT, State.COMPLETED, InstantTime(str(int(base) + 5)))
            for time, base in done
        ]
    )

    newest, oldest = FileSystemView(listing, timeline, {}).all_slices()

    assert (newest.base_instant, oldest.base_instant) == (second, first)
    assert [[log.name.instant for log in one.log_files] for one in (newest, oldest)] == [
        [second],
        [first],
    ]


def test_a_partition_is_listed_once_and_only_when_asked_for() -> None:
    other = PartitionPath("region=us")
    listing = Listing(base(A, T1))
    listing.files[other] = [FileStatus(join_path(other, base(B, T1)), 10)]
    view = FileSystemView(listing, commits(T1), {})

    assert len(view.latest_slices([P])) == 1
    assert len(view.latest_slices([P, P])) == 1
    assert listing.asked == [P]
    assert len(view.latest_slices()) == 2
    assert listing.asked == [P, other]


# --- partitions and files found by listing folders
MARK = PARTITION_METADATA_FILE
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


@pytest.mark.parametrize(
    ("paths", "partitions"),
    [
        (
            [
                *(f"us/{MARK}", f"eu/2026/{MARK}", "xx/note"),
                *(f".hoodie/metadata/files/{MARK}", f".hoodie/{BASE}"),
            ],
            ["eu/2026", "us"],
        ),
        ([f"a=1/b=2/{BASE}", f"a=1/b=3/{BASE}", "a=2/b=1/other.parquet"], ["a=1/b=2", "a=1/b=3"]),
        ([f"us/{MARK}", f"us/inner/{BASE}"], ["us"]),  # nothing below a partition is one
        ([MARK, BASE, f"us/{MARK}"], ["us"]),  # nor is the root
    ],
)
def test_partitions_are_folders_with_partition_metadata_or_base_files(
    storage: PosixStorage, paths: list[str], partitions: list[str]
) -> None:
    put(storage, *paths)
    assert StorageLister(storage, partitioned=True).list_partitions() == partitions


def test_a_table_without_partitions_is_one_partition(storage: PosixStorage) -> None:
    lister = StorageLister(storage, partitioned=False)
    assert lister.list_partitions() == [""]
    put(storage, BASE, "folder/" + BASE)
    for found in (lister, TableListing(storage, False)):
        assert found.list_partitions() == [""]
        (files,) = found.list_files([PartitionPath("")]).values()
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


# --- one walk over all folders: each listed once, and the same partitions as a lister finds
DATA = "11111111-0000-4000-8000-000000000000-0_0-0-0_20260101000000000.parquet"


def put_files(root: Path, *files: str) -> None:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1234")


@pytest.fixture
def walked(tmp_path: Path) -> PosixStorage:
    put_files(
        tmp_path,
        *(f"a/{MARK}", f"a/{DATA}", f"a/below/{DATA}"),
        *(f"b/2026/{MARK}", f"b/2026/{DATA}", f"b/2027/{DATA}", "b/other.txt"),
        *(f"empty/{MARK}", f".hoodie/metadata/files/{MARK}", DATA, "c/d/no.txt"),
    )
    return PosixStorage(str(tmp_path), fsync=False)


def test_it_finds_what_a_lister_finds(walked: PosixStorage) -> None:
    lister, listing = StorageLister(walked, True), TableListing(walked, True)
    partitions = listing.list_partitions()
    assert partitions == ["a", "b/2026", "b/2027", "empty"] == lister.list_partitions()
    assert listing.list_files(partitions) == lister.list_files(partitions)


def test_each_folder_of_a_partition_is_listed_once(
    walked: PosixStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = disk_requests(monkeypatch, "list", "list_folders")
    listing = TableListing(walked, True)
    for _ in range(2):
        listing.list_files(listing.list_partitions())
    assert len(set(calls)) == len(calls)
    assert {folder for what, folder in calls if what == "list"} == {
        *("a", "b", "b/2026", "b/2027", "c", "c/d", "empty")
    }
    assert ("list_folders", "a") not in calls


def test_a_folder_that_is_no_partition_is_listed_when_it_is_asked_for(walked: PosixStorage) -> None:
    found = TableListing(walked, True).list_files([PartitionPath("a/below"), PartitionPath("no")])
    assert [one.path for one in found[PartitionPath("a/below")]] == [f"a/below/{DATA}"]
    assert found[PartitionPath("no")] == ()


def test_a_map_runs_one_level_of_folders_at_a_time(walked: PosixStorage) -> None:
    levels: list[list[Any]] = []

    def run_map(function: Callable[[Item], Answer], items: Sequence[Item], /) -> Iterable[Answer]:
        levels.append(list(items))
        return map(function, items)

    TableListing(walked, True, run_map).list_partitions()
    assert levels == [["a", "b", "c", "empty"], ["b/2026", "b/2027", "c/d"]]


def test_a_metadata_table_is_made_by_one_listing_of_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string())])
    off = {"hoodie.metadata.enable": "false"}
    path = str(tmp_path / "t")
    table = new_table(path, schema, off)
    table.upsert(pa.table({"id": ["1", "2"], "part": ["x", "y"]}, schema))
    calls = disk_requests(monkeypatch, "list")
    on = {
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    }
    hudi.Table.open(path, on).delete(pa.table({"id": ["none"], "part": ["z"]}, schema))
    assert [calls.count(("list", name)) for name in "xy"] == [1, 1]
