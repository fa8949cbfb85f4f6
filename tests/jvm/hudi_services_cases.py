"""Cleans, archives, savepoints, restores and purges of tables that Hudi-Spark shares.

Each kind of service is run by one side, and the other reads, writes and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.model.instant import Action
from tests.jvm.engines import Engine
from tests.jvm.hudi_clustering_cases import (
    INDEXED,
    OPTIONS,
    Values,
    agree,
    made,
    rows,
    upsert_by_hudi,
    versions,
)

TIGHT = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
Step = Callable[[hudi.Table, Values], None]


def cleaned(table: hudi.Table, held: Values) -> None:
    del held
    assert table.clean(options={"hoodie.cleaner.commits.retained": "1"}).files


def archived(table: hudi.Table, held: Values) -> None:
    del held
    assert table.archive(options=TIGHT).instants


def bounded(table: hudi.Table, held: Values) -> None:
    for ts in range(100, 112):
        changed = {0: ("A", float(ts)), 11: ("B", ts + 0.5)}
        table.upsert(rows(changed, ts), options=TIGHT)
        held |= changed


def saved(table: hudi.Table, held: Values) -> None:
    del held
    table.savepoint(user="us", comment="kept")


def restored(table: hudi.Table, held: Values) -> None:
    del held
    kept = table.savepoint().instant
    for ts in (200, 201):
        table.upsert(rows({0: ("A", float(ts)), 77: ("B", 1.0)}, ts))
    table.delete_partitions(["B"])
    table.restore(kept)
    table.delete_savepoint(kept)


def purged(table: hudi.Table, held: Values) -> None:
    del held
    table.purge()


STEPS: tuple[Step, ...] = (cleaned, archived, bounded, saved, restored, purged)


@versions
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("index", [{}, INDEXED], ids=["simple", "record index"])
def test_hudi_goes_on_after_our_service(
    hudi_spark: Engine, tmp_path: Path, version: str, step: Step, index: dict[str, str]
) -> None:
    """We clean, archive, save, restore or purge; Hudi-Spark reads and updates, and we go on."""
    path = tmp_path / "t"
    table, held = made(path, version, {**index, "hoodie.clean.automatic": "false"})
    often = {"hoodie.metadata.compact.max.delta.commits": "2"}
    for ts in range(10, 16):
        changed = {0: ("A", float(ts)), 11: ("B", ts + 0.5)}
        table.upsert(rows(changed, ts), options=often)
        held |= changed
    step(table, held)
    agree(hudi_spark, path, held)
    more = {"hoodie__index__type": "RECORD_INDEX"} if index else {}
    upsert_by_hudi(hudi_spark, path, held, {1: ("B", 7.0), 99: ("A", 9.0)}, **more)
    agree(hudi_spark, path, held)
    hudi.Table.open(str(path), OPTIONS | index).upsert(rows({99: ("A", 4.0)}, 900))
    held |= {99: ("A", 4.0)}
    agree(hudi_spark, path, held)


@versions
def test_we_go_on_after_services_of_hudi(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Hudi-Spark saves, cleans, restores to its savepoint and deletes it; we write in between."""
    path = tmp_path / "t"
    table, held = made(path, version)
    kept = dict(held)
    time = table.timeline.completed_writes()[-1].requested_time
    hudi_spark.sql(f"call create_savepoint(path => '{path}', commit_time => '{time}')")
    (saved_by_hudi,) = hudi.Table.open(str(path)).savepoints
    assert saved_by_hudi.instant.requested_time == time
    for ts in range(20, 26):
        changed = {0: ("A", float(ts)), 11: ("B", ts + 0.5)}
        upsert_by_hudi(hudi_spark, path, held, changed)
    agree(hudi_spark, path, held)
    tidy = {"hoodie__clean__automatic": "true", "hoodie__cleaner__commits__retained": "1"}
    upsert_by_hudi(hudi_spark, path, held, {0: ("A", 27.0)}, **tidy)
    agree(hudi_spark, path, held)
    table = hudi.Table.open(str(path), OPTIONS)
    assert [one for one in table.timeline.instants if one.action is Action.CLEAN]
    # what its savepoint keeps stays readable, by us too
    past = table.to_arrow(["id", "city", "v"], as_of=time).sort_by("id").to_pylist()
    assert {one["id"]: (one["city"], one["v"]) for one in past} == kept
    table.upsert(rows({99: ("A", 4.0)}, 900), options=TIGHT)
    hudi_spark.sql(f"call rollback_to_savepoint(path => '{path}', instant_time => '{time}')")
    agree(hudi_spark, path, kept)
    found = [one.action for one in hudi.Table.open(str(path)).timeline.instants]
    assert Action.RESTORE in found
    table = hudi.Table.open(str(path), OPTIONS)
    table.upsert(rows({99: ("A", 4.0)}, 950))
    kept |= {99: ("A", 4.0)}
    agree(hudi_spark, path, kept)
    hudi_spark.sql(f"call delete_savepoint(path => '{path}', instant_time => '{time}')")
    assert hudi.Table.open(str(path)).savepoints == ()
    agree(hudi_spark, path, kept)


@versions
def test_hudi_restores_to_our_savepoint(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """We save, and Hudi-Spark restores to it; both go on."""
    path = tmp_path / "t"
    table, held = made(path, version)
    kept = table.savepoint(user="us").instant.requested_time
    for ts in (30, 31):
        table.upsert(rows({0: ("A", float(ts)), 55: ("B", 2.0)}, ts))
    hudi_spark.sql(f"call rollback_to_savepoint(path => '{path}', instant_time => '{kept}')")
    agree(hudi_spark, path, held)
    hudi.Table.open(str(path), OPTIONS).upsert(rows({55: ("B", 3.0)}, 40))
    held |= {55: ("B", 3.0)}
    agree(hudi_spark, path, held)
