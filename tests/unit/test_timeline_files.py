"""Files of timelines: archives of both layouts, and the bodies of instant files."""

from __future__ import annotations

import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    CleanPartitionMetadata,
    CompactionPlan,
    IndexCommitMetadata,
    IndexPlan,
    RequestedReplaceMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    SavepointMetadata,
)
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.instant import Action, Instant, State, parse_file_name_v1
from hudi_core.model.instant_time import UTC_TIMELINE, InstantTime, TimelineZone
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline import lsm_history, serde
from hudi_core.timeline.archived import ArchivedTimeline, history_rows, with_history
from hudi_core.timeline.relayout import completion_times
from hudi_core.timeline.serde import (
    decode_clean,
    decode_commit,
    decode_record,
    decode_replace_commit,
    decode_requested_replace,
    decode_rollback,
    decode_rollback_plan,
    encode,
    records,
)
from hudi_core.timeline.serde.records import schema_of, write_container
from hudi_core.timeline.timeline import Timeline

ARCHIVE = ".hoodie/archived"


def at(ordinal: int) -> InstantTime:
    return InstantTime(f"20260301120000{ordinal:03d}")


def instants(
    archived: ArchivedTimeline, after: InstantTime | None = None, until: InstantTime | None = None
) -> list[Instant]:
    return [one.instant for one in archived.load(after, until)]


@pytest.fixture
def storage(tmp_path: Path) -> PosixStorage:
    return PosixStorage(str(tmp_path), fsync=False)


ENTRY_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "HoodieArchivedMetaEntry",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "commitTime", "type": ["null", "string"], "default": None},
        {"name": "actionType", "type": ["null", "string"], "default": None},
        {"name": "version", "type": ["int", "null"], "default": 1},
        {"name": "actionState", "type": ["null", "string"], "default": None},
    ],
}


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def block(content: bytes, header: Mapping[int, str], kind: int = 3, version: int = 1) -> bytes:
    """Return a log block by the byte layout of the format, with an empty footer."""
    entries = b"".join(struct.pack(">i", key) + text(value) for key, value in header.items())
    body = struct.pack(">iii", version, kind, len(header)) + entries
    body += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def entries(*rows: tuple[int, str, str | None], content_version: int = 3) -> bytes:
    out = struct.pack(">i", content_version)
    if content_version:
        out += struct.pack(">i", len(rows))
    for time, action, state in rows:
        datum = io.BytesIO()
        record = {"commitTime": at(time), "actionType": action, "actionState": state}
        fastavro.schemaless_writer(datum, ENTRY_SCHEMA, record)
        out += struct.pack(">i", len(datum.getvalue())) + datum.getvalue()
    return out


SCHEMA_HEADER = {2: json.dumps(ENTRY_SCHEMA), 0: at(0)}


@pytest.fixture
def archive(storage: PosixStorage) -> ArchivedTimeline:
    return ArchivedTimeline(storage, ARCHIVE, 1)


def put(base: Path, name: str, data: bytes) -> Path:
    path = base / ARCHIVE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_archive_logs_give_instants_in_their_highest_state(
    archive: ArchivedTimeline, tmp_path: Path
) -> None:
    command = block(b"", {0: at(1), 3: "0"}, kind=0)
    first = entries(
        (1, "commit", "REQUESTED"), (1, "commit", "COMPLETED"), (3, "clean", "INFLIGHT")
    )
    second = entries((5, "deltacommit", None), (7, "future", "COMPLETED"), (9, "commit", "LOST"))
    put(tmp_path, ".commits_.archive.1_1-0-1", block(first, SCHEMA_HEADER) + command)
    put(tmp_path, ".commits_.archive.2", block(second, SCHEMA_HEADER))
    put(tmp_path, "notes", b"no log file")
    assert instants(archive) == [
        Instant(at(1), Action.COMMIT, State.COMPLETED),
        Instant(at(3), Action.CLEAN, State.INFLIGHT),
        Instant(at(5), Action.DELTACOMMIT, State.COMPLETED),
    ]
    assert instants(archive, after=at(1), until=at(3)) == [
        Instant(at(3), Action.CLEAN, State.INFLIGHT)
    ]


def test_blocks_without_a_count_are_read(archive: ArchivedTimeline, tmp_path: Path) -> None:
    content = entries((1, "commit", None), (2, "commit", None), content_version=0)
    put(tmp_path, ".commits_.archive.1_1-0-1", block(content, SCHEMA_HEADER))
    assert len(archive.load()) == 2


def test_a_table_without_an_archive_has_none(archive: ArchivedTimeline) -> None:
    assert archive.load() == ()


def test_what_a_clean_removed_is_read_from_the_archive(
    archive: ArchivedTimeline, tmp_path: Path
) -> None:
    removed = CleanPartitionMetadata("p", "KEEP_LATEST_COMMITS", success_delete_files=("a",))
    body = CleanMetadata(at(2), 0, 1, at(1), partition_metadata={"p": removed})
    clean = {"name": "hoodieCleanMetadata", "type": ["null", schema_of(CleanMetadata)]}
    schema = {**ENTRY_SCHEMA, "fields": [*ENTRY_SCHEMA["fields"], {**clean, "default": None}]}
    record = next(fastavro.reader(io.BytesIO(encode(body))))
    out = struct.pack(">ii", 3, 3)
    for state, held in (("REQUESTED", None), ("COMPLETED", record), (None, None)):
        datum = io.BytesIO()
        action = "commit" if state is None else "clean"
        row = {"commitTime": at(2), "actionType": action, "actionState": state}
        fastavro.schemaless_writer(
            datum, fastavro.parse_schema(schema), {**row, "hoodieCleanMetadata": held}
        )
        out += struct.pack(">i", len(datum.getvalue())) + datum.getvalue()
    put(tmp_path, ".commits_.archive.1", block(out, {2: json.dumps(schema), 0: at(0)}))
    found = {one.instant.action: one.metadata for one in archive.load(at(1), bodies=True)}
    assert found.keys() == {Action.CLEAN, Action.COMMIT}
    assert found[Action.COMMIT] is None
    assert decode_clean(found[Action.CLEAN] or b"", "") == body
    assert {one.metadata for one in archive.load()} == {None}


GOOD = entries((1, "commit", "COMPLETED"))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (block(GOOD, SCHEMA_HEADER)[:-1], "bytes are left"),
        (block(GOOD, SCHEMA_HEADER)[:10], "bytes are announced"),
        (block(GOOD, SCHEMA_HEADER) + b"#HUDA#", "no block begins"),
        (block(GOOD, SCHEMA_HEADER, version=2), "format version 2"),
        (block(GOOD, SCHEMA_HEADER)[:-1] + b"\0", "its parts disagree|parts disagree"),
        (block(GOOD, {0: at(0)}), "has no schema"),
        (block(GOOD, {2: "{}"}), "its Avro schema"),
        (block(GOOD[:-1], SCHEMA_HEADER), "bytes are announced"),
        (block(GOOD + b"\0", SCHEMA_HEADER), "as many records"),
        (block(struct.pack(">ii", 3, 2) + GOOD[8:], SCHEMA_HEADER), "as many records"),
        (block(struct.pack(">iii", 3, 1, -1), SCHEMA_HEADER), "-1 bytes are announced"),
        (block(struct.pack(">iii", 3, 1, 3) + b"\2\6x", SCHEMA_HEADER), "cannot be decoded"),
    ],
)
def test_a_damaged_archive_log_is_named(
    archive: ArchivedTimeline, tmp_path: Path, data: bytes, reason: str
) -> None:
    path = put(tmp_path, ".commits_.archive.1_1-0-1", data)
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        archive.load()
    assert caught.value.path == str(path)


# --- completion times of a timeline of layout 1, and its archive as rows of the history
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3_600_000


def stored_at(digits: str) -> int:
    """Return milliseconds since the epoch of digits in UTC."""
    when = datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return round((when - EPOCH).total_seconds()) * 1000 + int(digits[14:])


def listing(**files: int) -> dict[Instant, int]:
    """Return instants of layout 1 by their files' names, with dates."""
    found = {}
    for name, date in files.items():
        instant = parse_file_name_v1(name.removeprefix("_").replace("__", "."))
        assert instant is not None
        found[instant] = date
    return found


def completed(stored: dict[Instant, int], zone: TimelineZone = UTC_TIMELINE) -> dict[str, str]:
    return {
        f"{one.requested_time} {one.action}": done
        for one, done in completion_times(stored, zone).items()
    }


FIRST, SECOND = "20260301120000500", "20260301120010000"


def test_the_dates_of_originals_count() -> None:
    # two writers: the first one ends last; and a savepoint of the first commit, made later
    stored = listing(
        _20260301120000500__commit__requested=stored_at("20260301120000499"),
        _20260301120000500__commit=stored_at("20260301120020007"),
        _20260301120010000__clean__requested=stored_at("20260301120010002"),
        _20260301120010000__clean=stored_at("20260301120011000"),
        _20260301120000500__savepoint__inflight=stored_at("20260301130000000"),
        _20260301120000500__savepoint=stored_at("20260301130000001"),
    )
    assert completed(stored) == {
        f"{FIRST} commit": "20260301120020007",
        f"{SECOND} clean": "20260301120011000",
        f"{FIRST} savepoint": "20260301130000001",
    }


def test_dates_are_read_in_the_zone_of_the_table() -> None:
    stored = listing(
        _20260301120000500__commit__requested=stored_at("20260301120000600") + 5 * HOUR,
        _20260301120000500__commit=stored_at("20260301120003000") + 5 * HOUR,
    )
    assert completed(stored, TimelineZone("-05:00")) == {f"{FIRST} commit": "20260301120003000"}
    # in another zone they are no originals
    assert completed(stored) == {f"{FIRST} commit": "20260301120000501"}


def test_the_dates_of_copies_do_not_count() -> None:
    later = stored_at("20260405120000000")
    copied = listing(
        _20260301120000500__commit__requested=later,
        _20260301120000500__commit=later,
        _20260301120010000__commit__requested=stored_at("20260301120010001"),
        _20260301120010000__commit=stored_at("20260301120012000"),
    )
    assert completed(copied) == {
        f"{FIRST} commit": "20260301120000501",
        f"{SECOND} commit": "20260301120012000",
    }
    # copied within minutes, in no order
    just_now = listing(
        _20260301120000500__commit__requested=stored_at("20260301120100007"),
        _20260301120000500__commit=stored_at("20260301120100009"),
        _20260301120010000__commit__requested=stored_at("20260301120100003"),
        _20260301120010000__commit=stored_at("20260301120100001"),
    )
    assert completed(just_now) == {
        f"{FIRST} commit": "20260301120000501",
        f"{SECOND} commit": "20260301120010001",
    }


def test_no_time_is_there_twice_and_none_before_its_request() -> None:
    second = stored_at("20260301120010000")
    stored = listing(
        # dates of whole seconds
        _20260301120009100__commit__requested=second - 1000,
        _20260301120009100__commit=second,
        _20260301120009900__commit__requested=second - 1000,
        _20260301120009900__commit=second,
        _20260301120010500__commit__requested=second,
        _20260301120010500__commit=second,
        _20260301120011__commit=second,
    )
    assert completed(stored) == {
        "20260301120009100 commit": "20260301120010000",
        "20260301120009900 commit": "20260301120010001",
        "20260301120010500 commit": "20260301120010501",
        "20260301120011 commit": "20260301120011001",
    }


def test_an_archive_becomes_rows_of_completed_instants(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path), fsync=False)
    newer = entries((7, "commit", "COMPLETED"), (9, "commit", "INFLIGHT"))
    older = entries(
        *((1, "commit", "REQUESTED"), (1, "commit", "COMPLETED"), (3, "clean", None)),
        *((5, "commit", "COMPLETED"), (1, "commit", "COMPLETED")),
    )
    put(tmp_path, ".commits_.archive.10_1-0-1", block(newer, SCHEMA_HEADER))
    put(tmp_path, ".commits_.archive.9_1-0-1", block(older, SCHEMA_HEADER))
    rows = list(history_rows(storage, ARCHIVE, {(at(5), "commit")}))
    assert [row[:3] for row in rows] == [
        (at(1), f"{at(1)[:-1]}2", "commit"),
        (at(3), f"{at(3)[:-1]}4", "clean"),
        (at(7), f"{at(7)[:-1]}8", "commit"),
    ]
    # schemas of the first releases have no place for some bodies
    assert {(row.metadata, row.plan) for row in rows} == {(None, None)}


def test_an_archived_action_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path), fsync=False)
    put(tmp_path, ".commits_.archive.1", block(entries((1, "future", None)), SCHEMA_HEADER))
    with pytest.raises(TableServiceError, match="future"):
        list(history_rows(storage, ARCHIVE, ()))


# --- the archive of layout 2, and one timeline of archived and active instants
HISTORY = ".hoodie/timeline/history"


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
def history(storage: PosixStorage) -> ArchivedTimeline:
    return ArchivedTimeline(storage, HISTORY)


def test_a_table_without_history_has_none(history: ArchivedTimeline, tmp_path: Path) -> None:
    assert history.load() == ()
    (tmp_path / HISTORY).mkdir(parents=True)
    assert history.load() == ()


def test_history_gives_instants_of_all_files_in_order(
    history: ArchivedTimeline, tmp_path: Path
) -> None:
    newer = history_file(tmp_path, [done(7, 8), done(5, 6, Action.CLEAN)])
    older = history_file(tmp_path, [done(1, 2), done(3, 4, Action.REPLACECOMMIT)], level=1)
    again = history_file(tmp_path, [done(1, 2), done(5, 6, Action.CLEAN)], level=2)
    manifest(tmp_path, 2, newer, older, again)
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


@pytest.mark.parametrize("content", [b"10", None, b"", b"x", b"\xd9\xa3"])
def test_the_manifest_of_the_version_counts_or_else_the_newest(
    history: ArchivedTimeline, tmp_path: Path, content: bytes | None
) -> None:
    # the file is deleted and rewritten, which is no atomic step
    first = history_file(tmp_path, [done(1, 2)])
    manifest(tmp_path, 9, point=False)
    manifest(tmp_path, 10, first, point=False)
    if content == b"10":
        manifest(tmp_path, 11, first, history_file(tmp_path, [done(3, 4)]), point=False)
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
        (None, "version 1 lacks"),
    ],
)
def test_a_damaged_manifest_is_named(
    history: ArchivedTimeline, tmp_path: Path, text: str | None, reason: str
) -> None:
    manifest(tmp_path, 1)
    (tmp_path / HISTORY / "manifest_1").unlink()
    if text is not None:
        (tmp_path / HISTORY / "manifest_1").write_text(text)
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        history.load()
    assert caught.value.path.startswith(str(tmp_path / HISTORY))


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


# --- bodies of instant files: what is written, what is accepted, and what is refused with its name
PATH = "/table/.hoodie/timeline/x.commit"
COMMIT = CommitMetadata(
    {"p": (WriteStat(file_id="f-0", path="p/f.parquet", num_writes=3),)},
    extra_metadata={"schema": "{}"},
    operation_type="INSERT",
)


def file_of(schema: dict[str, Any], record: Mapping[str, Any]) -> bytes:
    """Return a container made by fastavro alone, with fastavro's header."""
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])
    return out.getvalue()


def record_schema(*fields: object, name: str = "HoodieCommitMetadata") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "any.where", "fields": list(fields)}


def optional(name: str, kind: object) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def test_the_container_is_read_by_others_and_has_no_codec() -> None:
    assert encode(COMMIT) == encode(COMMIT)
    reader: Any = fastavro.reader(io.BytesIO(encode(COMMIT)))
    [record] = list(reader)
    assert set(reader.metadata) == {"avro.schema"}
    assert reader.writer_schema["name"] == "org.apache.hudi.avro.model.HoodieCommitMetadata"
    assert record["partitionToWriteStats"]["p"][0]["numWrites"] == 3
    assert record["compacted"] is False
    assert record["operationType"] == "INSERT"


def test_empty_maps_are_written_as_maps() -> None:
    # Java calls methods of partitionToWriteStats and unboxes compacted without looking
    fields = decode_record(encode(CommitMetadata()), PATH).fields
    assert fields["partitionToWriteStats"] == {}
    assert fields["compacted"] is False


def test_a_container_of_another_writer_is_read() -> None:
    # fastavro names the codec null
    schema = record_schema(optional("operationType", "string"))
    found = decode_commit(file_of(schema, {"operationType": "UPSERT"}), PATH)
    assert found == CommitMetadata(operation_type="UPSERT")


def test_fields_the_file_lacks_take_defaults_and_unknown_ones_are_ignored() -> None:
    stat = record_schema(
        optional("fileId", "string"),
        optional("numWrites", "int"),
        optional("novelty", {"type": "map", "values": "double"}),
        name="HoodieWriteStat",
    )
    schema = record_schema(
        optional("novelties", {"type": "array", "items": "bytes"}),
        optional(
            "partitionToWriteStats", {"type": "map", "values": {"type": "array", "items": stat}}
        ),
    )
    record = {
        "novelties": [b"x"],
        "partitionToWriteStats": {"p": [{"fileId": "f", "numWrites": None, "novelty": {"a": 1.0}}]},
    }
    found = decode_commit(file_of(schema, record), PATH)
    assert found == CommitMetadata({"p": (WriteStat(file_id="f", num_writes=None),)})


def test_nulls_where_the_model_has_none_become_defaults() -> None:
    schema = record_schema(
        optional("partitionToWriteStats", {"type": "map", "values": "string"}),
        optional("extraMetadata", {"type": "map", "values": "string"}),
        optional("compacted", "boolean"),
    )
    record = {"partitionToWriteStats": None, "extraMetadata": None, "compacted": None}
    found = decode_commit(file_of(schema, record), PATH)
    assert found.partition_to_write_stats == {}
    assert found.extra_metadata == {}
    assert found.compacted is None


def test_a_value_without_default_must_be_there() -> None:
    schema = record_schema(optional("startRollbackTime", "string"), name="HoodieRollbackMetadata")
    data = file_of(schema, {"startRollbackTime": "20260101000000000"})
    with pytest.raises(CorruptMetadataError, match="timeTakenInMillis is missing"):
        decode_rollback(data, PATH)


def test_a_field_of_another_type_is_damage() -> None:
    schema = record_schema(optional("operationType", "long"))
    with pytest.raises(CorruptMetadataError, match=r"operationType is of type int"):
        decode_commit(file_of(schema, {"operationType": 7}), PATH)
    schema = record_schema(optional("partitionToWriteStats", "string"))
    with pytest.raises(CorruptMetadataError, match=r"partitionToWriteStats is not a map"):
        decode_commit(file_of(schema, {"partitionToWriteStats": "x"}), PATH)
    # a record of another kind is not taken for an empty one
    with pytest.raises(CorruptMetadataError, match="HoodieRollbackPlan instead of a HoodieCommit"):
        decode_commit(encode(RollbackPlan(None)), PATH)
    with pytest.raises(CorruptMetadataError, match="instead of a HoodieReplaceCommitMetadata"):
        decode_replace_commit(encode(COMMIT), PATH)


def test_a_replacecommit_is_also_a_commit() -> None:
    replaced = ReplaceCommitMetadata(
        COMMIT.partition_to_write_stats, partition_to_replace_file_ids={"p": ("a-0", "b-0")}
    )
    assert decode_replace_commit(encode(replaced), PATH) == replaced
    assert type(decode_commit(encode(replaced), PATH)) is CommitMetadata


@pytest.mark.parametrize(
    "decode", [decode_commit, decode_replace_commit, decode_rollback_plan, decode_rollback]
)
def test_an_empty_file_is_damage_where_something_must_be(
    decode: Callable[[bytes, str], object],
) -> None:
    with pytest.raises(CorruptMetadataError, match="it is empty") as caught:
        decode(b"", PATH)
    assert caught.value.path == PATH


def test_empty_files_that_hudi_writes_are_read() -> None:
    assert decode_commit(b"", PATH, allow_empty=True) == CommitMetadata()
    assert decode_requested_replace(b"", PATH) == RequestedReplaceMetadata()


def test_the_field_hudi_capitalises() -> None:
    plan = RollbackPlan(None, (RollbackRequest("p", files_to_be_deleted=("/t/p/f.parquet",)),))
    assert decode_record(encode(plan), PATH).fields["RollbackRequests"][0]["partitionPath"] == "p"


def test_every_truncation_is_damage() -> None:
    data = encode(COMMIT)
    for kept in range(len(data)):
        with pytest.raises(CorruptMetadataError):
            decode_commit(data[:kept], PATH)


def test_flipped_bits_give_a_value_or_damage() -> None:
    data = encode(COMMIT)
    begin = data.index(b"f-0") - 8
    draw = random.Random(7)
    refused = 0
    for position in [*range(begin, len(data)), *draw.sample(range(len(data)), 500)]:
        flipped = bytearray(data)
        flipped[position] ^= 1 << draw.randrange(8)
        try:
            decode_commit(bytes(flipped), PATH)
        except CorruptMetadataError:
            refused += 1
    assert refused > 400


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"PAR1" + data, "not an Avro file"),
        (lambda data: data + b"\0", "bytes follow the record"),
        (lambda data: data + data, "bytes follow the record"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "sync markers differ"),
        (lambda data: data.replace(b"avro.schema", b"avro.schemb"), "names no schema"),
        (lambda data: data.replace(b'"record"', b'"rekord"', 1), "its Avro schema"),
    ],
)
def test_damage_is_told_with_its_reason(damage: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        decode_commit(damage(encode(COMMIT)), PATH)
    assert caught.value.path == PATH


def test_other_numbers_of_records_and_codecs_are_refused() -> None:
    schema = record_schema(optional("operationType", "string"))
    none, two, packed = io.BytesIO(), io.BytesIO(), io.BytesIO()
    fastavro.writer(none, schema, [])
    fastavro.writer(two, schema, [{}, {}])
    fastavro.writer(packed, schema, [{}], codec="deflate")
    for out, reason in ((none, "no record"), (two, "2 records"), (packed, "deflate")):
        with pytest.raises(CorruptMetadataError, match=reason):
            decode_commit(out.getvalue(), PATH)


EMPTY = {"type": "record", "fields": []}


def of_f(kind: object) -> dict[str, Any]:
    """Schema of a record with one field."""
    return record_schema({"name": "f", "type": kind})


def nested(levels: int) -> dict[str, Any]:
    kind: Any = "string"
    for level in range(levels):
        kind = {"type": "record", "name": f"r{level}", "fields": [{"name": "f", "type": kind}]}
    return record_schema({"name": "f", "type": kind})


def wrapped(levels: int) -> dict[str, Any]:
    kind: Any = "string"
    for _ in range(levels):
        kind = {"type": kind}
    return record_schema({"name": "f", "type": kind})


def chained(levels: int) -> dict[str, Any]:
    """Return a schema whose types nest by reference, not in the text."""
    fields = []
    for level in range(levels):
        below = f"any.where.r{level - 1}" if level else "string"
        record = {"type": "record", "name": f"r{level}", "fields": [{"name": "x", "type": below}]}
        fields.append({"name": f"f{level}", "type": record})
    return record_schema(*fields)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (nested(64), "nested too deeply"),
        (nested(250), "nested too deeply"),
        (wrapped(400), "nested too deeply"),
        (chained(70), "nested too deeply"),
        (record_schema(optional("f", "any.where.HoodieCommitMetadata")), "recursive"),
        (record_schema(optional("f", "HoodieCommitMetadata")), "recursive"),
        (of_f({"type": "array", "items": "null"}), "null"),
        (of_f("null"), "null"),
        (of_f({"type": "fixed", "name": "x", "size": 0}), "no bytes"),
        (of_f({"type": "array", "items": {**EMPTY, "name": "e"}}), "without fields"),
        (record_schema(), "without fields"),
        (of_f("nowhere"), "unknown type 'nowhere'"),
        (of_f(["null", ["int"]]), "union in a union"),
        (of_f([]), "no type"),
        (record_schema({"type": "int"}), "without name"),
        ({"type": "map", "values": "long"}, "not one of a record"),
        ([], "no type"),
        (EMPTY, "without a name"),
        *((text, "JSON|nested") for text in ('{"type":' * 9999, '"x', "[" * 9999 + "]" * 9999)),
    ],
)
def test_unsafe_schemas_are_refused(schema: object, reason: str) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(CorruptMetadataError, match=reason):
        decode_commit(write_container(text, b"\0"), PATH)


def test_reasonable_nesting_is_read() -> None:
    assert decode_commit(write_container(json.dumps(nested(40)), b"\2x"), PATH) == CommitMetadata()


def test_an_array_cannot_claim_more_than_its_bytes() -> None:
    schema = of_f({"type": "array", "items": "long"})
    endless = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # 2**63 - 1 items
    with pytest.raises(CorruptMetadataError, match="cannot be decoded"):
        decode_commit(write_container(json.dumps(schema), endless), PATH)
    schema = of_f("long")
    with pytest.raises(CorruptMetadataError, match="shorter than the file says"):
        decode_commit(write_container(json.dumps(schema), b"\2\2"), PATH)


def test_the_schemas_of_instant_files_stay() -> None:
    """They are those of Hudi's own files; ``zlib.crc32`` of all of them, by their names."""
    kinds = (
        *(CleanMetadata, CleanerPlan, CommitMetadata, CompactionPlan, IndexCommitMetadata),
        *(IndexPlan, ReplaceCommitMetadata, RequestedReplaceMetadata, RestoreMetadata, RestorePlan),
        *(RollbackMetadata, RollbackPlan, SavepointMetadata),
    )
    texts = [json.dumps(schema_of(kind), separators=(",", ":")) for kind in kinds]
    assert zlib.crc32("".join(texts).encode()) == 1_547_808_050


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(COMMIT)
    monkeypatch.setattr(records, "MAX_SCHEMA_BYTES", 100)
    with pytest.raises(CorruptMetadataError, match="its schema has"):
        decode_commit(data, PATH)
    monkeypatch.setattr(records, "MAX_INSTANT_BYTES", len(data) - 1)
    with pytest.raises(CorruptMetadataError, match="are more than"):
        decode_commit(data, PATH)
    monkeypatch.setattr(serde, "MAX_INSTANT_BYTES", 10)
    with pytest.raises(CorruptMetadataError, match="are more than"):
        decode_commit(b'{"partitionToWriteStats": {}}', PATH)
    with pytest.raises(CorruptMetadataError, match="more than readers accept"):
        encode(COMMIT)


def test_json_of_layout_1_gives_the_same_values() -> None:
    stat = {"fileId": "f-0", "path": "p/f.parquet", "numWrites": 3, "baseFile": "f.parquet"}
    text = {
        "partitionToWriteStats": {"p": [stat]},
        "compacted": False,
        "extraMetadata": {"schema": "{}"},
        "operationType": "INSERT_OVERWRITE",
        "partitionToReplaceFileIds": {"p": ["a-0"]},
        "novelty": {"x": [1]},
    }
    data = ("\n" + json.dumps(text, indent=2)).encode()
    expected = WriteStat(file_id="f-0", path="p/f.parquet", num_writes=3, base_file="f.parquet")
    found = decode_replace_commit(data, PATH)
    assert found.stats == (expected,)
    assert found.partition_to_replace_file_ids == {"p": ("a-0",)}
    assert found.operation_type == "INSERT_OVERWRITE"
    assert decode_commit(data, PATH).schema_json == "{}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"partitionToWriteStats": {', "not whole JSON"),
        (b"{}", "not commit metadata"),
        (b'{"partitionToWriteStats": [1]}', "is not a map"),
        (b'{"partitionToWriteStats": {"p": {}}}', "is not an array"),
        (b'{"partitionToWriteStats": {"p": [7]}}', "WriteStat is not a record"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": true}]}}', "should be int"),
        (b'{"partitionToWriteStats": {"p": [{"numWrites": 1.5}]}}', "should be int"),
        (b'{"partitionToWriteStats": {"\xff": []}}', "not whole JSON"),
        (b'{"a":' * 100_000, "nested too deeply|not whole JSON"),
    ],
)
def test_damaged_json_is_named(text: bytes, reason: str) -> None:
    with pytest.raises(CorruptMetadataError, match=reason) as caught:
        decode_commit(text, PATH)
    assert caught.value.path == PATH
