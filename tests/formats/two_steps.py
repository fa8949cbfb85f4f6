"""Tables of every format with a step 2, and writers that die or sleep between the two steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hudi import HudiTableBuilder
from pyiceberg.table import StaticTable

import hudi_core as hudi
import hudi_core.txn.publication
import hudi_core.txn.recovery.recover
import hudi_core.txn.transaction
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import Instant
from hudi_core.plugin.host import FormatHost
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from hudi_core.txn.recovery.roll_forward import RolledForward
from hudi_core.txn.state import TableState
from hudi_core.txn.transaction import Transaction
from tests import tables
from tests.tables import rows_of

CITIES = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
SHARED = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
Write = Callable[[hudi.Table], hudi.CommitResult]
Rows = dict[str, int]


class Died(Exception):
    """The writer is no more."""


def batch(ts: int, *keys: str) -> pa.Table:
    """Rows of the partition rome, where the key is before m, or oslo."""
    return rows_of(CITIES, *((key, "rome" if key < "m" else "oslo", ts) for key in keys))


def small_table(path: Path, format_name: Any, **options: str) -> hudi.Table:
    return tables.new_table(path, batch(1, "a", "b", "x"), options, format=format_name)


def overlapping(
    monkeypatch: pytest.MonkeyPatch,
    table: hudi.Table,
    mine: Write,
    theirs: Write,
    options: Mapping[str, str] = {},
) -> None:
    """Do two writes of which each begins before the other one commits; theirs commits first."""
    real = Transaction.commit
    done: list[object] = []

    def commit(self: Transaction, *arguments: Any) -> Any:
        if not done:
            done.append(self)
            theirs(hudi.Table.open(table.path, {**SHARED, **options}))
        return real(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", commit)
        mine(hudi.Table.open(table.path, {**SHARED, **options}))


def _rows(found: pa.Table) -> Rows:
    rows = dict(zip(*found.select(["id", "ts"]).to_pydict().values(), strict=True))
    assert len(rows) == found.num_rows
    return rows


def ours(path: str) -> Rows:
    return _rows(hudi.Table.open(path).to_arrow(columns=["id", "ts"]))


def by_delta(path: Path) -> Rows:
    return _rows(pa.table(DeltaTable(str(path)).to_pyarrow_table()))


def by_iceberg(path: Path) -> Rows:
    return _rows(newest_iceberg(path).scan().to_arrow())


def newest_iceberg(path: Path) -> StaticTable:
    versions = (path / "metadata").glob("v*.metadata.json")
    newest = max(versions, key=lambda one: int(one.name.split(".")[0][1:]))
    return StaticTable.from_metadata(str(newest))


READ: dict[str, Callable[[Path], Rows]] = {"delta": by_delta, "iceberg": by_iceberg}
READABLE = tuple(sorted(READ))


def read(table: hudi.Table) -> Rows:
    """Return what the readers of the table's formats and ours see; they agree."""
    own = ours(table.path)
    for one in {*table.format.split(",")} - {"native"}:
        assert READ[one](Path(table.path)) == own, one
    return own


def read_at_rest(table: hudi.Table) -> Rows:
    """Return what all see once nothing is pending, hudi-rs included, which knows no fence."""
    rows = read(table)
    batches = HudiTableBuilder.from_base_uri(table.path).build().read()
    assert _rows(pa.Table.from_batches(batches)) == rows
    assert all(one.is_completed for one in hudi.Table.open(table.path).timeline.instants)
    return rows


def opened(table: hudi.Table) -> OpenTable:
    return open_table(table.path, {})


def last_write(table: hudi.Table) -> Instant:
    """The write that the Hudi timeline has completed last, whatever the format says."""
    writes = opened(table).client.timeline().completed_writes()
    return max(writes, key=lambda one: one.effective_completion_time)


def files_of(table: hudi.Table, instant: Instant | str) -> list[Path]:
    """The data files that carry an instant's time."""
    time = instant if isinstance(instant, str) else instant.requested_time
    return sorted(Path(table.path).rglob(f"*_{time}.parquet"))


def die_at(monkeypatch: pytest.MonkeyPatch, hook: str) -> None:
    """Make the next call of a hook the last thing its writer does."""
    real, left = getattr(FormatHost, hook), [Died()]

    def call(*arguments: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return real(*arguments, **named)

    monkeypatch.setattr(FormatHost, hook, call)


def left_between(
    monkeypatch: pytest.MonkeyPatch, table: hudi.Table, write: Callable[[], object]
) -> Instant:
    """Do a write whose writer dies between the two steps; return its instant."""
    with monkeypatch.context() as patched:
        for hook in ("complete_write", "complete_schema_change"):
            die_at(patched, hook)
        with pytest.raises(Died):
            write()
    return last_write(table)


@contextmanager
def blind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let writers pass over what is pending publication, as one does whose timeline is of before.

    It is what a writer does that lost its lock without noticing.
    """

    def passed(state: TableState) -> RolledForward:
        return RolledForward(state, state.table.timeline())

    with monkeypatch.context() as patched:
        for room in (hudi_core.txn.recovery.recover, hudi_core.txn.transaction):
            patched.setattr(room, "roll_forward_pending", passed)
        yield


@contextmanager
def ignorant(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let writers be such that do not know the table's format."""

    def same(parent: str | None, metadata: Any) -> Any:
        del parent
        return metadata

    with blind(monkeypatch), monkeypatch.context() as patched:
        room = hudi_core.txn.transaction
        patched.setattr(room, "with_current_parent", same)
        patched.setattr(room, "publish", lambda *_: FormatCommit("none"))
        yield
