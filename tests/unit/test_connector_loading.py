"""The background load of splits: batches, bounds, errors, and that nothing of it remains."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import InvalidOptionError, ResourceLimitError, ScanClosedError
from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.connector.listing import FileListing
from hudi_core.read.connector.loader import Channel, LoadLimits, LoadState, SplitLoad
from hudi_core.read.connector.partitions import BatchSizes, PartitionInfo
from hudi_core.read.connector.predicate import ALL
from hudi_core.read.connector.split_source import SplitSource
from hudi_core.read.connector.splits import Split, SplitFactory
from hudi_core.read.plan import PlannedSlice
from tests.unit.test_write_attempts import no_threads

MB = 1 << 20
ID_ONLY = pa.schema([pa.field("id", pa.int64())])
INSTANT = InstantTime("20260101000000000")
FACTORY = SplitFactory("/t", ID_ONLY, ALL, "a mark", 128 * MB, 128 * MB, 0.05)
Action = Callable[[str], None]


def nothing(_: str) -> None:
    """What most partitions do."""


@dataclass
class Partitions:
    """Some partitions, and what happens when they are asked for."""

    count: int
    on_batch: Action = nothing
    ended: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)

    def batches(self) -> Iterator[Sequence[PartitionInfo]]:
        names = [f"p{n:04d}" for n in range(self.count)]
        for cut in BatchSizes(10, 100).cut(len(names)):
            self.on_batch(names[cut][0])
            yield [PartitionInfo(PartitionPath(name), name) for name in names[cut]]

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        self.ended.set()


class Files(FileListing):
    """So many files in each partition."""

    def __init__(self, count: int, size: int, on_list: Action = nothing) -> None:
        self.schema, self.predicate = ID_ONLY, ALL
        self._count, self._size, self._on_list = count, size, on_list

    def partitions(self) -> Sequence[PartitionPath]:
        return []

    def list_files(self, partitions: Sequence[PartitionPath]) -> Sequence[PlannedSlice]:
        for path in partitions:
            self._on_list(path)
        return [
            PlannedSlice(
                f"{path}/{n}", f"/t/{path}/{n}", self._size, path, FileId(str(n)), {}, INSTANT
            )
            for path in partitions
            for n in range(self._count)
        ]


def source(
    partitions: Partitions, files: Files, outstanding: int = 10_000, **options: Any
) -> SplitSource:
    load = SplitLoad(partitions, files, FACTORY, LoadLimits(4, 2, outstanding, 100))
    return SplitSource(load, "/t", options.pop("per_second", 1 << 30), **options)


def loaders() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("hudi-splits")]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not loaders()


def test_every_split_comes_once() -> None:
    partitions = Partitions(137)
    with source(partitions, Files(9, MB)) as splits:
        found = [split.path for split in splits]
        progress = splits.progress
        assert splits.get_next_batch().is_last, "it says so again"
    assert len(found) == len(set(found)) == 137 * 9
    assert (progress.partitions, progress.partitions_listed) == (137, 137)
    assert (progress.files, progress.splits) == (137 * 9, 137 * 9)
    assert splits.progress.state is LoadState.FINISHED
    assert partitions.ended.is_set()


def test_it_loads_before_anybody_asks() -> None:
    with source(Partitions(0), Files(1, MB)) as splits:
        batch = splits.get_next_batch()
        assert (batch.splits, batch.is_last) == ((), True)
    with source(Partitions(20), Files(3, MB)) as splits:
        until(lambda: splits.progress.state is LoadState.FINISHED)
        assert splits.progress.splits == 60
        with pytest.raises(InvalidOptionError):
            splits.get_next_batch(0)


@pytest.mark.parametrize(
    ("size", "quota", "count"),
    [(128 * MB, 100, 100), (MB, 100, 2000), (64 * MB, 100, 200), (64 * MB, 1, 2), (128 * MB, 1, 1)],
)
def test_a_batch_has_as_many_splits_as_its_quota_takes(size: int, quota: int, count: int) -> None:
    with source(Partitions(60), Files(50, size), linger_s=60) as splits:
        assert len(splits.get_next_batch(quota).splits) == count


def test_a_split_above_the_quota_comes_alone() -> None:
    heavy = SplitFactory("/t", ID_ONLY, ALL, "a mark", 128 * MB, 128 * MB, 0.05)
    load = SplitLoad(Partitions(1), Files(3, 128 * MB), heavy, LoadLimits(1, 1, 10, 100))
    with SplitSource(load, "/t", 1 << 30) as splits:
        taken = splits._load.splits.take_while(lambda _: False, 5)
        assert taken == []
        assert [len(splits.get_next_batch(1).splits) for _ in range(3)] == [1, 1, 1]


def test_a_batch_waits_a_little_for_more() -> None:
    gate = threading.Event()

    def second_waits(name: str) -> None:
        if name > "p0001":
            gate.wait(30)

    with source(Partitions(4), Files(1, MB, second_waits), linger_s=30) as splits:
        until(lambda: splits.progress.splits == 2)
        threading.Timer(0.05, gate.set).start()
        batch = splits.get_next_batch()
        assert (len(batch.splits), batch.is_last) == (4, True)


def test_no_more_wait_than_the_bound() -> None:
    with source(Partitions(40), Files(10, MB), outstanding=7) as splits:
        until(lambda: len(splits._load.splits) == 7)
        found = 0
        for _ in splits:
            assert len(splits._load.splits) <= 7
            found += 1
        assert found == 400
        assert splits._load.progress.partitions == 40


def test_a_slow_taker_stops_the_listing() -> None:
    with source(Partitions(1000), Files(10, MB), outstanding=20) as splits:
        until(lambda: len(splits._load.splits) == 20 and len(splits._load._files) == 20)
        assert splits.progress.partitions_listed < 400
        assert splits.progress.partitions < 700, "the metastore is not asked for all"


def test_splits_are_handed_out_no_faster_than_is_allowed() -> None:
    began = time.monotonic()
    with source(Partitions(1), Files(30, MB), per_second=100) as splits:
        assert len(list(splits)) == 30
    # the last of three batches of ten at the soonest 0.2 seconds after the first
    with source(Partitions(1), Files(30, MB), per_second=10) as splits:
        assert [len(splits.get_next_batch().splits) for _ in range(2)] == [10, 10]
    assert time.monotonic() - began > 0.9


def fails(at: str) -> Action:
    def action(name: str) -> None:
        if name == at:
            raise OSError(f"no {at}")

    return action


@pytest.mark.parametrize(
    ("on_batch", "on_list"), [(fails("p0010"), nothing), (nothing, fails("p0005"))]
)
def test_an_error_comes_out_where_splits_are_taken(on_batch: Action, on_list: Action) -> None:
    partitions = Partitions(500, on_batch)
    splits = source(partitions, Files(3, MB, on_list))
    for _ in range(2):  # again and again
        with pytest.raises(OSError, match="no p00"):
            list(splits)
    until(lambda: not loaders())  # without a close
    assert splits.progress.state is LoadState.FAILED
    assert partitions.ended.is_set()
    splits.close()
    with pytest.raises(OSError, match="no p00"):
        splits.get_next_batch()


def test_close_stops_everything_at_once() -> None:
    partitions = Partitions(100_000)
    splits = source(partitions, Files(10, MB), outstanding=50)
    splits.get_next_batch()
    splits.close()
    assert not loaders()
    assert partitions.ended.is_set()
    assert partitions.interrupted.is_set()
    assert splits.progress.state is LoadState.CLOSED
    with pytest.raises(ScanClosedError, match="not all"):
        splits.get_next_batch()
    splits.close()


def test_close_interrupts_a_call_to_the_metastore() -> None:
    partitions = Partitions(100)

    def waits(_: str) -> None:
        assert partitions.interrupted.wait(30)
        raise OSError("interrupted")

    partitions.on_batch = waits
    splits = source(partitions, Files(1, MB))
    splits.close()
    with pytest.raises(ScanClosedError):
        splits.get_next_batch()


def test_close_wakes_who_waits() -> None:
    gate = threading.Event()

    def waits(_: str) -> None:
        gate.wait(30)

    splits = source(Partitions(1), Files(1, MB, waits))
    failed: list[BaseException] = []

    def take() -> None:
        try:
            splits.get_next_batch()
        except ScanClosedError as error:
            failed.append(error)

    taker = threading.Thread(target=take)
    taker.start()
    closer = threading.Thread(target=splits.close)
    closer.start()
    taker.join(30)
    assert len(failed) == 1
    gate.set()
    closer.join(30)


def test_a_source_that_is_given_up_ends_its_threads() -> None:
    splits: SplitSource | None = source(Partitions(100_000), Files(10, MB), outstanding=50)
    assert splits is not None
    splits.get_next_batch()
    assert loaders()
    splits = None
    gc.collect()
    until(lambda: not loaders())


def test_several_threads_take_each_split_once() -> None:
    found: list[Split] = []
    with source(Partitions(200), Files(10, MB)) as splits:
        takers = [threading.Thread(target=lambda: found.extend(splits)) for _ in range(4)]
        for one in takers:
            one.start()
        for one in takers:
            one.join()
    assert len(found) == len({split.path for split in found}) == 2000


def test_without_threads_it_says_so() -> None:
    partitions = Partitions(1)
    with no_threads(), pytest.raises(ResourceLimitError):
        source(partitions, Files(1, MB))
    assert partitions.ended.is_set()


def test_a_channel_that_is_stopped_takes_nothing() -> None:
    channel = Channel[int](2, 1)
    assert channel.put([1, 2])
    channel.stop()
    assert not channel.put([3])
    assert channel.take(5) == []
    assert channel.is_drained


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, []), (5, [5]), (10, [10]), (31, [10, 20, 1]), (400, [10, 20, 40, 80, 100, 100, 50])],
)
def test_batches_of_partitions_grow(count: int, expected: list[int]) -> None:
    names = range(count)
    assert [len(names[cut]) for cut in BatchSizes(10, 100).cut(count)] == expected
