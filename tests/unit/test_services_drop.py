"""A table that is overwritten or dropped leaves nothing, but what it was told to keep."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config import stored_table
from hudi_core.config.placement import placement_of
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    CommitConflictError,
    ConcurrentWriterError,
    HudiError,
    InvalidOptionError,
    LockError,
    NotATableError,
    OptionConflictError,
    PartitionValueError,
    RecordKeyError,
    SchemaError,
    UnsupportedTableError,
)
from hudi_core.model.commit import WriteOperation
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action
from hudi_core.services import create
from hudi_core.services.create import create_table
from hudi_core.services.drop import drop_table, empty_table
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import PROPERTIES_PATH
from hudi_core.table_handle import OpenTable
from hudi_core.txn.begin import begin
from hudi_core.txn.creation import CREATION_PATH
from hudi_core.txn.locks.lock_file import FileLock
from hudi_core.txn.table_lock import creation_lock, table_lock
from tests.tables import new_table

OPTIONS = {
    "hoodie.table.name": "cities",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}
ROWS = pa.table({"id": ["a", "b"], "city": ["rome", "oslo"]})


LOCK = ".hoodie/.locks/table.lock"


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Folder of a table with two rows."""
    hudi.write(ROWS, tmp_path / "t", "append", OPTIONS)
    return tmp_path / "t"


@pytest.fixture
def place(path: Path) -> str:
    return str(path)


def test_overwrite_leaves_only_the_new_rows_and_history(path: Path) -> None:
    hudi.write(ROWS.slice(0, 1), str(path), "overwrite", OPTIONS)
    table = hudi.Table.open(str(path))
    assert table.to_arrow(columns=["id"]).to_pylist() == [{"id": "a"}]
    assert len(table.timeline.completed_writes()) == 1
    assert not (path / "oslo").exists()


def test_overwrite_where_nothing_is_makes_the_table(tmp_path: Path) -> None:
    result = hudi.write(ROWS, str(tmp_path / "t"), "overwrite", OPTIONS)
    assert result is not None
    assert result.inserted == 2


def test_a_dropped_table_leaves_nothing(path: Path) -> None:
    (path / "stray").write_bytes(b"")
    drop_table(str(path), {})
    assert files(path) == set()
    with pytest.raises(NotATableError):
        drop_table(str(path), {})


def test_what_is_to_be_kept_stays_and_does_not_hinder_a_new_table(path: Path) -> None:
    storage = PosixStorage(str(path))
    for name in ("mine/rows", "mine-too/rows", "other/rows"):
        storage.put(f".hoodie/.temp/{name}", b"")
    config = WriteConfig.from_options({})
    empty_table(storage, [storage], BasePath(str(path)), config, keep=".hoodie/.temp/mine")
    assert files(path) == {LOCK, ".hoodie/.temp/mine/rows"}
    hudi.write(ROWS, str(path), "errorifexists", OPTIONS)
    assert ".hoodie/.temp/mine/rows" in files(path)


def test_a_drop_that_is_cut_short_anywhere_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = PosixStorage.delete_tree
    cuts = 0
    for left in range(20):
        path = tmp_path / f"t{left}"
        hudi.write(ROWS, str(path), "append", OPTIONS)
        steps = iter(range(left))

        def cut(storage: PosixStorage, folder: str, steps: Iterator[int] = steps) -> int:
            if next(steps, None) is None:
                raise KeyboardInterrupt
            return whole(storage, folder)

        with monkeypatch.context() as patched:
            patched.setattr(PosixStorage, "delete_tree", cut)
            try:
                drop_table(str(path), {})
            except KeyboardInterrupt:
                cuts += 1
        hudi.write(ROWS, str(path), "overwrite", OPTIONS)
        table = hudi.Table.open(str(path))
        assert table.to_arrow().num_rows == 2
        assert len(table.timeline.completed_writes()) == 1
    assert 4 <= cuts < 20


class Cut(BaseException):
    """The process is no more."""


CHANGES = ("delete", "delete_tree", "put", "put_if_absent")


@pytest.mark.parametrize("table_format", ["native", "iceberg"])
def test_an_overwrite_that_is_cut_short_anywhere_can_be_made_again(
    table_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**OPTIONS, "hoodie.table.format": table_format}
    cuts = 0
    for left in range(5, 65, 15):
        path = tmp_path / f"t{left}"
        hudi.write(ROWS, str(path), "append", options)
        steps = iter(range(left))

        def cut(change: Any, steps: Iterator[int] = steps) -> Any:
            def changing(*given: Any) -> Any:
                if next(steps, None) is None:
                    raise Cut
                return change(*given)

            return changing

        with monkeypatch.context() as patched:
            for name in CHANGES:
                patched.setattr(PosixStorage, name, cut(getattr(PosixStorage, name)))
            try:
                hudi.write(ROWS.slice(0, 1), str(path), "overwrite", options)
            except Cut:
                cuts += 1
        hudi.write(ROWS.slice(1, 1), str(path), "overwrite", options)
        table = hudi.Table.open(str(path))
        assert table.to_arrow().num_rows == 1
        assert table.validate().is_valid
        assert not (path / CREATION_PATH).exists()
    assert cuts >= 3


def test_nobody_makes_a_table_between_the_old_one_and_the_new(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, failed = PosixStorage.delete, list[type[HudiError]]()

    def intrude() -> None:
        other = {**OPTIONS, "hoodie.table.name": "other", "hoodie.write.lock.wait_time_ms": "50"}
        try:
            create_table(place, ROWS.schema, other)
        except HudiError as error:
            failed.append(type(error))

    def delete(storage: PosixStorage, place: str) -> bool:
        is_there = whole(storage, place)
        if place == PROPERTIES_PATH:
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()
        return is_there

    with monkeypatch.context() as patched:
        patched.setattr(PosixStorage, "delete", delete)
        hudi.write(ROWS.slice(0, 1), place, "overwrite", OPTIONS)

    assert failed == [LockError]
    table = hudi.Table.open(place)
    assert (table.config.name, table.to_arrow().num_rows) == ("cities", 1)


def test_of_two_that_make_a_table_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    whole = creation_lock

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(create, "creation_lock", whole)
        create_table(path, ROWS.schema, {**OPTIONS, "hoodie.table.name": "first"})
        return whole(*given)

    monkeypatch.setattr(create, "creation_lock", overtaken)
    with pytest.raises(NotATableError, match="holds a table already"):
        create_table(path, ROWS.schema, OPTIONS)
    assert hudi.Table.open(path).config.name == "first"


def begun(table: OpenTable) -> None:
    config = WriteConfig.from_options({})
    begin(table, table_lock(table, config), config, Action.COMMIT, WriteOperation.UPSERT).abort()


def test_a_write_does_not_begin_on_a_table_that_is_gone(tmp_path: Path, place: str) -> None:
    table = open_table(place, {})
    drop_table(place, {})

    with pytest.raises(NotATableError, match="holds no Hudi table"):
        begun(table)

    assert not (tmp_path / "t/.hoodie/timeline").exists()


def test_a_write_does_not_begin_on_a_table_in_its_place(place: str) -> None:
    table = open_table(place, {})
    unpartitioned = {
        key: value for key, value in OPTIONS.items() if not key.endswith("partitionpath.field")
    }
    hudi.write(ROWS, place, "overwrite", unpartitioned)

    with pytest.raises(CommitConflictError, match=r"taken the place .*partition_fields"):
        begun(table)
    # new columns make no other table
    other = open_table(place, {})
    hudi.Table.open(place).alter(add_columns={"more": pa.int64()})
    begun(other)


@pytest.mark.parametrize("operation", ["delete", "delete_partition"])
def test_rows_are_deleted_in_append_mode_only(tmp_path: Path, operation: str) -> None:
    hudi.write(ROWS, str(tmp_path / "t"), "append", OPTIONS)
    options = {**OPTIONS, OPERATION: operation}
    with pytest.raises(InvalidOptionError, match="mode='overwrite'"):
        hudi.write(ROWS, str(tmp_path / "t"), "overwrite", options)
    result = hudi.write(ROWS.slice(0, 1), str(tmp_path / "t"), "append", options)
    assert result is not None
    assert result.deleted == 1


KEYLESS = {key: value for key, value in OPTIONS.items() if "recordkey" not in key}
OPERATION = "hoodie.datasource.write.operation"


def cities(*names: str | None) -> pa.Table:
    return pa.table({"id": [str(number) for number in range(len(names))], "city": list(names)})


REQUIRED = pa.schema(
    [("id", pa.string()), ("city", pa.string()), pa.field("ts", pa.int64(), nullable=False)]
)
UNFIT: Mapping[str, tuple[pa.Table, dict[str, str], type[HudiError]]] = {
    "nested partitions": (cities("a", "a/b"), OPTIONS, PartitionValueError),
    "nested partitions, straight": (
        cities("a", "a/b"),
        {**OPTIONS, OPERATION: "bulk_insert"},
        PartitionValueError,
    ),
    "no key, unsafe path": (cities("a", ".."), KEYLESS, PartitionValueError),
    "no key, upsert": (cities("a"), {**KEYLESS, OPERATION: "upsert"}, RecordKeyError),
    "no key, combined": (
        cities("a"),
        {**KEYLESS, "hoodie.combine.before.insert": "true"},
        InvalidOptionError,
    ),
    "a null in a required column": (
        pa.Table.from_arrays([["a"], ["rome"], pa.array([None], pa.int64())], schema=REQUIRED),
        OPTIONS,
        SchemaError,
    ),
    "no such column to sort by": (
        cities("a"),
        {
            **OPTIONS,
            OPERATION: "bulk_insert",
            "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "nothing",
        },
        SchemaError,
    ),
}


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize("case", UNFIT)
def test_a_table_outlives_rows_that_cannot_replace_it(
    tmp_path: Path, case: str, as_stream: bool
) -> None:
    batch, options, error = UNFIT[case]
    path = tmp_path / "t"
    hudi.write(ROWS, str(path), "append", OPTIONS)
    before = files(path)
    with pytest.raises(error):
        hudi.write(batch.to_reader() if as_stream else batch, str(path), "overwrite", options)
    assert files(path) == before
    assert hudi.Table.open(str(path)).to_arrow().num_rows == 2


HIVE = "hoodie.datasource.hive_sync."


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({f"{HIVE}mode": "jdbc"}, InvalidOptionError),
        ({f"{HIVE}bucket_sync": "true"}, InvalidOptionError),
        ({"hoodie.storage.strategy.class": "object_store"}, UnsupportedTableError),
    ],
    ids=["way", "buckets", "hidden layout"],
)
def test_a_table_outlives_a_sync_that_is_refused(
    tmp_path: Path, path: Path, given: dict[str, str], error: type[HudiError]
) -> None:
    before = files(path)
    options = {**OPTIONS, f"{HIVE}enable": "true", **given}
    if error is UnsupportedTableError:
        options["hoodie.storage.path"] = str(tmp_path / "store")
    with pytest.raises(error):
        hudi.write(ROWS, str(path), "overwrite", options)
    assert files(path) == before
    assert hudi.Table.open(str(path)).to_arrow().num_rows == 2
    with pytest.raises(error):
        hudi.write(ROWS, str(tmp_path / "new"), "append", options)
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.storage.strategy.hash.bits", "4"),
        ("hoodie.storage.strategy.hash.bits", "8"),
        ("hoodie.storage.strategy.hash.nonsense", "1"),
        ("hoodie.storage.strategy.other", "1"),
    ],
)
def test_a_table_outlives_an_option_of_a_strategy_that_it_does_not_have(
    tmp_path: Path, path: Path, name: str, value: str
) -> None:
    before, options = files(path), {**OPTIONS, name: value}
    with pytest.raises(InvalidOptionError, match=r"hoodie\.storage\.path is missing"):
        hudi.write(ROWS.slice(0, 1), str(path), "overwrite", options)
    assert files(path) == before
    assert hudi.Table.open(str(path)).to_arrow().num_rows == 2
    for mode in ("append", "overwrite"):
        with pytest.raises(InvalidOptionError, match="Drop it, or set"):
            hudi.write(ROWS, str(tmp_path / "new"), mode, options)
    with pytest.raises(InvalidOptionError):
        new_table(tmp_path / "new", ROWS.schema, {name: value}, partition_by=None)
    assert not (tmp_path / "new").exists()


def test_a_table_outlives_whatever_its_opening_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # an option that creation lets pass, and opening does not
    monkeypatch.setattr(stored_table, "new_placement", placement_of)
    path, options = tmp_path / "t", {**OPTIONS, "hoodie.storage.strategy.hash.bits": "4"}
    hudi.write(ROWS, str(path), "append", OPTIONS)
    before = files(path)
    with pytest.raises(OptionConflictError, match=r"hash\.bits"):
        hudi.write(ROWS.slice(0, 1), str(path), "overwrite", options)
    assert files(path) == before
    with pytest.raises(OptionConflictError, match=r"hash\.bits"):
        hudi.write(ROWS, str(tmp_path / "new"), "append", options)
    assert not (tmp_path / "new").exists()


def test_a_table_outlives_a_stream_that_breaks(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise ConnectionError("gone")

    hudi.write(ROWS, str(tmp_path / "t"), "append", OPTIONS)
    broken = pa.RecordBatchReader.from_batches(ROWS.schema, batches())
    with pytest.raises(ConnectionError):
        hudi.write(broken, str(tmp_path / "t"), "overwrite", OPTIONS)
    assert hudi.Table.open(str(tmp_path / "t")).to_arrow().num_rows == 2


def test_a_table_is_overwritten_with_its_own_rows(place: str) -> None:
    own = hudi.Table.open(place).to_batches(filter=[("city", "=", "rome")])
    result = hudi.write(own, place, "overwrite", OPTIONS)
    assert result is not None
    assert result.inserted == 1
    assert hudi.Table.open(place).to_arrow(columns=["id"]).to_pylist() == [{"id": "a"}]


@pytest.mark.spark
def test_a_frame_of_the_table_itself_does_not_overwrite_it(tmp_path: Path, spark: Any) -> None:
    path = str(tmp_path / "a table")
    hudi.write(ROWS, path, "append", OPTIONS)
    (tmp_path / "link").symlink_to(path)
    own = hudi.Table.open(path).read(spark).select("id", "city")
    for place in (path, str(tmp_path / "link")):
        with pytest.raises(InvalidOptionError, match="insert_overwrite_table"):
            hudi.write(own, place, "overwrite", OPTIONS)
    assert hudi.Table.open(path).to_arrow().num_rows == 2
    hudi.write(own, path, "overwrite", {**OPTIONS, OPERATION: "insert_overwrite_table"})
    assert hudi.Table.open(path).to_arrow().num_rows == 2


def test_a_table_is_not_dropped_under_a_live_writer(tmp_path: Path, place: str) -> None:
    opened, config = open_table(place, {}), WriteConfig.from_options({})
    writer = begin(opened, table_lock(opened, config), config, Action.COMMIT, WriteOperation.UPSERT)
    before = files(tmp_path)
    try:
        with pytest.raises(ConcurrentWriterError, match=writer.instant.requested_time):
            drop_table(place, {})
        with pytest.raises(ConcurrentWriterError):
            hudi.write(ROWS, place, "overwrite", OPTIONS)
        assert files(tmp_path) == before
    finally:
        writer.abort()
    drop_table(place, {})
    assert files(tmp_path) == set()


def test_a_table_is_dropped_under_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, patience = str(tmp_path / "t"), {"hoodie.write.lock.wait_time_ms": "50"}
    hudi.write(ROWS, path, "append", OPTIONS)
    lock = table_lock(open_table(path, {}), WriteConfig.from_options(patience))
    before = files(tmp_path)
    refused: list[LockError] = []

    def drop() -> None:
        try:
            drop_table(path, patience)
        except LockError as error:
            refused.append(error)

    with lock.held():
        other = threading.Thread(target=drop)
        other.start()
        other.join()
    assert len(refused) == 1
    assert files(tmp_path) == before

    whole, locked = PosixStorage.delete, []

    def delete(storage: PosixStorage, path: str) -> None:
        locked.append((path, (tmp_path / "t/.hoodie/.locks/table.lock").exists()))
        whole(storage, path)

    monkeypatch.setattr(PosixStorage, "delete", delete)
    drop_table(path, {})
    assert (".hoodie/hoodie.properties", True) in locked
    assert locked[-1] == (LOCK, True)
    assert files(tmp_path) == set()


def test_a_table_made_as_soon_as_the_lock_is_free_is_not_dropped_too(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[FileLock] = []
    unlock = FileLock.unlock

    def then_make(lock: FileLock) -> None:
        unlock(lock)
        if not made:
            made.append(lock)
            hudi.write(ROWS, place, "append", OPTIONS)

    monkeypatch.setattr(FileLock, "unlock", then_make)
    drop_table(place, {})
    assert hudi.Table.open(place).to_arrow().num_rows == ROWS.num_rows


def test_the_lock_of_a_dropped_table_does_not_hinder_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "t"
    (path / ".hoodie/.locks").mkdir(parents=True)
    (path / ".hoodie/.locks/table.lock").touch()
    assert hudi.write(ROWS, str(path), "errorifexists", OPTIONS) is not None
