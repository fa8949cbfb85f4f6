"""The metadata table rebuilt from all files: compared first, then put in the place of the old."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.config.write import WriteConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import (
    ConcurrentWriterError,
    DataFileError,
    IncompleteListingError,
    LostCompletionError,
    TableServiceError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.partition_types import FILES
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.metadata.records import FileEntry, FileList, MetadataRecord, RecordType
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import BESIDE_FOLDER, METADATA_FOLDER, StoredPartitions
from hudi_core.metadata.validator import validate
from hudi_core.model.files import FileId, FileStatus
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.metadata import MetadataOperator
from hudi_core.services.opening import open_table
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.txn.heartbeat import Heartbeat, heartbeat_path
from hudi_core.txn.table_lock import table_lock
from tests.foreign import by_hudi_rs
from tests.tables import new_table
from tests.unit.test_metadata_validator import plant

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SECONDARY = "secondary_index_of_ts"
ALL = ("bloom_filters", "column_stats", "files", "partition_stats", "record_index", SECONDARY)


def rows(*parts: str, ts: int = 1) -> pa.Table:
    found = [{"id": f"{part}{n}", "part": part, "ts": ts + n} for part in parts for n in range(3)]
    return pa.Table.from_pylist(found, SCHEMA)


def client_of(path: Path) -> TableMetaClient:
    return open_table(str(path), {}).client


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a table with a history: upserts, deletes, a replaced partition, a clustering, a
    rollback, and every partition that a metadata table can have."""
    path = tmp_path_factory.mktemp("made") / "t"
    table = new_table(path, SCHEMA, OPTIONS)
    table.upsert(rows("x", "y", "z"))
    opened, config = open_table(str(path), OPTIONS), WriteConfig.from_options(OPTIONS)
    MetadataOperator(opened, table_lock(opened, config), config).index(SECONDARY, "ts")
    table.upsert(rows("x", ts=5))
    table.delete(rows("y").slice(0, 1))
    table.insert_overwrite(rows("z", ts=7))
    table.insert(rows("w"))
    table.cluster(sort_by="ts", partitions=["x"])
    table.upsert(rows("w", ts=9))
    table.rollback(table.timeline.completed_writes()[-1])
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "t")
    return tmp_path / "t"


def opened(path: Path) -> hudi.Table:
    return hudi.Table.open(str(path), OPTIONS)


def answers(path: Path) -> dict[str, Any]:
    """Return what each partition of the metadata table says, in the words of its readers."""
    client = client_of(path)
    names = StoredPartitions.of(client.config).complete
    snapshot = MetadataSnapshot.open(client)
    said: dict[str, Any] = {}
    for name in names:
        kind = partition_of(name)
        assert kind is not None
        # of a key not when it came: a file does not tell
        said[name] = {one.key: kind.fact(one) for one in snapshot.scan(name)}
    # who reads it, and plans by it
    table = opened(path)
    said["slices"] = sorted(str(one) for one in table.file_slices(filter=[("ts", ">=", 5)]))
    said["by value"] = sorted(str(one) for one in table.file_slices(filter=[("ts", "=", 7)]))
    return said


def contents(path: Path) -> dict[str, bytes]:
    """Return the files of a table's own folder."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted((path / ".hoodie").rglob("*"))
        if file.is_file()
    }


def rows_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = opened(path).to_arrow(["id", "part", "ts"]).to_pylist()
    return sorted(found, key=str)


# --- equal answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [LocalEngine(1), LocalEngine(4)], ids=["one", "threads"])
@pytest.mark.parametrize("is_there", [True, False], ids=["in place", "moved away"])
def test_a_repair_gives_equal_answers(path: Path, is_there: bool, engine: LocalEngine) -> None:
    before, seen = answers(path), rows_of(path)
    timeline = opened(path).timeline.instants
    if not is_there:
        shutil.move(path / METADATA_FOLDER, path.parent / "elsewhere")

    done = opened(path).repair_metadata(engine=engine)

    assert done.partitions == ALL
    assert done.rebuilt is not None
    assert (done.rebuilt.unreadable is None) is is_there
    assert (done.rebuilt.differences, done.rebuilt.orphans, done.rebuilt.gone) == ((), (), ())
    assert done.rebuilt.records == {name: len(before[name]) for name in ALL}
    assert answers(path) == before
    assert validate(client_of(path)).is_valid
    assert not (path / BESIDE_FOLDER).exists()
    assert opened(path).timeline.instants == timeline
    assert rows_of(path) == seen
    by_others = [{name: row[name] for name in SCHEMA.names} for row in by_hudi_rs(path)]
    assert sorted(by_others, key=str) == seen
    # and it is kept from there on
    opened(path).upsert(rows("x", "y", ts=20))
    assert validate(client_of(path)).is_valid


def test_a_dry_run_reads_all_and_changes_nothing(path: Path) -> None:
    shutil.rmtree(path / METADATA_FOLDER / "files")
    before = contents(path)
    done = opened(path).repair_metadata(dry_run=True)
    assert contents(path) == before
    assert done.rebuilt is not None
    assert done.partitions == ALL
    assert done.rebuilt.unreadable is not None
    assert "files" in done.rebuilt.unreadable


def test_what_the_one_in_use_says_otherwise_is_shown(path: Path) -> None:
    ghost = f"{'2' * 36}-0_0-0-0_20200101000000000.parquet"
    listed = FileList({ghost: FileEntry(5)})
    plant(path, FILES, MetadataRecord("x", RecordType.FILES, listed))
    live = opened(path).repair_metadata(dry_run=True)
    done = opened(path).repair_metadata()
    for one in (live, done):
        assert one.rebuilt is not None
        assert one.rebuilt.unreadable is None
        [shown] = one.rebuilt.differences
        assert (shown.expected, shown.found) == (None, "5 bytes")
        assert ghost in shown.subject
    assert validate(client_of(path)).is_valid


def test_the_command_shows_what_it_did(path: Path) -> None:
    command = CliRunner().invoke
    said = command(app, ["table", "repair", str(path), "--metadata", "--dry-run"])
    assert said.exit_code == 0, said.output
    assert "Would rebuild the metadata table" in said.output
    shutil.rmtree(path / METADATA_FOLDER)
    told = command(app, ["table", "repair", str(path), "--metadata", "--json"])
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert tuple(document["partitions"]) == ALL
    assert document["files"] == document["records"]["bloom_filters"]
    assert document["differences"] == []
    assert "missing" in document["not_compared"]
    assert command(app, ["table", "repair", str(path), "--metadata", "--force"]).exit_code == 2


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_tables_of_every_format_are_repaired_alike(tmp_path: Path, table_format: str) -> None:
    table = new_table(tmp_path / "t", SCHEMA, OPTIONS, ordering_field=None, format=table_format)
    table.upsert(rows("x", "y"))
    table.insert_overwrite(rows("y", ts=3))
    before, version = answers(tmp_path / "t"), table.history().num_rows
    shutil.rmtree(tmp_path / "t" / METADATA_FOLDER)
    table.repair_metadata()
    assert answers(tmp_path / "t") == before
    assert table.history().num_rows == version
    table.upsert(rows("y", ts=9))
    assert table.validate().is_valid


# --- wrong listings --------------------------------------------------------------------------


class LateStorage(PosixStorage):
    """A store that lists late: some files exist and are not listed yet."""

    hidden = ""

    def __init__(self, root: str, _: StorageOptions, *, fsync: bool) -> None:
        super().__init__(root, fsync)

    def list(self, *args: Any, **kwargs: Any) -> Iterator[FileStatus]:
        """Leave out what is hidden."""
        for one in super().list(*args, **kwargs):
            if not one.path.startswith(self.hidden):
                yield one

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        """Leave out folders that are hidden."""
        return tuple(one for one in super().list_folders(prefix) if not one.startswith(self.hidden))


@pytest.fixture(params=["file", "prefix"])
def hidden(request: pytest.FixtureRequest, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Hide a live file, or a whole folder, from whoever lists."""
    live = opened(path).file_slices()[0].base_file
    assert live is not None
    name = live.path if request.param == "file" else live.path.rpartition("/")[0]
    monkeypatch.setattr(LateStorage, "hidden", name)
    monkeypatch.setattr("hudi_core.services.opening.open_storage", LateStorage)
    return live.path


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("is_there", [True, False], ids=["in place", "moved away"])
def test_a_listing_that_misses_a_file_is_refused_before_the_swap(
    path: Path, hidden: str, is_there: bool, dry_run: bool
) -> None:
    if not is_there:
        shutil.rmtree(path / METADATA_FOLDER)
    before = contents(path)
    with pytest.raises(IncompleteListingError, match="is not listed") as raised:
        opened(path).repair_metadata(dry_run=dry_run)
    assert raised.value.retryable
    assert any(hidden in one for one in raised.value.missing)
    # the lock file is there once it was taken
    left = {name: data for name, data in contents(path).items() if name in before}
    assert left == before
    assert not (path / BESIDE_FOLDER).exists()


def test_files_of_archived_writes_are_missed_as_well(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(path)
    for ts in range(30, 36):
        table.upsert(rows("x", ts=ts))
    table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    table.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    writes = {one.requested_time for one in table.timeline.completed_writes()}
    live = next(
        one.base_file
        for one in table.file_slices()
        if one.base_file is not None and one.base_instant not in writes
    )
    monkeypatch.setattr(LateStorage, "hidden", live.path)
    monkeypatch.setattr("hudi_core.services.opening.open_storage", LateStorage)
    with pytest.raises(IncompleteListingError):
        opened(path).repair_metadata()
    monkeypatch.setattr(LateStorage, "hidden", "nothing")
    opened(path).repair_metadata()
    assert validate(client_of(path)).is_valid


def test_a_file_of_another_size_is_refused(path: Path) -> None:
    live = opened(path).file_slices()[0].base_file
    assert live is not None
    with (path / live.path).open("ab") as file:
        file.write(b"!")
    with pytest.raises(IncompleteListingError, match=f"is listed with {live.size + 1}"):
        opened(path).repair_metadata()


def test_a_damaged_data_file_is_refused_and_the_one_in_use_stays(path: Path) -> None:
    live = opened(path).file_slices()[0].base_file
    assert live is not None
    (path / live.path).write_bytes(b"\0" * live.size)
    before = answers(path)
    with pytest.raises(DataFileError):
        opened(path).repair_metadata()
    assert answers(path) == before
    assert not (path / BESIDE_FOLDER).exists()


@pytest.mark.parametrize("is_new_group", [True, False])
def test_a_file_that_no_write_names_is_not_listed(path: Path, is_new_group: bool) -> None:
    """A task that was given up closed its file after the write was complete."""
    before, seen = answers(path), rows_of(path)
    live = next(one.base_file for one in opened(path).file_slices() if one.base_file)
    name = live.name
    stray = (
        replace(name, file_id=FileId(f"{'1' * 36}-0"))
        if is_new_group
        else replace(name, write_token="9-9-9")
    )
    folder = live.path.rpartition("/")[0]
    shutil.copy(path / live.path, path / folder / str(stray))
    shutil.rmtree(path / METADATA_FOLDER)

    done = opened(path).repair_metadata()

    assert done.rebuilt is not None
    assert done.rebuilt.orphans == (f"{folder}/{stray}",)
    assert answers(path) == before
    assert rows_of(path) == seen
    assert validate(client_of(path)).is_valid


# --- beside others ---------------------------------------------------------------------------


def pending(path: Path) -> tuple[TableMetaClient, Instant]:
    client = client_of(path)
    time = client.clock.next_time(client.timeline())
    requested = client.active.create_requested(Instant(time, Action.COMMIT, State.REQUESTED))
    return client, client.active.to_inflight(requested)


def test_a_live_writer_is_not_disturbed(path: Path) -> None:
    client, instant = pending(path)
    heart = Heartbeat(client.scratch, instant.requested_time, 60_000)
    heart.start()
    try:
        before = answers(path)
        with pytest.raises(ConcurrentWriterError):
            opened(path).repair_metadata()
        assert answers(path) == before
    finally:
        heart.stop()


def test_what_a_dead_writer_left_is_not_listed_and_left_to_the_next_write(path: Path) -> None:
    before = answers(path)
    client, instant = pending(path)
    client.storage.put(heartbeat_path(instant.requested_time), b"{}")
    os.utime(path / heartbeat_path(instant.requested_time), (0, 0))
    live = next(one.base_file for one in opened(path).file_slices() if one.base_file)
    stray = replace(live.name, instant=instant.requested_time)
    shutil.copy(path / live.path, path / live.path.rpartition("/")[0] / str(stray))
    shutil.rmtree(path / METADATA_FOLDER)

    done = opened(path).repair_metadata()

    assert done.rebuilt is not None
    assert answers(path) == before
    assert [one.requested_time for one in client_of(path).timeline().pending()] == [
        instant.requested_time
    ]
    opened(path).upsert(rows("x", ts=50))
    assert not list(client_of(path).timeline().pending())
    assert validate(client_of(path)).is_valid


def test_a_lost_completed_file_is_refused(path: Path) -> None:
    """Without it the files of a commit that others have seen would not be listed."""
    table = opened(path)
    table.upsert(rows("x", ts=60))
    lost = table.timeline.completed_writes()[-1]
    table.upsert(rows("x", ts=61))
    (path / client_of(path).active.path(lost)).unlink()
    shutil.rmtree(path / METADATA_FOLDER)
    for dry_run in (True, False):
        with pytest.raises(LostCompletionError, match=lost.requested_time):
            opened(path).repair_metadata(dry_run=dry_run)


def test_a_table_without_a_metadata_table_is_refused(tmp_path: Path) -> None:
    off = {**OPTIONS, "hoodie.metadata.enable": "false"}
    table = new_table(tmp_path / "t", SCHEMA, off, partition_by=None, ordering_field=None)
    with pytest.raises(TableServiceError, match="hudi metadata create"):
        table.repair_metadata()
