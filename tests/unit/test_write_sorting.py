"""The sort modes of bulk inserts: order within files, files per partition, ranges of files."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_core.engine import local
from hudi_core.engine.arrangement import Arrangement, arranged
from hudi_core.errors import SchemaError
from tests.tables import base_files, new_table

SORTED_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("size", pa.struct([("w", pa.int32())])),
        ("tags", pa.list_(pa.string())),
    ]
)
CITIES = ("rome", "oslo", "a/b", None)
COUNT = 900
MODE = "hoodie.bulkinsert.sort.mode"
COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
COMBINE = "hoodie.combine.before.insert"


def shuffled_rows() -> pa.Table:
    draw = random.Random(7)
    numbers = list(range(COUNT))
    draw.shuffle(numbers)
    made: list[dict[str, Any]] = [
        {
            "id": number,
            "city": CITIES[number % len(CITIES)],
            "ts": draw.choice([None, 1, 2, 3]),
            "size": draw.choice([None, {"w": draw.randrange(50)}]),
            "tags": [],
        }
        for number in numbers
    ]
    return pa.Table.from_pylist(made, SORTED_COLUMNS)


def make(path: Path, partition_by: str | None = "city") -> hudi.Table:
    return new_table(
        path / "t",
        SORTED_COLUMNS,
        {"hoodie.datasource.write.partitionpath.urlencode": "true"},
        partition_by=partition_by,
        ordering_field=None,
    )


@pytest.fixture(autouse=True)
def _three_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_ROWS_PER_SPLIT", COUNT // 3)


def written(table: hudi.Table, data: Any, options: dict[str, str]) -> list[tuple[str, pa.Table]]:
    """Write the rows, and return the files by partition."""
    engine = hudi.LocalEngine(3)
    dry = table.plan("bulk_insert", data, options=options, engine=engine)
    result = table.bulk_insert(data, options=options, engine=engine)
    assert (dry.inserted, len(dry.files)) == (COUNT, result.files)
    held = table.to_arrow(["id"]).column(0).to_pylist()
    assert sorted(held) == list(range(COUNT))
    return [
        (status.partition_path, pq.ParquetFile(f"{table.path}/{status.stat.path}").read())
        for status in result.statuses
    ]


def keys(file: pa.Table) -> list[str]:
    found: list[str] = file.column("_hoodie_record_key").to_pylist()
    return found


def test_none_writes_rows_as_they_come(tmp_path: Path) -> None:
    files = written(make(tmp_path), shuffled_rows(), {MODE: "NONE"})

    assert len(files) == 12
    assert all(keys(file) != sorted(keys(file)) for _, file in files)


@pytest.mark.parametrize("combine", ["false", "true"])
@pytest.mark.parametrize("mode", ["PARTITION_SORT", "GLOBAL_SORT"])
def test_sorted_files_are_in_the_order_of_their_keys(
    tmp_path: Path, mode: str, combine: str
) -> None:
    files = written(make(tmp_path), shuffled_rows(), {MODE: mode, COMBINE: combine})

    assert all(keys(file) == sorted(keys(file)) for _, file in files)
    if combine == "false":
        assert len(files) == (12 if mode == "PARTITION_SORT" else 6)


@pytest.mark.parametrize("partition_by", ["city", None])
def test_a_global_sort_gives_files_whose_keys_do_not_overlap(
    tmp_path: Path, partition_by: str | None
) -> None:
    files = written(make(tmp_path, partition_by), shuffled_rows(), {MODE: "GLOBAL_SORT"})

    for path in {path for path, _ in files}:
        ranges = sorted(
            (min(keys(file)), max(keys(file))) for found, file in files if found == path
        )
        assert all(before[1] < after[0] for before, after in pairwise(ranges))
    assert len(files) >= 3


@pytest.mark.parametrize("source", ["table", "stream"])
@pytest.mark.parametrize("combine", ["false", "true"])
def test_rows_are_sorted_by_the_columns_that_are_named(
    tmp_path: Path, source: str, combine: str
) -> None:
    options = {MODE: "GLOBAL_SORT", COLUMNS: "size.w,ts", COMBINE: combine}
    table = make(tmp_path)
    data = shuffled_rows()
    if source == "stream":
        table.bulk_insert(
            pa.RecordBatchReader.from_batches(SORTED_COLUMNS, data.to_batches(100)), options=options
        )
        files = [(str(file.parent), pq.ParquetFile(file).read()) for file in base_files(table)]
        assert len(files) == len(CITIES)
    else:
        files = written(table, data, options)

    for _, file in files:
        values = [
            (-1 if row["size"] is None else row["size"]["w"], row["ts"] or 0)
            for row in file.to_pylist()
        ]
        assert values == sorted(values)


@pytest.mark.parametrize(
    "mode", ["PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"]
)
def test_one_task_writes_all_rows_of_a_partition(tmp_path: Path, mode: str) -> None:
    files = written(make(tmp_path), shuffled_rows(), {MODE: mode})

    assert len(files) == len({path for path, _ in files}) == len(CITIES)
    files = written(make(tmp_path / "flat", None), shuffled_rows(), {MODE: mode})
    assert len(files) == 3  # without partitions one task is no faster


@pytest.mark.parametrize("column", ["nope", "tags", "size", "tags.list.element"])
def test_columns_without_an_order_are_refused(tmp_path: Path, column: str) -> None:
    table = make(tmp_path)

    with pytest.raises(SchemaError, match=f"names '{column}', which"):
        table.bulk_insert(shuffled_rows(), options={MODE: "GLOBAL_SORT", COLUMNS: column})

    assert not table.timeline.instants


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("size", [0, 1, 10])
def test_every_row_is_in_one_part(ranges: bool, size: int) -> None:
    table = pa.table(
        {"a": pa.array([number % 3 for number in range(size)], pa.int64()), "b": range(size)}
    )

    parts = arranged(table, Arrangement(("a",), ranges, as_text=False, tasks=4), 2).tables

    assert sorted(row for part in parts for row in part.column("b").to_pylist()) == list(
        range(size)
    )
    assert len(parts) <= 4
    if not ranges:
        values = [set(part.column("a").to_pylist()) for part in parts]
        assert sum(map(len, values)) == len(set().union(*values))


def test_texts_are_ordered_as_record_keys_are() -> None:
    table = pa.table({"a": [10, 9, 1]})
    split = arranged(table, Arrangement(("a",), ranges=True, as_text=True), 3)

    assert [part.column("a").to_pylist() for part in split.tables] == [[1], [10], [9]]


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["PARTITION_SORT", "GLOBAL_SORT", "PARTITION_PATH_REPARTITION"])
def test_spark_spreads_and_sorts_alike(tmp_path: Path, mode: str, spark: Any) -> None:
    table = make(tmp_path)
    frame = spark.createDataFrame(shuffled_rows()).repartition(3)

    result = table.bulk_insert(
        frame, options={MODE: mode, "hoodie.bulkinsert.shuffle.parallelism": 2}
    )

    assert sorted(table.to_arrow(["id"]).column(0).to_pylist()) == list(range(COUNT))
    files = [
        (one.partition_path, pq.ParquetFile(f"{table.path}/{one.stat.path}").read())
        for one in result.statuses
    ]
    if mode == "PARTITION_PATH_REPARTITION":
        assert len(files) == len(CITIES)
    else:
        assert all(keys(file) == sorted(keys(file)) for _, file in files)
    if mode == "GLOBAL_SORT":
        assert len(files) <= len(CITIES) + 1  # two tasks, one partition between them
