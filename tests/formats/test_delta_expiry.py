"""What a Delta log loses with archived instants, and what it keeps."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import hudi_core as hudi
from delta_format import handles
from delta_format.commit import step
from delta_format.declarations import declared, next_declaration
from delta_format.expiry import Entries
from delta_format.location import LOG_FOLDER
from delta_format.log import ARCHIVE_STEP, FENCE_STEP, Head, open_log
from delta_format.log_files import CHECKPOINT, VERSION, file_of, number_of
from delta_format.options import TRANSACTION_RETENTION
from hudi_core.errors import CommitConflictError, HistoryExpiredError, StorageError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant import Action
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from tests.formats.delta_tables import READERS
from tests.formats.service_tables import TAGGED, agree, bag, batch, two_writes

SMALL = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.metadata.compact.max.delta.commits": "1",
}
COMMITS = 22
FOREIGN = {"txn": {"appId": "of others", "version": 7, "lastUpdated": 1}}


@dataclass(frozen=True)
class Long:
    """A table that was written for long, and what it held after each commit."""

    path: Path
    seen: dict[str, Counter[str]]
    log_files: list[int]
    early: Head
    handle: handles.Handle


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Long]:
    path = tmp_path_factory.mktemp("long") / "t"
    table = two_writes(path, "delta")
    first = path / file_of(0)
    first.write_text(first.read_text() + json.dumps(FOREIGN) + "\n")
    early, handle = open_log(client(path)), handles.opened(client(path))
    seen: dict[str, Counter[str]] = {}
    sizes = []
    for ts in range(3, 3 + COMMITS):
        done = table.upsert(batch(ts, "a", "y"), options=SMALL)
        seen[done.instant.requested_time] = bag(table.to_arrow(), TAGGED.names)
        sizes.append(len(list((path / LOG_FOLDER).iterdir())))
    yield Long(path, seen, sizes, early, handle)
    handles.forget_handles()


@pytest.fixture
def long(written: Long, path: Path) -> Long:
    """A copy, to be changed."""
    shutil.copytree(written.path, path)
    return replace(written, path=path)


def client(path: Path) -> TableMetaClient:
    return open_table(str(path), {}).client


def numbers(path: Path, of: str = "json") -> list[int]:
    kind = VERSION if of == "json" else CHECKPOINT
    found = (number_of(one.name, kind) for one in (path / LOG_FOLDER).iterdir())
    return sorted(one for one in found if one >= 0)


def entries(path: Path) -> Entries:
    seen = client(path)
    return Entries.read(seen, list(seen.storage.list(LOG_FOLDER)))


def by_delta(path: Path, version: int | None = None) -> Counter[str]:
    return bag(DeltaTable(str(path), version=version).to_pyarrow_table(), TAGGED.names)


def go_on(path: Path, commits: int, since: int = 100) -> hudi.Table:
    table = hudi.Table.open(path)
    for ts in range(since, since + commits):
        table.upsert(batch(ts, "a", "y"), options=SMALL)
    return table


def test_a_log_is_as_long_as_the_timeline(written: Long) -> None:
    path, table = written.path, hudi.Table.open(str(written.path))
    assert max(written.log_files) <= 36
    found = numbers(path)
    assert found == list(range(found[0], found[-1] + 1))
    assert numbers(path, "checkpoint")[0] == found[0] > 0
    rows = agree(path)
    assert rows == list(written.seen.values())[-1]
    for name, read in READERS.items():
        assert bag(read(path), TAGGED.names) == rows, name
    validated = table.validate()
    assert (validated.differences, validated.orphans) == ((), ())


def test_every_commit_that_is_kept_is_a_version_of_the_log(written: Long) -> None:
    table = hudi.Table.open(str(written.path))
    reports = {one.get("hudi.instant"): one for one in DeltaTable(str(written.path)).history()}
    compared = 0
    for one in table.timeline.completed_writes():
        try:
            rows = bag(table.to_arrow(as_of=one.requested_time), TAGGED.names)
        except HistoryExpiredError:
            continue
        version = reports[one.requested_time]["version"]
        assert rows == written.seen[one.requested_time] == by_delta(written.path, version)
        compared += 1
    assert compared >= 2


def test_entries_are_those_of_files_and_instants_that_are_kept(written: Long) -> None:
    path = written.path
    found, timeline = entries(path), hudi.Table.open(path).timeline.instants
    # but for what has come since the log was last tidied up
    assert len(found.removed) <= 24
    assert sum(not (path / one).exists() for one, _ in found.removed) <= 10
    active = {f"hudi:{one.requested_time}" for one in timeline}
    assert active <= found.transactions.keys()
    assert len(found.transactions) <= len(active) + 20
    assert found.transactions["of others"] == 7
    last = path / LOG_FOLDER / f"{numbers(path, 'checkpoint')[-1]:020}.checkpoint.parquet"
    assert pq.ParquetFile(last).metadata.num_rows <= 60
    for full in (False, True):
        assert DeltaTable(str(path)).vacuum(full=full, dry_run=True) == []


def test_archived_instants_stay_complete(written: Long) -> None:
    table = open_table(str(written.path), {})
    archived = [one.instant for one in table.client.archived.load()]
    assert len(archived) >= COMMITS
    head = open_log(table.client)
    assert head.recorded(archived[0]) is None
    assert all(table.host.find_publication(table.client, one) is not None for one in archived)


def test_the_last_commit_is_rolled_back_and_older_ones_restored(long: Long) -> None:
    table = hudi.Table.open(str(long.path))
    *_, kept, before, last = table.timeline.completed_writes()
    table.rollback(last)
    assert agree(long.path) == long.seen[before.requested_time]
    table.restore(kept)
    assert agree(long.path) == long.seen[kept.requested_time]
    restored = numbers(long.path)[-1]
    go_on(long.path, 11)
    # the restore is archived with the writes around it, and keeps no version
    assert numbers(long.path)[0] > restored
    archived = open_table(str(long.path), {}).client.archived.load()
    kept_somewhere = [*table.timeline.instants, *(one.instant for one in archived)]
    assert sum(one.action is Action.RESTORE for one in kept_somewhere) == 1
    assert table.validate().differences == ()


def test_a_savepoint_keeps_its_version(long: Long) -> None:
    table = hudi.Table.open(str(long.path))
    saved = table.savepoint(table.timeline.completed_writes()[-3]).instant
    beyond = {**SMALL, "hoodie.archive.beyond.savepoint": "true"}
    for ts in range(100, 110):
        table.upsert(batch(ts, "a", "y"), options=beyond)
    version = next(
        one["version"]
        for one in DeltaTable(str(long.path)).history()
        if one.get("hudi.instant") == saved.requested_time and one["hudi.action"] == "commit"
    )
    assert by_delta(long.path, version) == long.seen[saved.requested_time]
    table.restore(saved)
    assert agree(long.path) == long.seen[saved.requested_time]


def test_a_handle_from_before_sees_the_log_as_it_is(written: Long) -> None:
    assert numbers(written.path)[0] > written.handle.version
    now = handles.later(client(written.path), written.handle)
    assert now.version == numbers(written.path)[-1]
    assert sorted(now.table.file_uris()) == sorted(DeltaTable(str(written.path)).file_uris())


def test_a_commit_that_comes_too_late_is_no_commit(long: Long) -> None:
    """Its version is absent because it was deleted."""
    rows = agree(long.path)
    late = long.early.version + 1
    assert numbers(long.path)[0] > late
    with pytest.raises(CommitConflictError):
        step(client(long.path), long.early, FENCE_STEP, [])
    assert agree(long.path) == rows
    go_on(long.path, 6)
    assert numbers(long.path)[0] > late


def test_an_archive_goes_on_where_one_died(long: Long, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = PosixStorage.discard, []

    def dies(storage: PosixStorage, paths: list[str]) -> None:
        if paths and paths[0].startswith(f"{LOG_FOLDER}/"):
            left.append(paths[1:])
            real(storage, paths[:1])
            raise StorageError("The store is gone", "Wait for it.")
        real(storage, paths)

    first = numbers(long.path)[0]
    with monkeypatch.context() as patched:
        patched.setattr(PosixStorage, "discard", dies)
        go_on(long.path, 5)
    assert left
    agree(long.path)
    assert hudi.Table.open(str(long.path)).validate().differences == ()
    go_on(long.path, 8, 200)
    assert numbers(long.path)[0] > first
    found = numbers(long.path)
    assert found == list(range(found[0], found[-1] + 1))


def test_what_readers_begin_with_stays(long: Long) -> None:
    """The mark of the last checkpoint may be older than that."""
    mark = long.path / LOG_FOLDER / "_last_checkpoint"
    first = numbers(long.path)[0]
    for text in (json.dumps({"version": first, "size": 1}), "{"):
        table = open_table(str(long.path), {})
        mark.write_text(text)
        table.host.archive_instants(table.client, [])
        assert numbers(long.path)[0] == first


def test_a_log_of_an_earlier_release_is_told_that_entries_grow_old(long: Long) -> None:
    seen, [name] = client(long.path), TRANSACTION_RETENTION
    head = open_log(seen)
    known = declared(head.table)
    older = {key: text for key, text in known.configuration.items() if key != name}
    step(seen, head, ARCHIVE_STEP, next_declaration(head, replace(known, configuration=older)))
    assert name not in DeltaTable(str(long.path)).metadata().configuration
    table = go_on(long.path, 8)
    now = DeltaTable(str(long.path)).metadata().configuration
    assert now == {**older, name: TRANSACTION_RETENTION[name]}
    assert len(entries(long.path).transactions) <= len(table.timeline.instants) + 20
