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
)
from tests.unit.refusals import files, refused

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("value", pa.float64())]
)
OPERATIONS = ("insert", "bulk_insert", "upsert", "delete")
WRITE: dict[str, object] = {
    "hoodie.table.name": "doors",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.fs.fsync": "false",
}
Row = Mapping[str, Any]


def rows(*changes: Row, schema: pa.Schema = SCHEMA) -> pa.Table:
    whole = {"id": "a", "city": "rome", "ts": 1, "value": 1.0}
    return pa.Table.from_pylist([{**whole, **change} for change in changes], schema)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a table with one row."""
    path = tmp_path / "table"
    table = hudi.Table.create(
        str(path),
        SCHEMA,
        name="bad",
        record_key="id",
        partition_by="city",
        ordering_field="ts",
        options={"hoodie.fs.fsync": "false"},
    )
    table.insert(rows({}))
    return path


# --- a new table
# ----------------------------------------------------------------------------------


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
        ({"options": {"hoodie.table.type": "MERGE_ON_READ"}}, ConfigError, ["MERGE_ON_READ"]),
        ({"options": {"hoodie.write.table.version": "7"}}, ConfigError, ["7", "8, 9"]),
        (
            {"record_key": None, "options": {"hoodie.populate.meta.fields": "false"}},
            InvalidOptionError,
            ["meta.fields", "generated when rows are written", "recordkey.field"],
        ),
        (
            {"record_key": None, "options": {"hoodie.recordkey.virtual.enabled": "true"}},
            InvalidOptionError,
            ["virtual.enabled", "generated when rows are written", "recordkey.field"],
        ),
        (
            {
                "options": {
                    "hoodie.recordkey.virtual.enabled": "true",
                    "hoodie.populate.meta.fields": "false",
                }
            },
            InvalidOptionError,
            ["virtual.enabled", "populate.meta.fields", "one of the two"],
        ),
        (
            {"options": {"hoodie.recordkey.virtual.columns": "city"}},
            OptionConflictError,
            ["virtual.columns", "'city'", "'id'"],
        ),
        (
            {"options": {"hoodie.recordkey.virtual.concatenator": "_"}},
            InvalidOptionError,
            ["virtual.concatenator", "virtual.enabled=true"],
        ),
        (
            {"options": {"hoodie.recordkey.virtual.transition.enabled": "true"}},
            InvalidOptionError,
            ["transition.enabled", "virtual.enabled=true"],
        ),
        (
            {
                "options": {
                    "hoodie.recordkey.virtual.enabled": "true",
                    "hoodie.recordkey.virtual.class": "com.uber.marmaray.SimpleRecordKey",
                }
            },
            InvalidOptionError,
            ["virtual.class", "SIMPLE"],
        ),
        (
            {"options": {"hoodie.datasource.write.keygenerator.type": "CUSTOM"}},
            ConfigError,
            ["CUSTOM"],
        ),
    ],
)
def test_a_table_that_cannot_be(
    settings: dict[str, Any], error: type[HudiError], words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "new"
    whole = {"record_key": "id", "partition_by": "city", "ordering_field": "ts", **settings}
    with pytest.raises(error) as caught:
        hudi.Table.create(str(path), SCHEMA, name="new", **whole)
    for word in words:
        assert word in str(caught.value)
    assert not path.exists()


def test_a_path_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with refused(tmp_path, NotATableError, str(tmp_path), "thesis.txt", "empty folder"):
        hudi.Table.create(str(tmp_path), SCHEMA, record_key="id")
    for mode in ("append", "overwrite", "errorifexists", "ignore"):
        with refused(tmp_path, NotATableError, "thesis.txt"):
            hudi.write(rows({}), str(tmp_path), mode, WRITE)
    with refused(tmp_path, NotATableError, "hoodie.properties"):
        hudi.Table.open(str(tmp_path))


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for action in (
        lambda: hudi.Table.create(str(tmp_path / "file"), SCHEMA, record_key="id"),
        lambda: hudi.Table.open(str(tmp_path / "file")),
        lambda: hudi.write(rows({}), str(tmp_path / "file"), "overwrite", WRITE),
    ):
        with refused(tmp_path, HudiError, "file"):
            action()


def test_a_table_is_not_made_over_another(path: Path) -> None:
    with refused(path, NotATableError, "holds a table already", "Table.open"):
        hudi.Table.create(str(path), SCHEMA, record_key="id")


# --- rows
# -----------------------------------------------------------------------------------------

RENAMED = pa.schema([field.with_name("key") if field.name == "id" else field for field in SCHEMA])


def without(name: str) -> pa.Table:
    return rows({}).drop_columns([name])


def retyped(name: str, kind: pa.DataType, value: Any) -> pa.Table:
    table = rows({})
    position = table.schema.get_field_index(name)
    return table.set_column(position, name, pa.array([value], kind))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (rows({"id": None}), RecordKeyError, ["id", "null or empty", "1 of 1"]),
        (rows({}, {"id": ""}), RecordKeyError, ["id", "1 of 2"]),
        (without("id"), RecordKeyError, ["'id'", "city, ts, value"]),
        (without("id").append_column("key", pa.array(["a"])), RecordKeyError, ["'id'", "key"]),
        (without("city"), SchemaError, ["'city'", "Add it"]),
        (without("ts"), SchemaError, ["'ts'", "Add it"]),
        (rows({}).append_column("extra", pa.nulls(1)), SchemaError, ["extra", "null", "Cast"]),
        (retyped("ts", pa.string(), "x"), SchemaError, ["ts", "int64"]),
        (retyped("id", pa.list_(pa.string()), ["x"]), SchemaError, ["id"]),
        (retyped("city", pa.binary(), b"\xff"), SchemaError, ["city"]),
        (rows({"city": ".."}), PartitionValueError, ["city", "'..'", "urlencode"]),
        (rows({"city": "../../escape"}), PartitionValueError, ["city", "urlencode"]),
        (rows({"city": "/etc"}), PartitionValueError, ["city", "/etc"]),
        (rows({"city": ".hoodie"}), PartitionValueError, ["city", ".hoodie"]),
        (rows({"city": "a\nb"}), PartitionValueError, ["city", "control"]),
        (rows({"city": "x" * 300}), PartitionValueError, ["city", "255"]),
        (
            rows({"city": "__HIVE_DEFAULT_PARTITION__"}),
            PartitionValueError,
            ["city", "__HIVE_DEFAULT_PARTITION__"],
        ),
        (rows({"city": "rome/centre"}), PartitionValueError, ["rome/centre", "levels"]),
        (rows({"city": "x"}, {"city": "x/y"}), PartitionValueError, ["x/y"]),
        (42, SchemaError, ["int", "Arrow"]),
    ],
)
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_rows_that_do_not_fit(
    operation: str, data: Any, error: type[HudiError], words: list[str], path: Path
) -> None:
    with refused(path, error, *words):
        getattr(hudi.Table.open(str(path)), operation)(data)
    hudi.Table.open(str(path)).upsert(rows({"value": 2.0}))
    assert hudi.Table.open(str(path)).to_arrow().column("value").to_pylist() == [2.0]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (rows({}, {"id": None}), RecordKeyError, ["id"]),
        (rows({}, {"city": ".."}), PartitionValueError, ["city"]),
        (without("id"), RecordKeyError, ["'id'"]),
    ],
)
@pytest.mark.parametrize("operation", ["bulk_insert", "delete"])
def test_rows_that_bulk_inserts_and_deletes_refuse(
    operation: str, data: Any, error: type[HudiError], words: list[str], path: Path
) -> None:
    with refused(path, error, *words):
        getattr(hudi.Table.open(str(path)), operation)(data)


def test_a_delete_needs_the_partition(path: Path) -> None:
    with refused(path, SchemaError, "'city'", "delete"):
        hudi.Table.open(str(path)).delete(pa.table({"id": ["a"]}))


def test_a_source_that_fails_halfway(path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield rows({"id": "new"}).to_batches()[0]
        raise OSError("the network is gone")

    for operation in OPERATIONS:
        before = files(path)
        reader = pa.RecordBatchReader.from_batches(SCHEMA, failing())
        with pytest.raises(OSError, match="the network is gone"):
            getattr(hudi.Table.open(str(path)), operation)(reader)
        assert files(path) == before


def test_a_failure_after_the_first_file_is_rolled_back(path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        # enough for a row group to be written before the row without a key comes
        yield from rows(*({"id": f"{n}-{'x' * 9000}"} for n in range(4000))).to_batches()
        yield rows({"id": None}).to_batches()[0]

    data = {name for name in files(path) if not name.startswith(".hoodie")}
    with pytest.raises(RecordKeyError):
        hudi.Table.open(str(path)).bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, failing()))
    assert {name for name in files(path) if not name.startswith(".hoodie")} == data
    table = hudi.Table.open(str(path))
    assert [one.action.value for one in table.timeline.instants] == ["commit", "rollback"]
    assert table.to_arrow().num_rows == 1


# --- options
# --------------------------------------------------------------------------------------


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
        hudi.Table.open(str(path)).upsert(rows({}), options={option: value})
    with refused(path, error, option, value, *words):
        hudi.write(rows({}), str(path), "append", {option: value})


BAD: dict[str, object] = {"hoodie.table.name": "bad"}


# --- the door of Hudi's options
# -------------------------------------------------------------------


def test_an_overwrite_makes_another_table(path: Path) -> None:
    other = {"hoodie.table.name": "other", "hoodie.datasource.write.recordkey.field": "value"}
    hudi.write(rows({"id": "x"}), str(path), "overwrite", other)
    table = hudi.Table.open(str(path))
    assert (table.config.name, table.config.record_key_fields) == ("other", ("value",))
    assert table.config.partition_fields == ()
    assert table.to_arrow().column("_hoodie_record_key").to_pylist() == ["1.0"]


def test_save_modes(tmp_path: Path) -> None:
    path = tmp_path / "doors"

    def values() -> list[tuple[str, float]]:
        found = hudi.Table.open(str(path)).to_arrow().to_pylist()
        return sorted((row["id"], row["value"]) for row in found)

    assert hudi.write(rows({}), str(path), "ignore", WRITE) is not None
    assert values() == [("a", 1.0)]
    hudi.write(rows({"ts": 2, "value": 2.0}, {"id": "b"}), str(path), "append", WRITE)
    assert values() == [("a", 2.0), ("b", 1.0)]
    before = files(path)
    assert hudi.write(rows({"id": "c"}), str(path), "ignore", WRITE) is None
    assert files(path) == before
    for mode in ("errorifexists", "error"):
        with refused(path, NotATableError, "append"):
            hudi.write(rows({"id": "c"}), str(path), mode, WRITE)
    delete = {**WRITE, "hoodie.datasource.write.operation": "delete"}
    hudi.write(rows({"id": "b"}), str(path), "append", delete)
    assert values() == [("a", 2.0)]
    hudi.write(rows({"id": "z"}), str(path), "overwrite", WRITE)
    assert values() == [("z", 1.0)]
    assert len(hudi.Table.open(str(path)).timeline.completed_writes()) == 1


def test_an_unknown_save_mode(path: Path) -> None:
    with refused(path, InvalidOptionError, "upsert_please", "append", "overwrite"):
        hudi.write(rows({}), str(path), "upsert_please", WRITE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "change", "error"),
    [
        (rows({"id": None}), {}, RecordKeyError),
        (rows({"city": ".."}), {}, PartitionValueError),
        (rows({}), {"hoodie.datasource.write.operation": "merge"}, InvalidOptionError),
        (rows({}), {"hoodie.datasource.write.recordkey.field": "nope"}, RecordKeyError),
        (rows({}), {"hoodie.table.format": "nope"}, UnknownTableFormatError),
        (rows({}), {"hoodie.write.lock.provider": "zookeeper"}, InvalidOptionError),
    ],
)
def test_a_first_write_that_fails_leaves_no_table(
    data: pa.Table, change: dict[str, object], error: type[HudiError], tmp_path: Path
) -> None:
    path = tmp_path / "doors"
    with pytest.raises(error):
        hudi.write(data, str(path), "append", {**WRITE, **change})
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    ("data", "change", "error"),
    [
        (rows({"id": None}), {}, RecordKeyError),
        (rows({"city": ".."}), {}, PartitionValueError),
        (rows({}), {"hoodie.datasource.write.recordkey.field": "nope"}, RecordKeyError),
        (rows({}), {"hoodie.table.format": "nope"}, UnknownTableFormatError),
        (rows({}), {"hoodie.table.type": "MERGE_ON_READ"}, InvalidOptionError),
        (without("city"), {}, SchemaError),
    ],
)
def test_an_overwrite_that_cannot_be_leaves_the_old_table(
    data: pa.Table, change: dict[str, object], error: type[HudiError], path: Path
) -> None:
    before = hudi.Table.open(str(path)).to_arrow().to_pylist()
    with pytest.raises(error):
        hudi.write(data, str(path), "overwrite", {**WRITE, **BAD, **change})
    assert hudi.Table.open(str(path)).to_arrow().to_pylist() == before


# --- Spark
# ----------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("operation", OPERATIONS)
def test_spark_refuses_the_same_rows(operation: str, path: Path, spark: Any) -> None:
    frame: Callable[[pa.Table], Any] = spark.createDataFrame
    table = hudi.Table.open(str(path))
    with refused(path, RecordKeyError, "id", "null or empty"):
        getattr(table, operation)(frame(rows({"id": None})).coalesce(1))
    with refused(path, PartitionValueError, "city", "urlencode"):
        getattr(table, operation)(frame(rows({"city": ".."})).coalesce(1))
    with refused(path, RecordKeyError, "'id'"):
        getattr(table, operation)(frame(without("id")))
    assert table.to_arrow().num_rows == 1


@pytest.mark.parametrize("below", ["", "/t"])
def test_a_file_is_no_place_for_a_table(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotATableError, match=f"{tmp_path}/file is a file"):
        hudi.Table.create(f"{tmp_path}/file{below}", SCHEMA, record_key="id")
    assert files(tmp_path) == {"file": b"x"}


def test_types_of_columns_have_names(path: Path) -> None:
    table = hudi.Table.open(path)
    table.alter(add_columns={"age": "int32"})
    table.alter(promote={"age": "int64"})
    assert table.schema.field("age").type == pa.int64()


@pytest.mark.parametrize(
    "change",
    [
        {"promote": {"value": "long"}},
        {"promote": {"value": 64}},
        {"add_columns": {"age": "number"}},
        {"add_columns": ["age"]},
        {"add_columns": "ADD age INT"},
    ],
)
def test_types_that_are_none_are_refused(path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=r"pyarrow"):
        hudi.Table.open(path).alter(**change)


def test_options_are_a_mapping_and_an_engine_is_one(path: Path) -> None:
    table, given = hudi.Table.open(path), rows({"id": "b"})
    no_mapping: Any = [("hoodie.fs.fsync", "false")]
    calls: list[Callable[[], object]] = [
        lambda: hudi.Table.open(path, no_mapping),
        lambda: hudi.Table.create(path.with_name("new"), SCHEMA, options=no_mapping),
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


def test_a_table_shows_itself_in_a_notebook(path: Path) -> None:
    shown = hudi.Table.open(path)._repr_html_()
    assert "<tr><th>record key</th><td>id</td></tr>" in shown


def test_a_notebook_gets_names_escaped_and_nothing_is_read(tmp_path: Path) -> None:
    name = "<script>&"
    made = hudi.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), name=name)
    shutil.rmtree(tmp_path / "t")
    assert name in repr(made)
    assert "<td>&lt;script&gt;&amp;</td>" in made._repr_html_()


def test_the_package_lists_its_public_names() -> None:
    assert hudi.__version__ == version("hudi-core")
    assert {one for one in dir(hudi) if not one.startswith("__")} == set(hudi.__all__)
