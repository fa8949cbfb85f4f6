"""Plans on the timeline, whoever made them and when, delete nothing that must stay."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.actions.clean import request_clean
from hudi_core.actions.rollback import make_plan
from hudi_core.config.write import WriteConfig
from hudi_core.errors import TableServiceError
from hudi_core.model.actions import CleanerPlan
from hudi_core.model.commit import WriteOperation
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.services.convert import load_format
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import encode
from hudi_core.txn import rollback
from hudi_core.txn.begin import begin
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import table_lock
from tests.formats.service_tables import SCHEMA, agree, bag, batch, new_table

SERVICES = {"hoodie.table.services.enabled": "true"}


def data_files(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.glob("[or]*/*.parquet")}


def forged_clean(table: hudi.Table, *files: str) -> Instant:
    """The plan of a clean of some files, which nobody has begun."""
    client = open_table(table.path, {}).client
    named: dict[str, tuple[str, ...]] = {}
    for one in files:
        partition, _, name = one.partition("/")
        named[partition] = (*named.get(partition, ()), name)
    plan = CleanerPlan(None, "", "KEEP_LATEST_COMMITS", named)
    return request_clean(client, client.clock.next_time(client.timeline()), plan)


def newest(path: Path, table: hudi.Table) -> str:
    time = table.timeline.completed_writes()[-1].requested_time
    return next(one for one in sorted(data_files(path)) if time in one)


def savepointed(path: Path, table: hudi.Table) -> str:
    """A file that a savepoint alone keeps."""
    before = newest(path, table)
    table.savepoint()
    table.upsert(batch(9, "a", "x"))
    return before


def being_written(path: Path, table: hudi.Table) -> str:
    """A file of a write at work."""
    opened, config = open_table(str(path), {}), WriteConfig.from_options({})
    running = begin(
        opened, table_lock(opened, config), config, Action.COMMIT, WriteOperation.UPSERT
    )
    name = newest(path, table)
    time = table.timeline.completed_writes()[-1].requested_time
    mine = name.replace(time, running.instant.requested_time)
    (path / mine).write_bytes((path / name).read_bytes())
    return mine


def live_again(path: Path, table: hudi.Table) -> str:
    """A file that was superseded when the clean was planned; another engine undid that."""
    before = newest(path, table)
    last = table.upsert(batch(9, "a", "x")).instant
    forged_clean(table, before)
    plain = OpenTable(open_table(str(path), {}).client.as_stored(), load_format("native"))
    rollback.roll_back(TableState.load(plain), last)
    return before


@pytest.mark.parametrize("which", [newest, savepointed, being_written, live_again])
def test_a_clean_of_what_must_stay_is_refused(
    tmp_path: Path, which: Callable[[Path, hudi.Table], str], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t"
    table = new_table(path, **{"hoodie.table.services.enabled": "false"})
    file = which(path, table)
    if which is not live_again:
        forged_clean(table, file)
    table = hudi.Table.open(str(path))
    rows, before = bag(table.to_arrow(), SCHEMA.names), data_files(path)
    several = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    for _ in range(2):
        with pytest.raises(TableServiceError, match="would delete") as refused:
            table.clean(options=several)
        assert file in str(refused.value)
    assert (data_files(path), bag(table.to_arrow(), SCHEMA.names)) == (before, rows)
    states = [one.state for one in table.timeline.instants if one.action is Action.CLEAN]
    assert states == [State.REQUESTED]
    # it stands in the way of no write
    with caplog.at_level(logging.WARNING):
        table.upsert(batch(20, "b"), options={**SERVICES, **several})
    assert "a service of the table" in caplog.text
    assert data_files(path) > before


def test_a_rollback_of_an_archived_write_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path, **{"hoodie.metadata.enable": "false"})
    old = table.timeline.completed_writes()[-1]
    table.upsert(batch(3, "a"))
    few = {"hoodie.cleaner.commits.retained": "1"}
    few |= {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    for ts in range(4, 7):
        table.upsert(batch(ts, "a"), options=few)
    table = hudi.Table.open(str(path))
    assert table.timeline.find(old.requested_time) is None
    client = open_table(str(path), {}).client
    [live] = path.glob(f"oslo/*{old.requested_time}.parquet")
    plan = make_plan(client.storage.root, old, {PartitionPath("oslo"): [live.name]})
    asked = Instant(client.clock.next_time(client.timeline()), Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    before = data_files(path)
    rows = bag(table.to_arrow(), SCHEMA.names)
    table.upsert(batch(7, "n"))
    assert data_files(path) >= before
    assert rows <= agree(path)
    assert hudi.Table.open(str(path)).timeline.find(asked.requested_time) is None


def test_a_rollback_deletes_what_its_plan_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    before, rows = data_files(path), bag(table.to_arrow(), SCHEMA.names)
    gone = table.upsert(batch(3, "a", "x")).instant
    client = open_table(str(path), {}).client
    [some, _] = [one for one in sorted(data_files(path)) if gone.requested_time in one]
    partition, _, name = some.partition("/")
    plan = make_plan(client.storage.root, gone, {PartitionPath(partition): [name]})
    asked = Instant(client.clock.next_time(client.timeline()), Action.ROLLBACK, State.REQUESTED)
    client.active.create_requested(asked, encode(plan))
    table.rollback(gone)
    assert (data_files(path), agree(path)) == (before, rows)
