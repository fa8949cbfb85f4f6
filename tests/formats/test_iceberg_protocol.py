"""Step 2 of a commit: replayed, lost, raced, and only what the current lineage holds counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.types import DoubleType

import hudi_core as hudi
import hudi_core.txn.publication
from hudi_core.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptMetadataError,
    ForeignCommitError,
    TableServiceError,
)
from hudi_core.model.format import PARENT_KEY
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.table_handle import OpenTable
from hudi_core.txn.publication import publish_once
from iceberg_format.catalog import FolderCatalog, TableState
from iceberg_format.table import IcebergTable
from tests.formats.foreign_writers import append, iceberg
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


def state(path: Path) -> tuple[str, int, set[str]]:
    ice = Iceberg(path)
    return (ice.table.metadata_location, len(ice.table.metadata.snapshots), ice.paths())


def replay(table: OpenTable, instant: Instant, statuses: Sequence[Any] = ()) -> str:
    commit = table.client.read_commit(instant)
    return table.host.complete_write(table.client, commit, instant, statuses).version


def test_a_replayed_write_changes_nothing_and_has_the_same_receipt(path: Path) -> None:
    result = hudi.Table.open(str(path)).upsert(rows(range(3), 2))
    before = state(path)
    assert replay(opened(path), last(opened(path))) == result.receipt.version
    assert state(path) == before


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


def test_a_lost_answer_is_no_failure(path: Path, faults: Faults) -> None:
    faults.after = OSError("the answer was lost")
    hudi.Table.open(str(path)).upsert(rows([1], 2))
    assert faults.calls == 1
    assert agree(path) == bag(pa.concat_tables([rows([0, 2, 3, 4, 5, 6, 7]), rows([1], 2)]))


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


def test_a_commit_on_another_parent_than_recorded_is_refused(path: Path) -> None:
    hudi.Table.open(str(path)).upsert(rows([1], 2))
    lose(path)
    table = opened(path)
    instant = last(table)
    commit = table.client.read_commit(instant)
    recorded = replace(commit, extra_metadata={**commit.extra_metadata, PARENT_KEY: "12345"})
    with pytest.raises(CommitConflictError, match="12345"):
        publish_once(table, recorded, instant)
    head = table.host.open(table.client).version
    recorded = replace(commit, extra_metadata={**commit.extra_metadata, PARENT_KEY: head})
    publish_once(table, recorded, instant)
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


def test_a_rollback_is_recorded_once(path: Path) -> None:
    table = hudi.Table.open(str(path))
    done = table.rollback(table.upsert(rows([1], 2)).instant)
    before = state(path)
    again = opened(path)
    found = again.host.find_publication(again.client, done)
    assert found is not None
    assert found.completion_time == done.completion_time
    receipt = again.host.complete_rollback(again.client, None, done)  # type: ignore[arg-type]
    assert receipt.version == found.version
    assert state(path) == before


def test_a_write_that_others_build_on_is_not_taken_out(path: Path) -> None:
    table = opened(path)
    first = last(table)
    hudi.Table.open(str(path)).upsert(rows([1], 2))
    with pytest.raises(TableServiceError, match="later instants build on it"):
        table.host.before_rollback(table.client, first)


def foreign_append(path: Path) -> int:
    """Append rows as any Iceberg writer would; return the id of its snapshot."""
    return int(append(path, "iceberg", iceberg(path).scan(limit=1).to_arrow()))


def opened_catalog(path: Path) -> FolderCatalog:
    catalog = IcebergTable.open(opened(path).client).catalog
    assert isinstance(catalog, FolderCatalog)
    return catalog


def test_a_snapshot_of_another_writer_stops_writes_and_is_named(path: Path) -> None:
    number = foreign_append(path)
    with pytest.raises(ForeignCommitError, match=str(number)):
        hudi.Table.open(str(path)).upsert(rows([1], 2))
    assert len(opened(path).client.timeline().completed_writes()) == 1
    assert ours(path) == bag(rows(range(8)))


def test_gone_metadata_is_an_error_and_never_an_empty_table(path: Path) -> None:
    for file in (path / "metadata").glob("*"):
        file.unlink()
    with pytest.raises(CorruptMetadataError, match="no metadata of the Iceberg table"):
        hudi.Table.open(str(path)).to_arrow()
    with pytest.raises(CorruptMetadataError, match="no metadata of the Iceberg table"):
        hudi.Table.open(str(path)).upsert(rows([1], 2))


@pytest.mark.parametrize("pattern", ["v*.metadata.json", "*-m0.avro", "snap-*.avro"])
def test_damaged_metadata_is_named(path: Path, pattern: str) -> None:
    for file in (path / "metadata").glob(pattern):
        file.write_bytes(b"\x00damaged")
    with pytest.raises(CorruptMetadataError, match="metadata/"):
        hudi.Table.open(str(path)).to_arrow()
