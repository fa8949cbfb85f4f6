"""Tables without a record key: generated keys, and what such tables refuse."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

import hudi_core as hudi
from hudi_core.config.table import KeyGeneratorType
from hudi_core.engine.base import TaskContext
from hudi_core.errors import InvalidOptionError, PartitionValueError, RecordKeyError
from hudi_core.hashing.bloom import DynamicBloom
from hudi_core.model.commit import WriteStatus
from tests.foreign import by_hudi_rs

SCHEMA = pa.schema([("n", pa.int64()), ("city", pa.string())])


def rows(*numbers: int, city: str = "rome") -> pa.Table:
    return pa.table([pa.array(numbers, pa.int64()), [city] * len(numbers)], schema=SCHEMA)


def make(path: Path, partition_by: Any = "city", version: str = "8") -> hudi.Table:
    options = {"hoodie.write.table.version": version}
    return hudi.Table.create(
        str(path / "t"), SCHEMA, name="t", partition_by=partition_by, options=options
    )


def keys(table: hudi.Table) -> list[str]:
    found: list[str] = table.to_arrow(["_hoodie_record_key"]).column(0).to_pylist()
    return found


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_rows_read_back_under_one_key_fill_each_other(tmp_path: Path, index: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.string())])
    options = {
        "hoodie.index.type": index,
        "hoodie.datasource.write.payload.class": (
            "org.apache.hudi.common.model.PartialUpdateAvroPayload"
        ),
    }
    table = hudi.Table.create(
        str(tmp_path / "t"), schema, name="t", ordering_field="a", options=options
    )
    table.insert(pa.table([[1], ["x"], ["y"]], schema=schema))
    (read,) = table.to_arrow().to_pylist()
    changes = [{**read, "a": 2, "b": "B2", "c": None}, {**read, "a": 3, "b": None, "c": "C3"}]
    table.upsert(pa.Table.from_pylist(changes, table.to_arrow().schema))
    assert table.to_arrow(["a", "b", "c"]).to_pylist() == [{"a": 3, "b": "B2", "c": "C3"}]


def test_rows_read_back_of_which_none_is_stored_any_more(tmp_path: Path) -> None:
    options = {"hoodie.combine.before.upsert": "false"}
    table = hudi.Table.create(str(tmp_path / "t"), SCHEMA, name="t", options=options)
    table.insert(rows(1, 2))
    read = table.to_arrow()
    table.delete(read.slice(1))
    twice = pa.concat_tables([read.slice(1), read.slice(1)])
    assert table.upsert(twice).inserted == 1
    assert len(keys(table)) == 2


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
    foreign = by_hudi_rs(table.path)
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
@pytest.mark.parametrize("planned", [False, True])
def test_what_needs_keys_is_refused(
    tmp_path: Path, operation: str, word: str, planned: bool
) -> None:
    table = make(tmp_path)
    write = partial(table.plan, operation) if planned else getattr(table, operation)

    with pytest.raises(RecordKeyError, match=f"no record key, so its rows cannot be {word}"):
        write(rows(1))

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
    options = {"hoodie.datasource.write.partitionpath.field": "city"}

    made = hudi.write(rows(1, 1), path, options=options)
    again = hudi.write(rows(1), path)

    assert made is not None
    assert again is not None
    assert made.operation is again.operation is hudi.WriteOperation.INSERT
    upsert = {"hoodie.datasource.write.operation": "upsert"}
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


# --- rows that were read from the table -----------------------------------------------------------

INDEXES: dict[str, dict[str, str]] = {
    "default": {},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "record index": {
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    },
}


def with_numbers(rows: pa.Table, *numbers: int) -> pa.Table:
    """Return rows with another value of ``n`` in each."""
    return rows.set_column(rows.schema.get_field_index("n"), SCHEMA.field("n"), [numbers])


def where(path: str, number: int) -> pa.Table:
    return hudi.Table.open(path).to_arrow(filter=[("n", "=", number)])


def numbers_of(path: str) -> list[int]:
    """Return the values as hudi-rs reads them."""
    batches = HudiTableBuilder.from_base_uri(path).build().read()
    return sorted(row["n"] for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("partition", [{}, {"hoodie.datasource.write.partitionpath.field": "city"}])
def test_the_quick_start_of_hudi(tmp_path: Path, index: str, partition: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    options = {**INDEXES[index], **partition}
    hudi.write(pa.concat_tables([rows(1, 1, 2), rows(3, city="oslo")]), path, options=options)
    before = keys(hudi.Table.open(path))

    # read, change, append: an update, and so is an upsert
    changed = with_numbers(where(path, 2), 20)
    first = hudi.write(changed, path, options=options)
    upsert = {**options, "hoodie.datasource.write.operation": "upsert"}
    second = hudi.write(with_numbers(where(path, 3), 30), path, options=upsert)
    assert first is not None
    assert second is not None
    for result in (first, second):
        assert result.operation is hudi.WriteOperation.UPSERT
        assert (result.inserted, result.updated, result.deleted) == (0, 1, 0)
    assert numbers_of(path) == [1, 1, 20, 30]
    assert sorted(keys(hudi.Table.open(path))) == sorted(before)

    # read, delete; no more is needed than the two meta columns
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    third = hudi.write(where(path, 30), path, options=delete)
    table = hudi.Table.open(path, options)
    own = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"], [("n", "=", 1)])
    dry = table.plan("delete", own.slice(0, 1))
    fourth = table.delete(own.slice(0, 1))
    assert third is not None
    assert (third.deleted, dry.deleted, fourth.deleted) == (1, 1, 1)
    assert numbers_of(path) == [1, 20]
    assert table.validate().is_valid


def test_of_several_changes_of_a_row_the_last_stays(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))
    row = where(table.path, 1)

    result = table.upsert(pa.concat_tables([with_numbers(row, 5), with_numbers(row, 6)]))

    assert (result.inserted, result.updated) == (0, 1)
    assert numbers_of(table.path) == [2, 6]


def test_a_row_can_delete_itself(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))
    gone = where(table.path, 1).append_column("_hoodie_is_deleted", pa.array([True]))

    assert table.upsert(gone).deleted == 1
    assert numbers_of(table.path) == [2]


def test_keys_that_the_table_does_not_hold_are_new_rows(tmp_path: Path) -> None:
    """As in Hudi: so they are when rows were read, and deleted meanwhile."""
    table = make(tmp_path)
    table.insert(rows(1, 2))
    row = where(table.path, 1)
    table.delete(row)

    assert table.upsert(row).inserted == 1
    assert numbers_of(table.path) == [1, 2]
    assert row.column("_hoodie_record_key")[0].as_py() in keys(table)


def test_an_insert_makes_new_keys_of_rows_that_were_read(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))

    for operation in (table.insert, table.bulk_insert):
        assert operation(where(table.path, 1).slice(0, 1)).inserted == 1

    assert len(set(keys(table))) == 4
    # a table that is made of them has keys of its own, too
    copy = str(tmp_path / "copy")
    result = hudi.write(table.to_arrow(), copy)
    assert result is not None
    assert result.operation is hudi.WriteOperation.INSERT
    assert set(keys(hudi.Table.open(copy))).isdisjoint(keys(table))


def test_rows_without_a_partition_path_are_found_by_their_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))
    row = where(table.path, 2).drop_columns(["_hoodie_partition_path"])

    assert table.upsert(with_numbers(row, 3)).updated == 1
    assert table.delete(row).deleted == 1
    assert numbers_of(table.path) == [1]


@pytest.mark.parametrize("operation", ["upsert", "delete"])
@pytest.mark.parametrize("key", [None, ""])
def test_rows_of_which_some_bring_no_key_are_refused(
    tmp_path: Path, operation: str, key: str | None
) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))
    read = table.to_arrow()
    mixed = read.set_column(2, "_hoodie_record_key", [[read.column(2)[0].as_py(), key]])

    with pytest.raises(RecordKeyError, match="null or empty in 1 of 2 rows"):
        getattr(table, operation)(mixed)

    assert len(table.timeline.instants) == 1


def test_a_row_that_would_move_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))
    moved = where(table.path, 2)
    moved = moved.set_column(moved.schema.get_field_index("city"), "city", [["oslo"]])

    with pytest.raises(PartitionValueError, match="1 of 1 rows do not belong"):
        table.upsert(moved)

    assert len(table.timeline.instants) == 1
    assert numbers_of(table.path) == [1, 2]


def test_rows_that_lack_columns_keep_stored_values(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(rows(1, 2))
    table.alter(add_columns={"note": pa.string()})
    row = where(table.path, 1).drop_columns(["note"])

    result = table.upsert(
        with_numbers(row, 7), options={"hoodie.write.set.null.for.missing.columns": "true"}
    )

    assert result.updated == 1
    assert numbers_of(table.path) == [2, 7]
