"""Tables of other formats, registered in metastores as what they are."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_conformance.hive_metastore import HiveMetastore
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.hive import HiveCatalog

import hudi_core as hudi
import iceberg_format.creation
from hudi_core import errors
from hudi_core.doors.connector import Connector
from hudi_core.metastore.hive_writer import HiveWriter
from hudi_core.read.connector.handles import TableName
from hudi_core.services.mending.differences import Source
from hudi_core.spi import NumberedFiles
from hudi_core.sync.result import EntryChange
from tests import tables

HIVE = "hoodie.datasource.hive_sync."
CAPITALS = pa.schema([("id", pa.int64()), ("City", pa.string())])


def trips(ids: list[int], cities: list[str]) -> pa.Table:
    return pa.table({"id": ids, "City": cities}, CAPITALS)


def of_trips(path: Path, options: dict[str, Any], kind: str) -> hudi.Table:
    rows = trips([1, 2], ["Rome", "Bern"])
    return tables.new_table(path / "trips", rows, options, partition_by="City", format=kind)


def ids(catalog: Catalog, lake: str) -> list[int]:
    rows = catalog.load_table(f"{lake}.trips").scan().to_arrow()
    return sorted(rows["id"].to_pylist())


def by_name(metastore: HiveMetastore, lake: str) -> list[int]:
    connector = Connector({"hive.metastore.uri": metastore.uri})
    with connector.scan(TableName(lake, "trips")) as source:
        parts = [connector.read(split, ["id"]).read_all() for split in source]
    return sorted(value for part in parts for value in part["id"].to_pylist())


@pytest.fixture
def lake() -> str:
    return f"s{uuid.uuid4().hex}"


@pytest.fixture
def options(metastore: HiveMetastore, lake: str) -> dict[str, Any]:
    return {f"{HIVE}metastore.uris": metastore.uri, f"{HIVE}database": lake}


def in_hive(metastore: HiveMetastore, identifier: str) -> dict[str, str]:
    """Options by which a table is in a catalog of the metastore."""
    given = {"type": "hive", "uri": metastore.uri, "identifier": identifier}
    given["create-namespace"] = "true"
    return {f"hoodie.table.format.iceberg.catalog.{key}": one for key, one in given.items()}


def keyed(options: dict[str, Any]) -> dict[str, Any]:
    """Options of `write` for a table that is synced."""
    named = {"hoodie.table.name": "trips", "hoodie.table.format": "iceberg"}
    key = {"hoodie.datasource.write.recordkey.field": "id"}
    return {**options, f"{HIVE}enable": True, **named, **key}


def entry(metastore: HiveMetastore, lake: str) -> Any:
    with metastore.client() as client:
        return client.get_table(lake, "trips")


def test_an_iceberg_table_is_one_of_the_metastores_iceberg_tables(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = of_trips(tmp_path, {**options, f"{HIVE}enable": True}, "iceberg")
    theirs = HiveCatalog("theirs", uri=metastore.uri)
    assert ids(theirs, lake) == [1, 2]
    first = entry(metastore, lake)
    assert first.parameters["table_type"] == "ICEBERG"
    assert first.partitionKeys == []
    assert "spark.sql.sources.provider" not in first.parameters
    table.upsert(trips([2, 3], ["Bern", "Ulm"]))
    table.alter(add_columns={"tip": pa.int32()})
    assert ids(theirs, lake) == by_name(metastore, lake) == [1, 2, 3]
    now = entry(metastore, lake)
    assert now.parameters["metadata_location"] != first.parameters["metadata_location"]
    assert now.parameters["previous_metadata_location"]
    assert [one.name for one in now.sd.cols][5:] == ["id", "city", "tip"]
    assert table.sync(options=options).is_up_to_date


def test_a_table_without_metadata_yet_is_made_and_synced(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    given = keyed(options)
    hudi.write(trips([1], ["Rome"]), tmp_path / "trips", "append", given)
    hudi.write(trips([2], ["Bern"]), tmp_path / "trips", "overwrite", given)
    assert ids(HiveCatalog("theirs", uri=metastore.uri), lake) == [2]
    held = in_hive(metastore, f"{lake}.held")
    for path in ("trips", "held"):
        with pytest.raises(errors.UnsupportedTableError, match="is in the catalog hive"):
            hudi.write(trips([3], ["Ulm"]), tmp_path / path, "overwrite", {**given, **held})
    assert not (tmp_path / "held").exists()
    assert hudi.Table.open(tmp_path / "trips").to_arrow()["id"].to_pylist() == [2]


def test_a_table_takes_the_entry_of_the_one_that_it_has_overwritten(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    given = keyed(options)
    for number in range(5):
        hudi.write(trips([number], ["Rome"]), tmp_path / "trips", "append", given)
    before = entry(metastore, lake).parameters
    hudi.write(trips([7], ["Bern"]), tmp_path / "trips", "overwrite", given)
    now = entry(metastore, lake).parameters
    assert now["uuid"] != before["uuid"]
    assert len(now["metadata_location"]) == len(before["metadata_location"])
    assert now["metadata_location"] < before["metadata_location"], "its count began anew"
    theirs = HiveCatalog("theirs", uri=metastore.uri)
    assert ids(theirs, lake) == [7]
    with theirs.load_table(f"{lake}.trips").transaction() as change:
        change.set_properties(owner="another")
    for mode in ("append", "overwrite"):
        with pytest.raises(errors.MetaSyncError, match="committed through the metastore"):
            hudi.write(trips([8], ["Bern"]), tmp_path / "trips", mode, given)


def test_an_entry_that_is_far_behind_catches_up(
    metastore: HiveMetastore,
    lake: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(iceberg_format.creation, "KEPT_VERSIONS", 2)
    table = of_trips(tmp_path, options, "iceberg")
    table.sync()
    first = entry(metastore, lake).parameters["metadata_location"]
    for number in range(4):
        table.insert(trips([10 + number], ["Ulm"]))
    assert not Path(first.removeprefix("file://")).exists()
    table.sync()
    theirs = HiveCatalog("theirs", uri=metastore.uri)
    assert ids(theirs, lake) == [1, 2, 10, 11, 12, 13]
    table.delete(trips([10, 11, 12, 13], ["Ulm"] * 4))
    table.purge()
    known = Path(entry(metastore, lake).parameters["metadata_location"].removeprefix("file://"))
    assert not known.exists()
    table.sync()
    assert ids(theirs, lake) == [1, 2]


def test_files_that_a_number_tells() -> None:
    files = NumberedFiles("/t/v", ".json", 12)
    assert all(f"/t/v{number}.json" in files for number in (1, 9, 12))
    others = ("/t/v13.json", "/t/v0.json", "/t/v01.json", "/t/v2-x.json", "/u/v2.json", "/t/v2", 2)
    assert not any(one in files for one in others)
    assert files.is_named_so("/t/v13.json")
    assert not any(files.is_named_so(one) for one in others[1:])


def schedule_and_run(table: hudi.Table) -> object:
    assert table.cluster(schedule_only=True).instant
    return table.run_clusterings()


def erase(table: hudi.Table) -> object:
    return table.purge().instant


@pytest.mark.parametrize(
    "serve",
    [
        lambda table: table.clean(options={"hoodie.cleaner.commits.retained": 1}).instant,
        erase,
        lambda table: table.cluster(sort_by="id").result,
        lambda table: table.optimize().result,
        schedule_and_run,
        lambda table: table.rewrite_keys().instants,
    ],
    ids=["clean", "purge", "cluster", "optimize", "run clusterings", "rewrite keys"],
)
def test_services_are_followed_by_entries_that_point_at_a_state(
    metastore: HiveMetastore,
    lake: str,
    options: dict[str, Any],
    tmp_path: Path,
    serve: Callable[[hudi.Table], object],
) -> None:
    table = of_trips(tmp_path, {**options, f"{HIVE}enable": True}, "iceberg")
    for _ in range(3):
        table.upsert(trips([1, 2], ["Rome", "Bern"]))
    table.bulk_insert(trips([3, 4], ["Rome", "Bern"]))
    before = entry(metastore, lake).parameters["metadata_location"]
    assert serve(table)
    assert entry(metastore, lake).parameters["metadata_location"] != before
    assert table.sync(dry_run=True).is_up_to_date
    assert ids(HiveCatalog("theirs", uri=metastore.uri), lake) == [1, 2, 3, 4]


def test_a_commit_through_the_metastore_is_not_overwritten(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = of_trips(tmp_path, options, "iceberg")
    table.sync()
    theirs = HiveCatalog("theirs", uri=metastore.uri)
    with theirs.load_table(f"{lake}.trips").transaction() as change:
        change.set_properties(owner="another")
    with pytest.raises(errors.MetastoreEntryError, match="committed through the metastore"):
        table.sync()
    [done] = table.sync(options={f"{HIVE}recreate_table_on_error": True}).entries
    assert done.change is EntryChange.RECREATED
    assert ids(theirs, lake) == [1, 2]


def test_a_commit_through_the_metastore_during_a_sync_is_not_lost(
    metastore: HiveMetastore,
    lake: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = of_trips(tmp_path, options, "iceberg")
    table.sync()
    table.insert(trips([3], ["Ulm"]))
    theirs = HiveCatalog("theirs", uri=metastore.uri)
    change_table = HiveWriter.change_table

    def late(*args: Any, **named: Any) -> None:
        with theirs.load_table(f"{lake}.trips").transaction() as change:
            change.set_properties(owner="another")
        change_table(*args, **named)

    monkeypatch.setattr(HiveWriter, "change_table", late)
    with pytest.raises(errors.MetastoreError, match="metadata_location"):
        table.sync()
    assert theirs.load_table(f"{lake}.trips").properties["owner"] == "another"


def test_an_iceberg_table_in_glue(glue: str, lake: str, tmp_path: Path) -> None:
    options = {
        "hoodie.aws.glue.endpoint": glue,
        "hoodie.aws.glue.region": "us-east-1",
        "hoodie.aws.access.key": "an-id",
        "hoodie.aws.secret.key": "a-secret",
        f"{HIVE}database": lake,
    }
    table = of_trips(tmp_path, options, "iceberg")
    table.sync("glue")
    table.insert(trips([3], ["Ulm"]))
    table.sync("glue")
    theirs = GlueCatalog(
        "theirs",
        **{
            "glue.endpoint": glue,
            "glue.region": "us-east-1",
            "glue.access-key-id": "an-id",
            "glue.secret-access-key": "a-secret",
        },
    )
    assert ids(theirs, lake) == [1, 2, 3]


def test_a_table_whose_commits_change_an_entry_gets_no_second_one(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = of_trips(tmp_path, in_hive(metastore, f"{lake}.trips"), "iceberg")
    with pytest.raises(errors.UnsupportedTableError, match="is in the catalog hive"):
        table.sync(options=options)


def test_a_delta_table_is_one_of_sparks_source(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = of_trips(tmp_path, options, "delta")
    table.sync()
    table.insert(trips([3], ["Ulm"]))
    found = entry(metastore, lake)
    place = f"file://{tmp_path}/trips"
    assert found.parameters["spark.sql.sources.provider"] == "delta"
    assert found.parameters["hudi.base.path"] == place
    assert found.sd.serdeInfo.parameters["path"] == place
    assert (found.tableType, found.partitionKeys) == ("EXTERNAL_TABLE", [])
    assert [one.name for one in found.sd.cols][5:] == ["id", "city"]
    assert by_name(metastore, lake) == [1, 2, 3], "the log tells the state"
    # its state is in the log, so that the entry stays as it is
    assert table.sync().is_up_to_date


def test_a_table_that_changed_its_format(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = of_trips(tmp_path, options, "native")
    table.sync()
    table.convert("iceberg")
    with pytest.raises(errors.MetastoreEntryError, match="is registered as hudi"):
        table.sync()
    table.sync(options={f"{HIVE}recreate_table_on_error": True})
    assert ids(HiveCatalog("theirs", uri=metastore.uri), lake) == [1, 2]


def test_validate_shows_an_entry_that_is_behind(
    metastore: HiveMetastore, lake: str, options: dict[str, Any], tmp_path: Path
) -> None:
    table = of_trips(tmp_path, options, "iceberg")
    asking = hudi.Table.open(table.path, {**options, f"{HIVE}enable": True})
    [missing] = asking.validate().of(Source.METASTORE)
    assert (missing.found, missing.is_pending) == ("not there", True)
    table.sync()
    assert asking.validate().is_valid
    table.insert(trips([3], ["Ulm"]))
    [behind] = asking.validate().of(Source.METASTORE)
    assert (behind.subject, behind.found) == (
        f"columns and properties of {lake}.trips",
        "those of an earlier state",
    )
    table.sync()
    assert asking.validate().is_valid
    nowhere = {**options, f"{HIVE}enable": True, f"{HIVE}metastore.uris": "thrift://127.0.0.1:1"}
    report = hudi.Table.open(table.path, nowhere).validate()
    assert "did not answer" in report.skipped["entries in hive"]
    assert report.is_valid


def test_validate_shows_catalogs_behind(
    metastore: HiveMetastore, lake: str, tmp_path: Path
) -> None:
    """The entry is part of each commit: where it lags, the commit is not complete."""
    table = of_trips(tmp_path, in_hive(metastore, f"{lake}.trips"), "iceberg")
    before = entry(metastore, lake)
    later = table.insert(trips([3], ["Ulm"]))
    assert table.validate().is_valid
    with metastore.client() as client:
        client.alter_table(lake, "trips", before)
    differences = table.validate().of(Source.FORMAT)
    assert any(later.instant.requested_time in one.subject for one in differences)
