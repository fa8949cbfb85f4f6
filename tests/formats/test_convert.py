"""Tables that get another format, and get it again: every reader sees the same rows."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core import errors
from hudi_core.cli.app import app
from hudi_core.model.format import WATERMARK_KEY
from tests.formats.dying_writers import Died, MortalStorage
from tests.formats.service_tables import (
    READERS,
    TWO_STEP,
    agree,
    bag,
    batch,
    by_delta,
    by_iceberg,
    instants,
    two_writes,
)
from tests.hudi_tables import COMPLEX, PLAIN, TXNS, VERSION_6


@pytest.mark.parametrize("to", TWO_STEP)
def test_a_table_is_converted_and_written_on(path: Path, native: hudi.Table, to: str) -> None:
    held, timeline = agree(path), instants(path)
    files = sorted(path.rglob("*.parquet"))
    done = native.convert(to)
    assert (done.before, done.after, done.files, done.partitions) == ("native", to, 2, 2)
    assert done.receipt is not None
    assert native.format == to
    assert agree(path) == held
    assert instants(path) == timeline
    assert [one for one in sorted(path.rglob("*.parquet")) if "_delta_log" not in str(one)] == files
    native.upsert(batch(3, "b", "z"))
    native.delete(batch(3, "x"))
    assert sum(agree(path).values()) == 4


def test_a_format_is_exchanged_for_another(path: Path) -> None:
    table = two_writes(path, "iceberg")
    held = agree(path)
    for to in ("delta", "iceberg", "delta"):
        table.convert(to)
        assert agree(path) == held
        table.upsert(batch(9, "a"))
        held = agree(path)


def test_the_columns_of_a_table_may_change_in_between(path: Path, native: hudi.Table) -> None:
    native.convert("iceberg")
    native.convert("native")
    native.alter(rename={"value": "amount"}, add_columns={"note": pa.string()})
    native.alter(add_columns={"value": pa.string()})
    native.convert("iceberg")
    read = by_iceberg(path)
    assert bag(read) == bag(native.to_arrow(columns=read.column_names))
    assert set(read["value"].to_pylist()) == {None}
    assert {1.0, 2.0} <= set(read["amount"].to_pylist())


def test_a_dropped_column_leaves_the_delta_table(path: Path, native: hudi.Table) -> None:
    native.convert("delta")
    native.convert("native")
    native.alter(drop="tags")
    native.convert("delta")
    assert "tags" not in by_delta(path).column_names
    rows = native.to_arrow()
    assert bag(by_delta(path), rows.column_names) == bag(rows)


@pytest.mark.parametrize("dry_run", [True, False])
def test_names_by_which_delta_would_read_wrongly_are_refused(
    path: Path, native: hudi.Table, dry_run: bool
) -> None:
    native.alter(rename={"value": "amount"})
    with pytest.raises(errors.UnsupportedTableError, match="value, which is called amount now"):
        native.convert("delta", dry_run=dry_run)
    native.alter(drop="tags")
    native.alter(add_columns={"tags": pa.list_(pa.string())})
    native.alter(rename={"amount": "value"})
    with pytest.raises(errors.UnsupportedTableError, match=r"tags.*another column"):
        native.convert("delta", dry_run=dry_run)
    assert hudi.Table.open(path).format == "native"


def test_types_in_which_delta_would_read_wrongly_are_refused(path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int32())])
    table = hudi.Table.create(path, schema, record_key="id")
    table.insert(pa.table({"id": ["a"], "n": [1]}, schema))
    table.alter(promote={"n": pa.int64()})
    for dry_run in (True, False):
        with pytest.raises(errors.UnsupportedTableError, match="n of type int32, now int64"):
            table.convert("delta", dry_run=dry_run)
    table.insert_overwrite_table(pa.table({"id": ["a"], "n": [1]}))
    table.convert("delta")
    assert by_delta(path)["n"].to_pylist() == [1]


def test_what_completed_before_is_complete_by_a_watermark(tmp_path: Path) -> None:
    table = two_writes(tmp_path / "iceberg")
    last = max(one.completion_time or "" for one in table.timeline.instants)
    table.convert("iceberg")
    metadata = StaticTable.from_metadata(table.path).metadata
    assert len(metadata.snapshots) == 1
    assert metadata.properties[WATERMARK_KEY] == last
    assert all(one.is_completed for one in table.timeline.instants)
    other = two_writes(tmp_path / "delta")
    other.convert("delta")
    log = DeltaTable(other.path)
    assert log.version() == 0
    assert log.transaction_version(WATERMARK_KEY) is not None
    assert all(one.is_completed for one in other.timeline.instants)


@pytest.mark.parametrize("to", TWO_STEP)
def test_statistics_of_the_present_files_are_told(path: Path, to: str) -> None:
    two_writes(path).convert(to)
    if to == "iceberg":
        table = StaticTable.from_metadata(str(path))
        files = [one.file for one in table.scan(row_filter="ts > 1").plan_files()]
        assert len(list(table.scan(row_filter="ts > 5").plan_files())) == 0
        assert sorted(one.partition[0] for one in files) == ["oslo", "rome"]
        value = table.schema().find_field("value").field_id
        assert all(value not in one.nan_value_counts for one in files)  # a footer does not tell
    else:
        actions = pa.table(DeltaTable(str(path)).get_add_actions(flatten=True))
        assert sorted(actions["partition.city"].to_pylist()) == ["oslo", "rome"]
        assert sorted(actions["max.ts"].to_pylist()) == [2, 2]
        assert pc.sum(actions["num_records"]).as_py() == 4
        assert actions["max.value"].to_pylist() == [None, None]  # there may be NaN


@pytest.mark.parametrize("to", TWO_STEP)
@pytest.mark.parametrize("name", [PLAIN, COMPLEX, TXNS])
def test_real_tables_are_converted(real_tables: Callable[[str], Path], name: str, to: str) -> None:
    path = real_tables(name)
    table = hudi.Table.open(path)
    rows = table.to_arrow()
    table.convert(to)
    readers = READERS[to]
    for read in readers:
        assert bag(read(path), rows.column_names) == bag(rows), read.__name__
    own = rows.drop_columns([one for one in rows.column_names if one.startswith("_hoodie_")])
    table.upsert(own.slice(0, 1))
    now = table.to_arrow()
    for read in readers:
        assert bag(read(path), rows.column_names) == bag(now), read.__name__


def test_files_without_field_ids_are_read_by_name(real_tables: Callable[[str], Path]) -> None:
    path = real_tables(TXNS)
    table = hudi.Table.open(path)
    expected = sorted(table.to_arrow()["amount"].to_pylist())
    assert hudi.Table.open(path).config.last_column_id is None
    table.convert("iceberg")
    assert table.config.last_column_id is not None
    metadata = StaticTable.from_metadata(str(path)).metadata
    assert "schema.name-mapping.default" in metadata.properties
    read = StaticTable.from_metadata(str(path)).scan(row_filter="amount > 0").to_arrow()
    assert sorted(read["amount"].to_pylist()) == [one for one in expected if one > 0]
    # the bounds were found by name as well
    assert not list(
        StaticTable.from_metadata(str(path)).scan(row_filter="amount > 99999999").plan_files()
    )


@pytest.mark.parametrize("to", TWO_STEP)
def test_unwritable_tables_are_not_converted(real_tables: Callable[[str], Path], to: str) -> None:
    path = real_tables(VERSION_6[0])
    before = sorted(str(one) for one in path.rglob("*"))
    with pytest.raises(errors.UnsupportedTableError, match="table version 6"):
        hudi.Table.open(path).convert(to)
    assert sorted(str(one) for one in path.rglob("*") if ".locks" not in str(one)) == before


@pytest.mark.parametrize("to", TWO_STEP)
def test_a_dry_run_refuses_damaged_files(path: Path, native: hudi.Table, to: str) -> None:
    [first, *_] = (one.base_file for one in native.file_slices() if one.base_file)
    file = path / first.path
    file.write_bytes(file.read_bytes()[:-8] + b"nonsense")
    for dry_run in (True, False):
        with pytest.raises((errors.DataFileError, errors.CorruptMetadataError), match=file.name):
            native.convert(to, dry_run=dry_run)


def test_a_dry_run_sees_the_rules_of_an_old_log(path: Path, native: hudi.Table) -> None:
    native.convert("delta")
    native.convert("native")
    DeltaTable(str(path)).alter.set_table_properties({"delta.appendOnly": "true"})
    for dry_run in (True, False):
        with pytest.raises(errors.UnsupportedTableError, match=r"delta\.appendOnly"):
            native.convert("delta", dry_run=dry_run)


@pytest.mark.parametrize("to", TWO_STEP)
def test_a_dry_run_changes_nothing(path: Path, native: hudi.Table, to: str) -> None:
    before = {str(one): one.stat().st_mtime_ns for one in path.rglob("*")}
    plan = native.convert(to, dry_run=True)
    assert (plan.is_needed, plan.files, plan.instants, plan.receipt) == (True, 2, 2, None)
    assert {str(one): one.stat().st_mtime_ns for one in path.rglob("*")} == before


def test_progress_is_told_by_file(path: Path) -> None:
    told: list[tuple[int, int]] = []
    two_writes(path).convert("iceberg", progress=lambda *one: told.append(one))
    assert told[-2:] == [(1, 2), (2, 2)]


def test_another_location_is_kept_for_the_next_time(path: Path, native: hudi.Table) -> None:
    key = "hoodie.table.format.iceberg.location"
    native.convert("iceberg", options={key: ".hoodie/iceberg"})
    assert bag(by_iceberg(path / ".hoodie/iceberg")) == bag(native.to_arrow())
    native.convert("native")
    native.upsert(batch(3, "a"))
    native = hudi.Table.open(path)
    native.convert("iceberg")
    assert bag(by_iceberg(path / ".hoodie/iceberg")) == bag(native.to_arrow())
    assert not (path / "metadata").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_conversion_into_a_catalog(tmp_path: Path, lake: tuple[SqlCatalog, dict[str, str]]) -> None:
    found, options = lake
    path = tmp_path / "t"
    table = two_writes(path)
    table.convert("iceberg", options=options)
    assert "sqlite" not in (path / ".hoodie/hoodie.properties").read_text()
    assert bag(found.load_table("lake.t").scan().to_arrow()) == bag(table.to_arrow())
    table.convert("native")
    table.upsert(batch(3, "c"))
    table.convert("iceberg", options=options)
    assert bag(found.load_table("lake.t").scan().to_arrow()) == bag(table.to_arrow())
    table.upsert(batch(4, "d"))
    assert bag(found.load_table("lake.t").scan().to_arrow()) == bag(table.to_arrow())


@pytest.mark.parametrize("to", TWO_STEP)
def test_the_command(path: Path, native: hudi.Table, to: str) -> None:
    base = ["table", "convert", native.path, "--to", to]
    run = CliRunner().invoke
    plan = run(app, [*base, "--dry-run"])
    assert plan.exit_code == 0, plan.output
    assert "2 in 2 partitions" in plan.stdout
    assert hudi.Table.open(native.path).format == "native"
    done = json.loads(run(app, [*base, "--json"]).stdout)
    assert (done["from"], done["to"], done["changed"], done["files"]) == ("native", to, True, 2)
    assert done["version"]
    assert agree(path)
    again = run(app, base)
    assert again.stdout == f"{native.path} has the format {to} already: nothing to do.\n"
    back = run(app, ["table", "convert", native.path, "--to", "native"])
    assert f"from {to} to native: 2 files in 2 partitions" in back.stdout
    wrong = run(app, ["table", "convert", native.path, "--to", "paimon"])
    assert wrong.exit_code == 2
    assert "paimon" in wrong.stderr


def test_a_format_that_is_not_installed_is_named(native: hudi.Table) -> None:
    with pytest.raises(errors.UnknownTableFormatError, match="paimon"):
        native.convert("paimon")
    assert native.format == "native"


def test_a_column_that_the_format_lacks_is_named_before_anything_is_written(path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("at", pa.time64("us"))])
    table = hudi.Table.create(path, schema, record_key="id")
    table.insert(pa.table({"id": ["a"], "at": pa.array([1], pa.time64("us"))}))
    before = sorted(str(one) for one in path.rglob("*"))
    with pytest.raises(errors.HudiError, match="at"):
        table.convert("delta")
    assert sorted(str(one) for one in path.rglob("*")) == before


def test_a_writer_is_awaited(
    path: Path, native: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:

    def convert_meanwhile(*_: Any, **__: Any) -> Any:
        hudi.Table.open(native.path).convert("delta")

    monkeypatch.setattr("hudi_core.txn.transaction.Transaction.commit", convert_meanwhile)
    with pytest.raises(errors.ConcurrentWriterError):
        native.upsert(batch(5, "a"))
    monkeypatch.undo()
    assert not (path / "_delta_log").exists()


def test_a_stale_handle_does_not_write_the_former_format(path: Path, native: hudi.Table) -> None:
    hudi.Table.open(path).convert("delta")
    with contextlib.suppress(errors.HudiError):  # told to open it again
        native.upsert(batch(7, "a"))
    hudi.Table.open(path).upsert(batch(8, "b"))
    agree(path)


def test_a_format_among_the_options_is_no_contradiction_afterwards(path: Path) -> None:
    two_writes(path)
    table = hudi.Table.open(path, {"hoodie.table.format": "native"})
    table.convert("delta")
    table.upsert(batch(3, "a"))
    with pytest.raises(errors.OptionConflictError):
        hudi.Table.open(path, {"hoodie.table.format": "native"})


def test_the_format_it_has_is_no_change(path: Path) -> None:
    table = two_writes(path, "delta")
    done = table.convert("DELTA")
    assert (done.is_needed, done.receipt) == (False, None)
    assert DeltaTable(str(path)).version() == 2


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("to", TWO_STEP)
def test_a_conversion_that_died_is_run_again(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch, to: str, is_done: bool
) -> None:
    two_writes(path)
    held = agree(path)
    storage = MortalStorage(monkeypatch, is_done=is_done)
    for calls in range(1, 100):
        copy = tmp_path / f"t{calls}"
        shutil.copytree(path, copy)
        storage.left = calls
        try:
            hudi.Table.open(copy).convert(to)
        except Died:
            storage.left = 0
            # before the last step it is what it was, after it what it was to become
            assert agree(copy) == held
            hudi.Table.open(copy).upsert(batch(6, "new"))
            more = agree(copy)
            hudi.Table.open(copy).convert(to)
            assert hudi.Table.open(copy).format == to
            assert agree(copy) == more
        else:
            break
    assert calls > (6 if to == "iceberg" else 3)
