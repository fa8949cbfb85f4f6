"""Tables with a column of every type, as each reader returns their rows."""

from __future__ import annotations

from typing import Any

import duckdb
import hudi as hudi_rs
import pyarrow as pa
from pyspark.sql import SparkSession

import hudi_core as hudi
from tests.interop.typed_values import KEY, UTC_US, Row, Written, by_key, list_of


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
