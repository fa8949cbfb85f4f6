"""Which concurrent writes are given up: by file group, by partition, by table; and how early."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CommitConflictError, InvalidOptionError
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata, WriteStat
from hudi_core.model.conflicts import TouchConflicts
from hudi_core.model.format import Granularity
from hudi_core.plugin.host import FormatHost
from hudi_core.txn.transaction import Transaction
from tests import tables
from tests.formats.two_steps import (
    READABLE,
    SHARED,
    Write,
    batch,
    overlapping,
    read_at_rest,
    small_table,
)
from tests.tables import rows

STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"
PAIRS: dict[str, tuple[Write, Write]] = {
    "one file group": (lambda t: t.upsert(batch(2, "a")), lambda t: t.upsert(batch(3, "b"))),
    "one partition": (lambda t: t.upsert(batch(2, "a")), lambda t: t.bulk_insert(batch(3, "c"))),
    "one table": (lambda t: t.upsert(batch(2, "a")), lambda t: t.upsert(batch(3, "x"))),
}
"""What one writer does while the other one is at work: they share no more than that."""
ORDER = ("one file group", "one partition", "one table")


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, table: hudi.Table, pair: str, strategy: str | None = None
) -> None:
    """Do two writes of which each begins before the other one commits; theirs commits first."""
    named = {STRATEGY: strategy} if strategy else {}
    overlapping(monkeypatch, table, *PAIRS[pair], named)


@pytest.mark.parametrize("granularity", list(Granularity))
@pytest.mark.parametrize("pair", ORDER)
@pytest.mark.parametrize("format_name", [*READABLE])
def test_a_strategy_gives_up_what_it_says(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format_name: str,
    pair: str,
    granularity: Granularity,
) -> None:
    table = small_table(path, format_name)
    if ORDER.index(pair) <= list(Granularity).index(granularity):
        with pytest.raises(CommitConflictError, match="both changed") as caught:
            meanwhile(monkeypatch, table, pair, granularity.value)
        assert caught.value.facts["other"]
        assert read_at_rest(table)["a"] == 1
    else:
        meanwhile(monkeypatch, table, pair, granularity.value)
        assert read_at_rest(table)["a"] == 2


@pytest.mark.parametrize("format_name", READABLE)
def test_writes_of_different_file_groups_agree_in_every_format(
    path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    table = small_table(path, format_name)
    meanwhile(monkeypatch, table, "one partition")
    assert read_at_rest(table) == {"a": 2, "b": 1, "c": 3, "x": 1}


def test_a_format_can_be_stricter_and_a_user_has_the_last_word(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table(path, "iceberg")
    strict = TouchConflicts(Granularity.TABLE)
    monkeypatch.setattr(FormatHost, "get_conflict_resolution_strategy", lambda *_: strict)
    with pytest.raises(CommitConflictError, match="both changed the table"):
        meanwhile(monkeypatch, table, "one table")
    meanwhile(monkeypatch, table, "one table", "file_group")
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 3}


def test_a_format_cannot_be_laxer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(path, "delta")

    class Careless(TouchConflicts):
        def conflict(self, *_: object) -> str | None:
            return None

    monkeypatch.setattr(FormatHost, "get_conflict_resolution_strategy", lambda *_: Careless())
    with pytest.raises(CommitConflictError, match="both changed file group"):
        meanwhile(monkeypatch, table, "one file group")


def test_the_strategy_is_a_word_or_a_class_of_hudi(path: Path) -> None:
    table = small_table(path, "delta")
    name = "org.apache.hudi.client.transaction."
    known = f"{name}SimpleConcurrentFileWritesConflictResolutionStrategy"
    hudi.Table.open(table.path, {**SHARED, STRATEGY: known}).upsert(batch(2, "a"))
    odd = {**SHARED, STRATEGY: "my.own.Strategy"}
    with pytest.raises(InvalidOptionError, match=r"my\.own\.Strategy"):
        hudi.Table.open(table.path, odd).upsert(batch(3, "a"))


def _touching(partition: str, *groups: str) -> CommitMetadata:
    stats = tuple(WriteStat(file_id=group, partition_path=partition) for group in groups)
    return CommitMetadata({partition: stats})


def _replacing(partition: str, *groups: str) -> CommitMetadata:
    return ReplaceCommitMetadata({}, partition_to_replace_file_ids={partition: groups})


@pytest.mark.parametrize(
    ("mine", "theirs", "shared"),
    [
        (_touching("p", "1"), _touching("p", "1"), Granularity.FILE_GROUP),
        (_touching("p", "1"), _replacing("p", "1"), Granularity.FILE_GROUP),
        (_replacing("p", "1", "2"), _replacing("p", "2"), Granularity.FILE_GROUP),
        (_touching("p", "1"), _touching("p", "2"), Granularity.PARTITION),
        (_replacing("p"), _touching("p", "2"), Granularity.PARTITION),
        (_touching("p", "1"), _touching("q", "1"), Granularity.TABLE),
        (CommitMetadata(), CommitMetadata(), Granularity.TABLE),
    ],
)
def test_commits_share(mine: CommitMetadata, theirs: CommitMetadata, shared: Granularity) -> None:
    order = list(Granularity)
    for one in order:
        reason = TouchConflicts(one).conflict(mine, theirs)
        assert (reason is not None) is (order.index(one) >= order.index(shared)), one


def test_groups_of_one_bucket_are_one_place() -> None:
    one = _touching("p", "00000003-aaaa-0")
    other = _touching("p", "00000003-bbbb-0")
    assert TouchConflicts().conflict(one, other) is None
    assert TouchConflicts(has_buckets=True).conflict(one, other) is not None


EARLY = "hoodie.write.concurrency.early.conflict.detection.enable"


def two_rows(part: str, value: int) -> pa.Table:
    return rows(f"{part}1", f"{part}2", part=part, v=value)


@pytest.fixture
def parted(path: Path) -> str:
    return tables.new_table(path, pa.concat_tables([two_rows("a", 0), two_rows("b", 0)])).path


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
        done = threads.submit(table.upsert, two_rows(part, 1))
        try:
            while not ready.wait(0.1):
                assert not done.done(), done.exception()
            yield
        finally:
            go.set()
        done.result(30)


def files(path: str) -> set[str]:
    return {str(one) for one in Path(path).rglob("*.parquet")}


def test_the_second_writer_writes_no_data(parted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    early = hudi.Table.open(parted, SHARED | {EARLY: "true"})
    with writing(parted, "a", monkeypatch):
        before = files(parted)
        with pytest.raises(CommitConflictError) as caught:
            early.upsert(two_rows("a", 2))
        assert files(parted) == before
        assert "is under way, changes file group" in str(caught.value)
        assert "No data was written" in str(caught.value)
        early.upsert(two_rows("b", 2))  # another file group
    found = hudi.Table.open(parted).to_arrow(["part", "v"]).to_pylist()
    assert {(one["part"], one["v"]) for one in found} == {("a", 1), ("b", 2)}
    early.upsert(two_rows("a", 3))


def test_without_option_the_commit_decides(parted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(CommitConflictError, match="was completed while this write"),
        writing(parted, "a", monkeypatch),
    ):
        hudi.Table.open(parted, SHARED).upsert(two_rows("a", 2))
    assert set(hudi.Table.open(parted).to_arrow("v")["v"].to_pylist()) == {0, 2}
