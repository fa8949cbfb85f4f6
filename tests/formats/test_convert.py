"""Tables that get another format, and get it again: every reader sees the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.errors import (
    CorruptMetadataError,
    DataFileError,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.model.format import WATERMARK_KEY
from hudi_core.services.opening import open_table
from hudi_core.storage.properties_file import read_properties
from tests.formats.service_tables import (
    FORMATS,
    READERS,
    agree,
    bag,
    batch,
    by_delta,
    by_iceberg,
    instants,
    new_table,
)
from tests.hudi_tables import COMPLEX, PLAIN, TXNS, VERSION_6

# --- there and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("to", FORMATS)
def test_a_table_is_converted_and_written_on(tmp_path: Path, to: str) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    held, timeline = agree(path), instants(path)
    files = sorted(path.rglob("*.parquet"))

    done = table.convert(to)

    assert (done.before, done.after, done.files, done.partitions) == ("native", to, 2, 2)
    assert done.receipt is not None
    assert table.format == to
    assert agree(path) == held
    assert instants(path) == timeline
    assert [one for one in sorted(path.rglob("*.parquet")) if "_delta_log" not in str(one)] == files

    table.upsert(batch(3, "b", "z"))
    table.delete(batch(3, "x"))
    assert sum(agree(path).values()) == 4


@pytest.mark.parametrize("to", FORMATS)
def test_a_table_goes_back_and_forth(tmp_path: Path, to: str) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    table.convert(to)
    table.upsert(batch(3, "a"))
    table.convert("native")
    assert read_properties(open_table(str(path), {}).client.storage)["hoodie.table.format"] == (
        "native"
    )
    table.upsert(batch(4, "a", "c"))
    table.delete(batch(4, "x"))
    held = agree(path)

    table.convert(to)
    assert agree(path) == held
    table.upsert(batch(5, "c"))
    assert sum(agree(path).values()) == 4


def test_a_format_is_exchanged_for_another(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path, "iceberg")
    held = agree(path)
    for to in ("delta", "iceberg", "delta"):
        table.convert(to)
        assert agree(path) == held
        table.upsert(batch(9, "a"))
        held = agree(path)


def test_the_columns_of_a_table_may_change_in_between(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    table.convert("iceberg")
    table.convert("native")
    table.alter(rename={"value": "amount"}, add_columns={"note": pa.string()})
    table.alter(add_columns={"value": pa.string()})
    table.convert("iceberg")
    read = by_iceberg(path)
    assert bag(read) == bag(table.to_arrow(columns=read.column_names))
    assert set(read["value"].to_pylist()) == {None}
    assert {1.0, 2.0} <= set(read["amount"].to_pylist())


def test_a_dropped_column_leaves_the_delta_table(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    table.convert("delta")
    table.convert("native")
    table.alter(drop="tags")
    table.convert("delta")
    assert "tags" not in by_delta(path).column_names
    rows = table.to_arrow()
    assert bag(by_delta(path), rows.column_names) == bag(rows)


@pytest.mark.parametrize("dry_run", [True, False])
def test_names_by_which_delta_would_read_wrongly_are_refused(tmp_path: Path, dry_run: bool) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    table.alter(rename={"value": "amount"})
    with pytest.raises(UnsupportedTableError, match="value, which is called amount now"):
        table.convert("delta", dry_run=dry_run)
    table.alter(drop="tags")
    table.alter(add_columns={"tags": pa.list_(pa.string())})
    table.alter(rename={"amount": "value"})
    with pytest.raises(UnsupportedTableError, match=r"tags.*another column"):
        table.convert("delta", dry_run=dry_run)
    assert hudi.Table.open(str(path)).format == "native"


def test_types_in_which_delta_would_read_wrongly_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    schema = pa.schema([("id", pa.string()), ("n", pa.int32())])
    table = hudi.Table.create(str(path), schema, record_key="id")
    table.insert(pa.table({"id": ["a"], "n": [1]}, schema))
    table.alter(promote={"n": pa.int64()})
    for dry_run in (True, False):
        with pytest.raises(UnsupportedTableError, match="n of type int32, now int64"):
            table.convert("delta", dry_run=dry_run)
    table.insert_overwrite_table(pa.table({"id": ["a"], "n": [1]}))
    table.convert("delta")
    assert by_delta(path)["n"].to_pylist() == [1]


# --- history -------------------------------------------------------------------------------------


def test_what_completed_before_is_complete_by_a_watermark(tmp_path: Path) -> None:
    table = new_table(tmp_path / "iceberg")
    last = max(one.completion_time or "" for one in table.timeline.instants)
    table.convert("iceberg")
    metadata = StaticTable.from_metadata(table.path).metadata
    assert len(metadata.snapshots) == 1
    assert metadata.properties[WATERMARK_KEY] == last
    assert all(one.is_completed for one in table.timeline.instants)

    other = new_table(tmp_path / "delta")
    other.convert("delta")
    log = DeltaTable(other.path)
    assert log.version() == 0
    assert log.transaction_version(WATERMARK_KEY) is not None
    assert all(one.is_completed for one in other.timeline.instants)


@pytest.mark.parametrize("to", FORMATS)
def test_hudis_own_time_travel_reaches_behind_the_conversion(tmp_path: Path, to: str) -> None:
    table = new_table(tmp_path / "t")
    table.insert_overwrite_table(batch(3, "q"))
    states = {
        one.requested_time: bag(table.to_arrow(as_of=one))
        for one in table.timeline.completed_writes()
    }
    assert [sum(one.values()) for one in states.values()] == [3, 4, 1]
    table.convert(to)
    table.upsert(batch(4, "q"))
    for time, rows in states.items():
        assert bag(table.to_arrow(as_of=time)) == rows


@pytest.mark.parametrize("to", FORMATS)
def test_an_instant_from_before_is_not_rolled_back(tmp_path: Path, to: str) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    last = table.timeline.completed_writes()[-1]
    held = agree(path)
    table.convert(to)
    with pytest.raises(TableServiceError):
        table.rollback(last)
    # as it was planned it stays pending; the next writer would try again
    assert agree(path) == held


@pytest.mark.parametrize("to", FORMATS)
def test_statistics_of_the_present_files_are_told(tmp_path: Path, to: str) -> None:
    path = tmp_path / "t"
    new_table(path).convert(to)
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


# --- tables of Apache Hudi -----------------------------------------------------------------------


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", [PLAIN, COMPLEX, TXNS])
def test_real_tables_are_converted(real_tables: Callable[[str], Path], name: str, to: str) -> None:
    path = real_tables(name)
    table = hudi.Table.open(str(path))
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
    table = hudi.Table.open(str(path))
    expected = sorted(table.to_arrow()["amount"].to_pylist())
    assert hudi.Table.open(str(path)).config.last_column_id is None
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


@pytest.mark.parametrize("to", FORMATS)
def test_tables_that_cannot_be_written_are_not_converted(
    real_tables: Callable[[str], Path], to: str
) -> None:
    path = real_tables(VERSION_6[0])
    before = sorted(str(one) for one in path.rglob("*"))
    with pytest.raises(UnsupportedTableError, match="table version 6"):
        hudi.Table.open(str(path)).convert(to)
    assert sorted(str(one) for one in path.rglob("*") if ".locks" not in str(one)) == before


@pytest.mark.parametrize("to", FORMATS)
def test_a_dry_run_refuses_damaged_files(tmp_path: Path, to: str) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    [first, *_] = (one.base_file for one in table.file_slices() if one.base_file)
    file = path / first.path
    file.write_bytes(file.read_bytes()[:-8] + b"nonsense")
    for dry_run in (True, False):
        with pytest.raises((DataFileError, CorruptMetadataError), match=file.name):
            table.convert(to, dry_run=dry_run)


def test_a_dry_run_sees_the_rules_of_an_old_log(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    table.convert("delta")
    table.convert("native")
    DeltaTable(str(path)).alter.set_table_properties({"delta.appendOnly": "true"})
    for dry_run in (True, False):
        with pytest.raises(UnsupportedTableError, match=r"delta\.appendOnly"):
            table.convert("delta", dry_run=dry_run)


@pytest.mark.parametrize("to", FORMATS)
def test_a_dry_run_changes_nothing(tmp_path: Path, to: str) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    before = {str(one): one.stat().st_mtime_ns for one in path.rglob("*")}
    plan = table.convert(to, dry_run=True)
    assert (plan.is_needed, plan.files, plan.instants, plan.receipt) == (True, 2, 2, None)
    assert {str(one): one.stat().st_mtime_ns for one in path.rglob("*")} == before


def test_progress_is_told_by_file(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    new_table(tmp_path / "t").convert("iceberg", progress=lambda *one: told.append(one))
    assert told[-2:] == [(1, 2), (2, 2)]


# --- where it is kept ----------------------------------------------------------------------------


def test_another_location_is_kept_for_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = new_table(path)
    key = "hoodie.table.format.iceberg.location"
    table.convert("iceberg", options={key: ".hoodie/iceberg"})
    assert bag(by_iceberg(path / ".hoodie/iceberg")) == bag(table.to_arrow())
    table.convert("native")
    table.upsert(batch(3, "a"))
    table = hudi.Table.open(str(path))
    table.convert("iceberg")
    assert bag(by_iceberg(path / ".hoodie/iceberg")) == bag(table.to_arrow())
    assert not (path / "metadata").exists()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tuple[SqlCatalog, dict[str, str]]]:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    options = {
        "hoodie.table.format.iceberg.catalog.type": "sql",
        "hoodie.table.format.iceberg.catalog.uri": uri,
        "hoodie.table.format.iceberg.catalog.identifier": "lake.trips",
        "hoodie.table.format.iceberg.catalog.create-namespace": "true",
    }
    made = SqlCatalog("hudi", uri=uri)
    yield made, options
    made.engine.dispose()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_table_is_converted_into_a_catalog(
    tmp_path: Path, catalog: tuple[SqlCatalog, dict[str, str]]
) -> None:
    found, options = catalog
    path = tmp_path / "t"
    table = new_table(path)
    table.convert("iceberg", options=options)
    assert "sqlite" not in (path / ".hoodie/hoodie.properties").read_text()
    assert bag(found.load_table("lake.trips").scan().to_arrow()) == bag(table.to_arrow())
    table.convert("native")
    table.upsert(batch(3, "c"))
    table.convert("iceberg", options=options)
    assert bag(found.load_table("lake.trips").scan().to_arrow()) == bag(table.to_arrow())
    table.upsert(batch(4, "d"))
    assert bag(found.load_table("lake.trips").scan().to_arrow()) == bag(table.to_arrow())


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("to", FORMATS)
def test_the_command(tmp_path: Path, to: str) -> None:
    table = new_table(tmp_path / "t")
    base = ["table", "convert", table.path, "--to", to]
    run = CliRunner().invoke
    plan = run(app, [*base, "--dry-run"])
    assert plan.exit_code == 0, plan.output
    assert "2 in 2 partitions" in plan.stdout
    assert hudi.Table.open(table.path).format == "native"

    done = json.loads(run(app, [*base, "--json"]).stdout)
    assert (done["from"], done["to"], done["changed"], done["files"]) == ("native", to, True, 2)
    assert done["version"]
    assert agree(tmp_path / "t")

    again = run(app, base)
    assert again.stdout == f"{table.path} has the format {to} already: nothing to do.\n"
    back = run(app, ["table", "convert", table.path, "--to", "native"])
    assert f"from {to} to native: 2 files in 2 partitions" in back.stdout
    wrong = run(app, ["table", "convert", table.path, "--to", "paimon"])
    assert wrong.exit_code == 2
    assert "paimon" in wrong.stderr
