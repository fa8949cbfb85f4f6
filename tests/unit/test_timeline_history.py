"""The archive of layout 2, and one timeline of archived and active instants."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptMetadataError
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline import lsm_history
from hudi_core.timeline.archived import ArchivedTimeline, with_history
from hudi_core.timeline.serde import decode_commit, encode
from hudi_core.timeline.timeline import Timeline

HISTORY = ".hoodie/timeline/history"
ARCHIVE = ".hoodie/archived"


def at(ordinal: int) -> InstantTime:
    return InstantTime(f"20260301120000{ordinal:03d}")


def done(time: int, completion: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(at(time), action, State.COMPLETED, at(completion))


def history_file(
    base: Path, instants: Sequence[Instant], level: int = 0, **bodies: Sequence[bytes | None]
) -> dict[str, object]:
    """Write one file of an LSM history and return its entry for the manifest."""
    times = [one.requested_time for one in instants]
    table = pa.table(
        {
            "instantTime": times,
            "completionTime": [one.completion_time for one in instants],
            "action": [one.action.value for one in instants],
            "metadata": pa.array(bodies.get("metadata", [b"{}"] * len(times)), pa.binary()),
            "plan": pa.array(bodies.get("plan", [None] * len(times)), pa.binary()),
            "version": pa.array([1] * len(times), pa.int32()),
        }
    )
    path = base / HISTORY / f"{min(times)}_{max(times)}_{level}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return {"fileName": path.name, "fileLen": path.stat().st_size}


def manifest(base: Path, version: int, *entries: object, point: bool = True) -> None:
    text = json.dumps({"files": entries}, indent=2)
    (base / HISTORY).mkdir(parents=True, exist_ok=True)
    (base / HISTORY / f"manifest_{version}").write_text(text)
    if point:
        (base / HISTORY / "_version_").write_text(str(version))


@pytest.fixture
def storage(tmp_path: Path) -> PosixStorage:
    return PosixStorage(str(tmp_path), fsync=False)


@pytest.fixture
def history(storage: PosixStorage) -> ArchivedTimeline:
    return ArchivedTimeline(storage, HISTORY)


def instants(
    archived: ArchivedTimeline, after: InstantTime | None = None, until: InstantTime | None = None
) -> list[Instant]:
    return [one.instant for one in archived.load(after, until)]


def test_a_table_without_history_has_none(history: ArchivedTimeline, tmp_path: Path) -> None:
    assert history.load() == ()
    (tmp_path / HISTORY).mkdir(parents=True)
    assert history.load() == ()


def test_history_gives_instants_of_all_files_in_order(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    newer = history_file(tmp_path, [done(7, 8), done(5, 6, Action.CLEAN)])
    older = history_file(tmp_path, [done(1, 2), done(3, 4, Action.REPLACECOMMIT)], level=1)
    manifest(tmp_path, 2, newer, older)
    assert instants(history) == [
        done(1, 2),
        done(3, 4, Action.REPLACECOMMIT),
        done(5, 6, Action.CLEAN),
        done(7, 8),
    ]


def test_bodies_come_when_they_are_asked_for(history: ArchivedTimeline, tmp_path: Path) -> None:
    metadata = CommitMetadata({"p": (WriteStat(file_id="f-0", path="p/f.parquet"),)})
    entry = history_file(
        tmp_path,
        [done(1, 2), done(3, 4, Action.CLEAN)],
        metadata=[encode(metadata), b"cleaned"],
        plan=[None, b"plan"],
    )
    manifest(tmp_path, 1, entry)
    first, second = history.load(bodies=True)
    assert first.metadata is not None
    assert decode_commit(first.metadata, "x") == metadata
    assert first.plan is None
    assert (second.metadata, second.plan) == (b"cleaned", b"plan")
    assert [(one.metadata, one.plan) for one in history.load()] == [(None, None)] * 2


def test_bounds_exclude_their_begin_and_skip_files(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    first = history_file(tmp_path, [done(1, 2), done(3, 4)])
    second = history_file(tmp_path, [done(5, 6), done(7, 8)])
    manifest(tmp_path, 1, first, second)
    assert instants(history, after=at(1), until=at(5)) == [done(3, 4), done(5, 6)]

    (tmp_path / HISTORY / str(first["fileName"])).write_bytes(b"damaged")
    assert instants(history, after=at(3)) == [done(5, 6), done(7, 8)]
    with pytest.raises(CorruptMetadataError):
        history.load()


def test_the_newest_instants_come_without_older_files(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    oldest = history_file(tmp_path, [done(1, 2), done(3, 4)])
    wide = history_file(tmp_path, [done(5, 6), done(9, 10)], level=1)
    within = history_file(tmp_path, [done(7, 8)])
    manifest(tmp_path, 1, oldest, wide, within)
    every = [one.instant for one in history.newest(9)]
    assert every == instants(history)

    (tmp_path / HISTORY / str(oldest["fileName"])).write_bytes(b"damaged")
    for count in (0, 1, 2, 3):
        found = [one.instant for one in history.newest(count)]
        assert found == every[len(every) - count :]
    assert [one.instant for one in history.newest(4, after=at(7))] == [done(9, 10)]
    assert [one.metadata for one in history.newest(1, bodies=True)] == [b"{}"]
    with pytest.raises(CorruptMetadataError):
        history.newest(4)


def test_an_instant_in_two_files_is_one(history: ArchivedTimeline, tmp_path: Path) -> None:
    low = history_file(tmp_path, [done(1, 2), done(3, 4)], level=0)
    high = history_file(tmp_path, [done(1, 2), done(5, 6)], level=1)
    manifest(tmp_path, 1, low, high)
    assert instants(history) == [done(1, 2), done(3, 4), done(5, 6)]


def test_the_version_file_decides_which_manifest_counts(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    first = history_file(tmp_path, [done(1, 2)])
    second = history_file(tmp_path, [done(3, 4)])
    manifest(tmp_path, 9, first)
    manifest(tmp_path, 10, first, second, point=False)
    assert instants(history) == [done(1, 2)]


@pytest.mark.parametrize("content", [None, b"", b"x", b"\xd9\xa3"])
def test_without_a_version_the_newest_manifest_counts(
    history: ArchivedTimeline, tmp_path: Path, content: bytes | None
) -> None:
    # the file is deleted and rewritten, which is no atomic step
    first = history_file(tmp_path, [done(1, 2)])
    manifest(tmp_path, 9, point=False)
    manifest(tmp_path, 10, first, point=False)
    if content is not None:
        (tmp_path / HISTORY / "_version_").write_bytes(content)
    assert instants(history) == [done(1, 2)]


def test_actions_of_later_releases_and_strange_times_are_left_out(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    table = pa.table(
        {
            "instantTime": [at(1), at(3), "soon", None],
            "completionTime": [at(2), at(4), at(5), at(6)],
            "action": ["commit", "future", "commit", "commit"],
        }
    )
    path = tmp_path / HISTORY / f"{at(1)}_{at(3)}_0.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)
    manifest(tmp_path, 1, {"fileName": path.name, "fileLen": path.stat().st_size})
    [only] = history.load(bodies=True)
    assert only.instant == done(1, 2)
    assert only.metadata is None


def test_a_file_that_a_compaction_deletes_meanwhile_is_read_from_the_next_version(
    tmp_path: Path,
) -> None:
    small = history_file(tmp_path, [done(1, 2)], level=0)
    manifest(tmp_path, 1, small)

    class Compacting(PosixStorage):
        def read(self, path: str, max_bytes: int | None = None) -> bytes:
            old = tmp_path / HISTORY / str(small["fileName"])
            if path.endswith("_0.parquet") and old.exists():
                large = history_file(tmp_path, [done(1, 2), done(3, 4)], level=1)
                manifest(tmp_path, 2, large)
                old.unlink()
            return super().read(path, max_bytes)

    archived = ArchivedTimeline(Compacting(str(tmp_path), fsync=False), HISTORY)
    assert instants(archived) == [done(1, 2), done(3, 4)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "lists no files"),
        ('{"files": {}}', "lists no files"),
        ('{"files": [7]}', "not an entry"),
        ('{"files": [{"fileName": "x.parquet", "fileLen": 1}]}', "not an entry"),
        ('{"files": [{"fileName": "../1_2_0.parquet", "fileLen": 1}]}', "not an entry"),
        ('{"files": [{"fileName": "1_2_0.parquet", "fileLen": "1"}]}', "not an entry"),
        ('{"files": [{"fileName": "1_2_0.parquet", "fileLen": 1}]}', "lacks"),
    ],
)
def test_a_damaged_manifest_is_named(
    history: ArchivedTimeline, tmp_path: Path, text: str, reason: str
) -> None:
    manifest(tmp_path, 1)
    (tmp_path / HISTORY / "manifest_1").write_text(text)
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        history.load()
    assert caught.value.path.startswith(str(tmp_path / HISTORY))


def test_a_missing_manifest_is_named(history: ArchivedTimeline, tmp_path: Path) -> None:
    manifest(tmp_path, 1)
    (tmp_path / HISTORY / "manifest_1").unlink()
    with pytest.raises(CorruptMetadataError, match="version 1 lacks"):
        history.load()


def test_a_damaged_history_file_is_named(history: ArchivedTimeline, tmp_path: Path) -> None:
    entry = history_file(tmp_path, [done(1, 2)])
    path = tmp_path / HISTORY / str(entry["fileName"])
    whole = path.read_bytes()
    manifest(tmp_path, 1, entry)
    for data, reason in (
        (whole[:-1], "its manifest says"),
        (b"x" * len(whole), "not a readable parquet file"),
        (whole[:100] + b"\0" * 60 + whole[160:], "not a readable parquet file"),
    ):
        path.write_bytes(data)
        with pytest.raises(CorruptMetadataError, match=reason) as caught:
            history.load(bodies=True)
        assert caught.value.path == str(path)


def test_a_history_file_of_another_content_is_named(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    path = tmp_path / HISTORY / "1_2_0.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), path)
    manifest(tmp_path, 1, {"fileName": path.name, "fileLen": path.stat().st_size})
    with pytest.raises(CorruptMetadataError, match="lacks one of the columns"):
        history.load()


def test_active_and_archived_instants_make_one_timeline(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    # 3 has been archived and not yet been deleted from the active timeline, and 2 only in part
    entry = history_file(
        tmp_path, [done(1, 2), done(2, 3, Action.CLEAN), done(3, 4, Action.REPLACECOMMIT)]
    )
    manifest(tmp_path, 1, entry)
    half = Instant(at(2), Action.CLEAN, State.INFLIGHT)
    pending = Instant(at(7), Action.CLUSTERING, State.INFLIGHT)
    saved = Instant(at(3), Action.SAVEPOINT, State.COMPLETED, at(9))
    active = Timeline.of(
        [half, done(3, 4, Action.REPLACECOMMIT), saved, done(5, 6), pending], ["future"]
    )

    merged = with_history(active, history.load())

    assert merged.instants == (
        done(1, 2),
        done(2, 3, Action.CLEAN),
        done(3, 4, Action.REPLACECOMMIT),
        saved,
        done(5, 6),
        pending,
    )
    assert merged.unknown == ("future",)
    assert merged.is_committed(at(1))
    assert not merged.is_committed(at(2))


def test_history_files_have_a_largest_size(
    history: ArchivedTimeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest(tmp_path, 1, history_file(tmp_path, [done(1, 2)]))
    monkeypatch.setattr(lsm_history, "MAX_HISTORY_BYTES", 100)
    with pytest.raises(CorruptMetadataError, match="are more than 100"):
        history.load()
