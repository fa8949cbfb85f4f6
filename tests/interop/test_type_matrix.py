"""Every type, written by every operation and through changes of the columns, read by everybody.

The values are kept as Python's own beside the table. hudi-rs and Spark read the table, DuckDB its
parquet files; they share no code with this project (Spark is handed the list of files).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import duckdb
import hudi as hudi_rs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import hudi_core as hudi
from hudi_core.errors import SchemaError
from tests.interop.typed_values import (
    KEY,
    NAMES,
    TYPES,
    UTC_US,
    Row,
    Written,
    by_key,
    expected,
    given,
    list_of,
    row,
    write,
)


def read_by_us(written: Written) -> dict[str, Row]:
    return by_key(hudi.Table.open(written.path).to_arrow())


def read_by_hudi_rs(written: Written) -> dict[str, Row]:
    batches = hudi_rs.HudiTableBuilder.from_base_uri(written.path).build().read()
    rows = pa.Table.from_batches([pa.record_batch(each) for each in batches])
    columns = [written.table.schema.field(name) for name in written.names]
    local = pa.schema([rows.schema.field(KEY), *columns])
    # hudi-rs says UTC of every timestamp; the digits are the same
    return by_key(_relabelled(rows.select([KEY, *written.names]), local))


def _relabelled(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    columns = []
    for field in wanted:
        column = rows.column(field.name).combine_chunks()
        zoned = _with_zone(field.type)
        assert _without_names(column.type) == _without_names(zoned), field.name
        columns.append(pa.array(_local(column.to_pylist(), field.type), field.type))
    return pa.table(columns, schema=wanted)


def _with_zone(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return UTC_US
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_zone(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _with_zone(kind.item_type))
    if pa.types.is_list(kind):
        return list_of(_with_zone(kind.value_type))
    return kind


def _without_names(kind: pa.DataType) -> str:
    return str(kind).replace(" not null", "")


def _local(value: Any, kind: pa.DataType) -> Any:
    """Return a list of values with zones taken off the timestamps that have none."""
    return [_local_value(each, kind) for each in value]


def _local_value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return value.replace(tzinfo=None)
    if pa.types.is_struct(kind):
        return {field.name: _local_value(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(key, _local_value(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return _local(value, kind.value_type)
    return value


def read_by_duckdb(written: Written) -> dict[str, Row]:
    files = [each.base_file for each in written.table.file_slices()]
    paths = [f"{written.path}/{each.path}" for each in files if each is not None]
    columns = ", ".join(f'"{name}"' for name in (KEY, *written.names))
    query = f"SELECT {columns} FROM read_parquet({paths}, union_by_name = true)"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return by_key(connection.sql(query).to_arrow_table())


def read_by_spark(written: Written, spark: SparkSession) -> dict[str, Row]:
    rows = written.table.read(spark).toArrow().select([KEY, *written.names])
    wanted = pa.schema(
        [rows.schema.field(KEY), *(written.table.schema.field(n) for n in written.names)]
    )
    # times come as nanoseconds, which hold the same
    return by_key(rows.cast(wanted))


TIME_TYPE: Final = "spark.sql.timeType.enabled"


@pytest.fixture
def timed_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Give Spark with times of day, which it has when it is asked for them."""
    spark.conf.set(TIME_TYPE, "true")
    yield spark
    spark.conf.unset(TIME_TYPE)


def history(table: hudi.Table, frame: Callable[[pa.Table], Any] = lambda data: data) -> Written:
    """Insert, bulk insert and upsert every type, with nulls and values changing places."""
    written = Written(table, {})

    def put(operation: str, rows: Mapping[str, Row]) -> None:
        write(table, operation, frame(given(rows)))
        written.rows |= rows

    put("insert", {"first": row(0), "second": row(1), "none": row(None), "gone": row(0)})
    put("bulk_insert", {"third": row(2), "empty": row(None)})
    put("upsert", {"first": row(2), "none": row(1), "second": row(None), "new": row(0)})
    table.delete(pa.table({KEY: ["gone"]}))
    del written.rows["gone"]
    return written


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return hudi.Table.create(str(tmp_path / "types"), given({}).schema, record_key=KEY)


def test_types_are_stored_as_declared(table: hudi.Table) -> None:
    for name, kind in TYPES.items():
        assert table.schema.field(name).type == kind.stored, name
        assert table.schema.field(name).nullable


def all_agree(written: Written, spark: SparkSession) -> None:
    wanted = expected(written)
    assert read_by_us(written) == wanted
    assert read_by_duckdb(written) == wanted
    assert read_by_hudi_rs(written) == wanted
    assert read_by_spark(written, spark) == wanted


def test_all_types_by_all_readers(table: hudi.Table, timed_spark: SparkSession) -> None:
    all_agree(history(table), timed_spark)


def test_all_types_written_by_spark(table: hudi.Table, timed_spark: SparkSession) -> None:
    def frame(data: pa.Table) -> Any:
        # Spark has fewer types than Arrow: those that tables have
        stored = [
            pa.array(column.to_pylist(), table.schema.field(name).type)
            for name, column in zip(data.column_names, data.columns, strict=True)
        ]
        rows = pa.table(stored, names=data.column_names)
        return timed_spark.createDataFrame(rows, from_arrow_schema(rows.schema))

    all_agree(history(table, frame), timed_spark)


def test_rows_bring_columns_of_every_type(tmp_path: Path, timed_spark: SparkSession) -> None:
    first = ("boolean", "string")
    table = hudi.Table.create(str(tmp_path / "grown"), given({}, first).schema, record_key=KEY)
    before: dict[str, Row] = {name: row(0) for name in ("stays", "changes", "goes")}
    write(table, "insert", given(before, first))
    # the new columns are null in rows that nobody wrote again, also in the file that is merged into
    written = Written(table, {key: {name: row(0)[name] for name in first} for key in before})
    write(table, "insert", given({"added": row(1), "none": row(None)}))
    written.rows |= {"added": row(1), "none": row(None)}
    assert set(table.schema.names) == {KEY, *NAMES}
    all_agree(written, timed_spark)
    write(table, "upsert", given({"changes": row(2), "added": row(None)}))
    written.rows |= {"changes": row(2), "added": row(None)}
    table.delete(pa.table({KEY: ["goes"]}))
    del written.rows["goes"]
    all_agree(written, timed_spark)


def test_added_columns_of_every_type(tmp_path: Path, timed_spark: SparkSession) -> None:
    table = hudi.Table.create(
        str(tmp_path / "added"), pa.schema({KEY: pa.string()}), record_key=KEY
    )
    write(table, "insert", pa.table({KEY: ["old"]}))
    table.alter(add_columns={name: kind.given for name, kind in TYPES.items()})
    test_types_are_stored_as_declared(table)
    written = Written(table, {"old": {}})
    wanted = expected(written)
    # DuckDB knows columns from files alone
    assert read_by_us(written) == read_by_hudi_rs(written) == wanted
    assert read_by_spark(written, timed_spark) == wanted
    write(table, "upsert", given({"old": row(0), "new": row(1)}))
    written.rows = {"old": row(0), "new": row(1)}
    all_agree(written, timed_spark)


def test_spark_reads_times_as_longs_without_its_type_for_them(
    table: hudi.Table, spark: SparkSession
) -> None:
    write(table, "insert", given({"one": row(0)}))
    names = ["time_us", "time_micros", "struct_of_all"]
    (found,) = table.read(spark, columns=names).collect()
    assert found.time_us == 0
    assert found.time_micros == 86_399_999_999
    assert found.struct_of_all.t == 3_723_000_004


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.null(), "null"),
        (pa.duration("us"), "duration"),
        (pa.month_day_nano_interval(), "interval"),
        (pa.map_(pa.int32(), pa.string()), "strings"),
        (pa.map_(pa.binary(), pa.string()), "strings"),
        (pa.struct([]), "struct"),
        (pa.decimal256(39, 0), "38"),
        (pa.decimal128(5, -2), "scale"),
        (pa.dense_union([pa.field("a", pa.int8())]), "union"),
        (pa.uuid(), "storage type"),
        (list_of(pa.null()), "null"),
        (pa.struct([("a b", pa.int8())]), "digits and underscores"),
    ],
    ids=str,
)
def test_types_without_a_counterpart_are_refused(
    kind: pa.DataType, words: str, tmp_path: Path
) -> None:
    schema = pa.schema({KEY: pa.string(), "odd": kind})
    path = tmp_path / "refused"
    with pytest.raises(SchemaError, match="odd") as caught:
        hudi.Table.create(str(path), schema, record_key=KEY)
    assert words in str(caught.value)
    assert not path.exists()
    table = hudi.Table.create(str(path), pa.schema({KEY: pa.string()}), record_key=KEY)
    with pytest.raises(SchemaError, match="odd"):
        table.alter(add_columns={"odd": kind})


def test_nanoseconds_are_refused_or_cut_off(tmp_path: Path) -> None:
    nanoseconds = pa.array([-1, 1_001, None], pa.int64())
    times = nanoseconds.view(pa.timestamp("ns"))
    data = pa.table(
        {
            KEY: ["a", "b", "c"],
            "local": times,
            "zoned": times.cast(pa.timestamp("ns", "UTC")),
            "encoded": times.dictionary_encode(),
            "listed": pa.ListArray.from_arrays([0, 2, 2, 3], times),
        }
    )
    table = hudi.Table.create(str(tmp_path / "exact"), data.schema, record_key=KEY)
    for operation in ("insert", "bulk_insert", "upsert"):
        with pytest.raises(SchemaError, match=r"hoodie\.write\.truncate\.nanoseconds") as caught:
            write(table, operation, data)
        assert "local" in str(caught.value)
    assert not table.timeline.completed_writes()
    table.upsert(data, options={"hoodie.write.truncate.nanoseconds": True})
    rows = table.to_arrow(columns=data.column_names).sort_by(KEY)
    for name in ("local", "zoned", "encoded"):
        assert rows.column(name).cast(pa.int64()).to_pylist() == [-1, 1, None]
    listed = pc.list_flatten(rows.column("listed")).cast(pa.int64())
    assert listed.to_pylist() == [-1, 1, None]
