"""A write is refused before it writes data where a live writer changes one of its file groups."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CommitConflictError
from hudi_core.txn.transaction import Transaction

EARLY = "hoodie.write.concurrency.early.conflict.detection.enable"
SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


def rows(part: str, value: int) -> pa.Table:
    return pa.table({"id": [f"{part}1", f"{part}2"], "part": [part, part], "v": [value, value]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = hudi.Table.create(
        str(tmp_path / "t"), rows("a", 0).schema, name="t", record_key="id", partition_by="part"
    )
    table.insert(pa.concat_tables([rows("a", 0), rows("b", 0)]))
    return table.path


@contextmanager
def writing(path: str, part: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A writer whose data is written, and whose commit waits."""
    ready, go = threading.Event(), threading.Event()
    commit = Transaction.commit

    def waiting(self: Transaction, *arguments: object) -> object:
        if not ready.is_set():
            ready.set()
            go.wait(30)
        return commit(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "commit", waiting)
    table = hudi.Table.open(path, SHARED)
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(table.upsert, rows(part, 1))
        try:
            while not ready.wait(0.1):
                assert not done.done(), done.exception()
            yield
        finally:
            go.set()
        done.result(30)


def files(path: str) -> set[str]:
    return {str(one) for one in Path(path).rglob("*.parquet")}


def test_the_second_writer_of_a_file_group_writes_no_data(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = hudi.Table.open(path, SHARED | {EARLY: "true"})
    with writing(path, "a", monkeypatch):
        before = files(path)
        with pytest.raises(CommitConflictError) as caught:
            early.upsert(rows("a", 2))
        assert files(path) == before
        assert "is under way, changes file group" in str(caught.value)
        assert "No data was written" in str(caught.value)
        early.upsert(rows("b", 2))  # another file group
    found = hudi.Table.open(path).to_arrow(["part", "v"]).to_pylist()
    assert {(one["part"], one["v"]) for one in found} == {("a", 1), ("b", 2)}
    early.upsert(rows("a", 3))


def test_without_the_option_the_commit_decides(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(CommitConflictError, match="was completed while this write"),
        writing(path, "a", monkeypatch),
    ):
        hudi.Table.open(path, SHARED).upsert(rows("a", 2))
    assert set(hudi.Table.open(path).to_arrow("v")["v"].to_pylist()) == {0, 2}
