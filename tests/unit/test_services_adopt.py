"""What a folder is taken for before it is adopted, and the record of an adoption at work."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.stored_table import properties_of
from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    NotATableError,
    PathNotFoundError,
    SchemaError,
    UnsafePathError,
)
from hudi_core.model.files import BaseFileName, FileStatus, PartitionPath
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import TableSchema
from hudi_core.services.adoption.adopt import RECORD_PATH, AdoptedFile, AdoptionRecord
from hudi_core.services.adoption.plan import Examined, repeated_keys
from hudi_core.services.adoption.source import (
    PLAIN,
    choose_source,
    merge_schemas,
    plain_files,
    plain_table,
)
from hudi_core.storage.posix import PosixStorage

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
    place = AdoptedFile("a b.parquet", PartitionPath("p=1"), NAME, 5, 6)
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
