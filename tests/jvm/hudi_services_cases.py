"""Cleans, archives, savepoints, restores and purges of tables that Hudi-Spark shares.

Each kind of service is run by one side, and the other reads, writes and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.errors import HistoryExpiredError
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.model.instant import Action
from tests.formats.dying_writers import death_in, die
from tests.jvm.engines import Engine
from tests.jvm.hudi_clustering_cases import (
    HUDI_OPTIONS,
    INDEXED,
    OPTIONS,
    Values,
    agree,
    made,
    upsert_by_hudi,
    valued_rows,
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
        table.upsert(valued_rows(changed, ts), options=TIGHT)
        held |= changed


def saved(table: hudi.Table, held: Values) -> None:
    del held
    table.savepoint(user="us", comment="kept")


def restored(table: hudi.Table, held: Values) -> None:
    del held
    kept = table.savepoint().instant
    for ts in (200, 201):
        table.upsert(valued_rows({0: ("A", float(ts)), 77: ("B", 1.0)}, ts))
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
        table.upsert(valued_rows(changed, ts), options=often)
        held |= changed
    step(table, held)
    agree(hudi_spark, path, held)
    more = {"hoodie__index__type": "RECORD_INDEX"} if index else {}
    upsert_by_hudi(hudi_spark, path, held, {1: ("B", 7.0), 99: ("A", 9.0)}, **more)
    agree(hudi_spark, path, held)
    hudi.Table.open(str(path), OPTIONS | index).upsert(valued_rows({99: ("A", 4.0)}, 900))
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
    table.upsert(valued_rows({99: ("A", 4.0)}, 900), options=TIGHT)
    hudi_spark.sql(f"call rollback_to_savepoint(path => '{path}', instant_time => '{time}')")
    agree(hudi_spark, path, kept)
    found = [one.action for one in hudi.Table.open(str(path)).timeline.instants]
    assert Action.RESTORE in found
    table = hudi.Table.open(str(path), OPTIONS)
    table.upsert(valued_rows({99: ("A", 4.0)}, 950))
    kept |= {99: ("A", 4.0)}
    agree(hudi_spark, path, kept)
    hudi_spark.sql(f"call delete_savepoint(path => '{path}', instant_time => '{time}')")
    assert hudi.Table.open(str(path)).savepoints == ()
    agree(hudi_spark, path, kept)


@versions
def test_past_states_after_hudis_clean_and_archive(
    hudi_spark: Engine, tmp_path: Path, version: str
) -> None:
    """Hudi-Spark cleans and archives, its cleans too; past states are whole or are refused."""
    path = tmp_path / "t"
    # Hudi archives nothing that is younger than the last compaction of the metadata table
    by_hand = {
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.metadata.compact.max.delta.commits": "2",
    }
    table, held = made(path, version, by_hand)
    states = {table.timeline.completed_writes()[-1].requested_time: dict(held)}

    def both(ts: int) -> None:
        changed = {0: ("A", float(ts)), 11: ("B", ts + 0.5)}
        if ts % 2:
            upsert_by_hudi(hudi_spark, path, held, changed, **by_hand)
        else:  # with the ordering value of Hudi-Spark's
            hudi.Table.open(str(path), {**OPTIONS, **by_hand}).upsert(valued_rows(changed, 500))
            held.update(changed)
        done = hudi.Table.open(str(path)).timeline.completed_writes()
        states[done[-1].requested_time] = dict(held)

    for ts in range(20, 28):
        both(ts)
    name = f"past_{version}"
    hudi_spark.sql(f"create table {name} using hudi location '{path}'")
    hudi_spark.sql(f"call run_clean(table => '{name}', retain_commits => 1)")
    for ts in range(28, 32):
        both(ts)
    few = "min_commits => 2, max_commits => 3, retain_commits => 1"
    hudi_spark.sql(f"call archive_commits(table => '{name}', {few})")
    now = hudi.Table.open(str(path))
    assert not [one for one in now.timeline.instants if one.action is Action.CLEAN]
    refused = 0
    for time, then in states.items():
        try:
            past = now.to_arrow(["id", "city", "v"], as_of=time).to_pylist()
        except HistoryExpiredError:
            refused += 1
            continue
        assert {one["id"]: (one["city"], one["v"]) for one in past} == then
    assert 5 < refused < len(states) - 1
    hudi.Table.open(str(path), OPTIONS).clean(options={"hoodie.cleaner.commits.retained": "9"})
    with pytest.raises(HistoryExpiredError):
        hudi.Table.open(str(path)).count(as_of=min(states))
    agree(hudi_spark, path, held)


@versions
def test_hudi_restores_to_our_savepoint(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """We save, and Hudi-Spark restores to it; both go on."""
    path = tmp_path / "t"
    table, held = made(path, version)
    kept = table.savepoint(user="us").instant.requested_time
    for ts in (30, 31):
        table.upsert(valued_rows({0: ("A", float(ts)), 55: ("B", 2.0)}, ts))
    hudi_spark.sql(f"call rollback_to_savepoint(path => '{path}', instant_time => '{kept}')")
    agree(hudi_spark, path, held)
    hudi.Table.open(str(path), OPTIONS).upsert(valued_rows({55: ("B", 3.0)}, 40))
    held |= {55: ("B", 3.0)}
    agree(hudi_spark, path, held)


@pytest.mark.parametrize("mixed", [False, True], ids=["as it is", "by an earlier release"])
def test_tables_that_a_restore_of_hudi_raises_keep_the_version_of_their_ranges(
    hudi_spark: Engine, tmp_path: Path, mixed: bool
) -> None:
    """Its restore raises our table to version 9; both write on, and its ranges merge with ours."""
    path = tmp_path / "t"
    _, held = made(path, "8", {"hoodie.clean.automatic": "false"})
    name = f"raised_{mixed}".lower()
    hudi_spark.sql(f"create table {name} using hudi location '{path}'")
    upsert_by_hudi(hudi_spark, path, held, {1: ("B", 7.0)}, **IN_8)
    hudi_spark.sql(f"call run_clustering(table => '{name}', order => 'v')")
    upsert(path, held, 20)
    time = hudi.Table.open(str(path)).timeline.completed_writes()[-1].requested_time
    hudi_spark.sql(f"call create_savepoint(table => '{name}', commit_time => '{time}')")
    kept = dict(held)
    upsert(path, held, 21)
    hudi_spark.sql(f"call rollback_to_savepoint(table => '{name}', instant_time => '{time}')")
    agree(hudi_spark, path, kept)
    assert hudi.Table.open(str(path)).config.version == 9
    with pytest.MonkeyPatch.context() as patched:
        if mixed:
            patched.setattr(
                IndexDefinitions, "has_bound_types", lambda _, __, config: config.version == 9
            )
        upsert(path, dict(kept), 22)
    last = hudi.Table.open(str(path)).timeline.completed_writes()[-1].requested_time
    hudi_spark.sql(f"call rollback_to_instant(table => '{name}', instant_time => '{last}')")
    assert hudi.Table.open(str(path)).validate().is_valid is not mixed
    upsert(path, kept, 23)
    agree(hudi_spark, path, kept)
    given = {**HUDI_OPTIONS, "hoodie.datasource.write.operation": "insert_overwrite"}
    hudi_spark.save(valued_rows({77: ("A", 9.0)}, 500), path, given)
    kept = {77: ("A", 9.0), **{key: one for key, one in kept.items() if one[0] != "A"}}
    agree(hudi_spark, path, kept)
    hudi_spark.sql(f"drop table {name}")


IN_8 = {"hoodie__write__table__version": "8"}


def upsert(path: Path, held: Values, ts: int) -> None:
    changed = {0: ("A", float(ts)), 11: ("B", ts + 0.5)}
    hudi.Table.open(str(path), OPTIONS).upsert(valued_rows(changed, ts))
    held |= changed


DELETES = {
    "rollback": "hudi_core.actions.rollback.delete_files",
    "clean": "hudi_core.txn.clean.delete_cleaned",
}
"""Where a process dies that has put its plan on the timeline."""


@versions
@pytest.mark.parametrize("index", [{}, INDEXED], ids=["simple", "record index"])
@pytest.mark.parametrize("action", DELETES)
def test_hudi_ends_what_we_planned(
    hudi_spark: Engine, tmp_path: Path, action: str, version: str, index: dict[str, str]
) -> None:
    """Our process dies once its plan is on the timeline; Hudi-Spark's next write carries it out."""
    path = tmp_path / "t"
    table, held = made(path, version, {**index, "hoodie.clean.automatic": "false"})
    for ts in (20, 21, 22):
        table.upsert(valued_rows({0: ("A", float(ts))}, ts))
        held |= {0: ("A", float(ts))}
    if action == "rollback":
        with death_in(DELETES[action]), pytest.MonkeyPatch.context() as patched:
            # a write that fails is rolled back by itself
            patched.setattr("hudi_core.txn.transaction.Transaction._complete", die)
            table.upsert(valued_rows({0: ("A", 9.0), 70: ("B", 9.0)}, 21))
    else:
        with death_in(DELETES[action]):
            table.clean(options={"hoodie.cleaner.commits.retained": "1"})
    assert pending(path, action)
    more = {"hoodie__index__type": "RECORD_INDEX"} if index else {}
    more["hoodie__clean__automatic"] = "true"
    upsert_by_hudi(hudi_spark, path, held, {1: ("B", 7.0), 99: ("A", 9.0)}, **more)
    assert not pending(path, action)
    agree(hudi_spark, path, held)
    hudi.Table.open(str(path), OPTIONS | index).upsert(valued_rows({99: ("A", 4.0)}, 900))
    held |= {99: ("A", 4.0)}
    agree(hudi_spark, path, held)


LEFT: dict[str, Callable[[hudi.Table], object]] = {
    "upsert": lambda table: table.upsert(valued_rows({0: ("A", 9.0), 70: ("B", 9.0)}, 21)),
    "insert_overwrite": lambda table: table.insert_overwrite(valued_rows({71: ("B", 9.0)}, 21)),
    "delete_partition": lambda table: table.delete_partitions(["A"]),
}


@versions
@pytest.mark.parametrize("operation", LEFT)
def test_hudi_rolls_back_what_we_left(
    hudi_spark: Engine, tmp_path: Path, operation: str, version: str
) -> None:
    """Our process dies in a write, before it is complete; Hudi-Spark's next write undoes it."""
    path = tmp_path / "t"
    table, held = made(path, version, {"hoodie.clean.automatic": "false"})
    place = "hudi_core.txn.transaction.Transaction"
    with death_in(f"{place}.abort"), pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"{place}._complete", die)
        LEFT[operation](table)
    [left] = [one for one in hudi.Table.open(str(path)).timeline.instants if not one.is_completed]
    upsert_by_hudi(hudi_spark, path, held, {1: ("B", 7.0), 99: ("A", 9.0)})
    instants = hudi.Table.open(str(path)).timeline.instants
    assert left.requested_time not in {one.requested_time for one in instants}
    agree(hudi_spark, path, held)
    hudi.Table.open(str(path), OPTIONS).upsert(valued_rows({99: ("A", 4.0)}, 900))
    held |= {99: ("A", 4.0)}
    agree(hudi_spark, path, held)


def pending(path: Path, action: str) -> list[str]:
    """Times of the pending actions of a kind."""
    instants = hudi.Table.open(str(path)).timeline.instants
    found = (one for one in instants if one.action.value == action and not one.is_completed)
    return [one.requested_time for one in found]
