"""Step 2 of a commit: replayed, lost, raced, and only what the current lineage holds counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.types import DoubleType

import hudi_core as hudi
import hudi_core.txn.publication
from hudi_core.errors import CommitStateUnknownError, CorruptMetadataError
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.table_handle import OpenTable
from iceberg_format.catalog import FolderCatalog, TableState
from tests.formats.iceberg_tables import (
    Iceberg,
    agree,
    bag,
    create,
    lose,
    opened,
    ours,
    rows,
    summary,
)

Commit = Callable[..., TableState]
NEVER = Instant(
    InstantTime("20200101000000000"),
    Action.COMMIT,
    State.COMPLETED,
    InstantTime("20200101000000001"),
)
"""A write that nobody knows of."""


@dataclass
class Faults:
    """Stands between the plugin and the catalog's commit."""

    commit: Commit
    before: Callable[[TableState], None] | None = None
    after: Exception | None = None
    calls: int = 0

    def __call__(
        self,
        catalog: FolderCatalog,
        state: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> TableState:
        self.calls += 1
        if self.before is not None:
            self.before(state)
        made = self.commit(catalog, state, requirements, updates)
        if self.after is not None:
            raise self.after
        return made


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)
    made = Faults(FolderCatalog.commit)

    def commit(*given: Any) -> TableState:
        return made(*given)

    monkeypatch.setattr(FolderCatalog, "commit", commit)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "t"
    create(where).bulk_insert(rows(range(8)))
    return where


def last(table: OpenTable) -> Instant:
    return table.client.timeline().completed_writes()[-1]


def replay(table: OpenTable, instant: Instant, statuses: Sequence[Any] = ()) -> str:
    commit = table.client.read_commit(instant)
    return table.host.complete_write(table.client, commit, instant, statuses).version


def test_a_write_without_step_2_is_hidden_and_replayed_to_the_same_table(path: Path) -> None:
    table = hudi.Table.open(str(path))
    old = agree(path)
    result = table.upsert(rows([1, 2, 30], 2))
    new, whole = agree(path), Iceberg(path)
    files = {one.file.file_path: one.file for one in whole.table.scan().plan_files()}
    lose(path)
    assert ours(path) == old
    assert bag(Iceberg(path).rows(["id", "ts"])) != new
    instant = last(opened(path))
    fenced = opened(path).timeline().find(instant.requested_time)
    assert fenced is not None
    assert fenced.state is State.INFLIGHT
    assert opened(path).host.find_publication(opened(path).client, instant) is None
    assert replay(opened(path), instant) == result.receipt.version
    assert agree(path) == new
    again = {one.file.file_path: one.file for one in Iceberg(path).table.scan().plan_files()}
    assert again.keys() == files.keys()
    fields = Iceberg(path).table.schema().fields
    floating = {one.field_id for one in fields if isinstance(one.field_type, DoubleType)}
    for uri, file in files.items():
        other = again[uri]
        # of a column with NaN the footer, from which the replay has them, holds no bounds
        for replayed, written in (
            (other.lower_bounds, file.lower_bounds),
            (other.upper_bounds, file.upper_bounds),
        ):
            assert replayed.items() <= written.items()
            assert written.keys() - replayed.keys() <= floating
        assert other.value_counts == file.value_counts
        assert other.null_value_counts == file.null_value_counts
        assert other.partition == file.partition
        assert other.record_count == file.record_count
    found = opened(path).host.find_publication(opened(path).client, instant)
    assert found is not None
    assert found.completion_time == instant.completion_time


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError("late"), ValueError("odd")])
def test_an_error_before_the_commit_leaves_the_outcome_open(
    path: Path, faults: Faults, error: Exception
) -> None:
    def fail(state: TableState) -> None:
        del state
        raise error

    old = agree(path)
    faults.before = fail
    with pytest.raises(CommitStateUnknownError, match="may take place yet") as caught:
        hudi.Table.open(str(path)).upsert(rows([1], 2))
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.__cause__ is error
    assert faults.calls == 3
    faults.before = None
    assert ours(path) == old
    replay(opened(path), last(opened(path)))
    assert agree(path) == bag(pa.concat_tables([rows([0, 2, 3, 4, 5, 6, 7]), rows([1], 2)]))


def test_the_loser_of_a_race_is_published_where_nothing_contradicts_it(
    path: Path, faults: Faults
) -> None:
    def be_first(state: TableState) -> None:
        del state
        faults.before = None
        table = opened(path)
        table.host.before_rollback(table.client, NEVER)

    faults.before = be_first
    result = hudi.Table.open(str(path)).upsert(rows([1], 2))
    assert faults.calls == 3
    assert summary(Iceberg(path).lineage[-1])["hudi.instant"] == result.instant.requested_time
    agree(path)


def test_a_request_on_its_way_fails_once_its_instant_is_rolled_back(
    path: Path, faults: Faults
) -> None:
    held: list[tuple[Any, ...]] = []
    send = faults.commit

    def keep(*given: Any) -> TableState:
        held.append(given)
        return send(*given)

    faults.commit = keep
    table = opened(path)
    hudi.Table.open(str(path)).upsert(rows([1], 2))
    late = held[-1]
    lose(path)
    instant = last(table)
    table.host.before_rollback(table.client, instant)
    with pytest.raises(CommitFailedException, match="exists already"):
        send(*late)
    assert table.host.find_publication(table.client, instant) is None
    table.host.before_rollback(table.client, instant)
    assert [summary(one)["hudi.operation"] for one in Iceberg(path).lineage] == ["BULK_INSERT"]


@pytest.mark.parametrize("pattern", ["v*.metadata.json", "*-m0.avro", "snap-*.avro"])
def test_damaged_metadata_is_named(path: Path, pattern: str) -> None:
    for file in (path / "metadata").glob(pattern):
        file.write_bytes(b"\x00damaged")
    with pytest.raises(CorruptMetadataError, match="metadata/"):
        hudi.Table.open(str(path)).to_arrow()
