"""Adoptions of folders, and drops of tables: nothing is left but what was to be kept."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config import stored_table
from hudi_core.config.placement import placement_of
from hudi_core.config.stored_table import properties_of
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    ConcurrentWriterError,
    CorruptMetadataError,
    HudiError,
    InvalidOptionError,
    LockError,
    NotATableError,
    OptionConflictError,
    PartitionValueError,
    PathNotFoundError,
    RecordKeyError,
    SchemaError,
    UnsafePathError,
    UnsupportedTableError,
)
from hudi_core.model.commit import WriteOperation
from hudi_core.model.files import BaseFileName, BasePath, FileStatus, PartitionPath
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.instant import Action
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import TableSchema
from hudi_core.services import create
from hudi_core.services.adoption.adopt import RECORD_PATH, AdoptedFile, AdoptionRecord
from hudi_core.services.adoption.plan import Examined, repeated_keys
from hudi_core.services.adoption.source import (
    PLAIN,
    choose_source,
    merge_schemas,
    plain_files,
    plain_table,
)
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
from tests.tables import copied, new_table

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
    copied(tmp_path / "t", appended)
    return tmp_path / "t"


def appended(path: Path) -> hudi.Table:
    hudi.write(ROWS, path, "append", OPTIONS)
    return hudi.Table.open(path)


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
        path = tmp_path / f"{left}" / "t"
        copied(path, appended)
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
        is_whole = cuts == left
        hudi.write(ROWS, str(path), "overwrite", OPTIONS)
        table = hudi.Table.open(str(path))
        assert table.to_arrow().num_rows == 2
        assert len(table.timeline.completed_writes()) == 1
        if is_whole:
            break
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


# --- what a folder is taken for before it is adopted, and the record of an adoption
KEY = pa.schema([("id", pa.string())])


def found(*paths: str) -> FoundTable:
    files = [FileStatus(path, 1) for path in paths]
    return plain_table(files, [KEY] * len(files))


def values(*paths: str) -> list[Any]:
    table = found(*paths)
    assert table.schema.names == ["id", "part"]
    return [table.schema.field("part").type, *(one.values["part"] for one in table.files)]


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["1", "-20"], [pa.int64(), 1, -20]),
        (["1", "01"], [pa.string(), "1", "01"]),
        (["1", "x"], [pa.string(), "1", "x"]),
        (["9" * 19], [pa.string(), "9" * 19]),
        (["2024-02-29"], [pa.date32(), dt.date(2024, 2, 29)]),
        (["2024-02-30"], [pa.string(), "2024-02-30"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], [pa.int64(), 1, None]),
        (["__HIVE_DEFAULT_PARTITION__"], [pa.string(), None]),
        (["a%2Fb%20c"], [pa.string(), "a/b c"]),
        (["a=b"], [pa.string(), "a=b"]),
    ],
)
def test_values_of_folders(folders: list[str], expected: list[Any]) -> None:
    assert values(*(f"part={one}/f.parquet" for one in folders)) == expected


def test_folders_above_the_partitions_mean_nothing() -> None:
    table = found("data/x/part=1/f.parquet")
    assert table.partition_by == ("part",)
    # what lies between names of partitions breaks their row
    assert found("other=1/x/part=2/f.parquet").partition_by == ("part",)
    assert found("part=1/x/f.parquet").partition_by == ()


def test_folders_of_several_kinds_are_refused() -> None:
    with pytest.raises(SchemaError, match="different partition columns"):
        found("part=1/f.parquet", "g.parquet")
    with pytest.raises(SchemaError, match="different partition columns"):
        found("part=1/f.parquet", "other=1/g.parquet")


def test_schemas_are_merged_by_name() -> None:
    first = pa.schema(
        [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string(), False)]
    )
    second = pa.schema([("c", pa.int32()), ("a", pa.int64())])
    merged = merge_schemas([("1", first), ("2", second)])
    assert merged.names == ["a", "b", "c"]
    assert [field.nullable for field in merged] == [True, True, True]
    assert not merge_schemas([("1", first)]).field("a").nullable
    with pytest.raises(SchemaError, match="type string in 2, and int64 in 1"):
        merge_schemas([("1", first), ("2", pa.schema([("a", pa.string())]))])


def test_which_files_are_those_of_a_folder(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path))
    for name in (
        "b.parquet",
        "x/a.parquet",
        "_tmp/c.parquet",
        ".h/d.parquet",
        "e.csv",
        "_f.parquet",
    ):
        storage.put(name, b"1")
    assert [one.path for one in plain_files(storage)] == ["b.parquet", "x/a.parquet"]


def test_one_of_the_tables_that_there_are() -> None:
    own = FoundTable(KEY, (), (FoundFile("f.parquet", 1),), "7")
    plain = FoundTable(KEY, (), (FoundFile("part=1/f.parquet", 1),), "")

    def choose(tables: dict[str, FoundTable], wanted: str | None) -> str:
        return choose_source("/t", tables, wanted, lambda: plain).kind

    assert choose({"one": own}, None) == "one"
    assert choose({"one": own}, PLAIN) == PLAIN
    assert choose({}, None) == PLAIN
    assert choose({"one": own, "two": own}, "two") == "two"
    with pytest.raises(NotATableError, match="several formats"):
        choose({"one": own, "two": own}, None)
    with pytest.raises(NotATableError, match="no table of the format two"):
        choose({"one": own}, "two")
    assert choose_source("/t", {}, None, lambda: plain).is_hive
    with pytest.raises(NotATableError, match="no data file"):
        choose_source("/t", {}, None, lambda: FoundTable(KEY, (), (), ""))


def test_keys_are_counted_by_partition() -> None:
    def examined(partition: str, *keys: str) -> Examined:
        column = pa.chunked_array([list(keys)], pa.string())
        return Examined(FoundFile("f", 1), len(keys), PartitionPath(partition), column)

    assert repeated_keys([examined("p", "a", "b"), examined("q", "a"), examined("p", "c")]) == {}
    assert repeated_keys([examined("p", "a", "b"), examined("p", "a", "a")]) == {"p": 2}


def test_fields_keep_the_ids_that_they_carry() -> None:
    def field(name: str, number: int, kind: pa.DataType = KEY.types[0]) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    carried = pa.schema(
        [
            field("a", 7),
            field("b", 2, pa.list_(field("element", 9, pa.int8()))),
            ("c", KEY.types[0]),
        ]
    )
    schema = TableSchema.adopt(carried)
    ids = schema.field_ids()
    assert (ids["a"], ids["b"], ids["b.list.element"]) == (7, 2, 9)
    assert len(set(ids.values())) == len(ids)
    assert schema.last_column_id == max(ids.values())
    assert schema.arrow.field("b").type.value_type == pa.int32()
    assert TableSchema.adopt(KEY) == TableSchema.create(KEY)
    with pytest.raises(SchemaError, match="field id 7"):
        TableSchema.adopt(pa.schema([field("a", 7), field("b", 7)]))


# --- the record
TIME = InstantTime("20240101000000000")
NAME = BaseFileName.parse(f"f-0_0-0-0_{TIME}.parquet")


def record() -> AdoptionRecord:
    assert NAME is not None
    config = TableConfig(name="t", record_key_fields=("id",))
    place = AdoptedFile("a b.parquet", PartitionPath("p=1"), NAME, 5, 6, 4)
    return AdoptionRecord(TIME, properties_of(config), PLAIN, (place,))


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path))
    assert AdoptionRecord.load(storage) is None
    record().put(storage)
    assert AdoptionRecord.load(storage) == record()
    assert record().placements[0].path == f"p=1/{NAME}"
    with pytest.raises(AlreadyExistsError):
        record().put(storage)


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2},
        {"instant": "yesterday"},
        {"files": [["a", "", "no base file", 1, 1]]},
        {"files": [["a", "", str(NAME)]]},
        {"files": None},
        {"properties": None},
        {"files": [["../a", "", str(NAME), 1, 1]]},
        {"files": [["/a", "", str(NAME), 1, 1]]},
        {"files": [["a", "../..", str(NAME), 1, 1]]},
    ],
)
def test_a_damaged_record_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    storage = PosixStorage(str(tmp_path))
    record().put(storage)
    document = json.loads(storage.read(RECORD_PATH)) | wrong
    storage.put(RECORD_PATH, json.dumps(document).encode())
    with pytest.raises((CorruptMetadataError, UnsafePathError)):
        AdoptionRecord.load(storage)


# --- second names
def test_a_file_gets_a_second_name(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path))
    storage.put("a", b"1")
    storage.link("a", "deep/er/b")
    storage.link("a", "deep/er/b")  # has it already
    assert (tmp_path / "a").samefile(tmp_path / "deep/er/b")
    storage.put("c", b"1")
    with pytest.raises(AlreadyExistsError):
        storage.link("c", "deep/er/b")
    with pytest.raises(PathNotFoundError):
        storage.link("nothing", "d")
    for source, target in (("../x", "d"), ("a", "../d"), ("a", "/tmp/d")):
        with pytest.raises(UnsafePathError):
            storage.link(source, target)
    (tmp_path / "out").symlink_to(tmp_path.parent)
    with pytest.raises(UnsafePathError):
        storage.link("a", "out/d")
