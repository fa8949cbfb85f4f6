"""Timelines: instant files, times, filters, and the client of one table."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.placement import Placement
from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    InstantNotFoundError,
    SchemaError,
    TimelineError,
    UnknownExtensionError,
    UnsupportedTableError,
)
from hudi_core.meta_client import TableMetaClient, run_in_threads
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.files import BaseFileName, BasePath, LogFileName
from hudi_core.model.instant import Action, Instant, State, parse_file_name_v2
from hudi_core.model.instant_time import (
    InstantTime,
    instant_time_of,
    next_instant_time,
    to_datetime,
)
from hudi_core.model.protocols import TimelineView
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline import active as active_module
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from hudi_core.timeline.timeline import Timeline


def at(ordinal: int) -> InstantTime:
    return InstantTime(f"20260301120000{ordinal:03d}")


def timeline(*names: str, unknown: Sequence[str] = ()) -> Timeline:
    """Return the timeline of files, whose names give the last three digits of times."""
    files = []
    for name in names:
        times, dot, rest = name.partition(".")
        full = "_".join(at(int(time)) for time in times.split("_"))
        file = parse_file_name_v2(full + dot + rest)
        assert file is not None, name
        files.append(file)
    return Timeline.of(files, unknown)


def names(instants: Timeline | tuple[Instant, ...]) -> list[str]:
    return [f"{int(one.requested_time[14:])}.{one.action}.{one.state}" for one in instants]


@pytest.mark.parametrize("suffix", ["", "001", "001006"])
def test_times_of_the_metadata_tables_that_hudi_made_before_version_8(suffix: str) -> None:
    """A compaction, a clean or a rollback of the table's instant has a suffix of its own."""
    begun, done = f"{at(7)}{suffix}", at(9)
    assert parse_file_name_v2(f"{begun}_{done}.commit") == Instant(
        InstantTime(begun), Action.COMMIT, State.COMPLETED, done
    )
    base = BaseFileName.parse(f"files-0000-0_0-1-2_{begun}.hfile")
    log = LogFileName.parse(f".files-0000-0_{begun}.log.1_0-1-2")
    assert base is not None
    assert log is not None
    assert (base.instant, log.instant) == (begun, begun)
    # text order is time order, and the next time is one of ours
    assert at(7) <= begun < at(8) == next_instant_time(InstantTime(begun), at(7))
    assert to_datetime(InstantTime(begun)) == to_datetime(at(7))
    for digits in (18, 19, 21, 26):
        name = f"files-0000-0_0-1-2_{at(7):0<{digits}}.hfile"
        assert BaseFileName.parse(name) is None


def test_each_instant_is_kept_once_in_its_highest_state() -> None:
    found = timeline(
        "3.inflight", "3.commit.requested", "1_2.commit", "1.inflight", "1.commit.requested"
    )
    assert names(found) == ["1.commit.completed", "3.commit.inflight"]
    assert found.instants[0].completion_time == at(2)
    # of two completions the earlier one counts
    assert [one.completion_time for one in timeline("1_5.commit", "1_3.commit")] == [at(3)]


@pytest.mark.parametrize(
    ("pending", "completed"),
    [("clustering", "replacecommit"), ("compaction", "commit"), ("logcompaction", "deltacommit")],
)
def test_an_action_that_completes_under_another_name_is_one_instant(
    pending: str, completed: str
) -> None:
    done = timeline(f"1.{pending}.requested", f"1.{pending}.inflight", f"1_2.{completed}")
    assert names(done) == [f"1.{completed}.completed"]
    assert names(timeline(f"1.{pending}.requested")) == [f"1.{pending}.requested"]
    assert done.find(at(1), Action(pending)) == done.instants[0]


def test_a_savepoint_stands_beside_its_commit() -> None:
    found = timeline("1_2.commit", "1_9.savepoint", "1.savepoint.inflight")
    assert names(found) == ["1.commit.completed", "1.savepoint.completed"]
    commit, savepoint = found.instants
    assert found.find(at(1)) == commit
    assert found.find(at(1), Action.SAVEPOINT) == savepoint
    assert found.find(at(1), Action.CLEAN) is None
    assert found.find(at(7)) is None


def test_filters_by_state_and_action() -> None:
    found = timeline(
        "1_2.commit", "3_4.clean", "5.clustering.inflight", "6_7.replacecommit", "8.inflight"
    )
    assert found.pending().is_committed(at(0))
    assert not found.of_actions(Action.CLEAN).is_committed(at(1))
    assert isinstance(found, TimelineView)
    assert names(found.completed()) == [
        "1.commit.completed",
        "3.clean.completed",
        "6.replacecommit.completed",
    ]
    assert names(found.pending()) == ["5.clustering.inflight", "8.commit.inflight"]
    assert names(found.completed_writes()) == ["1.commit.completed", "6.replacecommit.completed"]
    assert names(found.of_actions(Action.REPLACECOMMIT)) == [
        "5.clustering.inflight",
        "6.replacecommit.completed",
    ]
    assert found.first == found.instants[0]
    assert found.last == found.instants[-1]
    assert Timeline().first is None
    assert Timeline().last is None


def test_as_of_takes_writes_requested_up_to_its_bound_archived_ones_too() -> None:
    found = timeline("1_9.commit", "3_4.commit", "5_6.commit")
    assert names(found.as_of(at(3))) == ["1.commit.completed", "3.commit.completed"]
    assert not found.as_of(at(3)).is_committed(at(5))
    found = timeline("10_11.commit").as_of(at(5))
    assert found.is_committed(at(5))
    assert not found.is_committed(at(6))
    # a later bound does not widen it again
    assert not found.as_of(at(8)).is_committed(at(6))


@pytest.mark.parametrize(
    ("files", "committed"),
    [
        (("10_11.commit", "12.inflight", "14_15.commit", "13_16.clean"), [*range(1, 11), 14]),
        # nothing is archived past a pending instant, so 6 is what a failed write left behind
        (("5.commit.requested", "10_11.commit"), [*range(1, 5), 10]),
        # cleans are archived at their own pace: the write of 7 is, though the clean of 5 is not
        (("5_6.clean", "10_11.commit"), [1, 2, 3, 4, 6, 7, 8, 9, 10]),
        ((), []),
    ],
)
def test_files_of_completed_and_archived_writes_are_committed(
    files: tuple[str, ...], committed: list[int]
) -> None:
    found = timeline(*files)
    assert [n for n in range(1, 20) if found.is_committed(at(n))] == committed


def test_a_savepointed_commit_may_stay_behind_archived_ones() -> None:
    found = timeline("5_6.commit", "5_8.savepoint", "20_21.commit")
    assert found.is_committed(at(5))
    assert found.is_committed(at(10))
    only = timeline("5_6.commit", "5_8.savepoint")
    assert not only.is_committed(at(10))
    assert only.is_committed(at(4))


def test_latest_time_is_over_requested_and_completion_times_and_unknown_names() -> None:
    assert timeline().latest_time() is None
    assert timeline("1_30.commit", "7.inflight").latest_time() == at(30)
    assert timeline("1_3.commit", "7.inflight").latest_time() == at(7)
    later = timeline("1_3.commit", unknown=[f"{at(8)}_{at(9)}.future", "99999999999999999.commit"])
    assert later.latest_time() == at(9)


# --- instant files come and go one by one, and none ever replaces another
FOLDER = ".hoodie/timeline"
T1, T2, T3, T4 = (InstantTime(f"2026030112000000{n}") for n in range(1, 5))


@pytest.fixture
def active(tmp_path: Path) -> ActiveTimeline:
    return ActiveTimeline(PosixStorage(str(tmp_path), fsync=False), FOLDER)


def requested(time: InstantTime, action: Action = Action.COMMIT) -> Instant:
    return Instant(time, action, State.REQUESTED)


def put(base: Path, *names: str, folder: str = FOLDER, body: bytes = b"") -> None:
    (base / folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        (base / folder / name).write_bytes(body)


def test_a_scan_asks_for_no_sizes_and_repeats_nothing(
    active: ActiveTimeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: Any, **named: Any) -> Any:
        raise AssertionError

    first = active.create_requested(requested(T1))
    with monkeypatch.context() as refusing:
        refusing.setattr(PosixStorage, "list", never)
        before = active.scan()
        assert before.timeline.instants == (first,)
        refusing.setattr(ActiveTimeline, "parse", never)
        assert active.scan() is before
    second = active.to_inflight(first, b"")
    assert active.scan().timeline.instants == (second,)


def test_an_instant_goes_through_its_states(active: ActiveTimeline, tmp_path: Path) -> None:
    first = active.create_requested(requested(T1))
    second = active.to_inflight(first, b"so far")
    done = active.complete(second, T2, b"done")

    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [
        f"{T1}.commit.requested",
        f"{T1}.inflight",
        f"{T1}_{T2}.commit",
    ]
    assert [one.state for one in (first, second, done)] == list(State)
    assert active.load().instants == (done,)
    assert set(active.scan().files) == {first, second, done}
    assert [active.read(one) for one in (first, second, done)] == [b"", b"so far", b"done"]


def test_a_clustering_completes_as_a_replacecommit(active: ActiveTimeline, tmp_path: Path) -> None:
    pending = active.to_inflight(active.create_requested(requested(T1, Action.CLUSTERING), b"plan"))
    done = active.complete(pending, T2, b"done")
    assert done == Instant(T1, Action.REPLACECOMMIT, State.COMPLETED, T2)
    assert (tmp_path / FOLDER / f"{T1}_{T2}.replacecommit").exists()
    assert len(active.scan().files) == 3


def test_no_state_is_written_twice(active: ActiveTimeline) -> None:
    instant = active.create_requested(requested(T1), b"mine")
    with pytest.raises(AlreadyExistsError):
        active.create_requested(instant, b"theirs")
    active.to_inflight(instant, b"mine")
    with pytest.raises(AlreadyExistsError):
        active.to_inflight(instant, b"theirs")
    assert active.read(instant) == b"mine"
    # and one file goes at a time
    inflight = instant.to(State.INFLIGHT)
    assert active.delete(inflight)
    assert not active.delete(inflight)
    assert active.load().instants == (instant,)
    with pytest.raises(InstantNotFoundError, match=f"{T2}.commit.requested"):
        active.read(requested(T2))


def test_an_instant_completes_once_whatever_the_time(active: ActiveTimeline) -> None:
    instant = active.create_requested(requested(T1))
    done = active.complete(instant, T2, b"mine")
    for time in (T2, T3):
        with pytest.raises(AlreadyExistsError) as caught:
            active.complete(instant, time, b"theirs")
        assert caught.value.path.endswith(f"{T1}_{T2}.commit")
    assert active.read(done) == b"mine"
    # a savepoint of the same time is another instant
    active.complete(requested(T1, Action.SAVEPOINT), T3, b"saved")


def test_a_completion_has_a_later_time_and_a_body(active: ActiveTimeline) -> None:
    instant = active.create_requested(requested(T2))
    for time in (T1, T2):
        with pytest.raises(TimelineError, match="not after its request"):
            active.complete(instant, time, b"done")
    with pytest.raises(TimelineError, match="without metadata"):
        active.complete(instant, T3, b"")
    assert not active.load().instants[0].is_completed


def test_other_files_are_ignored(active: ActiveTimeline, tmp_path: Path) -> None:
    put(tmp_path, "hoodie.properties", "_version_", f".{T1}.commit.crc", "notes.txt", "1.commit")
    # of a writer of Hudi's that is about to rename it, or died before
    put(tmp_path, f"{T1}.inflight.db3bd50b-0a48-4640-b35c-dc152d481c6b")
    put(tmp_path, f"{T1}_{T2}.commit.db3bd50b-0a48-4640-b35c-dc152d481c6b")
    put(tmp_path, "manifest_1", folder=f"{FOLDER}/history")
    scan = active.scan()
    assert scan.files == ()
    assert scan.unknown == ()


def test_instants_of_later_releases_are_visible_by_name(
    active: ActiveTimeline, tmp_path: Path
) -> None:
    strange = [
        f"{T1}.future.requested",
        f"{T1}_{T2}.future",
        f"{T1}.commit",
        f"{T1}.commit.cancelled",
        "20269999000000000.commit.requested",
    ]
    put(tmp_path, f"{T3}.commit.requested", *strange)
    timeline = active.load()
    assert timeline.instants == (requested(T3),)
    assert timeline.unknown == tuple(sorted(strange))


def test_a_second_completion_of_an_instant_is_visible_by_name(
    active: ActiveTimeline, tmp_path: Path
) -> None:
    put(tmp_path, f"{T1}_{T3}.commit", f"{T1}_{T2}.commit", f"{T1}_{T4}.savepoint")
    timeline = active.load()
    assert [one.completion_time for one in timeline.completed_writes()] == [T2]
    assert timeline.unknown == (f"{T1}_{T3}.commit",)


def test_of_a_rollback_that_others_finished_their_completion_counts(
    active: ActiveTimeline, tmp_path: Path
) -> None:
    """The earlier one landed late."""
    put(tmp_path, f"{T1}_{T3}.rollback", f"{T1}_{T2}.rollback")
    found = active.scan()
    assert [one.completion_time for one in found.timeline.completed()] == [T3]
    assert found.surplus == (Instant(T1, Action.ROLLBACK, State.COMPLETED, T2),)
    assert found.timeline.unknown == (f"{T1}_{T2}.rollback",)


def test_layout_1_is_read_and_not_written(tmp_path: Path) -> None:
    put(
        tmp_path,
        f"{T1}.commit.requested",
        f"{T1}.inflight",
        f"{T1}.commit",
        f"{T2}.replacecommit.inflight",
        f"{T3}_{T4}.commit",
        "hoodie.properties",
        folder=".hoodie",
        body=b'{"partitionToWriteStats": {}, "operationType": "INSERT"}',
    )
    active = ActiveTimeline(PosixStorage(str(tmp_path), fsync=False), ".hoodie", 1)
    timeline = active.load()
    assert timeline.instants == (
        Instant(T1, Action.COMMIT, State.COMPLETED),
        Instant(T2, Action.REPLACECOMMIT, State.INFLIGHT),
    )
    assert timeline.unknown == (f"{T3}_{T4}.commit",)
    assert active.read_commit(timeline.instants[0]).operation_type == "INSERT"

    for change in (active.create_requested, active.to_inflight, active.delete):
        with pytest.raises(TimelineError, match="layout 1"):
            change(requested(T4))
    with pytest.raises(TimelineError, match="layout 1"):
        active.complete(requested(T2), T4, b"x")
    assert len(active.load().instants) == 2
    with pytest.raises(TimelineError, match="layout 3"):
        ActiveTimeline(PosixStorage(str(tmp_path), fsync=False), FOLDER, 3)


def test_metadata_of_writes_comes_in_its_own_class(active: ActiveTimeline) -> None:
    stats = {"p": (WriteStat(file_id="f-0", path="p/f.parquet"),)}
    commit = active.create_requested(requested(T1))
    assert active.read_commit(commit) == CommitMetadata()
    inflight = active.to_inflight(commit)
    assert active.read_commit(inflight) == CommitMetadata()
    done = active.complete(inflight, T2, encode(CommitMetadata(stats)))
    assert active.read_commit(done) == CommitMetadata(stats)

    metadata = ReplaceCommitMetadata(stats, partition_to_replace_file_ids={"p": ("old-0",)})
    clustering = active.create_requested(requested(T3, Action.CLUSTERING), b"plan")
    assert active.read_commit(active.to_inflight(clustering)) == CommitMetadata()
    replaced = active.complete(clustering, T4, encode(metadata))
    assert active.read_commit(replaced) == metadata


@pytest.mark.parametrize("kept", [0, 3, 200, -1])
def test_a_truncated_instant_file_is_named(
    active: ActiveTimeline, tmp_path: Path, kept: int
) -> None:
    body = encode(CommitMetadata({"p": (WriteStat(file_id="f-0", path="p/f.parquet"),)}))
    put(tmp_path, f"{T1}_{T2}.commit", body=body[:kept])
    [instant] = active.load().instants
    with pytest.raises(CorruptMetadataError) as caught:
        active.read_commit(instant)
    assert caught.value.path == str(tmp_path / FOLDER / f"{T1}_{T2}.commit")


def test_no_file_is_written_that_could_not_be_read(
    active: ActiveTimeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active_module, "MAX_INSTANT_BYTES", 10)
    with pytest.raises(CorruptMetadataError, match="more than readers accept"):
        active.create_requested(requested(T1), b"x" * 11)
    assert active.load().instants == ()


# --- times of a table grow, whatever the clocks of its writers say
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def ticking(tmp_path: Path) -> ActiveTimeline:
    return ActiveTimeline(PosixStorage(str(tmp_path), fsync=False), ".hoodie/timeline")


def noon_plus(milliseconds: float) -> InstantTime:
    return instant_time_of(NOON + timedelta(milliseconds=milliseconds))


def commit(active: ActiveTimeline, time: InstantTime, completion: InstantTime | None) -> None:
    instant = active.create_requested(Instant(time, Action.COMMIT, State.REQUESTED))
    if completion is not None:
        active.complete(instant, completion, b"x")


def test_the_clock_tells_the_time(ticking: ActiveTimeline) -> None:
    assert TimelineClock(ticking, lambda: NOON).next_time() == "20260301120000000"


def test_the_machines_clock_is_the_default(ticking: ActiveTimeline) -> None:
    before = datetime.now(UTC)
    time = to_datetime(TimelineClock(ticking).next_time())
    assert before - timedelta(milliseconds=1) < time <= datetime.now(UTC)


def test_times_grow_while_the_clock_stands(ticking: ActiveTimeline) -> None:
    clock = TimelineClock(ticking, lambda: NOON)
    assert [clock.next_time() for _ in range(3)] == [noon_plus(0), noon_plus(1), noon_plus(2)]


def test_two_clocks_of_one_table_share_what_they_handed_out(ticking: ActiveTimeline) -> None:
    again = ActiveTimeline(ticking.storage, ticking.folder)
    other = ActiveTimeline(ticking.storage, ".hoodie/metadata/.hoodie/timeline")
    assert TimelineClock(ticking, lambda: NOON).next_time() == noon_plus(0)
    assert TimelineClock(again, lambda: NOON).next_time() == noon_plus(1)
    assert TimelineClock(other, lambda: NOON).next_time() == noon_plus(0)


@pytest.mark.parametrize(
    ("requested", "completion", "expected"),
    [
        *((5, None, 6), (5, 8, 9), (-20, -10, 0), (0, 23 * 3_600_000, 23 * 3_600_000 + 1)),
        ("0" * 17, "0" * 16 + "1", 0),  # of a metadata table's first instants: no dates
    ],
)
def test_times_are_later_than_all_on_the_timeline(
    ticking: ActiveTimeline, requested: Any, completion: Any, expected: int
) -> None:
    times = [
        InstantTime(one) if isinstance(one, str) else one if one is None else noon_plus(one)
        for one in (requested, completion)
    ]
    commit(ticking, times[0] or noon_plus(0), times[1])
    assert TimelineClock(ticking, lambda: NOON).next_time() == noon_plus(expected)


def test_a_clock_set_back_does_not_set_times_back(ticking: ActiveTimeline) -> None:
    timestamps = iter([NOON, NOON - timedelta(hours=2), NOON + timedelta(hours=1)])
    clock = TimelineClock(ticking, lambda: next(timestamps))
    assert [clock.next_time() for _ in range(3)] == [
        noon_plus(0),
        noon_plus(1),
        noon_plus(3_600_000),
    ]


def test_a_timeline_a_day_ahead_is_an_error(ticking: ActiveTimeline) -> None:
    day = 24 * 3_600_000
    commit(ticking, noon_plus(0), noon_plus(day + 1))
    with pytest.raises(TimelineError, match="more than a day ahead"):
        TimelineClock(ticking, lambda: NOON).next_time()
    assert TimelineClock(ticking, lambda: NOON + timedelta(seconds=1)).next_time() == noon_plus(
        day + 2
    )


def test_a_timeline_at_hand_saves_the_listing(ticking: ActiveTimeline) -> None:
    commit(ticking, noon_plus(50), None)
    clock = TimelineClock(ticking, lambda: NOON)
    assert clock.next_time(Timeline()) == noon_plus(0)
    assert clock.next_time() == noon_plus(51)


def test_threads_without_a_lock_never_share_a_time(ticking: ActiveTimeline) -> None:
    times: list[InstantTime] = []
    start = threading.Barrier(4)

    def ask() -> None:
        clock = TimelineClock(ActiveTimeline(ticking.storage, ticking.folder), lambda: NOON)
        start.wait()
        times.extend(clock.next_time() for _ in range(25))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(times)) == 100


WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from filelock import FileLock
from hudi_core.model.instant import Action, Instant, State
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.clock import TimelineClock

base, skew = sys.argv[1], timedelta(seconds=int(sys.argv[2]))
active = ActiveTimeline(PosixStorage(base, fsync=False), ".hoodie/timeline")
clock = TimelineClock(active, lambda: datetime.now(UTC) + skew)
lock = FileLock(base + ".lock")
for _ in range(10):
    with lock:
        instant = Instant(clock.next_time(), Action.COMMIT, State.REQUESTED)
        active.create_requested(instant)
    with lock:
        time = clock.next_time()
        active.complete(instant, time, b"x")
        with open(base + ".order", "a") as order:
            order.write(time + "\\n")
"""


def test_processes_with_skewed_clocks_and_one_lock_complete_in_growing_order(
    tmp_path: Path,
) -> None:
    base = tmp_path / "table"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(base), skew]) for skew in ("-40", "40")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]

    order = base.with_suffix(".order").read_text().split()
    timeline = ActiveTimeline(PosixStorage(str(base), fsync=False), ".hoodie/timeline").load()
    assert len(timeline.completed_writes()) == len(order) == 20
    assert order == sorted(set(order))
    times = [one.requested_time for one in timeline] + order
    assert len(set(times)) == 40


# --- the meta client: folders, bodies and the schema of one table
CONFIG = TableConfig(name="t", record_key_fields=("id",))


def schema_of(*names: str) -> TableSchema:
    return TableSchema.create(pa.schema([(name, pa.string()) for name in names]))


def open_client(path: Path, config: TableConfig = CONFIG, **more: Any) -> TableMetaClient:
    storage = PosixStorage(str(path), fsync=False)
    return TableMetaClient(BasePath(str(path)), storage, config, StorageOptions(), **more)


def write(
    client: TableMetaClient,
    requested: str,
    completed: str,
    schema: TableSchema | None,
    action: Action = Action.COMMIT,
) -> Instant:
    extra = {"schema": schema.to_avro("t")} if schema else {"schema": ""}
    kind = ReplaceCommitMetadata if action is Action.REPLACECOMMIT else CommitMetadata
    instant = Instant(InstantTime(f"202601010000{requested}"), action, State.INFLIGHT)
    return client.active.complete(
        instant, InstantTime(f"202601010000{completed}"), encode(kind(extra_metadata=extra))
    )


def test_it_is_what_hooks_are_typed_against(tmp_path: Path) -> None:
    client: MetaClientView = open_client(tmp_path)
    assert client.config.table_format == "native"


def test_folders_of_layout_2(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    assert client.active.folder == ".hoodie/timeline"
    assert client.archived.folder == ".hoodie/timeline/history"
    moved = open_client(tmp_path, replace(CONFIG, timeline_path="line", history_path="old"))
    assert moved.active.folder == ".hoodie/line"
    assert moved.archived.folder == ".hoodie/line/old"


def test_folders_of_layout_1(tmp_path: Path) -> None:
    client = open_client(tmp_path, replace(CONFIG, version=6, layout_version=1))
    assert client.active.folder == ".hoodie"
    assert client.active.layout_version == client.archived.layout_version == 1
    assert client.archived.folder == ".hoodie/archived"


def test_the_timeline_is_read_anew(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    assert client.timeline().instants == ()
    instant = write(client, "00001", "00002", schema_of("id"))
    assert client.timeline().instants == (instant,)
    assert client.read_commit(instant).schema_json == schema_of("id").to_avro("t")
    assert client.read_instant(instant).startswith(b"Obj\x01")


def test_the_schema_is_that_of_the_last_completed_write(tmp_path: Path) -> None:
    config = replace(CONFIG, create_schema=schema_of("id").to_avro("t"))
    client = open_client(tmp_path, config)
    assert client.schema.names == ["id"]
    write(client, "00001", "00090", schema_of("id", "late"))
    write(client, "00002", "00003", schema_of("id", "early"))
    assert client.schema.names == ["id", "late"]
    # a write that keeps none, and pending ones, do not count
    write(client, "00004", "00095", None, Action.REPLACECOMMIT)
    client.active.create_requested(
        Instant(InstantTime("20260101000000005"), Action.COMMIT, State.REQUESTED)
    )
    assert client.schema.names == ["id", "late"]


def test_the_schema_of_another_timeline(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    write(client, "00001", "00002", schema_of("id"))
    write(client, "00003", "00004", schema_of("id", "new"))
    past = client.timeline().as_of(InstantTime("20260101000000002"))
    assert client.schema_at(past).names == ["id"]


def test_field_ids_that_another_writer_dropped_come_from_the_properties(tmp_path: Path) -> None:
    text = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"}]}'
    client = open_client(
        tmp_path, replace(CONFIG, create_schema=text, field_ids={"id": 41}, last_column_id=77)
    )
    assert client.schema.field_ids()["id"] == 41
    assert client.schema.last_column_id == 77


def test_no_schema_anywhere(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="has no schema"):
        _ = open_client(tmp_path).schema


def test_format_options_are_stored_or_given(tmp_path: Path) -> None:
    stored = {
        "hoodie.table.format": "iceberg",
        "hoodie.table.format.iceberg.location": "s3://b/t",
        "hoodie.table.format.iceberg.catalog": "stored",
        "hoodie.table.format.delta.location": "elsewhere",
    }
    config = replace(CONFIG, table_format="iceberg", raw=stored)
    given = {"hoodie.table.format.iceberg.catalog": "given", "hoodie.table.name": "t"}
    client = open_client(tmp_path, config, options=given)
    assert client.format_options == {"location": "s3://b/t", "catalog": "given"}
    assert "given" not in repr(client)


def test_files_lie_where_the_table_says(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    assert client.files.uri("p=1/f.parquet") == f"{tmp_path}/p=1/f.parquet"
    assert client.data is client.storage
    assert client.root is client.storage
    strange = replace(CONFIG, placement=Placement("far", ("s3://data",)))
    with pytest.raises(UnknownExtensionError):
        _ = open_client(tmp_path, strange).files


def test_tables_that_must_not_be_written(tmp_path: Path) -> None:
    open_client(tmp_path).require_writable()
    config = replace(CONFIG, version=6)
    with pytest.raises(UnsupportedTableError, match=str(tmp_path)):
        open_client(tmp_path, config).require_writable()


def test_small_work_is_done_in_order_without_an_engine(tmp_path: Path) -> None:
    assert list(open_client(tmp_path).run_map(str, [3, 1, 2])) == ["3", "1", "2"]


def test_it_is_a_value(tmp_path: Path) -> None:
    client = open_client(tmp_path)
    with pytest.raises(AttributeError):
        client.base_path = BasePath("/elsewhere")  # type: ignore[misc]
    assert "storage_options" in inspect.signature(TableMetaClient).parameters


# --- work that is shared out
# ----------------------------------------------------------------------------------------------


def test_requests_are_made_at_the_same_time_and_answered_in_order() -> None:
    together = threading.Barrier(3, timeout=30)

    def ask(number: int) -> int:
        together.wait()  # each waits for the others: one after the other they would never answer
        return number * 2

    assert list(run_in_threads(ask, [1, 2, 3])) == [2, 4, 6]
    assert list(run_in_threads(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(run_in_threads(lambda number: 1 // number, [1, 0]))
