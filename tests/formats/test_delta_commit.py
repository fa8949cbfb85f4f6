"""Commits to a Delta table: failing, raced, fenced off; and logs that are damaged or forget."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field
from deltalake.schema import PrimitiveType

import delta_format.commit
import delta_format.plugin
import hudi_core as hudi
import hudi_core.txn.publication
from delta_format.log import open_log
from delta_format.partition import partition_values
from delta_format.reports import forget_reports
from delta_format.versions import NewVersion, make_next
from hudi_core import errors
from hudi_core.model.actions import CleanMetadata, RollbackMetadata
from hudi_core.model.format import PARENT_KEY
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.stats import ColumnStats
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.txn.locks.storage import LOCK_PATH, LeaseFile, StorageLock
from hudi_core.txn.publication import publish_once
from tests.formats.columns import TYPED
from tests.formats.delta_tables import (
    OPTIONS,
    actions_of,
    assert_all_read,
    by_deltalake,
    content,
    cut_short,
    delta_table,
    last_write,
    opened,
    publish,
    row,
    typed,
    version,
    versions,
)
from tests.moto_s3 import S3Service


@pytest.fixture
def table(path: Path) -> hudi.Table:
    made = delta_table(path)
    made.insert(typed(0, 1, 2))
    return made


WRITES: dict[str, Callable[[hudi.Table], Any]] = {
    "insert": lambda table: table.insert(typed(3, 4)),
    "upsert": lambda table: table.upsert(typed(0, 5, ts=1)),
    "delete": lambda table: table.delete(typed(1)),
    "bulk_insert": lambda table: table.bulk_insert(typed(3, 8)),
    "insert_overwrite": lambda table: table.insert_overwrite(typed(5, ts=1)),
    "delete_partitions": lambda table: table.delete_partitions([{"city": "oslo"}]),
    "alter": lambda table: table.alter(add_columns={"extra": pa.int64()}),
    "insert_with_column": lambda table: table.insert(
        typed(3).append_column("extra", pa.array([7], pa.int64()))
    ),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_write_cut_between_the_steps_is_unseen_until_it_is_published(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table, operation: str
) -> None:
    cut_short(monkeypatch, lambda: WRITES[operation](table))
    instant = last_write(path)
    seen = opened(path)
    assert seen.host.find_publication(seen.client, instant) is None
    assert seen.timeline().find(instant.requested_time) == replace(instant, state=State.INFLIGHT)
    assert content(hudi.Table.open(path).to_arrow()) == content(typed(0, 1, 2))
    assert content(by_deltalake(path)) == content(typed(0, 1, 2))
    receipt = publish(path, instant)
    twin = delta_table(path.parent / "twin")
    twin.insert(typed(0, 1, 2))
    WRITES[operation](twin)
    assert_all_read(path, content(by_deltalake(path.parent / "twin")))
    found = seen.host.find_publication(seen.client, instant)
    assert found is not None
    assert found.version == receipt.version == str(version(path))
    assert found.completion_time == instant.completion_time


def test_a_replayed_write_has_the_bounds_of_the_first_but_for_floats(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    table.insert(typed(3))
    cut_short(monkeypatch, lambda: table.insert(typed(8)))
    publish(path, last_write(path))
    written, replayed = (
        json.loads(action["add"]["stats"])
        for number in (2, 3)
        for action in actions_of(path, number)
        if "add" in action
    )
    assert written["minValues"].keys() - replayed["minValues"].keys() == {"value"}
    assert written["nullCount"].keys() == replayed["nullCount"].keys()
    # the second write merged its row into the file of the first
    assert replayed["minValues"]["inner"] == {"x": 3, "word": "w" * 32}
    assert replayed["maxValues"]["inner"]["x"] == 8


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
def test_actions_without_files_are_empty_versions_and_replay(
    path: Path, table: hudi.Table, action: Action
) -> None:
    seen = opened(path)
    instant = Instant(
        InstantTime("20991231000000000"), action, State.COMPLETED, InstantTime("20991231000000001")
    )
    calls: dict[Action, Callable[[], Any]] = {
        Action.CLEAN: lambda: seen.host.complete_clean(
            seen.client, CleanMetadata("20991231000000000", 0, 0, ""), instant
        ),
        Action.ROLLBACK: lambda: seen.host.complete_rollback(
            seen.client, RollbackMetadata("20991231000000000", 0, 0, ()), instant
        ),
    }
    first = calls[action]()
    assert first == calls[action]()
    assert first.version == str(version(path)) == "2"
    assert {next(iter(each)) for each in actions_of(path, 2)} == {"commitInfo", "txn"}
    found = seen.host.find_publication(seen.client, instant)
    assert found is not None
    assert (found.action, found.version) == (action, "2")


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the next versions do: "lost" (put, but answered with an error) or "failed"."""
    waiting: list[str] = []
    real = PosixStorage.put_if_absent

    def faulty(storage: PosixStorage, path: str, data: bytes) -> None:
        fault = waiting.pop(0) if waiting and path.startswith("_delta_log/") else ""
        if fault != "failed":
            real(storage, path, data)
        if fault:
            raise errors.StorageError("The connection broke", "Try again.")

    monkeypatch.setattr(PosixStorage, "put_if_absent", faulty)
    monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)
    yield waiting
    assert not waiting


def test_an_open_outcome_is_said_to_be(path: Path, table: hudi.Table, faults: list[str]) -> None:
    faults += ["failed"] * 3
    with pytest.raises(errors.CommitStateUnknownError):
        table.insert(typed(3))
    assert version(path) == 1
    publish(path, last_write(path))
    assert_all_read(path, content(typed(0, 1, 2, 3)))


def test_a_log_that_cannot_be_asked_leaves_the_outcome_open(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table, faults: list[str]
) -> None:
    cut_short(monkeypatch, lambda: table.insert(typed(3)))
    faults.append("lost")
    calls: list[object] = []

    def once(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise errors.StorageError("The store is gone", "Wait for it.")
        return open_log(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.commit, "open_log", once)
        with pytest.raises(errors.CommitStateUnknownError):
            publish(path, last_write(path))
    assert publish(path, last_write(path)).version == "2"
    assert_all_read(path, content(typed(0, 1, 2, 3)))


def test_who_loses_the_race_for_a_version_records_nothing(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(typed(3)))
    instant = last_write(path)
    real = PosixStorage.put_if_absent

    def overtaken(storage: PosixStorage, name: str, data: bytes) -> None:
        DeltaTable(str(path)).alter.set_table_name("other")
        real(storage, name, data)

    monkeypatch.setattr(PosixStorage, "put_if_absent", overtaken)
    with pytest.raises(errors.CommitConflictError, match="from version 1 to 2"):
        publish(path, instant)
    assert content(by_deltalake(path)) == content(typed(0, 1, 2))


def test_the_recorded_parent_is_what_is_compared(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(typed(3)))
    instant = last_write(path)
    seen = opened(path)
    metadata = seen.client.read_commit(instant)

    def built_on(parent: str) -> Any:
        return replace(metadata, extra_metadata={**metadata.extra_metadata, PARENT_KEY: parent})

    with pytest.raises(errors.CommitConflictError, match="builds on version 0"):
        publish_once(seen, built_on("0"), instant)
    assert version(path) == 1
    # a vacuum changes no rows
    DeltaTable(str(path)).vacuum(dry_run=False)
    receipt = publish_once(seen, built_on("1"), instant)
    assert receipt.version == str(version(path))
    assert_all_read(path, content(typed(0, 1, 2, 3)))


def test_columns_that_an_earlier_release_has_added_first_are_no_other_parent(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: WRITES["insert_with_column"](table))
    instant, seen = last_write(path), opened(path)
    steps = {"hudi.step": "schema", "hudi.step-of": instant.requested_time}
    DeltaTable(str(path)).alter.add_columns(
        [Field("extra", PrimitiveType("long"))],
        commit_properties=CommitProperties(custom_metadata=steps),
    )
    metadata = seen.client.read_commit(instant)
    metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, PARENT_KEY: "1"})
    assert publish_once(seen, metadata, instant).version == "3"
    assert by_deltalake(path).column("extra").to_pylist().count(7) == 1
    seen.host.before_rollback(seen.client, instant)
    assert by_deltalake(path).schema == by_deltalake(path, 1).schema


def test_columns_and_their_files_come_in_one_version(path: Path, table: hudi.Table) -> None:
    table.upsert(typed(0, ts=1).append_column("extra", pa.array([7], pa.int64())))
    assert version(path) == 2
    kinds = [next(iter(action)) for action in actions_of(path, 2)]
    assert kinds == ["commitInfo", "txn", "metaData", "remove", "add"]


def test_a_write_that_never_reached_the_log_is_fenced_off(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    cut_short(monkeypatch, lambda: table.insert(typed(3)))
    instant, seen = last_write(path), opened(path)
    stale = open_log(seen.client)
    seen.host.before_rollback(seen.client, instant)
    # a request that still travels does not get it in
    with pytest.raises(errors.AlreadyExistsError):
        make_next(seen.client, stale, NewVersion({"hudi.instant": "x"}))
    table.rollback(instant)
    table.insert(typed(4))
    assert_all_read(path, content(typed(0, 1, 2, 4)))


def test_the_first_write_of_a_table_is_taken_out(path: Path, table: hudi.Table) -> None:
    table.rollback(last_write(path))
    assert_all_read(path, content(typed(4).slice(1)))
    table.insert(typed(4))
    assert_all_read(path, content(typed(4)))


def test_each_instant_is_one_version_and_time_travel_agrees(path: Path) -> None:
    table = delta_table(path)
    table.bulk_insert(typed(0, 1, 2, 3, 4))
    table.upsert(typed(0, 6, ts=1))
    table.delete(typed(1))
    table.insert_overwrite(typed(5, ts=2))
    table.delete_partitions([{"city": "a%b"}])
    told = {info["hudi.instant"]: info for info in versions(path) if "hudi.instant" in info}
    writes = table.timeline.completed_writes()
    assert list(told) == [instant.requested_time for instant in writes]
    for instant in writes:
        info = told[instant.requested_time]
        assert info["hudi.action"] == instant.action
        assert info["hudi.completion-time"] == instant.completion_time
        assert content(by_deltalake(path, info["version"])) == content(
            table.to_arrow(as_of=instant)
        )
    assert [info["hudi.operation"] for info in told.values()] == [
        *("BULK_INSERT", "UPSERT", "DELETE", "INSERT_OVERWRITE", "DELETE_PARTITION")
    ]


def test_columns_are_added_by_alter_and_by_a_write_and_undone(path: Path) -> None:
    table = delta_table(path)
    table.insert(typed(0, 1))
    altered = table.alter(add_columns={"extra": pa.int64()})
    assert_all_read(path, content(typed(0, 1)))
    assert "extra" in by_deltalake(path).column_names
    batch = typed(2).append_column("extra", pa.array([7], pa.int64()))
    wide = batch.append_column("late", pa.array(["x"]))
    evolved = table.insert(wide, options={"hoodie.datasource.write.reconcile.schema": "true"})
    names = [*TYPED.names, "extra", "late"]
    both = pa.concat_tables([typed(0, 1), wide], promote_options="default")
    assert_all_read(path, content(both, names), names)
    before, newest = versions(path)[-2:]
    assert newest["hudi.instant"] == evolved.instant.requested_time
    assert before["hudi.instant"] == altered.instant.requested_time
    assert before["operation"] == "ADD COLUMNS"
    # the columns go with the write that brought them, and may come back with another type
    table.rollback(evolved.instant)
    assert "late" not in by_deltalake(path).column_names
    hudi.Table.open(path).alter(add_columns={"late": pa.int64()})
    assert by_deltalake(path).schema.field("late").type == pa.int64()


def test_members_of_structs_are_added(path: Path) -> None:
    table = delta_table(path)
    table.insert(typed(1))
    inner = pa.struct([*TYPED.field("inner").type, pa.field("more", pa.int64())])
    index = TYPED.get_field_index("inner")
    wide = TYPED.set(index, pa.field("inner", inner))
    given_row = {**row(2), "inner": {"x": 2, "word": "w", "more": 9}}
    table.upsert(pa.Table.from_pylist([given_row], wide))
    found = {each["id"]: each["inner"] for each in by_deltalake(path).to_pylist()}
    assert found["k002"] == {"x": 2, "word": "w", "more": 9}
    assert found["k001"]["more"] is None


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("ts", pa.int64()),
        ("price", pa.decimal128(38, 10)),
        ("value", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ],
)
@pytest.mark.parametrize("hive", ["true", "false"])
def test_partition_values_are_exact(path: Path, column: str, kind: pa.DataType, hive: str) -> None:
    table = hudi.Table.create(
        path,
        TYPED,
        record_key="id",
        partition_by=column,
        options={**OPTIONS, "hoodie.datasource.write.hive_style_partitioning": hive},
    )
    without = {**row(9), column: None}
    batch = pa.Table.from_pylist([row(1), row(2), row(3), without], TYPED)
    table.insert(batch)
    found = by_deltalake(path)
    assert content(found) == content(batch)
    assert found.schema.field(column).type == kind
    partitioned = DeltaTable(str(path)).metadata().partition_columns
    assert partitioned == ([] if pa.types.is_floating(kind) or column == "at" else [column])


def test_a_damaged_log_is_named(path: Path, table: hudi.Table) -> None:
    (path / "_delta_log" / f"{1:020d}.json").write_text("{not json", encoding="utf-8")
    with pytest.raises(errors.CorruptMetadataError, match="_delta_log"):
        table.to_arrow()


def test_a_file_that_is_not_as_the_commit_says_is_not_published(
    monkeypatch: pytest.MonkeyPatch, path: Path, table: hudi.Table
) -> None:
    wanted: list[Any] = []

    def dies(*arguments: Any) -> None:
        wanted[:] = arguments
        raise errors.StorageError("The store is gone", "Wait for it.")

    with monkeypatch.context() as patched:
        patched.setattr(delta_format.plugin, "record", dies)
        with pytest.raises(errors.HudiError):
            table.insert(typed(3))
    [new] = wanted[2].new_files
    file = path / new.path
    whole = file.read_bytes()
    file.write_bytes(whole + b"more")
    with pytest.raises(
        errors.CommitError, match=f"should have {len(whole)} bytes and has {new.size + 4}"
    ):
        delta_format.commit.record(*wanted)
    file.unlink()
    with pytest.raises(errors.CommitError, match="is not there"):
        delta_format.commit.record(*wanted)
    assert version(path) == 1
    file.write_bytes(whole)
    delta_format.commit.record(*wanted)
    assert_all_read(path, content(typed(0, 1, 2, 3)))


def test_checkpoints_come_by_themselves_and_keep_every_instant(path: Path) -> None:
    table = delta_table(path, partitioned=False)
    table.insert(typed(0, 1, 2))
    first, seen = last_write(path), opened(path)
    for number in range(20):
        clean = Instant(
            InstantTime(f"20990101000000{number:03d}"),
            Action.CLEAN,
            State.COMPLETED,
            InstantTime(f"20990101000001{number:03d}"),
        )
        seen.host.complete_clean(seen.client, CleanMetadata("20990101000000000", 0, 0, ""), clean)
    checkpoints = sorted((path / "_delta_log").glob("*.checkpoint.parquet"))
    assert len(versions(path)) - int(checkpoints[-1].name[:20]) <= 10
    for old in (path / "_delta_log").glob("0000000000000000000[0-9].json"):
        old.unlink()  # as another engine's clean-up of the log would
    forget_reports()
    found = seen.host.find_publication(seen.client, first)
    assert found is not None
    assert found.completion_time is None
    table.upsert(typed(0, 3, ts=1))
    assert_all_read(path, content(pa.concat_tables([typed(0, 3, ts=1), typed(1, 2)])))


def test_the_place_of_the_log_is_kept(path: Path, table: hudi.Table) -> None:
    assert hudi.Table.open(path).config.raw["hoodie.table.format.delta.location"] == str(path)
    assert len(versions(path)) == 2


def test_a_file_with_two_values_of_a_partition_is_refused() -> None:
    known = ColumnStats("a", "b", 2, 0, 0, 0, 0)
    with pytest.raises(errors.CommitError, match="city"):
        partition_values("p/f.parquet", {"city": known}, TYPED, ["city"])


def test_a_table_on_s3_is_read_by_deltalake(s3_process: S3Service) -> None:
    given, root = s3_process.given, s3_process.new_root()
    bucket = root.split("/")[2]
    options = {**OPTIONS, **given}
    table = hudi.Table.create(root, TYPED, record_key="id", partition_by="city", options=options)
    away = {**row(2), "city": "São Paulo"}
    table.insert(pa.Table.from_pylist([row(0), row(1), away], TYPED))
    table.upsert(typed(0, 3, ts=1))
    result = table.delete(typed(1))
    reach = StorageOptions.from_options(given, {}).for_object_store()
    handle = DeltaTable(root, storage_options=reach)
    expected = pa.Table.from_pylist([row(0, 1), away, row(3, 1)], TYPED)
    found = handle.to_pyarrow_table()
    assert content(found) == content(expected) == content(table.to_arrow())
    assert result.receipt.version == "3" == str(handle.version())
    # Hadoop's other names of the scheme
    for scheme in ("s3a", "s3n"):
        place = f"tables/{scheme}"
        made = hudi.Table.create(
            f"{scheme}://{bucket}/{place}", TYPED, record_key="id", options=options
        )
        made.insert(typed(5))
        other = DeltaTable(f"s3://{bucket}/{place}", storage_options=reach)
        assert content(other.to_pyarrow_table()) == content(made.to_arrow())
    # a single writer, too, is kept apart from other processes: by a lease in the store
    assert not options.keys() & {"hoodie.write.lock.provider", "hoodie.write.concurrency.mode"}
    lease = table._session.opened.client.storage.read(LOCK_PATH)
    assert LeaseFile.decode(lease, LOCK_PATH).expired
    rival = StorageLock(table._session.opened.client.storage)
    assert rival.try_lock(0)
    with pytest.raises(errors.LockError, match="not free"):
        hudi.Table.open(root, {**given, "hoodie.write.lock.wait_time_ms": "10"}).insert(typed(7))
    rival.unlock()
    table.rollback(result.instant)
    handle.update_incremental()
    expected = pa.Table.from_pylist([row(0, 1), row(1), away, row(3, 1)], TYPED)
    assert content(handle.to_pyarrow_table()) == content(expected)
    handle.alter.set_table_name("foreign")
    with pytest.raises(errors.ForeignCommitError, match="Version 6"):
        table.insert(typed(4))


def test_each_fact_reaches_deltalake_under_its_name() -> None:
    given = {
        "fs.s3a.access.key": "a",
        "fs.s3a.secret.key": "b",
        "fs.s3a.session.token": "c",
        "fs.s3a.endpoint": "http://127.0.0.1:9000/",
        "fs.s3a.endpoint.region": "eu-west-1",
        "fs.s3a.path.style.access": "false",
    }
    told = StorageOptions.from_options(given, {}).for_object_store()
    assert told == {
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "aws_session_token": "c",
        "aws_region": "eu-west-1",
        "aws_endpoint": "http://127.0.0.1:9000",
        "aws_virtual_hosted_style_request": "true",
        "aws_allow_http": "true",
    }
    assert StorageOptions().for_object_store() == {}
