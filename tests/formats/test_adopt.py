"""Folders that become Hudi tables: every reader sees the rows that were there before."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
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

import hudi_core as hudi
from hudi_core import errors
from hudi_core.services.adoption import adopt
from hudi_core.storage.posix import PosixStorage
from tests.calls import after, before
from tests.cli_runs import run, run_json
from tests.formats.dying_writers import Died, MortalStorage, death_in
from tests.formats.foreign_writers import put_delete_file
from tests.formats.service_tables import READERS, bag, by_delta, by_hudi_rs
from tests.tables import TABLES, new_table

ROWS = pa.table(
    {
        "id": ["a", "b", "x", "y"],
        "city": ["rome", "rome", "new york", None],
        "n": pa.array([1, 2, 3, None], pa.int64()),
        "price": pa.array([Decimal("1.50"), None, Decimal("2.25"), Decimal("0.00")]),
        "at": pa.array([dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)] * 4, pa.timestamp("us", "UTC")),
        "tags": [["t"], [], None, ["u", "v"]],
    }
)
FOLDERS = {
    "city=rome": (0, 2),
    "city=new%20york": (2, 1),
    "city=__HIVE_DEFAULT_PARTITION__": (3, 1),
}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def plain(path: Path, *, drop: tuple[str, ...] = (), rows: pa.Table = ROWS) -> Path:
    """A folder as Spark or pyarrow leaves it, with one file in each folder of a partition."""
    for folder, (offset, length) in FOLDERS.items():
        (path / folder).mkdir(parents=True)
        some = rows.slice(offset, length).drop_columns(list(drop))
        pq.write_table(some, path / folder / "part-00000-abc.snappy.parquet")
    (path / "_SUCCESS").touch()
    return path


def agree(path: Path, rows: pa.Table = ROWS) -> hudi.Table:
    """Every reader of the table sees just these rows."""
    table = hudi.Table.open(path)
    names = sorted(rows.column_names)
    assert bag(table.to_arrow(), names) == bag(rows, names)
    for read in READERS[table.format]:
        assert bag(read(path), names) == bag(rows, names), read.__name__
    assert table.validate().differences == ()
    return table


def data_of(path: Path) -> Counter[bytes]:
    """The bytes of every data file, whatever it is called."""
    files = [one for one in path.rglob("*.parquet") if "_delta_log" not in one.parts]
    return Counter(one.read_bytes() for one in files)


FEW = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


@pytest.mark.parametrize("table_format", TABLES)
def test_plain_files_become_a_table_as_they_are(path: Path, table_format: str) -> None:
    plain(path)
    before, inodes = data_of(path), {one.stat().st_ino for one in path.rglob("*.parquet")}
    done = hudi.Table.adopt(path, record_key="id", format=table_format, options=ENCODED)
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
    hudi.Table.adopt(path, record_key="id", options=ENCODED)
    files = [str(one) for one in path.rglob("*.parquet") if ".hoodie" not in str(one)]
    assert bag(ds.dataset(files).to_table()) == bag(ROWS)


def test_hudi_rs_reads_it_without_a_metadata_table_too(path: Path) -> None:
    plain(path)
    off = {"hoodie.metadata.enable": "false"}
    hudi.Table.adopt(path, record_key="id", options={**ENCODED, **off})
    assert not (path / ".hoodie/metadata").exists()
    assert bag(by_hudi_rs(path)) == bag(ROWS)


def test_a_folder_without_partitions(path: Path) -> None:
    path.mkdir()
    pq.write_table(ROWS.slice(0, 2), path / "one.parquet")
    pq.write_table(ROWS.slice(2), path / "two.parquet")
    hudi.Table.adopt(path, record_key=["id", "n"])
    assert agree(path).config.record_key_fields == ("id", "n")


def test_files_of_several_sizes_of_schema(path: Path) -> None:
    """A column that came later is null in older files."""
    path.mkdir()
    pq.write_table(ROWS.slice(0, 2).drop_columns(["n", "tags"]), path / "old.parquet")
    pq.write_table(ROWS.slice(2), path / "young.parquet")
    hudi.Table.adopt(path, record_key="id")
    rows = pa.concat_tables(
        [ROWS.slice(0, 2).drop_columns(["n", "tags"]), ROWS.slice(2)], promote_options="default"
    )
    agree(path, rows)


def test_folders_and_values_need_not_agree(path: Path) -> None:
    """The rows say what their partition is."""
    (path / "x/y").mkdir(parents=True)
    pq.write_table(ROWS.slice(0, 2), path / "x/y/1.parquet")
    pq.write_table(ROWS.slice(2, 1), path / "x/2.parquet")
    hudi.Table.adopt(path, record_key="id", partition_by="city", options=ENCODED)
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
def test_files_that_cannot_stay_are_named(path: Path, rows: pa.Table, told: str) -> None:
    plain(path, rows=rows)
    before = {str(one): one.stat().st_mtime_ns for one in path.rglob("*")}
    with pytest.raises(errors.UnsupportedTableError, match=told) as refused:
        hudi.Table.adopt(path, record_key="id", options=ENCODED)
    assert "--rewrite" in str(refused.value)
    plan = hudi.Table.adopt(path, record_key="id", options=ENCODED, dry_run=True)
    assert plan.obstacles
    assert {str(one): one.stat().st_mtime_ns for one in path.rglob("*")} == before


def test_partition_columns_that_only_folders_tell_need_new_files(path: Path) -> None:
    plain(path, drop=("city",))
    with pytest.raises(errors.UnsupportedTableError, match="it has no column city"):
        hudi.Table.adopt(path, record_key="id", options=ENCODED)


@pytest.mark.parametrize("table_format", TABLES)
def test_rows_are_written_into_a_new_table(path: Path, tmp_path: Path, table_format: str) -> None:
    plain(path, drop=("city",))
    before = sorted(map(str, path.rglob("*")))
    target = tmp_path / "table"
    done = hudi.Table.adopt(
        path, record_key="id", format=table_format, rewrite=str(target), options=ENCODED
    )
    assert (done.path, done.rows, done.is_rewritten) == (str(target), 4, True)
    table = agree(target)
    assert table.config.populate_meta_fields
    table.upsert(ROWS.slice(0, 1))
    agree(target)
    assert sorted(map(str, path.rglob("*"))) == before
    again = hudi.Table.adopt(path, record_key="id", rewrite=str(tmp_path / "t2"))
    assert again.table_format == "native"


def test_values_of_folders_have_the_type_they_look_like(path: Path, tmp_path: Path) -> None:
    for folder, key in {"day=2024-01-31/hour=7": "a", "day=2024-02-01/hour=23": "b"}.items():
        (path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": [key]}), path / folder / "f.parquet")
    target = tmp_path / "table"
    hudi.Table.adopt(path, record_key="id", rewrite=str(target))
    rows = hudi.Table.open(target).to_arrow(columns=["id", "day", "hour"]).to_pylist()
    assert sorted(rows, key=lambda one: one["id"]) == [
        {"id": "a", "day": dt.date(2024, 1, 31), "hour": 7},
        {"id": "b", "day": dt.date(2024, 2, 1), "hour": 23},
    ]


def test_a_rewriting_that_died_is_run_again(path: Path, tmp_path: Path) -> None:
    plain(path)
    target = tmp_path / "table"
    arguments: dict[str, Any] = {"record_key": "id", "rewrite": str(target), "options": ENCODED}
    with death_in("hudi_core.txn.transaction.Transaction._complete"):
        hudi.Table.adopt(path, **arguments)
    hudi.Table.adopt(path, **arguments)
    agree(target)
    hudi.Table.adopt(path, **arguments)  # is done: its rows are not written twice
    agree(target)
    hudi.Table.open(target).delete(ROWS.slice(0, 1))
    with pytest.raises(errors.NotATableError, match="rows of its own"):
        hudi.Table.adopt(path, **arguments)


def test_a_delta_table_becomes_one_as_it_is(path: Path) -> None:
    write_deltalake(str(path), ROWS.slice(0, 2))
    write_deltalake(str(path), ROWS.slice(2), mode="append")
    before, version = data_of(path), DeltaTable(str(path)).version()
    former = set(path.glob("*.parquet"))
    plan = hudi.Table.adopt(path, record_key="id", dry_run=True)
    done = hudi.Table.adopt(path, record_key="id")
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
    hudi.Table.open(path).upsert(ROWS)
    assert bag(DeltaTable(str(path), version=0).to_pyarrow_table()) == bag(ROWS.slice(0, 2))


@pytest.mark.parametrize("how", ["delete", "merge"])
def test_files_that_delta_rs_rewrote_are_those_of_their_types(path: Path, how: str) -> None:
    """It notes string_view beside columns whose bytes are those of any string."""
    log = DeltaTable.create(path, ROWS.schema)
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
    assert hudi.Table.adopt(path, record_key="id").keeps_history
    agree(path, rows)
    hudi.Table.open(path).upsert(ROWS.slice(0, 2))
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
    hudi.Table.adopt(path, record_key="id", rewrite=str(target))
    agree(target, expected)
    hudi.Table.adopt(path, record_key="id")
    agree(path, expected)


def test_a_partitioned_delta_table_is_written_anew(path: Path, tmp_path: Path) -> None:
    """Its files never have the partition columns."""
    write_deltalake(str(path), ROWS, partition_by=["city"])
    with pytest.raises(errors.UnsupportedTableError, match="it has no column city"):
        hudi.Table.adopt(path, record_key="id")
    target = tmp_path / "table"
    hudi.Table.adopt(path, record_key="id", rewrite=str(target), options=ENCODED)
    table = agree(target)
    assert (table.format, table.config.partition_fields) == ("delta", ("city",))
    assert bag(by_delta(path)) == bag(ROWS)


def mapped(path: Path, mode: str) -> pa.Table:
    """A Delta table whose columns, and members of them, have other names in the files; its rows."""
    inner = [{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}]
    named = pa.table(
        {
            "id": ["a", "b", "c"],
            "part": ["p", "q", None],
            "inner": inner,
            "all": [[{"n": 1}, None], None, []],
            "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        }
    )

    def physical(name: str) -> str:
        return name if name == "key_value" else f"col-{name}"

    def field(one: pa.Field) -> pa.Field:
        return pa.field(physical(one.name), kind(one.type))

    def kind(of: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(of):
            return pa.struct([field(one) for one in of])
        return pa.list_(kind(of.value_type)) if pa.types.is_list(of) else of

    def members(of: Any) -> Any:
        match of:
            case dict():
                return {physical(name): members(value) for name, value in of.items()}
            case list():
                return [one if isinstance(one, tuple) else members(one) for one in of]
        return of

    numbers = itertools.count(1)

    def say(of: Any) -> None:
        for one in of.get("fields", ()):
            name = one["name"].removeprefix("col-")
            one["metadata"] = {
                "delta.columnMapping.id": next(numbers),
                "delta.columnMapping.physicalName": one["name"],
            }
            one["name"] = name
        for value in of.values():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    say(one)

    stored = pa.schema([field(one) for one in named.schema])
    rows = [members(one) for one in named.to_pylist()]
    write_deltalake(path, pa.Table.from_pylist(rows, stored), partition_by=["col-part"])
    log = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            say(schema)
            action["metaData"] |= {
                "schemaString": json.dumps(schema),
                "partitionColumns": ["part"],
                "configuration": {"delta.columnMapping.mode": mode},
            }
    log.write_text("\n".join(map(json.dumps, actions)))
    return named


def test_a_delta_table_with_mapped_columns_is_written_anew(path: Path, tmp_path: Path) -> None:
    rows = mapped(path, "name")
    with pytest.raises(errors.HudiError, match="the rules of reader version 2"):
        hudi.Table.adopt(path, record_key="id")
    assert not (path / ".hoodie").exists()
    hudi.Table.adopt(path, record_key="id", rewrite=tmp_path / "new", format="native")
    found = hudi.Table.open(tmp_path / "new").to_arrow()
    assert bag(found, rows.column_names) == bag(rows)


def test_a_delta_table_with_columns_by_ids_is_refused(path: Path, tmp_path: Path) -> None:
    mapped(path, "id")
    with pytest.raises(errors.UnsupportedTableError, match="column mapping"):
        hudi.Table.adopt(path, record_key="id", rewrite=tmp_path / "new", format="native")
    assert not (tmp_path / "new").exists()


def test_without_a_metadata_table_former_states_end(path: Path) -> None:
    """Then readers of Hudi tables list folders, and fail on names that are not Hudi's."""
    without = {"hoodie.metadata.enable": "false"}
    write_deltalake(str(path), ROWS)
    write_deltalake(str(path), ROWS.slice(0, 2), mode="overwrite")
    with pytest.raises(errors.UnsupportedTableError, match="vacuum"):
        hudi.Table.adopt(path, record_key="id", options=without)
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    plan = hudi.Table.adopt(path, record_key="id", options=without, dry_run=True)
    assert not plan.keeps_history
    shown = ("table", "adopt", path, "--key", "id", "--dry-run")
    said = run(*shown, "-o", "hoodie.metadata.enable=false").stdout
    assert "Former states of the delta table would end" in " ".join(said.split())
    assert not hudi.Table.adopt(path, record_key="id", options=without).keeps_history
    agree(path, ROWS.slice(0, 2))
    assert all(one.name.count("_") == 2 for one in path.glob("*.parquet"))


def test_a_purge_deletes_what_only_former_states_name(path: Path) -> None:
    write_deltalake(str(path), ROWS)
    write_deltalake(str(path), ROWS.slice(0, 2), mode="overwrite")
    hudi.Table.adopt(path, record_key="id")
    agree(path, ROWS.slice(0, 2))
    table = hudi.Table.open(path)
    table.delete(ROWS.slice(0, 1))
    former = [one.name for one in path.glob("*.parquet") if one.name.count("_") != 2]
    assert set(former) <= set(table.purge(dry_run=True).files)
    assert set(former) <= set(table.purge().files)
    left = pa.concat_tables([pq.read_table(one, columns=["id"]) for one in path.glob("*.parquet")])
    assert left["id"].to_pylist() == ["b"]
    assert bag(by_delta(path), ["id"]) == bag(ROWS.slice(1, 1), ["id"])


def iceberg_table(catalog: SqlCatalog, path: Path, transform: Any = None) -> None:
    catalog.create_namespace("lake")
    table = catalog.create_table("lake.t", schema=ROWS.schema, location=f"file://{path}")
    if transform is not None:
        with table.update_spec() as update:
            update.add_field("city", transform, "part")
    table.append(ROWS)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_an_iceberg_table_becomes_one_as_it_is(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]], is_partitioned: bool
) -> None:
    found, options = lake[0], {**lake[1], **ENCODED}
    iceberg_table(found, path, IdentityTransform() if is_partitioned else None)
    before, former = data_of(path), found.load_table("lake.t").metadata
    ids = {one.name: one.field_id for one in found.load_table("lake.t").schema().fields}
    uuid = found.load_table("lake.t").metadata.table_uuid
    done = hudi.Table.adopt(path, record_key="id", options=options)
    assert (done.source, done.table_format, done.keeps_history) == ("iceberg", "iceberg", True)
    assert set(data_of(path)) == set(before)
    table = hudi.Table.open(path, options)
    assert table.config.partition_fields == (("city",) if is_partitioned else ())
    published = found.load_table("lake.t")
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
        hudi.Table.open(path, options).upsert(ROWS)
    table = hudi.Table.open(path, {**options, **FEW})
    table.clean()
    table.archive()
    published = found.load_table("lake.t")
    assert bag(published.scan().to_arrow(), ROWS.column_names) == bag(ROWS)
    assert len(published.metadata.snapshots) < 7
    first = former.snapshots[0].snapshot_id
    assert bag(published.scan(snapshot_id=first).to_arrow()) == bag(ROWS)
    assert hudi.Table.open(path, options).validate().differences == ()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_iceberg_of_several_specifications(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]]
) -> None:
    """Their ids are the other writer's, and its snapshots are read by them."""
    found, options = lake[0], {**lake[1], **ENCODED}
    iceberg_table(found, path)
    other = found.load_table("lake.t")
    with other.update_spec() as update:
        update.add_field("city", IdentityTransform(), "part")
    other.overwrite(ROWS.slice(0, 3))
    states = {
        one.snapshot_id: bag(other.scan(snapshot_id=one.snapshot_id).to_arrow())
        for one in other.metadata.snapshots
    }
    hudi.Table.adopt(path, record_key="id", partition_by="city", options=options)
    table = hudi.Table.open(path, options)
    table.upsert(ROWS.slice(1))
    published = found.load_table("lake.t")
    assert bag(published.scan().to_arrow(), ROWS.column_names) == bag(ROWS)
    for number, rows in states.items():
        assert bag(published.scan(snapshot_id=number).to_arrow()) == rows
    assert published.scan(row_filter="city = 'rome'").to_arrow().num_rows == 2
    assert table.validate().differences == ()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_an_iceberg_table_with_rows_that_were_deleted_by_position(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]], tmp_path: Path, is_partitioned: bool
) -> None:
    found, options = lake[0], {**lake[1], **ENCODED}
    iceberg_table(found, path, IdentityTransform() if is_partitioned else None)
    put_delete_file(found.load_table("lake.t"), path, ".")
    found.load_table("lake.t").append(ROWS.slice(3).set_column(0, "id", pa.array(["new"])))
    other = found.load_table("lake.t")
    states = {
        one.snapshot_id: bag(other.scan(snapshot_id=one.snapshot_id).to_arrow())
        for one in other.metadata.snapshots
    }
    rows = other.scan().to_arrow()
    assert rows.num_rows == 4
    new: dict[str, Any] = {"record_key": "id", "format": "native", "rewrite": tmp_path / "new"}
    assert hudi.Table.adopt(path, options=options, **new).rows == 4
    agree(tmp_path / "new", rows)
    plan = hudi.Table.adopt(path, record_key="id", options=options, dry_run=True)
    assert (plan.rows, plan.obstacles) == (4, ())
    assert hudi.Table.adopt(path, record_key="id", options=options).rows == 4
    table = hudi.Table.open(path, options)
    assert table.config.table_type == "MERGE_ON_READ"

    def agreed() -> Counter[str]:
        ours = bag(table.to_arrow(), ROWS.column_names)
        for one in (by_hudi_rs(path), found.load_table("lake.t").scan().to_arrow()):
            assert bag(one, ROWS.column_names) == ours
        assert hudi.Table.open(path, options).validate().differences == ()
        return ours

    assert agreed() == bag(rows)
    counts = found.load_table("lake.t").current_snapshot().summary  # type: ignore[union-attr]
    assert counts is not None
    assert counts["total-position-deletes"] == "1"
    kept = rows.slice(0, 1)
    table.upsert(kept)
    assert agreed() == bag(rows)
    table.delete(kept)
    after = agreed()
    assert after == bag(rows.slice(1))
    table.compact()
    assert agreed() == after
    for number, held in states.items():
        assert bag(found.load_table("lake.t").scan(snapshot_id=number).to_arrow()) == held


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_deleted_rows_whose_key_column_was_renamed_are_left_out(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]], tmp_path: Path
) -> None:
    found, options = lake[0], {**lake[1], **ENCODED}
    iceberg_table(found, path)
    put_delete_file(found.load_table("lake.t"), path, ".")
    with found.load_table("lake.t").update_schema() as update:
        update.rename_column("id", "key")
    rows = found.load_table("lake.t").scan().to_arrow()
    assert rows.num_rows == 3
    # hudi-rs knows columns by their names alone
    with pytest.raises(errors.UnsupportedTableError, match="its column id is called key now"):
        hudi.Table.adopt(path, record_key="key", options=options)
    assert not (path / ".hoodie").exists()
    new: dict[str, Any] = {"record_key": "key", "format": "native", "rewrite": tmp_path / "new"}
    assert hudi.Table.adopt(path, options=options, **new).rows == 3
    agree(tmp_path / "new", rows)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_iceberg_table_with_rows_that_were_deleted_by_value(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]]
) -> None:
    found, options = lake[0], {**lake[1], **ENCODED}
    iceberg_table(found, path)
    put_delete_file(found.load_table("lake.t"), path, ".", by_value=True)
    with pytest.raises(errors.UnsupportedTableError, match="equality deletes"):
        hudi.Table.adopt(path, record_key="id", options=options)
    assert not (path / ".hoodie").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_iceberg_table_becomes_a_native_one_of_new_files(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]], tmp_path: Path
) -> None:
    found, options = lake[0], {**lake[1], **ENCODED}
    iceberg_table(found, path)
    with found.load_table("lake.t").update_schema() as update:
        update.rename_column("n", "number")
        update.add_column("note", StringType())
    target = tmp_path / "table"
    how: dict[str, Any] = {"record_key": "id", "partition_by": "city", "format": "native"}
    hudi.Table.adopt(path, rewrite=str(target), options=options, **how)
    rows = ROWS.rename_columns(["id", "city", "number", "price", "at", "tags"])
    agree(target, rows.append_column("note", pa.nulls(4, pa.string())))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_iceberg_table_of_a_catalog_needs_the_catalog(
    path: Path, lake: tuple[SqlCatalog, dict[str, str]]
) -> None:
    iceberg_table(lake[0], path)
    with pytest.raises(errors.UnsupportedTableError, match="of which a catalog knows the version"):
        hudi.Table.adopt(path, record_key="id")


def test_an_iceberg_table_of_a_folder(path: Path, tmp_path: Path) -> None:
    """As Hadoop tables have it: what this project itself leaves, without its timeline."""
    plain(path)
    hudi.Table.adopt(path, record_key="id", format="iceberg", options=ENCODED)
    shutil.rmtree(path / ".hoodie")
    hudi.Table.adopt(path, record_key="id", options=ENCODED)
    agree(path)
    assert len(StaticTable.from_metadata(str(path)).metadata.snapshots) == 1


def test_an_adopted_table_can_be_converted(path: Path) -> None:
    plain(path)
    hudi.Table.adopt(path, record_key="id", options=ENCODED)
    table = hudi.Table.open(path)
    for to in ("delta", "iceberg", "native"):
        table.convert(to)
        agree(path)
    table.convert("delta")
    shutil.rmtree(path / "_delta_log")
    hudi.Table.open(path).repair()
    agree(path)


def test_the_command(path: Path, tmp_path: Path) -> None:
    plain(path)
    base = ("table", "adopt", path, "--key", "id")
    encoded = ("-o", *(f"{key}={value}" for key, value in ENCODED.items()))
    plan = run(*base, *encoded, "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert "Nothing was changed" in plan.stdout
    assert not (path / ".hoodie").exists()
    assert run_json(*base, "--rewrite", tmp_path / "new")["rewritten"] is True
    done = run(*base, *encoded, "--format", "delta")
    assert "Adopted 3 files with 4 rows, as they are, as the delta table" in done.stdout
    assert "no incremental queries" in done.stdout
    agree(path)


@pytest.mark.parametrize("table_format", TABLES)
def test_an_adoption_that_died_goes_on_as_it_was_begun(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    plain(path)
    storage = MortalStorage(monkeypatch)
    options = {**ENCODED, "hoodie.metadata.enable": "false"}
    arguments: dict[str, Any] = {"record_key": "id", "format": table_format, "options": options}
    for calls in range(1, 200):
        copy = tmp_path / f"t{calls}"
        shutil.copytree(path, copy)
        storage.left = calls
        try:
            hudi.Table.adopt(copy, **arguments)
        except Died:
            storage.left = 0
            if (copy / ".hoodie/hoodie.properties").exists():
                # it is a table from then on
                found = hudi.Table.open(copy).to_arrow()
                assert bag(found, ROWS.column_names) == bag(ROWS)
            if (copy / ".hoodie/adoption.json").exists() or not (
                copy / ".hoodie/hoodie.properties"
            ).exists():
                hudi.Table.adopt(copy, **arguments)
            for read in READERS[table_format][:2]:
                assert bag(read(copy), ROWS.column_names) == bag(ROWS), calls
        else:
            break
    assert calls > 15


def test_it_goes_on_with_what_was_begun_and_nothing_else(path: Path) -> None:
    plain(path)
    with death_in("hudi_core.services.adoption.adopt._commit"):
        hudi.Table.adopt(path, record_key="id", options=ENCODED)
    with pytest.raises(errors.OptionConflictError):
        hudi.Table.adopt(path, record_key="n", options=ENCODED)
    hudi.Table.adopt(path, record_key="id")
    agree(path)


def test_another_file_of_an_old_name_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(path)
    old = path / "city=rome/part-00000-abc.snappy.parquet"

    def dying(_: PosixStorage, name: str) -> None:
        if name == "city=rome/part-00000-abc.snappy.parquet":
            raise Died

    with monkeypatch.context() as patched:
        before(patched, PosixStorage, "delete", dying, each=True)
        with pytest.raises(Died):
            hudi.Table.adopt(path, record_key="id", options=ENCODED)
    # whoever writes the folder puts a new file in its place
    pq.write_table(ROWS.slice(1, 1), path / "new")
    (path / "new").replace(old)
    with pytest.raises(errors.CommitConflictError, match="another file"):
        hudi.Table.adopt(path, record_key="id")
    assert pq.read_table(old, partitioning=None).num_rows == 1
    old.rename(path.parent / "saved.parquet")
    hudi.Table.adopt(path, record_key="id")
    agree(path)


def test_who_comes_second_finds_a_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(path)
    adopting = lambda *_: hudi.Table.adopt(path, record_key="id", options=ENCODED)  # noqa: E731
    after(monkeypatch, adopt, "plan_in_place", adopting)
    with pytest.raises(errors.NotATableError, match="already"):
        hudi.Table.adopt(path, record_key="id", options=ENCODED)
    assert not (path / ".hoodie/adoption.json").exists()
    agree(path)


def test_files_that_come_while_a_folder_is_looked_at_are_not_passed_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(path)
    late = path / "city=rome/late.parquet"
    after(monkeypatch, adopt, "plan_in_place", lambda *_: pq.write_table(ROWS.slice(0, 1), late))
    with pytest.raises(errors.CommitConflictError, match="were changed"):
        hudi.Table.adopt(path, record_key="id", options=ENCODED)
    assert late.exists()
    assert not (path / ".hoodie/adoption.json").exists()


@pytest.mark.parametrize("step", ["_place", "_commit", "_make_format"])
def test_a_version_that_comes_meanwhile_is_not_lost(path: Path, step: str) -> None:
    """Its writer comes before the files have names, before the commit, or after it."""
    rows = ROWS.select(["id", "n"])
    write_deltalake(path, rows.slice(0, 2))
    before = {one.name for one in path.glob("*.parquet")}
    with death_in(f"hudi_core.services.adoption.adopt.{step}"):
        hudi.Table.adopt(path, record_key="id")
    write_deltalake(path, rows.slice(2, 2), mode="append")
    with pytest.raises(errors.CommitConflictError, match="new version"):
        hudi.Table.adopt(path, record_key="id")
    if step != "_make_format":
        assert bag(DeltaTable(path).to_pyarrow_table()) == bag(rows)
        assert {one.name for one in path.glob("*.parquet")} > before
    hudi.Table.adopt(path, record_key="id")
    agree(path, rows)
    assert len({one.name[:17] for one in (path / ".hoodie/timeline").glob("*commit*")}) == 1


@pytest.mark.parametrize("named", ["../outside.parquet", "%2E%2E/outside.parquet", "link.parquet"])
def test_a_forged_table_leads_out_of_no_folder(path: Path, tmp_path: Path, named: str) -> None:
    write_deltalake(path, ROWS.select(["id", "n"]).slice(0, 1))
    outside = tmp_path / "outside.parquet"
    pq.write_table(ROWS.select(["id", "n"]).slice(1, 1), outside)
    (path / "link.parquet").symlink_to(outside)
    facts = {"size": outside.stat().st_size, "modificationTime": 1, "dataChange": True}
    add = {"path": named, "partitionValues": {}, **facts}
    (path / "_delta_log/00000000000000000001.json").write_text(json.dumps({"add": add}))
    for rewrite in (None, str(tmp_path / "new")):
        with pytest.raises(errors.UnsafePathError):
            hudi.Table.adopt(path, record_key="id", rewrite=rewrite)
    assert outside.exists()


def test_a_forged_record_does_not_lead_out_of_the_folder(path: Path, tmp_path: Path) -> None:
    plain(path)
    outside = tmp_path / "outside.parquet"
    pq.write_table(ROWS, outside)
    (path / ".hoodie").mkdir()
    base = "00000000-0000-0000-0000-000000000000-0_0-0-0_20240101000000000.parquet"
    record = {
        "version": 1,
        "instant": "20240101000000000",
        "source": "parquet",
        "properties": {"hoodie.table.name": "t"},
        "files": [["../outside.parquet", "", base, outside.stat().st_size, 4]],
    }
    elsewhere = {**record, "files": [["city=rome/x.parquet", "../..", base, 1, 1]]}
    for text, error, said in (
        (json.dumps(record), errors.HudiError, None),
        (json.dumps(elsewhere), errors.HudiError, None),
        ("{", errors.CorruptMetadataError, "adoption"),
    ):
        (path / ".hoodie/adoption.json").write_text(text)
        with pytest.raises(error, match=said):
            hudi.Table.adopt(path, record_key="id")
    assert outside.exists()


@pytest.mark.parametrize(
    ("spoil", "error", "told"),
    [
        (shutil.rmtree, errors.NotATableError, "no data file"),
        (
            lambda path: (path / "city=rome/b.parquet").write_bytes(b"no"),
            errors.DataFileError,
            "b.parquet",
        ),
        (
            lambda path: pq.write_table(pa.table({"id": [1]}), path / "city=rome/b.parquet"),
            errors.SchemaError,
            "Column id has the type",
        ),
        (
            lambda path: pq.write_table(ROWS, path / "top.parquet"),
            errors.SchemaError,
            "different partition columns",
        ),
    ],
)
def test_what_cannot_be_adopted_is_told(
    path: Path, spoil: Callable[[Path], Any], error: type[Exception], told: str
) -> None:
    plain(path)
    spoil(path)
    with pytest.raises(error, match=told):
        hudi.Table.adopt(path, record_key="id", options=ENCODED)


def test_keys_and_tables_that_there_are_not(path: Path) -> None:
    plain(path)
    with pytest.raises(errors.RecordKeyError, match="nothing_of_the_kind"):
        hudi.Table.adopt(path, record_key="nothing_of_the_kind")
    with pytest.raises(errors.UnsupportedTableError, match="no record key"):
        hudi.Table.adopt(path, options=ENCODED)
    with pytest.raises(errors.NotATableError, match="no table of the format delta"):
        hudi.Table.adopt(path, record_key="id", source="delta")
    hudi.Table.adopt(path, record_key="id", options=ENCODED)
    with pytest.raises(errors.NotATableError, match="is a Hudi table already"):
        hudi.Table.adopt(path, record_key="id")


def test_of_several_tables_one_is_named(path: Path) -> None:
    write_deltalake(str(path), ROWS)
    (path / "metadata").mkdir()
    (path / "metadata/v1.metadata.json").write_text("{}")
    with pytest.raises(errors.CorruptMetadataError):
        hudi.Table.adopt(path, record_key="id")
    hudi.Table.adopt(path, record_key="id", source="delta")
    agree(path)


def test_readers_of_a_format_are_not_left_behind(path: Path) -> None:
    write_deltalake(str(path), ROWS)
    for other in ("native", "iceberg"):
        with pytest.raises(errors.UnsupportedTableError, match=f"adopt it as delta.*--to {other}"):
            hudi.Table.adopt(path, record_key="id", format=other)
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == ROWS.num_rows


@pytest.fixture(params=TABLES)
def adopted(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    path = plain(tmp_path / "lake")
    hudi.Table.adopt(path, record_key="id", format=request.param, options=ENCODED)
    return hudi.Table.open(path)


def test_every_operation_writes_to_adopted_files(adopted: hudi.Table) -> None:
    """Keys are made of the rows, so that files without meta columns are updated as any others."""
    held = {row["id"]: row for row in ROWS.to_pylist()}

    def of(*rows: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), ROWS.schema)

    def expect() -> None:
        wanted = pa.Table.from_pylist(list(held.values()), ROWS.schema)
        agree(Path(adopted.path), wanted)

    first, second, *_ = held
    changed, new = {**held[first], "n": 77}, {**held[second], "id": "new"}
    result = adopted.upsert(of(changed, new))
    assert (result.inserted, result.updated) == (1, 1)
    held |= {first: changed, "new": new}
    expect()
    assert adopted.delete(of(held[second])).deleted == 1
    del held[second]
    expect()
    adopted.bulk_insert(of({**new, "id": "newer"}))
    held["newer"] = {**new, "id": "newer"}
    adopted.cluster()
    expect()
    city = new["city"]
    adopted.insert_overwrite(of({**new, "id": "only"}))
    held = {key: row for key, row in held.items() if row["city"] != city}
    held["only"] = {**new, "id": "only"}
    expect()
    adopted.delete_partitions([{"city": city}])
    del held["only"]
    expect()
    adopted.alter(add_columns={"note": pa.string()})
    adopted.upsert(of(changed).append_column("note", pa.array(["x"])))
    adopted.rollback(adopted.timeline.completed_writes()[-1].requested_time)
    assert not adopted.validate(keys=True).differences


def test_a_row_that_lost_its_key_is_told_before_anything_is_written(adopted: hudi.Table) -> None:
    rows = ROWS.slice(0, 1).set_column(0, ROWS.schema.field(0), [pa.array([None], pa.string())])
    before = sorted(Path(adopted.path).rglob("*"))
    with pytest.raises(errors.RecordKeyError, match="null or empty in 1 of 1 rows"):
        adopted.upsert(rows)
    assert [one for one in sorted(Path(adopted.path).rglob("*.parquet")) if one not in before] == []


def test_adopted_files_get_a_record_index(tmp_path: Path) -> None:
    path = plain(tmp_path / "lake")
    index = {"hoodie.metadata.record.index.enable": "true"}
    hudi.Table.adopt(path, record_key="id", options={**ENCODED, **index})
    table = hudi.Table.open(path, options={"hoodie.index.type": "RECORD_INDEX", **index})
    found = {row["record_key"] for row in table.metadata("record_index").to_pylist()}
    assert found == set(ROWS.column("id").to_pylist())
    assert table.upsert(ROWS.slice(0, 2)).updated == 2
    assert not table.validate(keys=True).differences


def test_rows_are_copied_to_one_with_meta_columns(adopted: hudi.Table, tmp_path: Path) -> None:
    new = new_table(tmp_path / "new", adopted.schema, ENCODED, format=adopted.format)
    new.bulk_insert(adopted.to_batches())
    assert bag(new.to_arrow(), ROWS.column_names) == bag(ROWS)
    new.upsert(ROWS.slice(0, 1))
