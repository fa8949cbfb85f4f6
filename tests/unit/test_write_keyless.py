"""Tables without a record key: generated keys, and what such tables refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

import hudi_core as hudi
from hudi_core.config.table import KeyGeneratorType
from hudi_core.engine.base import TaskContext
from hudi_core.errors import InvalidOptionError, RecordKeyError
from hudi_core.metadata.bloom import DynamicBloom
from hudi_core.model.commit import WriteStatus

SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("city", pa.string())])
FAST = {"hoodie.fs.fsync": "false"}


def rows(*numbers: int, city: str = "rome") -> pa.Table:
    return pa.table([pa.array(numbers, pa.int64()), [city] * len(numbers)], schema=SCHEMA)


def make(path: Path, partition_by: Any = "city", version: str = "8") -> hudi.Table:
    options = {**FAST, "hoodie.write.table.version": version}
    return hudi.Table.create(
        str(path / "t"), SCHEMA, name="t", partition_by=partition_by, options=options
    )


def keys(table: hudi.Table) -> list[str]:
    found: list[str] = table.to_arrow(["_hoodie_record_key"]).column(0).to_pylist()
    return found


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    ("partition_by", "keygen"),
    [
        (None, KeyGeneratorType.NON_PARTITION),
        ("city", KeyGeneratorType.SIMPLE),
        (["city", "n"], KeyGeneratorType.COMPLEX),
    ],
)
def test_rows_that_are_alike_all_stay(
    tmp_path: Path, partition_by: Any, keygen: KeyGeneratorType, version: str
) -> None:
    table = make(tmp_path, partition_by, version)
    table.bulk_insert(rows(1, 1, 2))
    table.insert(rows(1, 3))
    table.insert(rows(4, city="oslo"))
    table.insert_overwrite(rows(7, 7, city="oslo"))

    expected = [7, 7] if partition_by is None else [1, 1, 1, 2, 3, 7, 7]
    if partition_by == ["city", "n"]:
        expected = [1, 1, 1, 2, 3, 4, 7, 7]
    assert sorted(table.to_arrow(["n"]).column(0).to_pylist()) == expected
    assert len(set(keys(table))) == len(expected)
    batches = HudiTableBuilder.from_base_uri(table.path).build().read()
    foreign = [row for batch in batches for row in batch.to_pylist()]
    assert sorted(row["n"] for row in foreign) == expected
    assert sorted(row["_hoodie_record_key"] for row in foreign) == sorted(keys(table))
    assert hudi.Table.open(table.path).config.keygen_type is keygen
    assert "hoodie.table.recordkey.fields" not in table.config.raw


def test_the_key_is_made_of_instant_task_and_row(tmp_path: Path) -> None:
    table = make(tmp_path)

    time = table.bulk_insert(rows(5, 6)).instant.requested_time

    assert keys(table) == [f"{time}_0_0", f"{time}_0_1"]
    meta = table.to_arrow(["_hoodie_record_key", "_hoodie_commit_seqno"]).to_pylist()
    assert all(row["_hoodie_record_key"] == row["_hoodie_commit_seqno"] for row in meta)


class RetryingEngine(hudi.LocalEngine):
    """Runs every task a second time, and notes what both attempts wrote."""

    def __init__(self, base_path: str) -> None:
        super().__init__(1)
        self._base_path = base_path
        self.attempts: list[list[str]] = []

    def map_input(self, data: Any, function: Any, stage: int) -> list[Any]:
        def again(task: TaskContext, batches: Any) -> Any:
            held = list(batches)
            for attempt in (0, 1):
                done = list(function(replace(task, attempt=attempt), iter(held)))
                for one in done:
                    self._note(one)
            return iter(done)

        return super().map_input(data, again, stage)

    def map_tasks(self, tasks: Any, function: Any, stage: int, weights: Any = None) -> list[Any]:
        def again(task: TaskContext, item: Any) -> Any:
            for attempt in (0, 1):
                done = function(replace(task, attempt=attempt), item)
                self._note(done)
            return done

        return super().map_tasks(tasks, again, stage, weights)

    def _note(self, done: object) -> None:
        if isinstance(done, WriteStatus):
            file = pq.ParquetFile(f"{self._base_path}/{done.stat.path}").read()
            self.attempts.append(file.column("_hoodie_record_key").to_pylist())


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
def test_a_task_that_runs_again_gives_the_same_keys(tmp_path: Path, operation: str) -> None:
    table = make(tmp_path)
    engine = RetryingEngine(table.path)

    getattr(table, operation)(rows(1, 2, 3), engine=engine)

    first, second = engine.attempts
    assert first == second == keys(table)
    assert len(set(first)) == 3


def test_a_file_that_takes_in_rows_knows_all_its_keys(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))
    result = table.insert(rows(3))

    (status,) = result.statuses
    footer = pq.read_metadata(f"{table.path}/{status.stat.path}").metadata
    bloom = DynamicBloom.parse(footer[b"org.apache.hudi.bloomfilter"].decode(), "footer")
    held = sorted(keys(table))
    assert len(held) == 3
    assert all(bloom.might_contain(pa.array(held)))
    assert footer[b"hoodie_min_record_key"].decode() == held[0]
    assert footer[b"hoodie_max_record_key"].decode() == held[-1]


@pytest.mark.parametrize(("operation", "word"), [("upsert", "upserted"), ("delete", "deleted")])
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_needs_keys_is_refused(
    tmp_path: Path, operation: str, word: str, dry_run: bool
) -> None:
    table = make(tmp_path)

    with pytest.raises(RecordKeyError, match=f"no record key, so its rows cannot be {word}"):
        getattr(table, operation)(rows(1), dry_run=dry_run)

    assert not table.timeline.instants


@pytest.mark.parametrize(
    "option",
    [
        {"hoodie.combine.before.insert": "true"},
        {"hoodie.datasource.insert.dup.policy": "drop"},
        {"hoodie.datasource.insert.dup.policy": "fail"},
    ],
)
def test_options_that_compare_keys_are_refused(tmp_path: Path, option: dict[str, str]) -> None:
    table = make(tmp_path)

    with pytest.raises(InvalidOptionError, match="no two rows have the same"):
        table.insert(rows(1), options=option)


def test_updating_on_insert_has_nothing_to_update(tmp_path: Path) -> None:
    table = make(tmp_path)
    option = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
    table.insert(rows(1, 1), options=option)

    assert table.insert(rows(1, 1), options=option).inserted == 2
    assert len(set(keys(table))) == 4


def test_insert_is_the_default_of_such_a_table(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {**FAST, "hoodie.datasource.write.partitionpath.field": "city"}

    made = hudi.write(rows(1, 1), path, options=options)
    again = hudi.write(rows(1), path, options=FAST)

    assert made is not None
    assert again is not None
    assert made.operation is again.operation is hudi.WriteOperation.INSERT
    upsert = {**FAST, "hoodie.datasource.write.operation": "upsert"}
    with pytest.raises(RecordKeyError, match="cannot be upserted"):
        hudi.write(rows(1), path, options=upsert)


def test_rows_are_sorted_by_named_columns(tmp_path: Path) -> None:
    table = make(tmp_path, None)
    options = {
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "n",
    }

    table.bulk_insert(rows(3, 1, 2), options=options)

    assert table.to_arrow(["n"]).column(0).to_pylist() == [1, 2, 3]
