"""Hudi-Spark on our tables whose data files lie below a storage path.

It knows of no storage paths, and looks for the files in the table's folder. Reads and updates fail
there. What it adds lies in that folder: our next read, write and validation name the file and what
to do, and once that is done the table is as before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, ForeignMetadataError, MisplacedFileError
from tests.federated_tables import Store, placed_table, seen, take_back, trips
from tests.jvm.commands import is_sound
from tests.jvm.engines import Engine, EngineError

ROWS: Final = [("k0", 2), ("k1", 1), ("k2", 1), ("k3", 2)]
ASKED: Final = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
NO_METADATA: Final = {"hoodie.metadata.enable": "false"}
NO_GROWTH: Final = {"hoodie.parquet.small.file.limit": "0"}
NEW: Final = trips(("new", "a", 5), ("newer", "b", 5))


@pytest.fixture(params=["8", "9"])
def base(request: pytest.FixtureRequest, tmp_path: Path, hudi_spark: Engine) -> str:
    """The path of a table with a storage path; version 8 is raised by what Hudi-Spark writes."""
    version = {"hoodie.write.table.version": request.param}
    made = placed_table(Store("disk", tmp_path), options=version)
    made.table.insert(trips(("k0", "a", 1), ("k1", "b", 1), ("k2", "c", 1)))
    made.table.upsert(trips(("k0", "a", 2), ("k3", "b", 2)))
    # a process that upgrades a table before anything else fails on every table
    assert hudi_spark.values(made.base, ["id"], options=NO_METADATA) == []
    return made.base


def save(engine: Engine, base: str, operation: str, data: Any, **more: str) -> None:
    given = {**ASKED, "hoodie.datasource.write.operation": operation, **more}
    engine.save(data, base, given)


def undo(base: str) -> None:
    """What the errors advise."""
    take_back(base, hudi.Table.open(base).timeline.completed_writes()[2:])
    assert seen(base) == ROWS
    hudi.Table.open(base).upsert(NEW)
    assert seen(base) == [*ROWS, ("new", 5), ("newer", 5)]
    is_sound(Path(base))


def test_reads_fail(hudi_spark: Engine, base: str) -> None:
    """All, some partitions, a past state, and changes; without the metadata table there is none."""
    first = hudi.Table.open(base).timeline.completed_writes()[0].completion_time
    since = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "0",
    }
    ways: list[dict[str, str]] = [{}, {"as.of.instant": str(first)}, since]
    for given in ways:
        with pytest.raises(EngineError, match="does not exist"):
            hudi_spark.values(base, ["id"], options=given)
    with pytest.raises(EngineError, match="does not exist"):
        hudi_spark.values(base, ["id"], "city = 'a'")
    assert hudi_spark.values(base, ["id"], options=NO_METADATA) == []


@pytest.mark.parametrize("operation", ["upsert", "delete", "insert"])
def test_what_reads_files_fails(hudi_spark: Engine, base: str, operation: str) -> None:
    """Rows that it finds in files, and files that it would add to: nothing is changed."""
    data = NEW if operation == "insert" else trips(("k0", "a", 7), ("new", "b", 7))
    with pytest.raises(EngineError, match="does not exist"):
        save(hudi_spark, base, operation, data)
    assert seen(base) == ROWS
    hudi.Table.open(base).upsert(NEW)
    assert seen(base) == [*ROWS, ("new", 5), ("newer", 5)]
    is_sound(Path(base))


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
def test_what_it_adds_is_named(hudi_spark: Engine, base: str, operation: str) -> None:
    """New files; our reads, writes, repair and validation say where they are."""
    save(hudi_spark, base, operation, NEW, **NO_GROWTH)
    last = hudi.Table.open(base).timeline.completed_writes()[-1].requested_time
    with pytest.raises(MisplacedFileError) as caught:
        seen(base)
    assert caught.value.instant == last
    with pytest.raises(MisplacedFileError):
        hudi.Table.open(base).upsert(NEW)
    with pytest.raises(MisplacedFileError):
        hudi.Table.open(base).repair_metadata()
    told = [one.found or "" for one in hudi.Table.open(base).validate().differences]
    assert any("lies in the table's folder, and not below its storage path" in one for one in told)
    undo(base)


def test_partitions_that_it_deletes(hudi_spark: Engine, base: str) -> None:
    """That needs no file: they are deleted, and the table is right."""
    version = str(hudi.Table.open(base).config.version)
    deleted = {
        "hoodie.datasource.write.partitions.to.delete": "a",
        # it cannot do both at once, on whatever table
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.table.version": version,
    }
    save(hudi_spark, base, "delete_partition", NEW, **deleted)
    assert seen(base) == ROWS[1:]
    is_sound(Path(base))


def test_writes_without_the_metadata_table(hudi_spark: Engine, base: str) -> None:
    """It drops ours, and takes the table for empty; the next one makes one of its own files."""
    save(hudi_spark, base, "upsert", trips(("k0", "a", 9), ("new", "b", 9)), **NO_METADATA)
    with pytest.raises(CorruptMetadataError, match="hudi table repair --metadata"):
        seen(base)
    save(hudi_spark, base, "insert", NEW, **NO_GROWTH)
    for read in (seen, lambda path: hudi.Table.open(path).count()):
        with pytest.raises(ForeignMetadataError):
            read(base)
    with pytest.raises(MisplacedFileError):
        hudi.Table.open(base).insert(NEW)
    undo(base)
