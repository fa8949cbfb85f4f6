"""Hudi-Spark on our ranges of columns, where files of one table differ.

Every filter finds the same rows with data skipping, the default, without it, and by listing
folders without the metadata table. Files lack a column, have it in an older type, hold NaN, or
values that a form of ranges has no room for; and Hudi-Spark goes on where we stopped.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from tests.jvm.engines import Engine

VERSIONS = ("8", "9")
LAYOUTS = ("partitioned", "one folder")
WAYS = {
    "default": {},
    "no skipping": {"hoodie.enable.data.skipping": "false"},
    "listing": {"hoodie.metadata.enable": "false"},
}
OPTIONS = {"hoodie.fs.fsync": "false", "hoodie.parquet.small.file.limit": "0"}
Step: TypeAlias = "pa.Table | Callable[[hudi.Table], object]"


def in_city(city: str, *ids: int, **columns: Any) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), **columns})


def write(path: Path, version: str, layout: str, *steps: Step) -> hudi.Table:
    """Make a table; every batch of rows becomes files of its own."""
    first = steps[0]
    assert isinstance(first, pa.Table)
    hudi.Table.create(
        str(path),
        first.schema,
        name="t",
        record_key="id",
        partition_by="city" if layout == "partitioned" else (),
        options={**OPTIONS, "hoodie.write.table.version": version},
    )
    for step in steps:
        table = hudi.Table.open(str(path), OPTIONS)
        if isinstance(step, pa.Table):
            table.insert(step)
        else:
            step(table)
    return hudi.Table.open(str(path), OPTIONS)


def judge(engine: Engine, path: Path, wanted: dict[str, Sequence[int]]) -> None:
    """Ask each filter each way."""
    found = {
        (where, way): [row[0] for row in engine.values(path, ["id"], where, given)]
        for where in wanted
        for way, given in WAYS.items()
    }
    assert found == {(where, way): list(ids) for where, ids in wanted.items() for way in WAYS}


both = pytest.mark.parametrize("layout", LAYOUTS)
versions = pytest.mark.parametrize("version", VERSIONS)


@both
@versions
def test_a_column_that_some_files_lack(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str
) -> None:
    """Added by rows, by a change of columns, and after a drop."""
    path = tmp_path / "t"
    write(
        path,
        version,
        layout,
        in_city("A", 1, 3, gone=[1, 1]),
        in_city("A", 5, added=[5], gone=[1]),
        in_city("B", 6, 7, added=[1, None], gone=[1, 1]),
        lambda table: table.alter(add_columns={"later": pa.float64()}, drop="gone"),
        in_city("A", 8, added=[8], later=[-0.0]),
    )
    judge(
        hudi_spark,
        path,
        {
            "added > 4": [5, 8],
            "added = 5": [5],
            "added is not null": [5, 6, 8],
            "added is null": [1, 3, 7],
            "added in (1, 8)": [6, 8],
            "not (added > 4)": [6],
            "later = 0": [8],
            "later < 1 and added > 4": [8],
            "id > 6": [7, 8],
        },
    )


@both
@versions
def test_a_column_that_grew(hudi_spark: Engine, tmp_path: Path, version: str, layout: str) -> None:
    """Widened by rows in one partition, and on demand before any row of the new type."""
    path = tmp_path / "t"
    int32, float32, few = pa.int32(), pa.float32(), pa.decimal128(5, 2)

    def batch(city: str, number: int) -> pa.Table:
        return in_city(
            city,
            number,
            n=pa.array([number], int32),
            f=pa.array([number + 0.1], float32),
            x=pa.array([Decimal(number) / 2], few),
            asked=pa.array([number], int32),
            real=pa.array([number], int32),
        )

    write(
        path,
        version,
        layout,
        batch("A", 1),
        batch("B", 2),
        lambda table: table.alter(promote={"asked": pa.int64(), "real": pa.float64()}),
    )
    filters: dict[str, Sequence[int]] = {
        "n > 1": [2],
        "asked > 1": [2],
        "asked = 1": [1],
        "real > 1.5": [2],
        "f = 2.1f": [2],
        "f > 1.5": [2],
        "x = 0.5": [1],
    }
    judge(hudi_spark, path, filters)
    hudi.Table.open(str(path), OPTIONS).insert(
        in_city(
            "B",
            3,
            n=[2**40],
            f=[1e100],
            x=pa.array([Decimal("12345.678")], pa.decimal128(12, 3)),
            asked=[2**41],
            real=[0.5],
        )
    )
    judge(
        hudi_spark,
        path,
        {
            "n > 1": [2, 3],
            "n > 1000000": [3],
            "n = 2": [2],
            "asked > 1": [2, 3],
            "asked = 1": [1],
            "real < 1": [3],
            "real > 1.5": [2],
            # Hudi-Spark widens a float by way of its text
            "f = 2.1": [2],
            "f > 1.1": [2, 3],
            "x = 0.5": [1],
            "x > 1": [3],
        },
    )
    assert hudi.Table.open(str(path)).validate().is_valid


@both
@versions
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str, kind: pa.DataType
) -> None:
    """NaN alone in a file, beside others, and beside nulls; Spark has it as the greatest number."""
    path = tmp_path / "t"
    nan = math.nan

    def batch(city: str, *pairs: tuple[int, float | None]) -> pa.Table:
        values = pa.array([value for _, value in pairs], kind)
        return in_city(city, *(number for number, _ in pairs), d=values)

    write(
        path,
        version,
        layout,
        batch("A", (1, nan)),
        batch("A", (2, 5.0)),
        batch("B", (3, 3.0), (4, -math.inf)),
        batch("C", (5, None), (6, nan)),
        batch("D", (7, None)),
        batch("E", (8, -0.0)),
    )
    judge(
        hudi_spark,
        path,
        {
            "d = 5": [2],
            "d > 4": [1, 2, 6],
            "d < 4": [3, 4, 8],
            "d <> 5": [1, 3, 4, 6, 8],
            "d = 0": [8],
            "isnan(d)": [1, 6],
            "d is null": [5, 7],
            "d is not null": [1, 2, 3, 4, 6, 8],
            "not (d < 10)": [1, 6],
            "d in (5, 3)": [2, 3],
        },
    )


@both
@versions
def test_decimals(hudi_spark: Engine, tmp_path: Path, version: str, layout: str) -> None:
    """Of several precisions: version 8 has room for 15 digits on either side of the point."""
    path = tmp_path / "t"
    kinds = {
        "p5": (pa.decimal128(5, 2), "-1.25", "999.99"),
        "p18": (pa.decimal128(18, 0), "-5", "999999999999999999"),
        "p20": (pa.decimal128(20, 4), "1.5", "1234567890123456.7891"),
        "p30": (pa.decimal128(30, 15), "1.5", "999999999999999.999999999999999"),
        "behind": (pa.decimal128(20, 16), "1.5", "1234.5678901234567890"),
        "p38": (pa.decimal128(38, 10), "-0.0000000001", "9999999999999999999999999999.9999999999"),
    }
    low, high = (
        {name: pa.array([Decimal(kind[place])], kind[0]) for name, kind in kinds.items()}
        for place in (1, 2)
    )
    write(
        path,
        version,
        layout,
        in_city("A", 1, **low),
        in_city("A", 2, **high),
        in_city("B", 3, **low),
    )
    judge(
        hudi_spark,
        path,
        {
            **{f"{name} > 2": [2] for name in kinds},
            **{f"{name} = {kind[1]}": [1, 3] for name, kind in kinds.items()},
            **{f"{name} = {kind[2]}": [2] for name, kind in kinds.items()},
        },
    )


@both
@versions
def test_times_texts_and_members(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str
) -> None:
    """Dates, times with and without a zone, strings of any length, and what is inside structs."""
    path = tmp_path / "t"

    def batch(city: str, number: int) -> pa.Table:
        day = dt.datetime(2020, 1, number, 1, 2, 3, 456789, dt.UTC)
        at = pa.array([day], pa.timestamp("us", "UTC"))
        return in_city(
            city,
            number,
            on=pa.array([day.date()]),
            at=at,
            local=at.cast(pa.timestamp("us")),
            flag=[number % 2 == 0],
            empty=[""],
            text=[f"ä{number}"],
            long=[f"{number}" + "x" * 5000],
            nothing=pa.array([None], pa.int64()),
            inner=[{"n": number, "s": f"s{number}"}],
        )

    write(path, version, layout, *(batch("AB"[number > 2], number) for number in (1, 2, 3, 4)))
    moment = "2020-01-03 01:02:03.456789"
    judge(
        hudi_spark,
        path,
        {
            "on > date'2020-01-03'": [4],
            f"at = timestamp'{moment}Z'": [3],
            f"at > timestamp'{moment}Z'": [4],
            f"local = timestamp'{moment}'": [3],
            f"local >= timestamp'{moment}'": [3, 4],
            "flag": [2, 4],
            "empty = ''": [1, 2, 3, 4],
            "empty > ''": [],
            "text > 'ä2'": [3, 4],
            "long > '3'": [3, 4],
            "nothing is null": [1, 2, 3, 4],
            "nothing > 1": [],
            "inner.n > 2": [3, 4],
            "inner.s = 's2'": [2],
        },
    )


@both
@versions
def test_names_that_stood_for_other_columns(
    hudi_spark: Engine, tmp_path: Path, version: str, layout: str
) -> None:
    """Dropped and added again, of the same type and of another; Hudi-Spark goes by names."""
    path = tmp_path / "t"
    write(
        path,
        version,
        layout,
        in_city("A", 1, same=[7], other=["x"], old=[10]),
        in_city("B", 2, same=[8], other=["y"], old=[20]),
        lambda table: table.alter(drop=["same", "other"], rename={"old": "new"}),
        lambda table: table.alter(add_columns={"same": pa.int64(), "other": pa.int64()}),
        in_city("A", 3, same=[9], other=[33], new=[30]),
    )
    judge(
        hudi_spark,
        path,
        {
            "same = 7": [1],
            "same > 7": [2, 3],
            "other = 33": [3],
            "new = 30": [3],
            "new is null": [1, 2],
            "same > 7 and new > 5": [3],
        },
    )


@versions
def test_columns_that_options_name_later(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Ranges are made of all files, or Hudi-Spark would leave out those without."""
    path, key = tmp_path / "t", "hoodie.metadata.index.column.stats.column.list"
    write(
        path, version, "partitioned", in_city("A", 1, x=[1], y=[1]), in_city("B", 2, x=[2], y=[2])
    )
    few = hudi.Table.open(str(path), {**OPTIONS, key: "x"})
    few.insert(in_city("A", 3, x=[3], y=[300]))
    judge(hudi_spark, path, {"y = 300": [3], "y < 3": [1, 2]})


@versions
def test_hudi_spark_goes_on(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """It makes the ranges of partitions that it writes to from ours and its own."""
    path = tmp_path / "t"
    write(
        path,
        version,
        "partitioned",
        in_city("A", 1, n=pa.array([1], pa.int32()), d=[math.nan]),
        in_city("B", 2, n=pa.array([2], pa.int32()), d=[2.0]),
        in_city("A", 3, n=[2**40], d=[3.0], added=[3]),
    )
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.parquet.small.file.limit": "0",
    }
    for city, number in (("A", 4), ("B", 5)):
        more = in_city(city, number, n=[2**41], d=[4.0], added=[number])
        hudi_spark.save(more, path, given)
    filters: dict[str, Sequence[int]] = {
        "n > 1": [2, 3, 4, 5],
        "n = 2": [2],
        "d = 3": [3],
        "d > 3.5": [1, 4, 5],
        "added > 2": [3, 4, 5],
        "added = 3": [3],
    }
    judge(hudi_spark, path, filters)
    hudi.Table.open(str(path), OPTIONS).insert(in_city("B", 6, n=[6], d=[6.0], added=[6]))
    judge(
        hudi_spark,
        path,
        {**filters, "n > 1": [2, 3, 4, 5, 6], "d > 3.5": [1, 4, 5, 6], "added > 2": [3, 4, 5, 6]},
    )


@versions
def test_files_of_several_row_groups(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Our filters and upserts find every row, whatever ranges Hudi-Spark merges of row groups.

    One with a NaN counts as zeros, long strings count as nulls, and keys are compared by UTF-16.
    """
    numbers = [float(n % 5) - 1 for n in range(600)]
    names = [f"m{n % 7:03}" for n in range(600)]
    keys = [f"a{n:05}" for n in range(600)]
    keys[10], keys[590] = "\uff5e", "\U0001f600"
    numbers[10], numbers[11] = math.nan, 100.0
    names[20:23] = ["z" * 3000, "zebra", "a" * 3000]
    # what does not compress makes row groups of some hundred rows
    noise = [hashlib.sha256(str(n).encode()).hexdigest() * 6 for n in range(600)]
    path = tmp_path / "t"
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.datasource.write.row.writer.enable": "false",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": "id,number,name",
        "hoodie.parquet.block.size": "20000",
        "hoodie.parquet.page.size": "4096",
        "hoodie.write.table.version": version,
    }
    made = pa.table({"id": keys, "number": numbers, "name": names, "noise": noise})
    hudi_spark.save(made, path, given, mode="overwrite")
    (data,) = path.glob("*.parquet")
    assert pq.ParquetFile(data).num_row_groups > 2
    table = hudi.Table.open(str(path), OPTIONS)
    # files are left out only where there are others
    for n in range(34):
        table.insert(made.slice(0, 1).set_column(0, "id", [[f"k{n}"]]))
    for column, value in (("number", 100.0), ("name", "zebra"), ("name", "z" * 3000)):
        assert table.to_arrow("id", [(column, "=", value)]).num_rows == 1
    for index in ("SIMPLE", "BLOOM"):
        chosen = {**OPTIONS, "hoodie.index.type": index}
        result = hudi.Table.open(str(path), chosen).upsert(made.slice(590, 1))
        assert (result.updated, result.inserted) == (1, 0)
