"""Partitions within partitions: refused, and at what cost in requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import PartitionValueError
from hudi_core.model.files import FileStatus
from hudi_core.storage.posix import PosixStorage
from hudi_core.txn.transaction import Transaction
from hudi_core.write.steps import WriteSteps
from tests.tables import new_table

FAST = {"hoodie.metadata.enable": "false"}
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])
OPERATIONS = ["insert", "upsert", "bulk_insert", "insert_overwrite"]


def rows(*parts: str) -> pa.Table:
    return pa.table({"id": [f"{part}-{n}" for n, part in enumerate(parts)], "part": parts}, SCHEMA)


def make(path: Path, *parts: str) -> hudi.Table:
    return new_table(path / "t", rows(*parts) if parts else SCHEMA, FAST)


def partitions(table: hudi.Table) -> list[str]:
    return sorted(hudi.Table.open(table.path).to_arrow()["part"].to_pylist())


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("stored", "written"),
    [
        (["a/b"], ["a"]),
        (["a"], ["a/b"]),
        (["a/b/c", "x"], ["new", "a"]),
        (["a"], ["a/b/c"]),
        (["a/b/c"], ["a/b"]),
        ([], ["a", "a/b"]),
        (["x"], ["a/b/c", "a"]),
    ],
)
def test_nested_partitions_are_refused(
    operation: str, stored: list[str], written: list[str], tmp_path: Path
) -> None:
    table = make(tmp_path, *stored)
    with pytest.raises(PartitionValueError, match="would lie within"):
        getattr(table, operation)(rows(*written))
    # nothing that the refused write left hides rows, and the table can be written
    assert partitions(table) == stored
    table.insert(rows("elsewhere", *stored))
    assert set(partitions(table)) == {"elsewhere", *stored}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_partitions_beside_each_other_are_written(operation: str, tmp_path: Path) -> None:
    table = make(tmp_path, "2026/01/30", "a", "ab")
    getattr(table, operation)(rows("2026/01/31", "b", "a", "a!"))
    assert {"2026/01/30", "2026/01/31", "a", "ab", "b", "a!"} == set(partitions(table))


@pytest.mark.parametrize(("stored", "written"), [("a/b", "a"), ("a", "a/b"), ("a/b/c", "a")])
def test_a_bulk_insert_that_dies_hides_nothing(
    stored: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path, stored)
    # what a killed process leaves: nothing is checked or undone after the tasks
    monkeypatch.setattr(WriteSteps, "_require_unnested", lambda *_: None)
    monkeypatch.setattr(Transaction, "abort", lambda self: self.heartbeat.stop())

    with pytest.raises(PartitionValueError, match="would lie within"):
        table.bulk_insert(rows(written))

    assert partitions(table) == [stored]
    monkeypatch.undo()
    table.insert(rows(stored))  # rolls back what the dead one left
    assert partitions(table) == [stored, stored]


def test_partitions_of_one_write_within_each_other_leave_no_metadata(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(PartitionValueError, match="would lie within"):
        table.bulk_insert(rows("a/b", "a"))
    # neither is in the way of the other
    table.bulk_insert(rows("a"))
    assert partitions(table) == ["a"]


def test_a_partition_without_metadata_is_found(tmp_path: Path) -> None:
    table = make(tmp_path, "a/b")
    (Path(table.path) / "a/b/.hoodie_partition_metadata").unlink()
    with pytest.raises(PartitionValueError, match="would lie within"):
        table.insert(rows("a"))


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the requests for partitions, by kind."""
    counted: Counter[str] = Counter()
    head, list_ = PosixStorage.head, PosixStorage.list

    def counting_head(self: PosixStorage, path: str) -> FileStatus | None:
        counted["head"] += not path.startswith(".hoodie/")
        return head(self, path)

    def counting_list(self: PosixStorage, *given: Any, **named: Any) -> Iterator[FileStatus]:
        counted["list"] += not str([*given, *named.values()][0]).startswith(".hoodie")
        return list_(self, *given, **named)

    monkeypatch.setattr(PosixStorage, "head", counting_head)
    monkeypatch.setattr(PosixStorage, "list", counting_list)
    return counted


@pytest.mark.parametrize(
    ("operation", "part", "heads", "lists"),
    [
        # one head is of the task that makes a file group, for the partition's own metadata; where
        # there is none it looks above and below once more
        ("upsert", "p007", 0, 1),
        ("insert", "p007", 0, 1),
        ("upsert", "new", 1, 3),
        ("upsert", "new/one", 3, 3),
        ("upsert", "2026/01/31", 5, 3),
        ("upsert", "2026/01/30", 2, 1),
        ("bulk_insert", "p007", 1, 1),
        ("bulk_insert", "new", 1, 3),
    ],
)
def test_other_partitions_are_not_asked_about(
    operation: str, part: str, heads: int, lists: int, tmp_path: Path, requests: Counter[str]
) -> None:
    table = make(tmp_path, *(f"p{n:03}" for n in range(300)), "2026/01/30")
    requests.clear()
    getattr(table, operation)(rows(part))
    assert requests == Counter(head=heads, list=lists)
