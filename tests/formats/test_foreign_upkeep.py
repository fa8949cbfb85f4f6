"""What other engines delete of a table when they tidy up: nothing that Hudi's timeline needs."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.errors import HudiError
from tests.formats.service_tables import SCHEMA, agree, bag, batch, new_table
from tests.formats.two_steps import left_between

_YEARS_S = 10 * 365 * 24 * 3600
_CATALOG = "hoodie.table.format.iceberg.catalog."


def aged(path: Path) -> None:
    """Make all files ten years old, as a vacuum sees them."""
    then = time.time() - _YEARS_S
    for file in path.rglob("*"):
        os.utime(file, (then, then))


def files(path: Path) -> set[str]:
    return {str(one.relative_to(path)) for one in path.rglob("*") if one.is_file()}


def outside_the_log(path: Path) -> set[str]:
    return {one for one in files(path) if not one.startswith("_delta_log")}


def at_each_instant(path: Path) -> list[Any]:
    """The rows of every completed write, by time travel."""
    table = hudi.Table.open(str(path))
    return [bag(table.to_arrow(as_of=one)) for one in table.timeline.completed_writes()]


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """A Delta table of three writes, of which only the last slices are Delta's."""
    made = new_table(tmp_path / "t", "delta")
    made.upsert(batch(3, "a", "x"))
    return made


@pytest.mark.parametrize("full", [False, True])
def test_a_vacuum_as_it_comes_finds_nothing(
    table: hudi.Table, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older slices, and files of a write that is not complete, are younger than what it takes."""
    path = Path(table.path)
    left_between(monkeypatch, table, lambda: table.upsert(batch(5, "a")))
    aged(path)
    held, before = at_each_instant(path), outside_the_log(path)
    assert DeltaTable(str(path)).vacuum(full=full) == []
    assert DeltaTable(str(path)).vacuum(dry_run=False, full=full) == []
    assert outside_the_log(path) == before
    assert at_each_instant(path) == held
    hudi.Table.open(str(path)).upsert(batch(6, "b"))
    assert any("6" in one for one in agree(path))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("hours", [0, 168])
def test_a_shorter_time_is_refused_by_the_vacuum(table: hudi.Table, full: bool, hours: int) -> None:
    path = Path(table.path)
    aged(path)
    before = outside_the_log(path)
    with pytest.raises(Exception, match="Invalid retention period"):
        DeltaTable(str(path)).vacuum(hours, dry_run=False, full=full)
    assert outside_the_log(path) == before


def test_who_insists_loses_what_delta_does_not_name_and_nothing_else(table: hudi.Table) -> None:
    """Time travel and rollback are gone then, the present rows and the timeline are not."""
    path = Path(table.path)
    held, writes = agree(path), len(table.timeline.completed_writes())
    aged(path)
    hoodie = {one for one in files(path) if one.startswith(".hoodie/")}
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert {one for one in files(path) if one.startswith(".hoodie/")} == hoodie
    assert agree(path) == held
    again = hudi.Table.open(str(path))
    assert len(again.timeline.completed_writes()) == writes
    with pytest.raises(HudiError):
        again.to_arrow(as_of=again.timeline.completed_writes()[0])
    with pytest.raises(HudiError, match="cannot be rolled back"):
        again.rollback(again.timeline.completed_writes()[-1])
    again.upsert(batch(6, "b", "new"))
    agree(path)


def test_the_days_are_those_that_were_asked_for(tmp_path: Path) -> None:
    days = {"hoodie.table.format.delta.deleted-file-retention-days": "30"}
    path = tmp_path / "t"
    table = new_table(path, "delta", **days)
    kept = DeltaTable(str(path)).metadata().configuration
    assert kept["delta.deletedFileRetentionDuration"] == "interval 30 days"
    # the log goes on, and the option is not given again
    table.convert("native")
    hudi.Table.open(str(path)).convert("delta")
    assert DeltaTable(str(path)).metadata().configuration == kept


@pytest.mark.parametrize("own", [{}, {"delta.deletedFileRetentionDuration": "interval 9 days"}])
def test_a_log_that_was_there_before_keeps_files_from_then_on(
    tmp_path: Path, own: dict[str, str]
) -> None:
    path = tmp_path / "t"
    write_deltalake(
        str(path), batch(1, "a", "b"), configuration={**own, "delta.appendOnly": "false"}
    )
    hudi.Table.adopt(str(path), record_key="id")
    kept = DeltaTable(str(path)).metadata().configuration
    days = own.get("delta.deletedFileRetentionDuration", "interval 36500 days")
    assert kept["delta.deletedFileRetentionDuration"] == days
    assert kept["delta.logRetentionDuration"] == "interval 36500 days"
    assert kept["delta.appendOnly"] == "false"
    assert bag(hudi.Table.open(str(path)).to_arrow(), SCHEMA.names) == bag(batch(1, "a", "b"))


# --- Iceberg -------------------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[tuple[SqlCatalog, dict[str, str]]]:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    options = {f"{_CATALOG}type": "sql", f"{_CATALOG}uri": uri, f"{_CATALOG}identifier": "lake.t"}
    options[f"{_CATALOG}create-namespace"] = "true"
    catalog = SqlCatalog("hudi", uri=uri)
    yield catalog, options
    catalog.engine.dispose()


def expire_all(catalog: SqlCatalog) -> int:
    """Expire as an engine does that runs once a day; return how many snapshots are left."""
    tomorrow = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    catalog.load_table("lake.t").maintenance.expire_snapshots().older_than(tomorrow).commit()
    return len(catalog.load_table("lake.t").metadata.snapshots)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_a_stranger_expires_stays_complete(
    tmp_path: Path, lake: tuple[SqlCatalog, dict[str, str]]
) -> None:
    """Instants whose snapshots are gone are no dead writers' to publish, let alone to take back."""
    catalog, options = lake
    path = tmp_path / "t"
    table = new_table(path, "iceberg", **options)
    table.insert(batch(3, "c"))
    table.insert(batch(4, "z"))
    writes = table.timeline.completed_writes()
    held = bag(table.to_arrow())
    assert expire_all(catalog) == 1

    again = hudi.Table.open(str(path), options)
    assert again.timeline.completed_writes() == writes
    assert bag(again.to_arrow()) == held
    assert [bag(again.to_arrow(as_of=one)) for one in writes]
    again.upsert(batch(5, "a"))
    assert [one.requested_time for one in again.timeline.completed_writes()][:4] == [
        one.requested_time for one in writes
    ]
    assert bag(catalog.load_table("lake.t").scan().to_arrow()) == bag(again.to_arrow())
    assert again.validate().is_valid


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_a_stranger_expires_after_a_rollback_stays_complete(
    tmp_path: Path, lake: tuple[SqlCatalog, dict[str, str]]
) -> None:
    """The only snapshot that is left is no instant's."""
    catalog, options = lake
    path = tmp_path / "t"
    table = new_table(path, "iceberg", **options)
    held, writes = bag(table.to_arrow()), table.timeline.completed_writes()
    last = table.insert(batch(3, "c"))
    table.rollback(last.instant)
    assert expire_all(catalog) == 1

    again = hudi.Table.open(str(path), options)
    assert again.timeline.completed_writes() == writes
    assert bag(again.to_arrow()) == held
    again.upsert(batch(5, "a"))
    assert bag(catalog.load_table("lake.t").scan().to_arrow()) == bag(again.to_arrow())


def test_engines_that_respect_it_are_told_to_leave_old_files(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.convert("iceberg")
    properties = StaticTable.from_metadata(str(tmp_path / "t")).metadata.properties
    assert properties["gc.enabled"] == "false"
