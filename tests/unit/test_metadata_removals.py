"""What is taken out of the metadata table: files that a clean deletes, and commits that are undone.

And what its own commits say of its records, as those of real tables do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.actions.clean import complete_clean, delete_cleaned, request_clean, start_clean
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.records import FileList
from hudi_core.metadata.session import MetadataSession, record_clean
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import metadata_client
from hudi_core.metadata.undo import is_compacted
from hudi_core.metadata.validator import validate
from hudi_core.model.actions import ActionInstant, CleanerPlan, CleanFileInfo
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.timeline import Timeline
from tests.foreign import by_hudi_rs
from tests.hudi_tables import TRIPS, TXNS
from tests.property.test_metadata_model import check_metadata, client_of
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
COLUMNS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", *SCHEMA.names)
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}


def rows(ids: str, city: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "ts": [ts] * len(ids)}, SCHEMA)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    table = new_table(path, SCHEMA, OPTIONS, ordering_field=None)
    table.upsert(rows("abc", "rome"))
    table.upsert(rows("xyz", "oslo"))
    table.upsert(rows("ab", "rome", 2))
    table.delete_partitions(["oslo"])
    return path


def clean(path: Path, files: dict[str, list[str]], dropped: tuple[str, ...] = ()) -> None:
    """Delete files as a clean does, with the metadata table told before the clean is complete."""
    client = client_of(path)
    infos = {
        partition: tuple(CleanFileInfo(f"{path}/{partition}/{name}", False) for name in names)
        for partition, names in files.items()
    }
    last = client.timeline().completed_writes()[-1]
    plan = CleanerPlan(
        ActionInstant(last.action.value, last.requested_time, State.COMPLETED.value),
        last.requested_time,
        "KEEP_LATEST_COMMITS",
        {},
        file_paths_to_be_deleted_per_partition=infos,
        partitions_to_be_deleted=dropped,
    )
    clock = TimelineClock(client.active)
    work = start_clean(client, request_clean(client, clock.next_time(), plan))
    assert work is not None
    metadata = delete_cleaned(client, work)
    tables = MetadataState.load(client)
    assert tables is not None
    session = MetadataSession(tables, MetadataConfig.from_options(OPTIONS))
    record_clean(session, work.instant.requested_time, metadata)
    complete_clean(client, work, clock.next_time(), metadata)


def base_files(path: Path, partition: str) -> list[str]:
    """Return the names of a partition's files, the oldest first."""
    return sorted(
        (one.name for one in (path / partition).glob("*.parquet")),
        key=lambda name: name.rsplit("_", 1)[1],
    )


def read(path: Path) -> list[str]:
    own = sorted(hudi.Table.open(str(path)).to_arrow()["id"].to_pylist())
    assert sorted(row["id"] for row in by_hudi_rs(path)) == own
    return own


def test_a_clean_takes_its_files_out_of_every_partition(path: Path) -> None:
    old, new = base_files(path, "rome")
    clean(path, {"rome": [old]})
    assert base_files(path, "rome") == [new]
    check_metadata(path, must=True, columns=COLUMNS)
    assert validate(client_of(path)).is_valid
    assert read(path) == ["a", "b", "c"]
    for partition in ("files", "column_stats", "bloom_filters"):
        assert old not in str(hudi.Table.open(str(path)).metadata(partition).to_pylist())


def test_a_clean_that_drops_a_partition(path: Path) -> None:
    (gone,) = base_files(path, "oslo")
    clean(path, {"oslo": [gone]}, ("oslo",))
    assert not (path / "oslo" / ".hoodie_partition_metadata").exists()
    (listed,) = [
        record.payload
        for record in MetadataSnapshot.open(client_of(path)).scan("files")
        if record.key == "__all_partitions__"
    ]
    assert isinstance(listed, FileList)
    assert [*listed.files] == ["rome"]
    assert validate(client_of(path)).is_valid
    stats = hudi.Table.open(str(path)).metadata("partition_stats").to_pylist()
    assert {one["file_name"] for one in stats} == {"rome"}
    assert read(path) == ["a", "b", "c"]
    # a partition that comes back is one again
    hudi.Table.open(str(path), options=OPTIONS).upsert(rows("x", "oslo"))
    check_metadata(path, must=True, columns=COLUMNS)
    assert read(path) == ["a", "b", "c", "x"]


# --- undoing --------------------------------------------------------------------------------------


def time(second: int) -> InstantTime:
    return InstantTime(f"202611211200{second:02d}000")


def completed(begun: int, done: int, action: Action = Action.DELTACOMMIT) -> Instant:
    return Instant(time(begun), action, State.COMPLETED, time(done))


@pytest.mark.parametrize(
    ("compaction", "has_it"),
    [
        # what counts is when the deltacommit was there, and when the compaction looked
        (completed(4, 9, Action.COMMIT), True),
        (completed(3, 9, Action.COMMIT), True),
        (completed(2, 9, Action.COMMIT), False),
        (completed(1, 9, Action.COMMIT), False),
        (Instant(time(4), Action.COMPACTION, State.INFLIGHT), True),
        (Instant(time(4), Action.COMPACTION, State.REQUESTED), True),
        (Instant(time(2), Action.COMPACTION, State.REQUESTED), False),
        (completed(4, 9), False),
    ],
)
def test_a_compaction_has_what_was_complete_when_it_was_requested(
    compaction: Instant, has_it: bool
) -> None:
    timeline = Timeline.of([completed(1, 3), compaction])
    assert is_compacted(timeline, time(1)) is has_it


def test_what_is_not_complete_is_in_no_compaction() -> None:
    pending = Instant(time(1), Action.DELTACOMMIT, State.INFLIGHT)
    assert not is_compacted(Timeline.of([pending, completed(4, 9, Action.COMMIT)]), time(1))
    assert not is_compacted(Timeline.of([completed(4, 9, Action.COMMIT)]), time(1))


# --- what commits say of the records --------------------------------------------------------------


def fields(metadata: TableMetaClient) -> dict[str, set[tuple[str, ...]]]:
    """Return the fields that the schemas of a table's commits name, by operation."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for instant in metadata.timeline().completed_writes():
        body = metadata.read_commit(instant)
        assert body.schema_json is not None
        schema: dict[str, Any] = json.loads(body.schema_json)
        names = tuple(one["name"] for one in schema["fields"])
        found.setdefault(str(body.operation_type), set()).add(names)
    return found


@pytest.mark.parametrize(("name", "version"), [(TXNS, "9"), (TRIPS, "8")])
def test_commits_keep_the_schema_that_those_of_hudi_keep(
    real_tables: Callable[[str], Path], tmp_path: Path, name: str, version: str
) -> None:
    theirs = fields(metadata_client(client_of(real_tables(name))))
    table = new_table(
        tmp_path / "ours",
        SCHEMA,
        {
            **OPTIONS,
            "hoodie.write.table.version": version,
            "hoodie.metadata.compact.max.delta.commits": "2",
        },
        partition_by=None,
        ordering_field=None,
    )
    for number in range(4):
        table.upsert(rows("abc", "rome", number))
    ours = fields(metadata_client(client_of(Path(table.path))))
    assert "COMPACT" in ours
    assert "COMPACT" in theirs
    assert len(set.union(*theirs.values())) == 1
    assert set.union(*ours.values()) == set.union(*theirs.values())
