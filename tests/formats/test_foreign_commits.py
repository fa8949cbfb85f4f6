"""Commits and upkeep of writers that know nothing of Hudi, or nothing of the format."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import DataFileStatistics
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.errors import (
    CommitStateUnknownError,
    CorruptMetadataError,
    ForeignCommitError,
    HudiError,
    MissingMetadataError,
    RecordKeyError,
    TableServiceError,
)
from hudi_core.model.actions import InstantInfo, RestoreMetadata, SavepointMetadata
from hudi_core.model.capability import Capability
from hudi_core.model.instant import Action, Instant, State
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.services.opening import open_table
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from hudi_core.txn.transaction import Transaction
from tests.calls import before, failing
from tests.formats.dying_writers import Died, death_in
from tests.formats.foreign_writers import (
    append,
    delete,
    delete_in_place,
    iceberg,
    rewrite,
    states,
    version,
)
from tests.formats.service_tables import TAGGED, TWO_STEP, agree, bag, batch, two_writes
from tests.formats.two_steps import left_between


@pytest.fixture(params=TWO_STEP)
def table(request: pytest.FixtureRequest, path: Path) -> hudi.Table:
    """Rows a, b, x and y; the last write at 2."""
    return two_writes(path, request.param)


def opened(table: hudi.Table) -> hudi.Table:
    return hudi.Table.open(table.path)


def files(table: hudi.Table) -> set[str]:
    root = Path(table.path)
    return {str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()}


def keys(rows: pa.Table) -> list[str]:
    return sorted(rows["id"].to_pylist())


THEIRS, OURS = "city=oslo/", "(?<!=)oslo/"
"""Where other writers put their files, and where ours are."""


def test_a_write_and_a_repair_name_the_commit_and_count(table: hudi.Table) -> None:
    path = Path(table.path)
    made = append(path, table.format, batch(7, "new", "zz"))
    held = bag(opened(table).to_arrow())
    before = files(table)
    calls: list[Callable[[], object]] = [
        lambda: table.upsert(batch(8, "a")),
        lambda: table.delete(batch(8, "a")),
        lambda: table.insert_overwrite_table(batch(8, "a")),
        lambda: table.rollback(table.timeline.completed_writes()[-1]),
        lambda: table.alter(add_columns={"note": pa.string()}),
        table.repair,
        lambda: table.repair(force=True),
    ]
    for call in calls:
        with pytest.raises(ForeignCommitError, match=made) as caught:
            call()
        assert not caught.value.retryable
        assert caught.value.version == made
        assert "--take-in" in caught.value.hint
        assert "--discard" in caught.value.hint
    assert "2 rows in 1 file" in caught.value.what
    plan = table.repair(dry_run=True)
    assert plan.can_take_in
    (counted,) = plan.foreign
    assert (counted.added_rows, len(counted.added)) == (2, 1)
    assert (counted.removed_rows, counted.deleted_rows) == (0, 0)
    assert files(table) == before
    assert bag(opened(table).to_arrow()) == held
    assert all(one.is_completed for one in opened(table).timeline.instants)


def test_reads_warn_once_and_count(table: hudi.Table, caplog: pytest.LogCaptureFixture) -> None:
    was = version(Path(table.path), table.format)
    made = append(Path(table.path), table.format, batch(7, "new"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert opened(table).count() == 4
    (said,) = [one.getMessage() for one in caplog.records if "Hudi writer" in one.getMessage()]
    assert f"its readers see state {made} (5 rows), Hudi sees state {was} (4 rows)" in said
    assert f"hudi table repair {table.path} --dry-run" in said


def test_no_other_service_leaves_the_rows_behind(table: hudi.Table, tmp_path: Path) -> None:
    path = Path(table.path)
    append(path, table.format, batch(7, "new"))
    before = files(table)
    calls: list[Callable[[], object]] = [
        lambda: table.convert("native"),
        lambda: table.convert("native", dry_run=True),
        lambda: table.convert("iceberg,delta"),
        lambda: table.convert_storage({"hoodie.storage.path": str(tmp_path / "elsewhere")}),
        table.purge,
        table.archive,
    ]
    for call in calls:
        with pytest.raises(ForeignCommitError):
            call()
    assert files(table) == before
    assert keys(states(path, table.format)[-1])[2] == "new"


def test_a_conversion_drops_no_rows_of_left_metadata(path: Path, native: hudi.Table) -> None:
    native.convert("delta")
    native.convert("native")
    append(path, "delta", batch(7, "new"))
    for dry_run in (True, False):
        with pytest.raises(TableServiceError, match="delete _delta_log"):
            opened(native).convert("delta", dry_run=dry_run)
    assert keys(states(path, "delta")[-1])[2] == "new"


def test_appended_rows_come_in_by_one_commit(table: hudi.Table) -> None:
    """One key is new, one is there; no state of the format lacks the rows, or has them twice."""
    path = Path(table.path)
    append(path, table.format, batch(7, "new", "b"))
    append(path, table.format, batch(8, "zz"))
    seen, commits = len(states(path, table.format)), len(table.timeline.completed_writes())
    plan = table.repair(dry_run=True, take_in=True).taken_in
    assert plan is not None
    assert (plan.rows, plan.inserted, plan.updated) == (3, 2, 1)
    assert len(states(path, table.format)) == seen
    done = table.repair(take_in=True)
    assert done.taken_in is not None
    assert (done.taken_in.inserted, done.taken_in.updated, done.left) == (2, 1, ())
    assert not done.format_metadata
    found = agree(path)
    assert sum(found.values()) == 6
    assert opened(table).to_arrow(filter=[("id", "=", "b")])["ts"].to_pylist() == [7]
    after = states(path, table.format)[seen:]
    assert len(after) == 1
    assert {"new", "zz"} <= set(keys(after[0]))
    assert len(table.timeline.completed_writes()) == commits + 1
    assert opened(table).validate().is_valid
    opened(table).upsert(batch(9, "new"))
    agree(path)
    assert opened(table).to_arrow(as_of=done.taken_in.instant).num_rows == 6


def test_rows_that_are_marked_as_deleted_are_counted(table: hudi.Table) -> None:
    path = Path(table.path)
    rows = batch(7, "b", "new")
    flags = pa.array([True, False])
    table.alter(add_columns={"_hoodie_is_deleted": pa.bool_()})
    append(path, table.format, rows.append_column("_hoodie_is_deleted", flags))
    plan = table.repair(dry_run=True, take_in=True)
    done = table.repair(take_in=True).taken_in
    for counted in (plan.taken_in, done):
        assert counted is not None
        assert (counted.rows, counted.inserted, counted.updated, counted.deleted) == (2, 1, 0, 1)
    assert keys(opened(table).to_arrow()) == ["a", "new", "x", "y"]


def test_rows_without_a_key_of_their_own_are_inserted(path: Path) -> None:
    made = hudi.Table.create(path, TAGGED, format="delta")
    made.insert(batch(1, "a"))
    append(path, "delta", batch(2, "a", "b"))
    done = made.repair(take_in=True).taken_in
    assert done is not None
    assert done.inserted == 2
    assert len(agree(path)) == 3


def with_null(rows: pa.Table, name: str) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, name, pa.nulls(rows.num_rows, rows.schema.field(name).type))


UNFIT: dict[str, tuple[Callable[[], pa.Table], type[HudiError], str]] = {
    "no key": (lambda: with_null(batch(7, "new"), "id"), RecordKeyError, "id"),
    "a key twice": (lambda: batch(7, "new", "new"), RecordKeyError, "'new'"),
    "an older row": (lambda: batch(1, "a", "new"), RecordKeyError, "later by ts, such as 'a'"),
}


@pytest.mark.parametrize("reason", UNFIT)
def test_rows_that_do_not_fit_are_refused_by_name(table: hudi.Table, reason: str) -> None:
    path = Path(table.path)
    make, kind, words = UNFIT[reason]
    append(path, table.format, make())
    before = files(table)
    for dry_run in (True, False):
        with pytest.raises(kind, match=words):
            table.repair(take_in=True, dry_run=dry_run)
    assert files(table) == before
    table.repair(discard=True)
    assert keys(opened(table).to_arrow()) == ["a", "b", "x", "y"]
    agree(path)


def test_deleted_rows_are_not_taken_in(table: hudi.Table) -> None:
    path = Path(table.path)
    held = agree(path)
    append(path, table.format, batch(7, "new"))
    delete(path, table.format, "a")
    with pytest.raises(TableServiceError, match=r"1 row in 1 file|2 rows in 2 files") as caught:
        table.repair(take_in=True)
    assert "1 file with 2 rows" in caught.value.what
    with pytest.raises(ForeignCommitError, match="1 file with 2 rows") as refused:
        table.repair()
    assert "--take-in" not in refused.value.hint  # which would be refused as well
    assert "--discard" in refused.value.hint
    assert not table.repair(dry_run=True).can_take_in
    with pytest.raises(HudiError, match="discard"):
        table.repair(take_in=True, discard=True)
    done = table.repair(discard=True)
    assert done.drops_rows
    assert done.left == ()
    assert agree(path) == held


def test_rows_that_are_deleted_in_place_are_counted_as_that(table: hudi.Table) -> None:
    path = Path(table.path)
    held = agree(path)
    append(path, table.format, batch(7, "n1", "n2"))
    delete_in_place(path, table.format, THEIRS)
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, len(counted.added), counted.deleted_rows) == (2, 1, 1)
    for words in ("2 rows in 1 file added", "1 row deleted by vectors or delete files"):
        with pytest.raises(TableServiceError, match=words) as caught:
            table.repair(take_in=True)
    assert caught.value.facts["deleted_rows"] == 1
    table.repair(discard=True)
    assert agree(path) == held


def test_rows_that_are_deleted_by_value_are_not_counted(path: Path) -> None:
    table = two_writes(path, "iceberg")
    delete_in_place(path, "iceberg", OURS, by_value=True)
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, counted.deleted_rows) == (0, None)
    assert counted.changes_rows
    with pytest.raises(ForeignCommitError, match="deleted by value, which cannot be counted"):
        table.repair()
    append(path, "iceberg", batch(7, "new"))
    with pytest.raises(TableServiceError, match="1 row in 1 file added, rows deleted by value"):
        table.repair(take_in=True)


def test_files_without_statistics_come_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The format requires none of their maps."""
    table = two_writes(path, "iceberg")
    with monkeypatch.context() as patch:
        bare = lambda self: {"record_count": self.record_count}  # noqa: E731
        patch.setattr(DataFileStatistics, "to_serialized_dict", bare)
        append(path, "iceberg", batch(7, "new"))
    found = [one.file for one in iceberg(path).scan().plan_files()]
    (file,) = (one for one in found if "/data/" in one.file_path)
    assert not any((file.value_counts, file.null_value_counts, file.lower_bounds))
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, counted.problem) == (1, None)
    assert table.repair(take_in=True).left == ()
    agree(path)


def test_files_that_were_only_rewritten_give_way(table: hudi.Table) -> None:
    """Not a row would be lost; nobody is asked."""
    path = Path(table.path)
    opened(table).insert(batch(3, "c"), options={"hoodie.parquet.small.file.limit": "0"})
    held = agree(path)
    rewrite(path, table.format)
    with pytest.raises(ForeignCommitError):
        table.upsert(batch(7, "a"))
    (counted,) = table.repair(dry_run=True).foreign
    assert counted.is_rewrite
    assert counted.added_rows == counted.removed_rows
    assert counted.removed
    assert table.repair().left == ()
    assert agree(path) == held


def test_a_row_that_was_changed_is_no_rewriting(path: Path) -> None:
    table = two_writes(path, "delta")
    DeltaTable(table.path).update(updates={"value": "-1.0"}, predicate="id = 'x'")
    with pytest.raises(ForeignCommitError, match="rows"):
        table.repair()


@pytest.mark.parametrize("more", [(), ("zz",)])
def test_a_writer_that_dies_between_the_steps_has_taken_in(
    table: hudi.Table, more: tuple[str, ...]
) -> None:
    path = Path(table.path)
    append(path, table.format, batch(7, "new"))
    with death_in("hudi_core.plugin.host.FormatHost.complete_write"):
        table.repair(take_in=True)
    assert keys(states(path, table.format)[-1]) == ["a", "b", "new", "x", "y"]
    assert opened(table).count() == 4
    if more:  # and a repair takes nothing in twice
        append(path, table.format, batch(8, *more))
        done = opened(table).repair(take_in=True).taken_in
        assert done is not None
        assert done.rows == 1
    else:
        opened(table).upsert(batch(8, "a"))
    agree(path)
    assert keys(opened(table).to_arrow()) == ["a", "b", "new", "x", "y", *more]


@pytest.mark.parametrize("other", ["append", "delete"])
def test_what_comes_in_between_stays_foreign(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    path = Path(table.path)
    append(path, table.format, batch(7, "new"))
    if other == "append":
        come_between = partial(append, path, table.format, batch(8, "zz"))
        before(monkeypatch, Transaction, "_complete", lambda *_: come_between())
        with pytest.raises(ForeignCommitError, match="1 row in 1 file"):
            table.repair(take_in=True)
        assert keys(opened(table).to_arrow()) == ["a", "b", "new", "x", "y"]
        assert keys(states(path, table.format)[-1])[-1] == "zz"
        assert opened(table).repair(take_in=True).taken_in is not None
        assert keys(opened(table).to_arrow())[-1] == "zz"
    else:
        before(monkeypatch, Transaction, "_complete", lambda *_: delete(path, table.format, "x"))
        with pytest.raises(CommitStateUnknownError, match="not made by a Hudi writer"):
            table.repair(take_in=True)
        assert keys(opened(table).to_arrow()) == ["a", "b", "x", "y"]
        with pytest.raises(CommitStateUnknownError):
            opened(table).repair(take_in=True)
        opened(table).repair(discard=True)
        assert keys(opened(table).to_arrow()) == ["a", "b", "new", "x", "y"]
    agree(path)


@pytest.mark.parametrize("part", [THEIRS, OURS])
def test_rows_deleted_in_place_in_between_stay_deleted(table: hudi.Table, part: str) -> None:
    """By a vector or a delete file: the paths of the files are the same."""
    path = Path(table.path)
    append(path, table.format, batch(7, "n1", "n2"))
    with death_in("hudi_core.plugin.host.FormatHost.complete_write"):
        table.repair(take_in=True)
    delete_in_place(path, table.format, part)
    seen = rows_seen(path, table.format)
    assert len(seen) == 5
    for _ in range(2):
        with pytest.raises(CommitStateUnknownError, match="not made by a Hudi writer"):
            opened(table).upsert(batch(8, "a"))
        assert rows_seen(path, table.format) == seen
    assert keys(opened(table).to_arrow()) == ["a", "b", "x", "y"]
    (counted,) = table.repair(dry_run=True).foreign
    assert (counted.added_rows, len(counted.added), counted.deleted_rows) == (2, 1, 1)
    opened(table).repair(discard=True)
    agree(path)


def rows_seen(path: Path, table_format: str) -> list[str]:
    """Keys that readers of the format see, where rows are deleted in place."""
    if table_format == "delta":
        table = DeltaTable(str(path))
        query = QueryBuilder().register("t", table).execute("select id from t")
        return sorted(query.read_all()["id"].to_pylist())
    return keys(states(path, table_format)[-1])


def test_a_take_in_that_fails_is_rolled_back_and_made_again(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollback is recorded in the format, whose rows of others stay what they are."""
    path = Path(table.path)
    append(path, table.format, batch(7, "new"))
    before(monkeypatch, Transaction, "_record", failing(Died()))
    with pytest.raises(Died):
        table.repair(take_in=True)
    assert all(one.is_completed for one in opened(table).timeline.instants)
    with pytest.raises(ForeignCommitError, match="1 row in 1 file"):
        opened(table).repair()
    assert opened(table).repair(take_in=True).left == ()
    agree(path)
    assert keys(opened(table).to_arrow()) == ["a", "b", "new", "x", "y"]


def test_a_rollback_takes_the_rows_out_again(table: hudi.Table) -> None:
    path = Path(table.path)
    held = agree(path)
    append(path, table.format, batch(7, "new"))
    done = table.repair(take_in=True).taken_in
    assert done is not None
    assert done.instant is not None
    opened(table).rollback(done.instant)
    assert agree(path) == held
    opened(table).upsert(batch(8, "zz"))
    agree(path)
    assert opened(table).validate().is_valid


def test_a_restore_goes_back_behind_it(table: hudi.Table) -> None:
    path = Path(table.path)
    held, last = agree(path), table.timeline.completed_writes()[-1]
    table.savepoint(last)
    append(path, table.format, batch(7, "new"))
    table.repair(take_in=True)
    opened(table).upsert(batch(8, "zz"))
    opened(table).restore(last)
    assert agree(path) == held
    opened(table).upsert(batch(9, "c"))
    agree(path)


def test_cleans_and_archives_go_on(table: hudi.Table) -> None:
    path = Path(table.path)
    append(path, table.format, batch(7, "new"))
    table.repair(take_in=True)
    few = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    for ts in range(10, 20):
        opened(table).upsert(batch(ts, "new", "a"), options=few)
        agree(path)
    assert opened(table).validate().is_valid
    assert len(opened(table).timeline.completed_writes()) < 8


@pytest.mark.parametrize("where", [("delta",), ("iceberg",), ("delta", "iceberg")])
def test_a_table_of_several_formats(path: Path, where: tuple[str, ...]) -> None:
    table = two_writes(path, "iceberg,delta")
    for number, one in enumerate(where):
        append(path, one, batch(7, f"new{number}"))
    with pytest.raises(ForeignCommitError):
        table.upsert(batch(8, "a"))
    assert [one.table_format for one in table.repair(dry_run=True).foreign] == sorted(
        where, reverse=True
    )
    done = table.repair(take_in=True)
    assert done.left == ()
    expected = ["a", "b", *(f"new{number}" for number in range(len(where))), "x", "y"]
    assert keys(opened(table).to_arrow()) == expected
    for one in ("delta", "iceberg"):
        assert keys(states(path, one)[-1]) == expected
    opened(table).upsert(batch(8, "a"))
    assert opened(table).validate().is_valid


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("rows", [0, 2])
def test_a_table_that_was_made_again_is_named_by_reads(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]], rows: int
) -> None:
    """Never no rows: none of its snapshots is Hudi's."""
    catalog, options = lake
    table = two_writes(path, "iceberg", **options)
    held, first = bag(table.to_arrow()), table.timeline.completed_writes()[0]
    catalog.drop_table("lake.t")
    other = catalog.create_table("lake.t", TAGGED, location=f"file://{table.path}")
    if rows:
        other.append(batch(7, "new", "zz"))
    number = str(other.metadata.current_snapshot_id)
    again = hudi.Table.open(table.path, options)
    for call in (again.to_arrow, again.count, lambda: again.to_arrow(as_of=first)):
        with pytest.raises(ForeignCommitError, match="no state of Hudi") as caught:
            call()
        assert caught.value.version == number
    with pytest.raises(ForeignCommitError):
        again.upsert(batch(8, "a"))
    with pytest.raises(ForeignCommitError, match="4 rows"):
        again.repair()
    with pytest.raises(TableServiceError, match="4 rows"):
        again.repair(take_in=True)
    again.repair(discard=True)
    assert bag(hudi.Table.open(table.path, options).to_arrow()) == held
    assert bag(catalog.load_table("lake.t").scan().to_arrow()) == held


def test_a_log_that_was_made_again_is_named_by_reads(path: Path) -> None:
    table = two_writes(path, "delta")
    held = bag(table.to_arrow())
    for one in (path / "_delta_log").iterdir():
        one.unlink()
    write_deltalake(table.path, batch(7, "new"), mode="append")
    for call in (table.to_arrow, table.count, lambda: table.upsert(batch(8, "a"))):
        with pytest.raises(ForeignCommitError, match="no state of Hudi"):
            call()
    table.repair(discard=True)
    assert bag(opened(table).to_arrow()) == held


def test_an_upgrade_of_the_format_names_the_repair(path: Path) -> None:
    table = two_writes(path, "iceberg")
    held, folder = agree(path), path / "metadata"
    newest = max(int(one.name.split(".")[0][1:]) for one in folder.glob("v*.metadata.json"))
    whole = json.loads((folder / f"v{newest}.metadata.json").read_text())
    whole |= {"format-version": 3, "next-row-id": 0}
    (folder / f"v{newest + 1}.metadata.json").write_text(json.dumps(whole))
    assert bag(opened(table).to_arrow(), TAGGED.names) == held
    with pytest.raises(ForeignCommitError, match=r"[Vv]ersion 3 of the format") as caught:
        table.upsert(batch(8, "a"))
    assert "hudi table repair" in caught.value.hint
    assert opened(table).repair().left == ()
    assert agree(path) == held
    opened(table).upsert(batch(8, "new"))
    agree(path)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_dropped_entry_is_named(path: Path, lake: tuple[SqlCatalog, dict[str, str]]) -> None:
    catalog, options = lake
    table = two_writes(path, "iceberg", **options)
    catalog.drop_table("lake.t")
    with pytest.raises(MissingMetadataError, match="its entry was dropped") as caught:
        hudi.Table.open(table.path, options).to_arrow()
    assert "damaged" not in str(caught.value)
    assert "hudi table repair" in caught.value.hint
    assert isinstance(caught.value, CorruptMetadataError)


SAVED = encode(SavepointMetadata("somebody", 0, "", {}))


def restore_of(*times: str) -> bytes:
    """The body of a restore that took back these commits."""
    infos = tuple(InstantInfo(time, "commit") for time in times)
    return encode(RestoreMetadata(times[0], 1, times, restore_instant_info=infos))


def put(path: Path, action: Action, body: bytes, *, is_complete: bool = True) -> Instant:
    """Put an action on the Hudi timeline, and nowhere else, as Hudi does without the plugin."""
    client = open_table(str(path), {}).client
    clock = TimelineClock(client.active)
    requested = Instant(clock.next_time(), action, State.REQUESTED)
    client.active.create_requested(requested)
    inflight = client.active.to_inflight(requested)
    return client.active.complete(inflight, clock.next_time(), body) if is_complete else inflight


def restored(path: Path) -> Instant:
    """Take the last write back: its file goes, and its instant, and a restore tells of it."""
    table = open_table(str(path), {})
    last = table.client.timeline().completed_writes()[-1]
    for stat in table.client.read_commit(last).stats:
        (path / str(stat.path)).unlink()
    table.client.active.delete(last)
    for state in (State.INFLIGHT, State.REQUESTED):
        table.client.active.delete(Instant(last.requested_time, last.action, state))
    return put(path, Action.RESTORE, restore_of(last.requested_time))


@pytest.mark.parametrize("table_format", TWO_STEP)
def test_a_restore_is_made_in_the_format_by_the_next_write(path: Path, table_format: str) -> None:
    off = {"hoodie.metadata.enable": "false"}
    table = two_writes(path, table_format, **off)
    before = bag(table.to_arrow())
    table.upsert(batch(9, "a"))
    restore = restored(path)
    assert bag(hudi.Table.open(path).to_arrow()) == before
    (wrong, *_) = hudi.Table.open(path).validate().differences
    assert restore.requested_time in str(wrong)
    hudi.Table.open(path).upsert(batch(5, "b"))
    rows = agree(path)
    assert any("5" in one for one in rows)
    assert not any("9" in one for one in rows)
    assert hudi.Table.open(path).timeline.find(restore.requested_time) == restore
    assert hudi.Table.open(path).validate().differences == ()


def test_a_savepoint_is_recorded_where_the_format_has_them(table: hudi.Table) -> None:
    path = Path(table.path)
    saved = put(path, Action.SAVEPOINT, SAVED)
    held = agree(path)
    if table.format == "iceberg":
        # of no commit of that time, so that no state could be tagged
        with pytest.raises(hudi.HudiError, match=saved.requested_time):
            table.upsert(batch(5, "b"))
        return
    table.upsert(batch(5, "b"))
    assert agree(path) != held
    assert [one.instant for one in table.savepoints] == [saved]


@pytest.mark.parametrize("action", [Action.RESTORE, Action.SAVEPOINT])
def test_what_died_before_it_said_anything_is_dropped(table: hudi.Table, action: Action) -> None:
    begun = put(Path(table.path), action, b"", is_complete=False)
    table.upsert(batch(5, "b"))
    assert table.timeline.find(begun.requested_time, action) is None
    agree(Path(table.path))


def test_a_clean_that_another_engine_has_begun_stops_no_write(table: hudi.Table) -> None:
    begun = put(Path(table.path), Action.CLEAN, b"", is_complete=False)
    table.upsert(batch(5, "b"), options={"hoodie.clean.automatic": "false"})
    assert table.timeline.find(begun.requested_time) is not None
    table.upsert(batch(6, "b"))  # whose clean drops a plan without content
    assert table.timeline.find(begun.requested_time) is None
    agree(Path(table.path))


def test_what_a_format_does_not_declare_it_gives_a_reason_for() -> None:
    """Services that no format lacks by accident."""
    wanted = {Capability.SAVEPOINT, Capability.RESTORE, Capability.CLUSTERING}
    for name in ("native", *TWO_STEP):
        host = FormatHost.load(FormatRegistry(), name)
        missing = wanted - set(host.capabilities)
        assert all(host.capabilities.reasons.get(one) for one in missing), name


_YEARS_S = 10 * 365 * 24 * 3600


def aged(path: Path) -> None:
    """Make all files ten years old, as a vacuum sees them."""
    then = time.time() - _YEARS_S
    for file in path.rglob("*"):
        os.utime(file, (then, then))


def outside_the_log(table: hudi.Table) -> set[str]:
    return {one for one in files(table) if not one.startswith("_delta_log")}


def at_each_instant(path: Path) -> list[Any]:
    """The rows of every completed write, by time travel."""
    table = hudi.Table.open(path)
    return [bag(table.to_arrow(as_of=one)) for one in table.timeline.completed_writes()]


@pytest.fixture
def delta(path: Path) -> hudi.Table:
    """A Delta table of three writes, of which only the last slices are Delta's."""
    made = two_writes(path, "delta")
    made.upsert(batch(3, "a", "x"))
    return made


@pytest.mark.parametrize("full", [False, True])
def test_a_vacuum_as_it_comes_finds_nothing(
    delta: hudi.Table, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older slices, and files of a write that is not complete, are younger than what it takes."""
    path = Path(delta.path)
    left_between(monkeypatch, delta, lambda: delta.upsert(batch(5, "a")))
    aged(path)
    held, there = at_each_instant(path), outside_the_log(delta)
    assert DeltaTable(str(path)).vacuum(full=full) == []
    assert DeltaTable(str(path)).vacuum(dry_run=False, full=full) == []
    assert outside_the_log(delta) == there
    assert at_each_instant(path) == held
    hudi.Table.open(path).upsert(batch(6, "b"))
    assert any("6" in one for one in agree(path))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("hours", [0, 168])
def test_a_shorter_time_is_refused_by_the_vacuum(delta: hudi.Table, full: bool, hours: int) -> None:
    path = Path(delta.path)
    aged(path)
    there = outside_the_log(delta)
    with pytest.raises(Exception, match="Invalid retention period"):
        DeltaTable(str(path)).vacuum(hours, dry_run=False, full=full)
    assert outside_the_log(delta) == there


def test_who_insists_loses_what_delta_does_not_name_and_nothing_else(delta: hudi.Table) -> None:
    """Time travel and rollback are gone then, the present rows and the timeline are not."""
    path = Path(delta.path)
    held, writes = agree(path), len(delta.timeline.completed_writes())
    aged(path)
    hoodie = {one for one in files(delta) if one.startswith(".hoodie/")}
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert {one for one in files(delta) if one.startswith(".hoodie/")} == hoodie
    assert agree(path) == held
    again = hudi.Table.open(path)
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
    table = two_writes(path, "delta", **days)
    kept = DeltaTable(str(path)).metadata().configuration
    assert kept["delta.deletedFileRetentionDuration"] == "interval 30 days"
    # the log goes on, and the option is not given again
    table.convert("native")
    hudi.Table.open(path).convert("delta")
    assert DeltaTable(str(path)).metadata().configuration == kept


@pytest.mark.parametrize("own", [{}, {"delta.deletedFileRetentionDuration": "interval 9 days"}])
def test_a_log_of_before_keeps_files_from_then_on(path: Path, own: dict[str, str]) -> None:
    write_deltalake(
        str(path), batch(1, "a", "b"), configuration={**own, "delta.appendOnly": "false"}
    )
    hudi.Table.adopt(path, record_key="id")
    kept = DeltaTable(str(path)).metadata().configuration
    days = own.get("delta.deletedFileRetentionDuration", "interval 36500 days")
    assert kept["delta.deletedFileRetentionDuration"] == days
    assert kept["delta.logRetentionDuration"] == "interval 36500 days"
    assert kept["delta.appendOnly"] == "false"
    assert bag(hudi.Table.open(path).to_arrow(), TAGGED.names) == bag(batch(1, "a", "b"))


def expire_all(catalog: SqlCatalog) -> int:
    """Expire as an engine does that runs once a day; return how many snapshots are left."""
    tomorrow = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    catalog.load_table("lake.t").maintenance.expire_snapshots().older_than(tomorrow).commit()
    return len(catalog.load_table("lake.t").metadata.snapshots)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_others_expire_stays(tmp_path: Path, lake: tuple[SqlCatalog, dict[str, str]]) -> None:
    """Instants whose snapshots are gone are no dead writers' to publish, let alone to take back."""
    catalog, options = lake
    path = tmp_path / "t"
    table = two_writes(path, "iceberg", **options)
    table.insert(batch(3, "c"))
    table.insert(batch(4, "z"))
    writes = table.timeline.completed_writes()
    held = bag(table.to_arrow())
    assert expire_all(catalog) == 1
    again = hudi.Table.open(path, options)
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
    table = two_writes(path, "iceberg", **options)
    held, writes = bag(table.to_arrow()), table.timeline.completed_writes()
    last = table.insert(batch(3, "c"))
    table.rollback(last.instant)
    assert expire_all(catalog) == 1
    again = hudi.Table.open(path, options)
    assert again.timeline.completed_writes() == writes
    assert bag(again.to_arrow()) == held
    again.upsert(batch(5, "a"))
    assert bag(catalog.load_table("lake.t").scan().to_arrow()) == bag(again.to_arrow())


def test_engines_are_told_to_leave_old_files(path: Path, native: hudi.Table) -> None:
    native.convert("iceberg")
    properties = StaticTable.from_metadata(str(path)).metadata.properties
    assert properties["gc.enabled"] == "false"
