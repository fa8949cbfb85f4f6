"""Hudi-Spark: reading the logs that this project writes.

Rows of every type in Parquet and Avro blocks, and deletes by ordering values of every type.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.kinds import LogBlockFormat
from hudi_core.schema.arrow_types import children
from hudi_core.write.log_output import LogDeletes
from tests.interop.typed_values import KEY, TYPES, UTC, Written, at, by_key, expected, given, row
from tests.jvm.engines import Engine
from tests.log_files import NO_METADATA_TABLE, merge_on_read
from tests.tables import new_table, rows
from tests.unit.test_log_output import log_of

VERSIONS: Final = pytest.mark.parametrize("version", ["8", "9"])


def has_time_of_day(kind: pa.DataType) -> bool:
    """Whether Spark lacks a type, or one below it."""
    return pa.types.is_time(kind) or any(has_time_of_day(one.field.type) for one in children(kind))


NAMES: Final = tuple(name for name, kind in TYPES.items() if not has_time_of_day(kind.stored))


@VERSIONS
@pytest.mark.parametrize("form", LogBlockFormat)
def test_every_type(hudi_spark: Engine, tmp_path: Path, form: LogBlockFormat, version: str) -> None:
    stored = {"first": row(0), "second": row(1), "third": row(2), "none": row(None)}
    options = {**NO_METADATA_TABLE, "hoodie.write.table.version": version}
    made = new_table(tmp_path / "t", given(stored, NAMES), options, record_key=KEY)
    changed = {"first": row(None), "second": row(2), "none": row(1)}
    written = Written(merge_on_read(made), stored | changed)
    with log_of(written.table, form) as log:
        log.write(given(changed, NAMES), at=[0, 1, 3])
    found = hudi_spark.read(written.path).select([KEY, *NAMES])
    # it takes local timestamps for points in time, as those of base files
    kinds = [found.schema.field(KEY), *(written.table.schema.field(name) for name in NAMES)]
    assert by_key(found.cast(pa.schema(kinds))) == expected(written)


ORDERS: Final[list[tuple[pa.DataType, Any, Any, Any]]] = [
    (pa.int32(), 3, 5, 7),
    (pa.int64(), 3, 5, 7),
    (pa.float32(), 0.5, 1.5, 2.5),
    (pa.float64(), 0.1, 0.2, 0.3),
    (pa.string(), "a", "b", "ä"),
    (pa.date32(), *(dt.date(year, 1, 1) for year in (1969, 2024, 2025))),
    (pa.timestamp("us"), *(at(year, 1, 1) for year in (1969, 2024, 2025))),
    (pa.timestamp("us", "UTC"), *(at(year, 1, 1, zone=UTC) for year in (1969, 2024, 2025))),
    (pa.decimal128(12, 2), *map(Decimal, ("-1.25", "2.25", "2.50"))),
    (pa.decimal128(38, 18), *map(Decimal, ("-1.25", "2.25", "2.50"))),
]


@VERSIONS
@pytest.mark.parametrize(("kind", "less", "stored", "greater"), ORDERS, ids=str)
def test_the_ordering_value_of_a_delete(
    hudi_spark: Engine,
    tmp_path: Path,
    version: str,
    kind: pa.DataType,
    less: Any,
    stored: Any,
    greater: Any,
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("w", pa.string())])
    options = {**NO_METADATA_TABLE, "hoodie.write.table.version": version}
    made = new_table(tmp_path / "t", schema, options)
    made.bulk_insert(rows("late", "same", "later", "other", ts=stored, w="old", schema=schema))
    table = merge_on_read(made)
    with log_of(table) as log:
        order = pa.array([less, stored, greater], kind)
        keys = pa.array(["late", "same", "later"])
        log.write(deletes=LogDeletes(keys, [order], np.arange(3)))
    assert remaining(hudi_spark, table) == ["late", "other"]


@VERSIONS
def test_deletes_with_and_without_ordering_values(
    hudi_spark: Engine, tmp_path: Path, version: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    options = {**NO_METADATA_TABLE, "hoodie.write.table.version": version}
    made = new_table(tmp_path / "t", schema, options)
    made.bulk_insert(rows("a", "b", "c", "d", "e", ts=[None, 5, 5, 5, None], schema=schema))
    table = merge_on_read(made)
    with log_of(table) as log:
        order = pa.array([None, None, 4, 6], pa.int64())
        log.write(deletes=LogDeletes(pa.array(["a", "b", "c", "d"]), [order], np.arange(4)))
    assert remaining(hudi_spark, table) == ["c", "e"]


@VERSIONS
def test_several_ordering_values_of_a_delete(
    hudi_spark: Engine, tmp_path: Path, version: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.string())])
    options = {**NO_METADATA_TABLE, "hoodie.write.table.version": version}
    made = new_table(tmp_path / "t", schema, options, ordering_field=["ts", "n"])
    made.bulk_insert(rows("a", "b", "c", "d", ts=5, n=["m", "m", "m", None], schema=schema))
    table = merge_on_read(made)
    with log_of(table) as log:
        order = [pa.array([5, 5, 6, 5]), pa.array(["l", "n", "a", None])]
        log.write(deletes=LogDeletes(pa.array(["a", "b", "c", "d"]), order, np.arange(4)))
    assert remaining(hudi_spark, table) == ["a"]


@VERSIONS
@pytest.mark.parametrize("deletes", [False, True], ids=["rows", "deletes"])
@pytest.mark.parametrize("fields", [["ts"], ["ts", "n"]], ids="-".join)
def test_any_two_ordering_values(
    hudi_spark: Engine, tmp_path: Path, version: str, fields: list[str], *, deletes: bool
) -> None:
    """Each stored value meets each, null among them, in a write of its own."""
    columns = [("id", pa.string()), ("ts", pa.int64()), ("n", pa.string()), ("w", pa.string())]
    schema = pa.schema([*columns, ("_hoodie_is_deleted", pa.bool_())])
    pairs = list(product([None, 0, 5], repeat=2))
    options = {**NO_METADATA_TABLE, "hoodie.write.table.version": version}
    made = new_table(tmp_path / "t", schema, options, ordering_field=fields)
    made.bulk_insert(
        rows(*map(str, range(9)), ts=[had for had, _ in pairs], n="m", w="old", schema=schema)
    )
    table = merge_on_read(made)
    for number, (had, given_) in enumerate(pairs):
        changed = {"ts": [given_], "n": [None if had == 0 else "m"], "w": ["new"]}
        table.upsert(rows(str(number), schema=schema, _hoodie_is_deleted=deletes, **changed))
        found = hudi_spark.values(table.path, ["id", "ts", "n", "w"])
        own = hudi.Table.open(table.path).to_arrow(["id", "ts", "n", "w"]).to_pylist()
        assert found == sorted((tuple(one.values()) for one in own), key=repr)


@VERSIONS
@pytest.mark.parametrize("form", LogBlockFormat)
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_blocks_of_partial_updates(
    hudi_spark: Engine, tmp_path: Path, form: LogBlockFormat, mode: str, version: str
) -> None:
    """Updates of some columns, beside new rows and deletes; and data skipping by two columns."""
    columns = [("id", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string())]
    schema = pa.schema([*columns, ("c", pa.float64())])
    options = {
        "hoodie.write.table.version": version,
        "hoodie.record.merge.mode": mode,
        "hoodie.logfile.data.block.format": str(form),
        "hoodie.spark.sql.merge.into.partial.updates": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.compact.inline": "false",
    }
    table = new_table(tmp_path / "t", schema, options, table_type="MERGE_ON_READ")
    table.insert(rows(*"klmn", ts=5, a=[0, 1, 2, 3], b="b", c=0.5, schema=schema))
    keeps = {"hoodie.table.partial.update.mode": "KEEP_VALUES"}

    def agree() -> None:
        found = hudi_spark.values(table.path, schema.names)
        own = hudi.Table.open(table.path).to_arrow(schema.names).to_pylist()
        assert found == sorted((tuple(one.values()) for one in own), key=repr)

    table.update({"a": "100"}, where="id = 'k'")
    agree()
    given = rows("l", "z", ts=6, b="given")
    table.upsert(given, options=keeps)
    agree()
    table.delete(where="id = 'm'")
    table.update({"c": "NULL", "b": "'last'"}, where="id <> 'k'")
    agree()
    table.merge(rows("z", "y", ts=9, a=9), on="id").when_matched_update({"a": "source.a"}).execute()
    agree()
    # the row has one of the values by its last update, and the other by the base file
    wanted = hudi_spark.values(table.path, ["id"], where="a = 100 AND b = 'b'")
    assert wanted == [("k",)]


@VERSIONS
@pytest.mark.parametrize("form", LogBlockFormat)
def test_logs_of_several_files(
    hudi_spark: Engine, tmp_path: Path, form: LogBlockFormat, version: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("w", pa.string())])
    options = {
        "hoodie.write.table.version": version,
        "hoodie.logfile.data.block.format": str(form),
        "hoodie.logfile.data.block.max.size": "1000",
        "hoodie.logfile.max.size": "6000",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    table = new_table(tmp_path / "t", schema, options, table_type="MERGE_ON_READ")
    keys = [f"{number:03}" for number in range(200)]
    table.insert(rows(*keys, ts=1, w="old", schema=schema))
    table.upsert(rows(*keys[:150], ts=2, w="new", schema=schema))
    [one] = table.file_slices()
    assert len(one.log_files) > 1
    table.delete(where="id < '020'")
    found = hudi_spark.values(table.path, ["id", "w"])
    assert found == [(key, "new" if key < "150" else "old") for key in keys[20:]]
    wanted = hudi_spark.values(table.path, ["id"], where="w = 'new' AND id < '030'")
    assert wanted == [(key,) for key in keys[20:30]]


def remaining(hudi_spark: Engine, table: hudi.Table) -> list[str]:
    found: list[str] = sorted(hudi_spark.read(table.path)["id"].to_pylist())
    assert sorted(hudi.Table.open(table.path).to_arrow()["id"].to_pylist()) == found
    return found
