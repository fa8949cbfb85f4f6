"""A completed file that lands after its write was rolled back counts for nobody, and goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CommitStateUnknownError, IncompleteCommitError, StorageError
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.late_writes import late_writes
from hudi_core.txn import rollback
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from tests.foreign import by_hudi_rs
from tests.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
FAST = {"hoodie.fs.fsync": "false", "hoodie.metadata.enable": "false"}
put_if_absent = PosixStorage.put_if_absent
Write = Callable[[hudi.Table], object]


def rows(*ids: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "ts": [ts] * len(ids)}, SCHEMA)


WRITES: list[Write] = [
    lambda table: table.insert_overwrite_table(rows("z")),
    lambda table: table.upsert(rows("a", ts=9)),
]


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return new_table(tmp_path / "t", rows("a", "b"), FAST)


def content(table: hudi.Table) -> list[tuple[str, int]]:
    found = hudi.Table.open(table.path).to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def foreign_content(table: hudi.Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in by_hudi_rs(table.path))


def is_completion(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.endswith("timeline") and name.endswith(("commit", ".rollback"))


@contextmanager
def kept_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], None]]]:
    """Let the store hold back what completes a write, and tell its writer nothing but a failure."""
    late: list[Callable[[], None]] = []

    def slow(self: PosixStorage, path: str, data: bytes) -> None:
        if not is_completion(path):
            return put_if_absent(self, path, data)
        late.append(lambda: put_if_absent(self, path, data))
        raise StorageError("The connection broke", "Try again.")

    with monkeypatch.context() as patched:
        patched.setattr(PosixStorage, "put_if_absent", slow)
        yield late


def completed(table: hudi.Table) -> list[Path]:
    folder = Path(table.path) / ".hoodie/timeline"
    return sorted(path for path in folder.iterdir() if path.name.endswith("commit"))


@pytest.mark.parametrize("write", WRITES)
def test_a_put_that_lands_after_the_rollback_is_undone(
    write: Write, table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept_back(monkeypatch) as late, pytest.raises(CommitStateUnknownError):
        write(table)
    table.insert(rows("c"))
    before = completed(table)
    (land,) = late
    land()

    assert len(completed(table)) == len(before) + 1
    assert content(table) == [("a", 1), ("b", 1), ("c", 1)]
    opened = open_table(table.path, FAST)
    assert len(opened.timeline().completed_writes()) == 2

    # the next writer takes it away, so that readers of other projects are not misled either
    table.insert(rows("d"))
    assert set(before) < set(completed(table))
    assert len(completed(table)) == len(before) + 1
    assert content(table) == foreign_content(table) == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mends", ["writer", "operator"])
def test_a_put_that_lands_while_a_rollback_ends_is_undone(
    write: Write, mends: str, table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept_back(monkeypatch) as late, pytest.raises(CommitStateUnknownError):
        write(table)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rollback, "_remove_signs_of_life", killed)
        with pytest.raises(KeyboardInterrupt):
            table.insert(rows("c"))
    (land,) = late
    land()
    assert content(table) == [("a", 1), ("b", 1)]

    if mends == "writer":
        table.insert(rows("c"))
        expected = [("a", 1), ("b", 1), ("c", 1)]
    else:
        (instant,) = open_table(table.path, FAST).client.timeline().pending()
        table.rollback(instant)
        expected = [("a", 1), ("b", 1)]
    assert content(table) == foreign_content(table) == expected
    instants = open_table(table.path, FAST).client.timeline().instants
    assert [one.action for one in instants].count(Action.ROLLBACK) == 1
    assert all(one.is_completed for one in instants)


def test_a_writer_learns_that_it_was_rolled_back_meanwhile(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(self: PosixStorage, path: str, data: bytes) -> None:
        if is_completion(path) and not path.endswith(".rollback"):
            opened = open_table(table.path, FAST)
            (mine,) = opened.client.timeline().pending()
            rollback.roll_back(TableState.load(opened), mine)
            time.sleep(0.02)
        put_if_absent(self, path, data)

    monkeypatch.setattr(TableLock, "is_exclusive", False)
    options = {"hoodie.client.heartbeat.interval_in_ms": "10"}
    with monkeypatch.context() as patched:
        patched.setattr(PosixStorage, "put_if_absent", slow)
        with pytest.raises(IncompleteCommitError, match="was, rolled back"):
            table.upsert(rows("a", ts=9), options=options)

    assert content(table) == foreign_content(table) == [("a", 1), ("b", 1)]


# --- which rollbacks are read
# -------------------------------------------------------------------


def at(n: int) -> InstantTime:
    return InstantTime(f"2026030112000{n:04d}")


def whole(n: int, done: int, action: Action = Action.COMMIT) -> list[Instant]:
    pending = [Instant(at(n), action, state) for state in (State.REQUESTED, State.INFLIGHT)]
    return [*pending, pending[0].to(State.COMPLETED, at(done))]


@pytest.mark.parametrize(
    ("files", "read", "late"),
    [
        ([*whole(1, 2), *whole(3, 4)], 0, 0),
        # others began since the rollback: every file is there, so it is not about this write
        ([*whole(1, 9), *whole(3, 4, Action.ROLLBACK), *whole(5, 6)], 0, 0),
        # nobody did: its target may have landed
        ([*whole(1, 9), *whole(3, 4, Action.ROLLBACK)], 1, 1),
        ([*whole(1, 9)[2:], *whole(3, 4, Action.ROLLBACK), *whole(5, 6)], 1, 1),
        # a rollback never names what comes after it
        ([*whole(3, 4, Action.ROLLBACK), *whole(5, 6)[2:]], 0, 0),
        # what is not complete did not land, a rollback that is not complete has not the last word
        ([*whole(1, 9)[:2], *whole(3, 4, Action.ROLLBACK)], 0, 0),
        ([*whole(1, 9), *whole(3, 4, Action.ROLLBACK)[:2]], 0, 0),
        # a plan that was tried again after its first attempt was rolled back
        ([*whole(1, 9, Action.COMPACTION), *whole(3, 4, Action.ROLLBACK)], 0, 0),
        ([*whole(1, 9, Action.CLUSTERING), *whole(3, 4, Action.ROLLBACK)], 0, 0),
        ([*whole(1, 9, Action.DELTACOMMIT), *whole(3, 4, Action.ROLLBACK)], 0, 0),
        # one that was tried again would have left its earlier files, too
        ([*whole(1, 9, Action.DELTACOMMIT)[2:], *whole(3, 4, Action.ROLLBACK)], 1, 1),
    ],
)
def test_few_rollbacks_are_read(files: list[Instant], read: int, late: int) -> None:
    asked = []

    def targets(one: Instant) -> tuple[str, ...]:
        asked.append(one)
        return (at(1),)

    assert len(late_writes(files, targets)) == late
    assert len(asked) == read
