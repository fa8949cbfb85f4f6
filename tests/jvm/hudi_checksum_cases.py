"""Hudi-Spark on tables whose files it and we write in turns, on a local disk.

Hadoop's local file system keeps a checksum beside each file, and refuses a file that is not as its
checksum says. Whatever we replace has to be readable, without a word of the old checksum.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.services.mending.differences import Source
from tests.jvm.engines import Engine, EngineError

VERSIONS = ("8", "9")
PROPERTIES = ".hoodie/hoodie.properties"


def options(version: str, **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": version,
        "hoodie.write.auto.upgrade": "false",
        "hoodie.table.timeline.timezone": "UTC",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def in_city(*ids: int, **columns: list[int]) -> pa.Table:
    return pa.table({"id": list(ids), "city": ["A"] * len(ids), **columns})


def seen(engine: Engine, path: Path) -> list[tuple[object, ...]]:
    return engine.values(path, ["id", "x"])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_that_hudi_spark_made(hudi_spark: Engine, tmp_path: Path, version: str) -> None:
    """Spark creates, we upsert and change columns, Spark reads and writes, we clean up after it."""
    path = tmp_path / "t"
    hudi_spark.save(in_city(1, 2, x=[1, 2]), path, options(version), mode="overwrite")
    assert (path / ".hoodie/.hoodie.properties.crc").exists()
    ours = hudi.Table.open(str(path))
    ours.upsert(in_city(2, 3, x=[20, 30]))
    assert seen(hudi_spark, path) == [(1, 1), (2, 20), (3, 30)]
    ours.alter(add_columns={"y": pa.int64()})
    assert seen(hudi_spark, path) == [(1, 1), (2, 20), (3, 30)]
    hudi_spark.save(in_city(3, 4, x=[31, 40], y=[1, 1]), path, options(version))
    hudi.Table.open(str(path)).upsert(in_city(5, x=[50], y=[1]))
    assert seen(hudi_spark, path) == [(1, 1), (2, 20), (3, 31), (4, 40), (5, 50)]
    assert hudi.Table.open(str(path)).validate().is_valid


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_of_ours_whose_properties_hudi_spark_writes(
    hudi_spark: Engine, tmp_path: Path, version: str
) -> None:
    """An index that Spark adds is in the properties and among the definitions."""
    path = tmp_path / "t"
    given = {"hoodie.write.table.version": version}
    table = hudi.Table.create(
        str(path),
        in_city(1, x=[1]).schema,
        name="t",
        record_key="id",
        partition_by="city",
        options=given,
    )
    table.insert(in_city(1, x=[1]))
    more = {"hoodie.metadata.record.index.enable": "true"}
    hudi_spark.save(in_city(2, x=[2]), path, {**options(version), **more})
    assert (path / ".hoodie/.hoodie.properties.crc").exists()
    ours = hudi.Table.open(str(path))
    ours.alter(add_columns={"y": pa.int64()})
    ours.upsert(in_city(2, 3, x=[20, 30], y=[1, 1]))
    assert seen(hudi_spark, path) == [(1, 1), (2, 20), (3, 30)]
    hudi_spark.save(in_city(4, x=[40], y=[1]), path, {**options(version), **more})
    assert seen(hudi_spark, path) == [(1, 1), (2, 20), (3, 30), (4, 40)]
    assert hudi.Table.open(str(path)).validate().is_valid


def test_what_an_earlier_release_left_is_repaired(hudi_spark: Engine, tmp_path: Path) -> None:
    """A checksum that is wrong about the properties keeps Hudi-Spark from opening the table."""
    path = tmp_path / "t"
    hudi_spark.save(in_city(1, x=[1]), path, options("9"), mode="overwrite")
    stale = path / ".hoodie/.hoodie.properties.crc"
    kept = stale.read_bytes()
    hudi.Table.open(str(path)).upsert(in_city(2, x=[2]))
    stale.write_bytes(kept)
    with pytest.raises(EngineError, match="Could not load Hoodie properties"):
        seen(hudi_spark, path)
    [found] = hudi.Table.open(str(path)).validate().differences
    assert (found.source, found.subject) == (Source.CHECKSUM, ".hoodie/.hoodie.properties.crc")
    assert hudi.Table.open(str(path)).repair().left == ()
    assert seen(hudi_spark, path) == [(1, 1), (2, 2)]
