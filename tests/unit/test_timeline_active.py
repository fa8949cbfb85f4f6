"""Instant files come and go one by one, and none ever replaces another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    InstantNotFoundError,
    TimelineError,
)
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline import active as active_module
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.serde import encode

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


def test_delete_takes_one_file(active: ActiveTimeline) -> None:
    instant = active.create_requested(requested(T1))
    inflight = active.to_inflight(instant)
    assert active.delete(inflight)
    assert not active.delete(inflight)
    assert active.load().instants == (instant,)


def test_what_is_gone_is_named(active: ActiveTimeline) -> None:
    with pytest.raises(InstantNotFoundError, match=f"{T1}.commit.requested"):
        active.read(requested(T1))


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


def test_unknown_layouts_are_refused(tmp_path: Path) -> None:
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
