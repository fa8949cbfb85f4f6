"""Folders that become Hudi tables: every reader sees the rows that were there before."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.errors import NotATableError, UnsupportedTableError
from tests.formats.adopt_folders import ALL, ENCODED, ROWS, agree, data_of, plain
from tests.formats.dying_writers import death_in
from tests.formats.service_tables import bag, by_delta, by_hudi_rs

FEW = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake"


# --- plain files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("table_format", ALL)
def test_plain_files_become_a_table_as_they_are(path: Path, table_format: str) -> None:
    plain(path)
    before, inodes = data_of(path), {one.stat().st_ino for one in path.rglob("*.parquet")}
    done = hudi.Table.adopt(str(path), record_key="id", format=table_format, options=ENCODED)
    assert (done.source, done.files, done.rows, done.partitions) == ("parquet", 3, 4, 3)
    assert data_of(path) == before
    found = [one for one in path.rglob("*.parquet") if "_delta_log" not in one.parts]
    assert {one.stat().st_ino for one in found} == inodes  # nothing was copied
    table = agree(path)
    assert (table.format, table.config.partition_fields) == (table_format, ("city",))
    assert not table.config.populate_meta_fields
    assert not (path / ".hoodie/adoption.json").exists()
    assert (path / "_SUCCESS").exists()


def test_who_reads_the_folder_as_files_goes_on(path: Path) -> None:
    plain(path)
    hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    files = [str(one) for one in path.rglob("*.parquet") if ".hoodie" not in str(one)]
    assert bag(ds.dataset(files).to_table()) == bag(ROWS)


def test_hudi_rs_reads_it_without_a_metadata_table_too(path: Path) -> None:
    plain(path)
    off = {"hoodie.metadata.enable": "false"}
    hudi.Table.adopt(str(path), record_key="id", options={**ENCODED, **off})
    assert not (path / ".hoodie/metadata").exists()
    assert bag(by_hudi_rs(path)) == bag(ROWS)


def test_a_folder_without_partitions(path: Path) -> None:
    path.mkdir()
    pq.write_table(ROWS.slice(0, 2), path / "one.parquet")
    pq.write_table(ROWS.slice(2), path / "two.parquet")
    hudi.Table.adopt(str(path), record_key=["id", "n"])
    assert agree(path).config.record_key_fields == ("id", "n")


def test_files_of_several_sizes_of_schema(path: Path) -> None:
    """A column that came later is null in older files."""
    path.mkdir()
    pq.write_table(ROWS.slice(0, 2).drop_columns(["n", "tags"]), path / "old.parquet")
    pq.write_table(ROWS.slice(2), path / "young.parquet")
    hudi.Table.adopt(str(path), record_key="id")
    rows = pa.concat_tables(
        [ROWS.slice(0, 2).drop_columns(["n", "tags"]), ROWS.slice(2)], promote_options="default"
    )
    agree(path, rows)


def test_folders_and_values_need_not_agree(path: Path) -> None:
    """The rows say what their partition is."""
    (path / "x/y").mkdir(parents=True)
    pq.write_table(ROWS.slice(0, 2), path / "x/y/1.parquet")
    pq.write_table(ROWS.slice(2, 1), path / "x/2.parquet")
    hudi.Table.adopt(str(path), record_key="id", partition_by="city", options=ENCODED)
    table = agree(path, ROWS.slice(0, 3))
    assert sorted(one.partition_path for one in table.file_slices()) == ["new york", "rome"]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (ROWS.set_column(0, "id", pa.array(["a", None, "x", "y"])), "key .* is null or empty"),
        (ROWS.set_column(0, "id", pa.array(["a", "a", "x", "y"])), "key of another row"),
        (ROWS.set_column(1, "city", pa.array(["rome", "oslo", "b", None])), "several partitions"),
        (ROWS.set_column(2, "n", pa.array([1, 2, 3, 4], pa.uint8())), "type uint8, not int32"),
        (ROWS.set_column(2, "n", pa.array([1, 2, 3, 4], pa.timestamp("ns"))), "timestamp"),
        (ROWS.append_column("_hoodie_file_name", pa.array(["f"] * 4)), "which is Hudi's"),
    ],
)
def test_files_that_cannot_stay_are_named_and_nothing_changes(
    path: Path, rows: pa.Table, told: str
) -> None:
    plain(path, rows=rows)
    before = {str(one): one.stat().st_mtime_ns for one in path.rglob("*")}
    with pytest.raises(UnsupportedTableError, match=told) as refused:
        hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    assert "--rewrite" in str(refused.value)
    plan = hudi.Table.adopt(str(path), record_key="id", options=ENCODED, dry_run=True)
    assert plan.obstacles
    assert {str(one): one.stat().st_mtime_ns for one in path.rglob("*")} == before


def test_partition_columns_that_only_folders_tell_need_new_files(path: Path) -> None:
    plain(path, drop=("city",))
    with pytest.raises(UnsupportedTableError, match="it has no column city"):
        hudi.Table.adopt(str(path), record_key="id", options=ENCODED)


@pytest.mark.parametrize("table_format", ALL)
def test_rows_are_written_into_a_new_table(path: Path, tmp_path: Path, table_format: str) -> None:
    plain(path, drop=("city",))
    before = sorted(map(str, path.rglob("*")))
    target = tmp_path / "table"
    done = hudi.Table.adopt(
        str(path), record_key="id", format=table_format, rewrite=str(target), options=ENCODED
    )
    assert (done.path, done.rows, done.is_rewritten) == (str(target), 4, True)
    table = agree(target)
    assert table.config.populate_meta_fields
    table.upsert(ROWS.slice(0, 1))
    agree(target)
    assert sorted(map(str, path.rglob("*"))) == before
    again = hudi.Table.adopt(str(tmp_path / "lake"), record_key="id", rewrite=str(tmp_path / "t2"))
    assert again.table_format == "native"


def test_values_of_folders_have_the_type_they_look_like(path: Path, tmp_path: Path) -> None:
    for folder, key in {"day=2024-01-31/hour=7": "a", "day=2024-02-01/hour=23": "b"}.items():
        (path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": [key]}), path / folder / "f.parquet")
    target = tmp_path / "table"
    hudi.Table.adopt(str(path), record_key="id", rewrite=str(target))
    rows = hudi.Table.open(str(target)).to_arrow(columns=["id", "day", "hour"]).to_pylist()
    assert sorted(rows, key=lambda one: one["id"]) == [
        {"id": "a", "day": dt.date(2024, 1, 31), "hour": 7},
        {"id": "b", "day": dt.date(2024, 2, 1), "hour": 23},
    ]


def test_a_rewriting_that_died_is_run_again(path: Path, tmp_path: Path) -> None:
    plain(path)
    target = tmp_path / "table"
    arguments: dict[str, Any] = {"record_key": "id", "rewrite": str(target), "options": ENCODED}
    with death_in("hudi_core.txn.transaction.Transaction._complete"):
        hudi.Table.adopt(str(path), **arguments)
    hudi.Table.adopt(str(path), **arguments)
    agree(target)
    hudi.Table.adopt(str(path), **arguments)  # is done: its rows are not written twice
    agree(target)
    hudi.Table.open(str(target)).delete(ROWS.slice(0, 1))
    with pytest.raises(NotATableError, match="rows of its own"):
        hudi.Table.adopt(str(path), **arguments)


# --- tables of formats ---------------------------------------------------------------------------


def test_a_delta_table_becomes_one_as_it_is(path: Path) -> None:
    write_deltalake(str(path), ROWS.slice(0, 2))
    write_deltalake(str(path), ROWS.slice(2), mode="append")
    before, version = data_of(path), DeltaTable(str(path)).version()
    former = set(path.glob("*.parquet"))
    plan = hudi.Table.adopt(str(path), record_key="id", dry_run=True)
    done = hudi.Table.adopt(str(path), record_key="id")
    assert (done.source, done.table_format, done.files) == ("delta", "delta", 2)
    assert (plan.keeps_history, done.keeps_history) == (True, True)
    agree(path)
    # how long files are kept, and the files
    assert DeltaTable(str(path)).version() == version + 1
    # each file has two names, and not a byte is copied
    assert former < set(path.glob("*.parquet"))
    assert {one.stat().st_nlink for one in path.glob("*.parquet")} == {2}
    assert set(data_of(path)) == set(before)
    for number, rows in enumerate((ROWS.slice(0, 2), ROWS)):
        assert bag(DeltaTable(str(path), version=number).to_pyarrow_table()) == bag(rows)
    hudi.Table.open(str(path)).upsert(ROWS)
    assert bag(DeltaTable(str(path), version=0).to_pyarrow_table()) == bag(ROWS.slice(0, 2))


@pytest.mark.parametrize("how", ["delete", "merge"])
def test_files_that_delta_rs_rewrote_are_those_of_their_types(path: Path, how: str) -> None:
    """It notes string_view beside columns whose bytes are those of any string."""
    log = DeltaTable.create(str(path), ROWS.schema)
    write_deltalake(log, ROWS, mode="append")
    log = DeltaTable(str(path))
    if how == "delete":
        log.delete("id = 'a'")
    else:
        merge = log.merge(ROWS, "s.id = t.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().execute()
    kinds = [pq.read_schema(one).field("id").type for one in path.glob("*.parquet")]
    assert pa.string_view() in kinds
    rows = ROWS.slice(1) if how == "delete" else ROWS
    assert hudi.Table.adopt(str(path), record_key="id").keeps_history
    agree(path, rows)
    hudi.Table.open(str(path)).upsert(ROWS.slice(0, 2))
    agree(path)
    states = [DeltaTable(str(path), version=one).to_pyarrow_table() for one in range(3)]
    assert [bag(one) for one in states] == [bag(ROWS.slice(0, 0)), bag(ROWS), bag(rows)]


def test_files_of_several_string_types_are_of_one_table(path: Path, tmp_path: Path) -> None:
    kinds = (pa.string(), pa.large_string(), pa.string_view())
    for number, kind in enumerate(kinds):
        place = path / f"{number}"
        place.mkdir(parents=True)
        rows = ROWS.slice(number, 1).drop_columns(["tags"])
        schema = pa.schema(
            [one.with_type(kind) if one.name == "id" else one for one in rows.schema]
        )
        pq.write_table(rows.cast(schema), place / "f.parquet")
    expected = ROWS.slice(0, 3).drop_columns(["tags"])
    target = tmp_path / "table"
    hudi.Table.adopt(str(path), record_key="id", rewrite=str(target))
    agree(target, expected)
    hudi.Table.adopt(str(path), record_key="id")
    agree(path, expected)


def test_a_partitioned_delta_table_is_written_anew(path: Path, tmp_path: Path) -> None:
    """Its files never have the partition columns."""
    write_deltalake(str(path), ROWS, partition_by=["city"])
    with pytest.raises(UnsupportedTableError, match="it has no column city"):
        hudi.Table.adopt(str(path), record_key="id")
    target = tmp_path / "table"
    hudi.Table.adopt(str(path), record_key="id", rewrite=str(target), options=ENCODED)
    table = agree(target)
    assert (table.format, table.config.partition_fields) == ("delta", ("city",))
    assert bag(by_delta(path)) == bag(ROWS)


def test_without_a_metadata_table_former_states_end(path: Path) -> None:
    """Then readers of Hudi tables list folders, and fail on names that are not Hudi's."""
    without = {"hoodie.metadata.enable": "false"}
    write_deltalake(str(path), ROWS)
    write_deltalake(str(path), ROWS.slice(0, 2), mode="overwrite")
    with pytest.raises(UnsupportedTableError, match="vacuum"):
        hudi.Table.adopt(str(path), record_key="id", options=without)
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    plan = hudi.Table.adopt(str(path), record_key="id", options=without, dry_run=True)
    assert not plan.keeps_history
    shown = ["table", "adopt", str(path), "--key", "id", "--dry-run"]
    said = CliRunner().invoke(app, [*shown, "-o", "hoodie.metadata.enable=false"]).stdout
    assert "Former states of the delta table would end" in " ".join(said.split())
    assert not hudi.Table.adopt(str(path), record_key="id", options=without).keeps_history
    agree(path, ROWS.slice(0, 2))
    assert all(one.name.count("_") == 2 for one in path.glob("*.parquet"))


def test_a_purge_deletes_what_only_former_states_name(path: Path) -> None:
    write_deltalake(str(path), ROWS)
    write_deltalake(str(path), ROWS.slice(0, 2), mode="overwrite")
    hudi.Table.adopt(str(path), record_key="id")
    agree(path, ROWS.slice(0, 2))
    table = hudi.Table.open(str(path))
    table.delete(ROWS.slice(0, 1))
    former = [one.name for one in path.glob("*.parquet") if one.name.count("_") != 2]
    assert set(former) <= set(table.purge(dry_run=True).files)
    assert set(former) <= set(table.purge().files)
    left = pa.concat_tables([pq.read_table(one, columns=["id"]) for one in path.glob("*.parquet")])
    assert left["id"].to_pylist() == ["b"]
    assert bag(by_delta(path), ["id"]) == bag(ROWS.slice(1, 1), ["id"])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tuple[SqlCatalog, dict[str, str]]]:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    prefix = "hoodie.table.format.iceberg.catalog."
    options = {
        f"{prefix}type": "sql",
        f"{prefix}name": "lake",
        f"{prefix}uri": uri,
        f"{prefix}identifier": "own.trips",
        **ENCODED,
    }
    made = SqlCatalog("lake", uri=uri, warehouse=f"file://{tmp_path}")
    made.create_namespace("own")
    yield made, options
    made.engine.dispose()


def iceberg_table(catalog: SqlCatalog, path: Path, transform: Any = None) -> None:
    table = catalog.create_table("own.trips", schema=ROWS.schema, location=f"file://{path}")
    if transform is not None:
        with table.update_spec() as update:
            update.add_field("city", transform, "part")
    table.append(ROWS)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_an_iceberg_table_becomes_one_as_it_is(
    path: Path, catalog: tuple[SqlCatalog, dict[str, str]], is_partitioned: bool
) -> None:
    found, options = catalog
    iceberg_table(found, path, IdentityTransform() if is_partitioned else None)
    before, former = data_of(path), found.load_table("own.trips").metadata
    ids = {one.name: one.field_id for one in found.load_table("own.trips").schema().fields}
    uuid = found.load_table("own.trips").metadata.table_uuid

    done = hudi.Table.adopt(str(path), record_key="id", options=options)

    assert (done.source, done.table_format, done.keeps_history) == ("iceberg", "iceberg", True)
    assert set(data_of(path)) == set(before)
    table = hudi.Table.open(str(path), options)
    assert table.config.partition_fields == (("city",) if is_partitioned else ())
    published = found.load_table("own.trips")
    assert {one.name: one.field_id for one in published.schema().fields} == ids
    assert published.metadata.table_uuid == uuid
    for rows in (table.to_arrow(), by_hudi_rs(path), published.scan().to_arrow()):
        assert bag(rows, ROWS.column_names) == bag(ROWS)
    assert table.validate().differences == ()
    # its own time travel goes on
    for one in former.snapshots:
        assert published.snapshot_by_id(one.snapshot_id) == one
        assert bag(published.scan(snapshot_id=one.snapshot_id).to_arrow()) == bag(ROWS)
    for _ in range(5):
        hudi.Table.open(str(path), options).upsert(ROWS)
    table = hudi.Table.open(str(path), {**options, **FEW})
    table.clean()
    table.archive()
    published = found.load_table("own.trips")
    assert bag(published.scan().to_arrow(), ROWS.column_names) == bag(ROWS)
    assert len(published.metadata.snapshots) < 7
    first = former.snapshots[0].snapshot_id
    assert bag(published.scan(snapshot_id=first).to_arrow()) == bag(ROWS)
    assert hudi.Table.open(str(path), options).validate().differences == ()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_iceberg_table_of_several_specifications(
    path: Path, catalog: tuple[SqlCatalog, dict[str, str]]
) -> None:
    """Their ids are the other writer's, and its snapshots are read by them."""
    found, options = catalog
    iceberg_table(found, path)
    other = found.load_table("own.trips")
    with other.update_spec() as update:
        update.add_field("city", IdentityTransform(), "part")
    other.overwrite(ROWS.slice(0, 3))
    states = {
        one.snapshot_id: bag(other.scan(snapshot_id=one.snapshot_id).to_arrow())
        for one in other.metadata.snapshots
    }
    hudi.Table.adopt(str(path), record_key="id", partition_by="city", options=options)
    table = hudi.Table.open(str(path), options)
    table.upsert(ROWS.slice(1))
    published = found.load_table("own.trips")
    assert bag(published.scan().to_arrow(), ROWS.column_names) == bag(ROWS)
    for number, rows in states.items():
        assert bag(published.scan(snapshot_id=number).to_arrow()) == rows
    assert published.scan(row_filter="city = 'rome'").to_arrow().num_rows == 2
    assert table.validate().differences == ()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_iceberg_table_becomes_a_native_one_of_new_files(
    path: Path, catalog: tuple[SqlCatalog, dict[str, str]], tmp_path: Path
) -> None:
    found, options = catalog
    iceberg_table(found, path)
    with found.load_table("own.trips").update_schema() as update:
        update.rename_column("n", "number")
        update.add_column("note", StringType())
    target = tmp_path / "table"
    hudi.Table.adopt(
        str(path),
        record_key="id",
        partition_by="city",
        format="native",
        rewrite=str(target),
        options=options,
    )
    rows = ROWS.rename_columns(["id", "city", "number", "price", "at", "tags"])
    agree(target, rows.append_column("note", pa.nulls(4, pa.string())))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_iceberg_table_of_a_catalog_needs_the_catalog(
    path: Path, catalog: tuple[SqlCatalog, dict[str, str]]
) -> None:
    iceberg_table(catalog[0], path)
    with pytest.raises(UnsupportedTableError, match="of which a catalog knows the version"):
        hudi.Table.adopt(str(path), record_key="id")


def test_an_iceberg_table_of_a_folder(path: Path, tmp_path: Path) -> None:
    """As Hadoop tables have it: what this project itself leaves, without its timeline."""
    plain(path)
    hudi.Table.adopt(str(path), record_key="id", format="iceberg", options=ENCODED)
    shutil.rmtree(path / ".hoodie")
    hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    agree(path)
    assert len(StaticTable.from_metadata(str(path)).metadata.snapshots) == 1


# --- what follows ---------------------------------------------------------------------------------


def test_an_adopted_table_can_be_converted(path: Path) -> None:
    plain(path)
    hudi.Table.adopt(str(path), record_key="id", options=ENCODED)
    table = hudi.Table.open(str(path))
    for to in ("delta", "iceberg", "native"):
        table.convert(to)
        agree(path)
    table.convert("delta")
    shutil.rmtree(path / "_delta_log")
    hudi.Table.open(str(path)).repair()
    agree(path)


def test_the_command(path: Path, tmp_path: Path) -> None:
    plain(path)
    run = CliRunner().invoke
    base = ["table", "adopt", str(path), "--key", "id"]
    encoded = ["-o", next(iter(f"{key}={value}" for key, value in ENCODED.items()))]
    plan = run(app, [*base, *encoded, "--dry-run"])
    assert plan.exit_code == 0, plan.output
    assert "Nothing was changed" in plan.stdout
    assert not (path / ".hoodie").exists()

    written = run(app, [*base, "--rewrite", str(tmp_path / "new"), "--json"])
    assert json.loads(written.stdout)["rewritten"] is True

    done = run(app, [*base, *encoded, "--format", "delta"])
    assert "Adopted 3 files with 4 rows, as they are, as the delta table" in done.stdout
    assert "no incremental queries" in done.stdout
    agree(path)
