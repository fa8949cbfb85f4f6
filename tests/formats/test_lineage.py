"""Only the current lineage of a format counts; what is not of Hudi, or is gone, is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table.update import SetSnapshotRefUpdate

import hudi_core as hudi
from hudi_core import errors
from hudi_core.model.instant import Instant, State
from hudi_core.txn.publication import publish_once
from iceberg_format.commit import requirements
from iceberg_format.table import IcebergTable
from tests.formats.foreign_writers import append
from tests.formats.two_steps import (
    READ,
    READABLE,
    batch,
    files_of,
    last_write,
    left_between,
    newest_iceberg,
    opened,
    read,
    read_at_rest,
    small_table,
)


@pytest.fixture(params=READABLE)
def table(path: Path, request: pytest.FixtureRequest) -> hudi.Table:
    return small_table(path, str(request.param))


def state_of(table: hudi.Table, instant: Instant) -> State | None:
    found = hudi.Table.open(table.path).timeline.find(instant.requested_time, instant.action)
    return None if found is None else found.state


def is_published(table: hudi.Table, instant: Instant) -> bool:
    here = opened(table)
    return here.host.find_publication(here.client, instant) is not None


def go_back(table: hudi.Table, snapshot_id: int) -> None:
    """Make an older snapshot the current one, as Iceberg's own rollback does: all stay listed."""
    ice = IcebergTable.open(opened(table).client)
    found = ice.load()
    change = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    update = SetSnapshotRefUpdate.model_validate(change)
    ice.catalog.commit(found, requirements(found.metadata), (update,))


def test_a_snapshot_that_was_left_behind_completes_nothing(path: Path) -> None:
    table = small_table(path, "iceberg")
    before = newest_iceberg(path).metadata.current_snapshot_id
    assert before is not None
    instant = table.upsert(batch(2, "a", "y")).instant
    assert state_of(table, instant) is State.COMPLETED
    go_back(table, before)
    listed = newest_iceberg(path).metadata
    assert len(listed.snapshots) == 3
    assert any(
        one.summary is not None
        and one.summary.additional_properties.get("hudi.instant") == instant.requested_time
        for one in listed.snapshots
    )
    assert any(entry.snapshot_id != before for entry in listed.snapshot_log)
    assert not is_published(table, instant)
    assert state_of(table, instant) is State.INFLIGHT
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    # nothing has taken its place: it is published again
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1, "y": 2}


def test_what_was_rolled_back_is_complete_nowhere(table: hudi.Table) -> None:
    kept = table.timeline.completed_writes()[-1]
    instant = table.upsert(batch(2, "a")).instant
    here = opened(table)
    metadata = here.client.read_commit(instant)
    here.host.before_rollback(here.client, instant)
    if table.format == "delta":
        reports = DeltaTable(table.path).history()
        assert any(one.get("hudi.instant") == instant.requested_time for one in reports)
        stats = pa.table(DeltaTable(table.path).get_add_actions(flatten=True))
        assert stats.column("min.id").null_count == 0
    assert not is_published(table, instant)
    assert state_of(table, instant) is State.INFLIGHT
    assert is_published(table, kept)
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    with pytest.raises(errors.HudiError):
        publish_once(here, metadata, instant)
    table.rollback(instant)
    assert state_of(table, instant) is None
    assert not is_published(table, instant)
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 1, "b": 3, "x": 1}


def test_a_write_that_others_build_on_is_not_taken_out(table: hudi.Table) -> None:
    first, here = last_write(table), opened(table)
    table.upsert(batch(2, "a"))
    with pytest.raises(errors.TableServiceError, match="build on"):
        here.host.before_rollback(here.client, first)


def forget(table: hudi.Table) -> None:
    """Let the format forget all that it can of what is complete now."""
    here = opened(table)
    done = [one for one in here.timeline().instants if one.is_completed]
    here.host.archive_instants(here.client, done)
    if table.format == "delta":
        handle = DeltaTable(table.path)
        handle.create_checkpoint()
        for old in (Path(table.path) / "_delta_log").glob("*.json"):
            if int(old.stem) < handle.version():
                old.unlink()


def test_all_that_is_forgotten_stays_complete(table: hudi.Table) -> None:
    undone = table.upsert(batch(2, "a")).instant
    table.rollback(undone)
    table.upsert(batch(3, "a", "n"))
    before = read_at_rest(table)
    known = [*table.timeline.instants]
    forget(table)
    if table.format == "iceberg":
        assert len(newest_iceberg(Path(table.path)).metadata.snapshots) == 1
    assert [*hudi.Table.open(table.path).timeline.instants] == known
    assert all(is_published(table, one) for one in known if one.is_completed)
    assert read_at_rest(table) == before
    hudi.Table.open(table.path).upsert(batch(4, "b"))
    forget(table)
    assert read_at_rest(table) == {**before, "b": 4}


def test_the_watermark_completes_nothing_that_came_after_it(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(table)
    pending = left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    assert not is_published(table, pending)
    assert state_of(table, pending) is State.INFLIGHT
    forget(table)  # by a writer that does not know of it: it gives what is complete
    assert state_of(table, pending) is State.INFLIGHT
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1}


CUTS: dict[str, Callable[[Path], object]] = {
    "iceberg": lambda path: max(
        (path / "metadata").glob("v*.metadata.json"),
        key=lambda one: int(one.stem.split(".")[0][1:]),
    ).unlink(),
    "delta": lambda path: max((path / "_delta_log").glob("*.json")).unlink(),
}


def test_a_format_that_lost_its_newest_state_is_brought_up_again(table: hudi.Table) -> None:
    table.upsert(batch(2, "a"))
    CUTS[table.format](Path(table.path))  # as a backup of yesterday would
    assert read(table) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1}


METADATA = {"delta": "_delta_log", "iceberg": "metadata"}


def test_a_write_that_a_foreign_commit_came_upon_stays_as_it_is(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    number = append(Path(table.path), table.format, batch(7, "new"))
    with pytest.raises(errors.CommitStateUnknownError, match=rf"{number}\b") as caught:
        table.upsert(batch(3, "b"))
    assert pending.requested_time in caught.value.what
    assert files_of(table, pending)
    hudi.Table.open(table.path).repair(discard=True)
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1}


@pytest.mark.parametrize("step", ["gone", "empty"])
def test_missing_metadata_names_the_command_that_helps(table: hudi.Table, step: str) -> None:
    folder = Path(table.path) / METADATA[table.format]
    shutil.rmtree(folder)
    if step == "empty":
        folder.mkdir()
    calls: list[Callable[[], object]] = [
        lambda: hudi.Table.open(table.path).to_arrow(),
        lambda: hudi.Table.open(table.path).timeline,
        lambda: hudi.Table.open(table.path).file_slices(),
        lambda: table.upsert(batch(2, "a")),
    ]
    for call in calls:
        with pytest.raises(errors.CorruptMetadataError) as caught:
            call()
        assert f"hudi table repair {table.path}" in caught.value.hint
    hudi.Table.open(table.path).repair()
    assert READ[table.format](Path(table.path)) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(2, "a"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}


@pytest.mark.parametrize("format_name", READABLE)
def test_before_its_first_write_it_is_no_exception(tmp_path: Path, format_name: str) -> None:
    table = small_table(tmp_path / "t", format_name)
    empty = hudi.Table.create(tmp_path / "u", table.schema, record_key="id", format=format_name)
    shutil.rmtree(tmp_path / "u" / METADATA[format_name])
    with pytest.raises(errors.CorruptMetadataError, match=f"hudi table repair {empty.path}"):
        empty.to_arrow()


@pytest.mark.parametrize("write", ["upsert", "delete", "insert_overwrite"])
def test_an_old_damage_leaves_no_new_write_half_done(table: hudi.Table, write: str) -> None:
    """A replacecommit that does not say any more what it replaced brings its file group back."""
    table.insert_overwrite(batch(2, "a", "d"))
    found = next(Path(table.path).glob(".hoodie/timeline/*_*.replacecommit"))
    whole = found.read_bytes()
    found.write_bytes(whole.replace(b"ToReplaceFileIds", b"ToReplaceFileXds"))
    before, seen = READ[table.format](Path(table.path)), table.timeline.completed_writes()
    damaged = hudi.Table.open(table.path)
    with pytest.raises(errors.CorruptMetadataError, match="validate"):
        getattr(damaged, write)(batch(3, "b"))
    assert READ[table.format](Path(table.path)) == before
    assert hudi.Table.open(table.path).timeline.completed_writes() == seen
    assert not opened(table).client.timeline().pending()
    assert damaged.upsert(batch(4, "x")).updated == 1  # what the damage does not concern
    found.write_bytes(whole)
    table.upsert(batch(5, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 5, "d": 2, "x": 4}


def test_a_file_group_without_rows_is_no_damage(table: hudi.Table) -> None:
    table.delete(batch(2, "a", "b"))
    assert table.upsert(batch(3, "a")).inserted == 1
    table.delete(batch(4, "a"))
    table.insert_overwrite(batch(5, "b"))
    assert read_at_rest(table) == {"b": 5, "x": 1}
