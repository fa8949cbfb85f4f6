"""What was not written through Hudi, and what is not there any more: named, never passed over."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.errors import CommitStateUnknownError, CorruptMetadataError
from tests.formats.foreign_writers import append
from tests.formats.two_steps import (
    FORMATS,
    READ,
    batch,
    files_of,
    left_between,
    new_table,
    opened,
    read_at_rest,
)

METADATA = {"delta": "_delta_log", "iceberg": "metadata"}


@pytest.fixture(params=FORMATS)
def table(tmp_path: Path, request: pytest.FixtureRequest) -> hudi.Table:
    return new_table(tmp_path / "t", str(request.param))


def test_a_write_that_a_foreign_commit_came_upon_stays_as_it_is(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = left_between(monkeypatch, table, lambda: table.upsert(batch(2, "a")))
    number = append(Path(table.path), table.format, batch(7, "new"))
    with pytest.raises(CommitStateUnknownError, match=rf"{number}\b") as caught:
        table.upsert(batch(3, "b"))
    assert pending.requested_time in caught.value.what
    assert files_of(table, pending)
    hudi.Table.open(table.path).repair(discard=True)
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}
    table.upsert(batch(3, "b"))
    assert read_at_rest(table) == {"a": 2, "b": 3, "x": 1}


@pytest.mark.parametrize("step", ["gone", "empty"])
def test_missing_metadata_is_an_error_with_the_command_that_helps(
    table: hudi.Table, step: str
) -> None:
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
        with pytest.raises(CorruptMetadataError) as caught:
            call()
        assert f"hudi table repair {table.path}" in caught.value.hint
    hudi.Table.open(table.path).repair()
    assert READ[table.format](Path(table.path)) == {"a": 1, "b": 1, "x": 1}
    table.upsert(batch(2, "a"))
    assert read_at_rest(table) == {"a": 2, "b": 1, "x": 1}


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_table_of_before_its_first_write_is_no_exception(
    tmp_path: Path, format_name: str
) -> None:
    table = new_table(tmp_path / "t", format_name)
    empty = hudi.Table.create(
        str(tmp_path / "u"), table.schema, record_key="id", format=format_name
    )
    shutil.rmtree(tmp_path / "u" / METADATA[format_name])
    with pytest.raises(CorruptMetadataError, match=f"hudi table repair {empty.path}"):
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
    with pytest.raises(CorruptMetadataError, match="validate"):
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
