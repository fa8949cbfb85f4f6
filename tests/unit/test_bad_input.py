"""What cannot be written is refused by name, with a way out, before anything is changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    ConfigError,
    HudiError,
    InvalidOptionError,
    NotATableError,
    OptionConflictError,
    PartitionValueError,
    RecordKeyError,
    SchemaError,
    UnknownExtensionError,
    UnknownTableFormatError,
    UnsupportedTableError,
)
from tests.tables import copied, new_table, pairs
from tests.unit.refusals import files, refused

COLUMNS = pa.schema({"id": "string", "city": "string", "ts": "int64", "value": "float64"})
OPERATIONS = ("insert", "bulk_insert", "upsert", "delete")
KEY = "hoodie.datasource.write.recordkey.field"
PARTITION = "hoodie.datasource.write.partitionpath.field"
OPERATION = "hoodie.datasource.write.operation"
WRITE: dict[str, object] = {
    "hoodie.table.name": "doors",
    KEY: "id",
    PARTITION: "city",
    "hoodie.table.ordering.fields": "ts",
}
VIRTUAL, META = "hoodie.recordkey.virtual.", {"hoodie.populate.meta.fields": "false"}
Row = Mapping[str, Any]
NULL = "__HIVE_DEFAULT_PARTITION__"


def changed(*changes: Row) -> pa.Table:
    """Rows that differ so from one that can be written."""
    whole = {"id": "a", "city": "rome", "ts": 1, "value": 1.0}
    return pa.Table.from_pylist([{**whole, **change} for change in changes], COLUMNS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a table with one row."""
    copied(tmp_path / "table", new_table, changed({}), name="bad")
    return tmp_path / "table"


# --- a new table
@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"record_key": "nope"}, RecordKeyError, ["'nope'", "recordkey.field", "id, city"]),
        ({"record_key": ["id", "nope"]}, RecordKeyError, ["'nope'", "recordkey.field"]),
        ({"record_key": 1}, InvalidOptionError, ["record_key='1'", "list of names"]),
        ({"record_key": ["id", 1]}, InvalidOptionError, ["record_key", "['id', 1]", "as strings"]),
        ({"record_key": {"id", "city"}}, InvalidOptionError, ["record_key", "list of names"]),
        ({"partition_by": b"city"}, InvalidOptionError, ["partition_by", "list of names"]),
        ({"ordering_field": [None]}, InvalidOptionError, ["ordering_field='[None]'"]),
        ({"format": 2}, InvalidOptionError, ["format='2'", "list of names"]),
        ({"partition_by": "nope"}, SchemaError, ["'nope'", "partitionpath.field", "id, city"]),
        ({"ordering_field": "nope"}, SchemaError, ["'nope'", "ordering.fields", "id, city"]),
        ({"ordering_field": ["ts", "nope", "value"]}, SchemaError, ["'nope'", "ordering.fields"]),
        ({"ordering_field": "ts.inner"}, SchemaError, ["ts.inner", "no column"]),
        ({"format": "nope"}, UnknownTableFormatError, ["'nope'", "native", "hudi-nope-format"]),
        ({"format": "../x"}, HudiError, ["../x"]),
    ],
)
def test_a_table_that_cannot_be(
    settings: dict[str, Any], error: type[HudiError], words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        new_table(tmp_path / "new", COLUMNS, **settings)
    for word in words:
        assert word in str(caught.value)
    assert not (tmp_path / "new").exists()


JAVA_KEY = {f"{VIRTUAL}enabled": "true", f"{VIRTUAL}class": "com.uber.marmaray.SimpleRecordKey"}

LOGGED_CHANGES = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.cdc.enabled": "true"}


@pytest.mark.parametrize(
    ("record_key", "options", "error", "words"),
    [
        ("id", {"hoodie.table.type": "MERGED"}, ConfigError, "MERGE_ON_READ"),
        ("id", LOGGED_CHANGES, UnsupportedTableError, "MERGE_ON_READ|log changes|COPY_ON_WRITE"),
        ("id", {"hoodie.write.table.version": "7"}, ConfigError, "7|8, 9"),
        (None, META, InvalidOptionError, "meta.fields|generated when rows are wr|recordkey.field"),
        (
            *(None, {f"{VIRTUAL}enabled": "true"}, InvalidOptionError),
            "virtual.enabled|generated when rows are written|recordkey.field",
        ),
        (
            *("id", {f"{VIRTUAL}enabled": "true", **META}, InvalidOptionError),
            "virtual.enabled|populate.meta.fields|one of the two",
        ),
        ("id", {f"{VIRTUAL}columns": "city"}, OptionConflictError, "virtual.columns|'city'|'id'"),
        (
            *("id", {f"{VIRTUAL}concatenator": "_"}, InvalidOptionError),
            "virtual.concatenator|virtual.enabled=true",
        ),
        (
            *("id", {f"{VIRTUAL}transition.enabled": "true"}, InvalidOptionError),
            "transition.enabled|virtual.enabled=true",
        ),
        ("id", JAVA_KEY, InvalidOptionError, "virtual.class|SIMPLE"),
        ("id", {"hoodie.datasource.write.keygenerator.type": "CUSTOM"}, ConfigError, "CUSTOM"),
    ],
)
def test_options_of_a_table_that_cannot_be(
    record_key: str | None,
    options: dict[str, str],
    error: type[HudiError],
    words: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(error) as caught:
        new_table(tmp_path / "new", COLUMNS, options, record_key=record_key)
    for word in words.split("|"):
        assert word in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_path_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with refused(tmp_path, NotATableError, str(tmp_path), "thesis.txt", "empty folder"):
        new_table(tmp_path)
    for mode in ("append", "overwrite", "errorifexists", "ignore"):
        with refused(tmp_path, NotATableError, "thesis.txt"):
            hudi.write(changed({}), tmp_path, mode, WRITE)
    with refused(tmp_path, NotATableError, "hoodie.properties"):
        hudi.Table.open(tmp_path)


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("not a folder")
    for below in ("", "/t"):
        with refused(tmp_path, NotATableError, f"{path} is a file"):
            new_table(f"{path}{below}")
    with refused(tmp_path, HudiError, "file"):
        hudi.Table.open(path)
    with refused(tmp_path, HudiError, "file"):
        hudi.write(changed({}), path, "overwrite", WRITE)


def test_a_table_is_not_made_over_another(path: Path) -> None:
    with refused(path, NotATableError, "holds a table already", "Table.open"):
        new_table(path)


# --- rows
def without(name: str) -> pa.Table:
    return changed({}).drop_columns([name])


def retyped(name: str, kind: pa.DataType, value: Any) -> pa.Table:
    position = COLUMNS.get_field_index(name)
    return changed({}).set_column(position, name, pa.array([value], kind))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (changed({"id": None}), RecordKeyError, ["id", "null or empty", "1 of 1"]),
        (changed({}, {"id": ""}), RecordKeyError, ["id", "1 of 2"]),
        (without("id"), RecordKeyError, ["'id'", "city, ts, value"]),
        (without("id").append_column("key", pa.array(["a"])), RecordKeyError, ["'id'", "key"]),
        (without("city"), SchemaError, ["'city'", "Add it"]),
        (without("ts"), SchemaError, ["'ts'", "Add it"]),
        (changed({}).append_column("extra", pa.nulls(1)), SchemaError, ["extra", "null", "Cast"]),
        (retyped("ts", pa.string(), "x"), SchemaError, ["ts", "int64"]),
        (retyped("id", pa.list_(pa.string()), ["x"]), SchemaError, ["id"]),
        (retyped("city", pa.binary(), b"\xff"), SchemaError, ["city"]),
        (changed({"city": ".."}), PartitionValueError, ["city", "'..'", "urlencode"]),
        (changed({"city": "../../escape"}), PartitionValueError, ["city", "urlencode"]),
        (changed({"city": "/etc"}), PartitionValueError, ["city", "/etc"]),
        (changed({"city": ".hoodie"}), PartitionValueError, ["city", ".hoodie"]),
        (changed({"city": "a\nb"}), PartitionValueError, ["city", "control"]),
        (changed({"city": "x" * 300}), PartitionValueError, ["city", "255"]),
        (changed({"city": NULL}), PartitionValueError, ["city", NULL]),
        (changed({"city": "rome/centre"}), PartitionValueError, ["rome/centre", "levels"]),
        (changed({"city": "x"}, {"city": "x/y"}), PartitionValueError, ["x/y"]),
        (42, SchemaError, ["int", "Arrow"]),
    ],
)
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_wrong_rows(
    operation: str, data: Any, error: type[HudiError], words: list[str], path: Path
) -> None:
    with refused(path, error, *words):
        getattr(hudi.Table.open(path), operation)(data)
    hudi.Table.open(path).upsert(changed({"value": 2.0}))
    assert hudi.Table.open(path).to_arrow().column("value").to_pylist() == [2.0]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (changed({}, {"id": None}), RecordKeyError, ["id"]),
        (changed({}, {"city": ".."}), PartitionValueError, ["city"]),
        (without("id"), RecordKeyError, ["'id'"]),
    ],
)
@pytest.mark.parametrize("operation", ["bulk_insert", "delete"])
def test_rows_that_bulk_inserts_and_deletes_refuse(
    operation: str, data: Any, error: type[HudiError], words: list[str], path: Path
) -> None:
    with refused(path, error, *words):
        getattr(hudi.Table.open(path), operation)(data)


def test_a_delete_needs_the_partition(path: Path) -> None:
    with refused(path, SchemaError, "'city'", "delete"):
        hudi.Table.open(path).delete(pa.table({"id": ["a"]}))


def test_a_source_that_fails_halfway(path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield changed({"id": "new"}).to_batches()[0]
        raise OSError("the network is gone")

    for operation in OPERATIONS:
        before = files(path)
        reader = pa.RecordBatchReader.from_batches(COLUMNS, failing())
        with pytest.raises(OSError, match="the network is gone"):
            getattr(hudi.Table.open(path), operation)(reader)
        assert files(path) == before


def test_a_failure_after_the_first_file_is_rolled_back(path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        # enough for a row group to be written before the row without a key comes
        yield from changed(*({"id": f"{n}-{'x' * 9000}"} for n in range(4000))).to_batches()
        yield changed({"id": None}).to_batches()[0]

    def data() -> set[str]:
        return {name for name in files(path) if not name.startswith(".hoodie")}

    before, table = data(), hudi.Table.open(path)
    with pytest.raises(RecordKeyError):
        table.bulk_insert(pa.RecordBatchReader.from_batches(COLUMNS, failing()))
    assert data() == before
    assert [one.action.value for one in table.timeline.instants] == ["commit", "rollback"]
    assert table.count() == 1


# --- options
@pytest.mark.parametrize(
    ("option", "value", "error", "words"),
    [
        ("hoodie.datasource.write.recordkey.field", "value", OptionConflictError, ["id"]),
        ("hoodie.datasource.write.partitionpath.field", "ts", OptionConflictError, ["city"]),
        ("hoodie.table.ordering.fields", "value", OptionConflictError, ["ts"]),
        ("hoodie.datasource.write.precombine.field", "value", OptionConflictError, ["ts"]),
        ("hoodie.table.name", "other", OptionConflictError, ["bad"]),
        ("hoodie.table.type", "MERGE_ON_READ", ConfigError, ["COPY_ON_WRITE"]),
        ("hoodie.write.table.version", "9", OptionConflictError, ["8"]),
        ("hoodie.table.format", "iceberg", OptionConflictError, ["native"]),
        ("hoodie.datasource.write.hive_style_partitioning", "true", OptionConflictError, ["false"]),
        ("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING", OptionConflictError, ["EVENT_TIME"]),
        ("hoodie.index.type", "NOPE", UnknownExtensionError, ["global_simple"]),
        ("hoodie.index.type", "RECORD_INDEX", InvalidOptionError, ["hudi metadata index"]),
        ("hoodie.index.bucket.engine", "CONSISTENT_HASHING", InvalidOptionError, ["consistent"]),
        ("hoodie.parquet.compression.codec", "nope", InvalidOptionError, ["zstd"]),
        ("hoodie.parquet.max.file.size", "much", InvalidOptionError, ["much"]),
        ("hoodie.bulkinsert.sort.mode", "NOPE", InvalidOptionError, ["NONE"]),
        ("hoodie.write.concurrency.mode", "NOPE", InvalidOptionError, ["SINGLE_WRITER"]),
        ("hoodie.write.lock.provider", "os.system", InvalidOptionError, ["file_system"]),
        ("hoodie.datasource.write.operation", "merge", InvalidOptionError, ["upsert"]),
    ],
)
def test_an_option_that_cannot_be(
    option: str, value: str, error: type[HudiError], words: list[str], path: Path
) -> None:
    with refused(path, error, option, value, *words):
        hudi.Table.open(path).upsert(changed({}), options={option: value})
    with refused(path, error, option, value, *words):
        hudi.write(changed({}), path, "append", {option: value})


# --- the door of Hudi's options
def test_an_overwrite_makes_another_table(path: Path) -> None:
    other = {"hoodie.table.name": "other", KEY: "value"}
    hudi.write(changed({"id": "x"}), path, "overwrite", other)
    table = hudi.Table.open(path)
    assert (table.config.name, table.config.record_key_fields) == ("other", ("value",))
    assert table.config.partition_fields == ()
    assert pairs(table.to_arrow("_hoodie_record_key")) == [("1.0",)]


def test_save_modes(tmp_path: Path) -> None:
    path = tmp_path / "doors"

    def values() -> list[tuple[str, float]]:
        return pairs(hudi.Table.open(path).to_arrow(), "id", "value")

    assert hudi.write(changed({}), path, "ignore", WRITE) is not None
    assert values() == [("a", 1.0)]
    hudi.write(changed({"ts": 2, "value": 2.0}, {"id": "b"}), path, "append", WRITE)
    assert values() == [("a", 2.0), ("b", 1.0)]
    before = files(path)
    assert hudi.write(changed({"id": "c"}), path, "ignore", WRITE) is None
    assert files(path) == before
    for mode in ("errorifexists", "error"):
        with refused(path, NotATableError, "append"):
            hudi.write(changed({"id": "c"}), path, mode, WRITE)
    hudi.write(changed({"id": "b"}), path, "append", {**WRITE, OPERATION: "delete"})
    assert values() == [("a", 2.0)]
    hudi.write(changed({"id": "z"}), path, "overwrite", WRITE)
    assert values() == [("z", 1.0)]
    assert len(hudi.Table.open(path).timeline.completed_writes()) == 1
    with refused(path, InvalidOptionError, "upsert_please", "append", "overwrite"):
        hudi.write(changed({}), path, "upsert_please", WRITE)  # type: ignore[arg-type]


REFUSED: list[tuple[pa.Table, dict[str, object], type[HudiError]]] = [
    (changed({"id": None}), {}, RecordKeyError),
    (changed({"city": ".."}), {}, PartitionValueError),
    (without("city"), {}, SchemaError),
    (changed({}), {OPERATION: "merge"}, InvalidOptionError),
    (changed({}), {KEY: "nope"}, RecordKeyError),
    (changed({}), {"hoodie.table.format": "nope"}, UnknownTableFormatError),
    (changed({}), {"hoodie.table.type": "MERGED"}, InvalidOptionError),
    (changed({}), {"hoodie.write.lock.provider": "zookeeper"}, InvalidOptionError),
]


@pytest.mark.parametrize(("data", "change", "error"), REFUSED)
def test_a_write_that_cannot_be_leaves_no_table_or_the_old_one(
    data: pa.Table, change: dict[str, object], error: type[HudiError], path: Path
) -> None:
    new = path.with_name("doors")
    with pytest.raises(error):
        hudi.write(data, new, "append", {**WRITE, **change})
    assert [file for file in new.rglob("*") if file.is_file()] == []
    before = hudi.Table.open(path).to_arrow().to_pylist()
    with pytest.raises(error):
        hudi.write(data, path, "overwrite", {**WRITE, "hoodie.table.name": "bad", **change})
    assert hudi.Table.open(path).to_arrow().to_pylist() == before


# --- Spark
@pytest.mark.spark
@pytest.mark.parametrize("operation", OPERATIONS)
def test_spark_refuses_the_same_rows(operation: str, path: Path, spark: Any) -> None:
    frame: Callable[[pa.Table], Any] = spark.createDataFrame
    table = hudi.Table.open(path)
    with refused(path, RecordKeyError, "id", "null or empty"):
        getattr(table, operation)(frame(changed({"id": None})).coalesce(1))
    with refused(path, PartitionValueError, "city", "urlencode"):
        getattr(table, operation)(frame(changed({"city": ".."})).coalesce(1))
    with refused(path, RecordKeyError, "'id'"):
        getattr(table, operation)(frame(without("id")))
    assert table.to_arrow().num_rows == 1


def test_types_of_columns_have_names(path: Path) -> None:
    table = hudi.Table.open(path)
    table.alter(add_columns={"age": "int32"})
    table.alter(promote={"age": "int64"})
    assert table.schema.field("age").type == pa.int64()
    refused: tuple[dict[str, Any], ...] = (
        {"promote": {"value": "long"}},
        {"promote": {"value": 64}},
        {"add_columns": {"age": "number"}},
        {"add_columns": ["age"]},
        {"add_columns": "ADD age INT"},
    )
    for change in refused:
        with pytest.raises(SchemaError, match=r"pyarrow"):
            table.alter(**change)


def test_options_are_a_mapping_and_an_engine_is_one(path: Path) -> None:
    table, given = hudi.Table.open(path), changed({"id": "b"})
    no_mapping: Any = [("hoodie.fs.fsync", "false")]
    calls: list[Callable[[], object]] = [
        lambda: hudi.Table.open(path, no_mapping),
        lambda: new_table(path.with_name("new"), options=no_mapping),
        lambda: table.upsert(given, options=no_mapping),
        lambda: table.upsert(given, options={1: "false"}),  # type: ignore[dict-item]
        lambda: table.delete(where="value = 1", options=no_mapping),
        lambda: table.clean(options=no_mapping),
        lambda: table.cluster(options=no_mapping),
        lambda: hudi.write(given, path, options=no_mapping),
        lambda: hudi.polars(path, no_mapping),
        lambda: hudi.Connector(no_mapping),
    ]
    for call in calls:
        with pytest.raises(InvalidOptionError, match=r"options|name of an option"):
            call()
    engine: Any = "duckdb"
    for call in (
        lambda: table.upsert(given, engine=engine),
        lambda: table.update({"value": 2.0}, where="value = 1", engine=engine),
        lambda: table.merge(given, on="id", engine=engine),
        lambda: table.cluster(engine=engine),
        lambda: hudi.write(given, path, engine=engine),
    ):
        with pytest.raises(InvalidOptionError, match=r"'duckdb'.*no engine"):
            call()
    assert table.count() == 1
    assert len(table.history()) == 1


def test_filters_of_others_are_refused_by_name(path: Path) -> None:
    polars = pytest.importorskip("polars")
    table = hudi.Table.open(path)
    wrong: Any
    for wrong in (polars.col("value") > 1, 5, {"value": 1}, lambda row: True):
        with pytest.raises(SchemaError, match=r"The filter .* is a .*hudi_core\.polars"):
            table.to_arrow(filter=wrong)


def test_a_notebook_gets_names_escaped_and_nothing_is_read(tmp_path: Path) -> None:
    name = "<script>&"
    made = new_table(tmp_path / "t", name=name)
    shutil.rmtree(tmp_path / "t")
    assert name in repr(made)
    shown = made._repr_html_()
    assert "<td>&lt;script&gt;&amp;</td>" in shown
    assert "<tr><th>record key</th><td>id</td></tr>" in shown


def test_the_package_lists_its_public_names() -> None:
    assert hudi.__version__ == version("hudi-core")
    assert {one for one in dir(hudi) if not one.startswith("__")} == set(hudi.__all__)
