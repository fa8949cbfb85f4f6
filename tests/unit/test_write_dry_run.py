"""Dry runs: nothing is written, and what they say is what the write then does."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, SchemaError, UnknownPartitionError
from hudi_core.model.dry_run import FileChange
from hudi_core.txn.table_lock import TableLock
from tests.calls import disk_requests
from tests.tables import copied, new_table

KINDS = {
    **dict.fromkeys(("read", "head", "version"), "reads"),
    **dict.fromkeys(("put", "put_if_absent", "compare_and_set"), "writes"),
    **dict.fromkeys(("list", "list_names", "list_folders"), "lists"),
    **dict.fromkeys(("delete", "delete_tree"), "deletes"),
}
NOTED = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("text", pa.string())]
)
FAST = {"hoodie.metadata.enable": "false"}
INDEXED = {**FAST, "hoodie.metadata.enable": "true"}


def notes(count: int, cities: tuple[str, ...] = ("rome", "oslo"), first: int = 0) -> pa.Table:
    made = [
        {
            "id": f"{city}{number}",
            "city": city,
            "ts": 1,
            "text": hashlib.sha256(f"{number}".encode()).hexdigest(),
        }
        for city in cities
        for number in range(first, first + count)
    ]
    return pa.Table.from_pylist(made, NOTED)


def made_table(path: Path, options: dict[str, str]) -> hudi.Table:
    new_table(path, NOTED, options, ordering_field=None).bulk_insert(notes(2000))
    return hudi.Table.open(path, options)


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", made_table, FAST)


@dataclass(frozen=True)
class Call:
    """An operation and the rows, or partitions, that it takes."""

    operation: str
    data: Callable[[], Any]

    def plan(self, table: hudi.Table) -> hudi.DryRun:
        return table.plan(self.operation, self.data())

    def run(self, table: hudi.Table) -> hudi.CommitResult:
        result: hudi.CommitResult = getattr(table, self.operation)(self.data())
        return result


CALLS = {
    "insert": Call("insert", lambda: notes(500, first=5000)),
    "insert-new": Call("insert", lambda: notes(500, ("bari",))),
    "bulk_insert": Call("bulk_insert", lambda: notes(500, first=5000)),
    "upsert": Call("upsert", lambda: notes(1000, ("rome",), first=1500)),
    "delete": Call("delete", lambda: notes(700).select(["id", "city"])),
    "insert_overwrite": Call("insert_overwrite", lambda: notes(9)),
    "insert_overwrite_table": Call("insert_overwrite_table", lambda: notes(1000, ("bari",))),
    "delete_partitions": Call("delete_partitions", lambda: ["oslo"]),
}
EACH = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def tree(path: str) -> dict[str, tuple[int, str]]:
    """Every file and folder with its time of change and its content."""
    found = {}
    for one in sorted(Path(path).rglob("*")):
        content = hashlib.sha256(one.read_bytes()).hexdigest() if one.is_file() else "folder"
        found[str(one)] = (one.stat().st_mtime_ns, content)
    return found


@EACH
def test_nothing_is_written_and_no_lock_is_taken(
    table: hudi.Table, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(table.path)
    monkeypatch.setattr(TableLock, "held", None)

    call.plan(table)

    assert tree(table.path) == before


@EACH
def test_the_write_does_what_the_dry_run_said(table: hudi.Table, call: Call) -> None:
    dry = call.plan(table)
    result = call.run(table)

    assert dry.operation is result.operation
    assert (dry.inserted, dry.updated, dry.deleted) == (
        result.inserted,
        result.updated,
        result.deleted,
    )
    changes = Counter(file.change for file in dry.files)
    rewritten = [one.stat for one in result.statuses if one.stat.prev_base_file]
    assert changes[FileChange.REWRITE] == len(rewritten)
    assert changes[FileChange.CREATE] == len(result.statuses) - len(rewritten)
    assert {file.file_id for file in dry.files if file.change is FileChange.REWRITE} == {
        stat.file_id for stat in rewritten
    }
    assert dry.bytes_written == pytest.approx(result.bytes_written, rel=0.5, abs=4000)
    assert str(dry).startswith(f"{result.operation.value.lower()} (dry run): ")


@EACH
def test_the_requests_are_those_of_the_write(
    table: hudi.Table, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = call.plan(table)
    # who has not seen it yet looks at all of it
    other = hudi.Table.open(table.path, FAST)
    requests = disk_requests(monkeypatch, *KINDS)

    result = call.run(other)

    counted, data_files = by_kind(requests), len(result.statuses)
    assert dry.requests.writes == counted["writes"] + data_files
    assert dry.requests.lists == pytest.approx(counted["lists"], rel=0.5)
    looked_at = sum(file.change is FileChange.REWRITE for file in dry.files)
    assert dry.requests.reads == pytest.approx(counted["reads"] + looked_at, rel=0.6)
    # a folder of markers counts as one here, and as its markers in an object store
    assert dry.requests.deletes == counted["deletes"] - 1 + data_files
    assert dry.requests.total > 10


@EACH
def test_those_for_the_metadata_table_come_on_top(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made_table(tmp_path / "t", INDEXED)
    dry = call.plan(table)
    requests = disk_requests(monkeypatch, *KINDS)

    result = call.run(table)

    counted = by_kind(requests)
    # a partition of the metadata table in which no key changes gets no file
    most = dry.requests.writes - counted["writes"] - len(result.statuses)
    assert 0 <= most <= 3
    assert dry.requests.lists == pytest.approx(counted["lists"], rel=0.3)
    looked_at = sum(file.change is FileChange.REWRITE for file in dry.files)
    assert dry.requests.reads == pytest.approx(counted["reads"] + looked_at, rel=0.6)


def test_building_a_metadata_table_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", NOTED, INDEXED, ordering_field=None)
    dry = table.plan("insert", notes(20))
    requests = disk_requests(monkeypatch, *KINDS)

    result = table.insert(notes(20))

    assert dry.requests.writes == pytest.approx(by_kind(requests)["writes"] + result.files, abs=6)


def by_kind(requests: list[tuple[str, str]]) -> Counter[str]:
    return Counter(KINDS[name] for name, _ in requests)


def test_a_file_is_named_with_what_becomes_of_it(table: hudi.Table) -> None:
    flagged = notes(3, ("rome",), first=1999)
    flagged = flagged.append_column("_hoodie_is_deleted", pa.array([True, False, None]))

    dry = table.plan("upsert", pa.concat_tables([flagged]))

    (file,) = dry.files
    (slice_,) = table.file_slices(filter=[("city", "=", "rome")])
    assert slice_.base_file is not None
    assert (file.change, file.file_id, file.path) == (
        FileChange.REWRITE,
        slice_.file_id,
        slice_.base_file.path,
    )
    assert (file.inserted, file.updated, file.deleted) == (2, 0, 1)
    assert dry.partitions == ("rome",)


def test_a_replaced_file_is_named_and_costs_nothing(table: hudi.Table) -> None:
    dry = table.plan("insert_overwrite", notes(5, ("rome",)))

    changes = {file.change: file for file in dry.files}
    replaced, created = changes[FileChange.REPLACE], changes[FileChange.CREATE]
    assert replaced.path in {one.base_file.path for one in table.file_slices() if one.base_file}
    assert (replaced.bytes_written, replaced.inserted) == (0, 0)
    assert (created.path, created.file_id, created.inserted) == (None, None, 5)


def test_large_writes_are_cut_as_the_write_cuts_them(table: hudi.Table) -> None:
    options = {"hoodie.parquet.max.file.size": 50_000, "hoodie.parquet.small.file.limit": 0}
    sized = {"hoodie.copyonwrite.record.size.estimate": 100, **options}

    dry = table.plan("insert", notes(1500, ("bari",)), options=sized)
    result = table.insert(notes(1500, ("bari",)), options=sized)

    assert len(dry.files) == result.files > 1


def test_rows_that_do_not_fit_are_refused_all_the_same(table: hudi.Table) -> None:
    before = tree(table.path)

    with pytest.raises(SchemaError, match="lack the column 'text'"):
        table.plan("upsert", notes(1).drop_columns("text"))
    with pytest.raises(UnknownPartitionError):
        table.plan("delete_partitions", ["nowhere"])

    assert tree(table.path) == before


def test_no_rows_touch_nothing(table: hudi.Table) -> None:
    dry = table.plan("upsert", notes(0))

    assert dry.files == ()
    assert (dry.bytes_written, dry.inserted) == (0, 0)


def test_a_stream_is_rehearsed_too(table: hudi.Table) -> None:
    data = notes(300, ("bari",))
    stream = pa.RecordBatchReader.from_batches(NOTED, data.to_batches(50))

    assert table.plan("bulk_insert", stream).inserted == 300


def test_what_a_dead_writer_left_is_left(table: hudi.Table) -> None:
    stray = Path(table.path) / ".hoodie" / "timeline" / "20260101000000000.commit.requested"
    LocalFileSystem().open_output_stream(str(stray)).close()
    before = tree(table.path)

    table.plan("upsert", notes(1))

    assert tree(table.path) == before


@pytest.mark.spark
@EACH
def test_a_dry_run_on_spark_says_the_same(
    table: hudi.Table, call: Call, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = call.plan(table)
    before = tree(table.path)
    plain = notes

    def distributed(*arguments: Any, **named: Any) -> Any:
        return spark.createDataFrame(plain(*arguments, **named)).coalesce(1)

    monkeypatch.setitem(globals(), "rows", distributed)
    there = call.plan(table)

    assert there == here
    assert tree(table.path) == before


def test_operations_have_the_names_of_methods_and_those_of_options(table: hudi.Table) -> None:
    assert table.plan("delete_partitions", ["oslo"]) == table.plan("delete_partition", ["oslo"])
    assert table.plan("UPSERT", notes(1)) == table.plan("upsert", notes(1))
    with pytest.raises(InvalidOptionError, match=r"there is none.*Use one of upsert, insert, "):
        table.plan("merge", notes(1))
