"""The archive of layout 1: instants in log files."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudi_core.errors import CorruptMetadataError
from hudi_core.model.actions import CleanMetadata, CleanPartitionMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.archived import ArchivedTimeline
from hudi_core.timeline.serde import decode_clean, encode
from hudi_core.timeline.serde.schemas import schema_of

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
