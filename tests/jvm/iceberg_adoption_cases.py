"""Tables of Iceberg-Spark with rows that it deleted by position are adopted, and continued."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from tests.formats.iceberg_tables import Iceberg, bag, by_polars
from tests.jvm.engines import Engine

NAMES = ["id", "city", "v"]
PROPERTIES = ", ".join(
    f"'write.{one}.mode' = 'merge-on-read'" for one in ("delete", "update", "merge")
)


def theirs(engine: Engine, path: Path) -> Counter[str]:
    return bag(engine.read(path, source="iceberg").select(NAMES))


def agree(engine: Engine, path: Path) -> Counter[str]:
    ours = bag(hudi.Table.open(path).to_arrow().select(NAMES))
    assert ours == theirs(engine, path)
    assert ours == bag(Iceberg(path).rows(NAMES))
    assert ours == bag(by_polars(path, NAMES))
    assert hudi.Table.open(path).validate().differences == ()
    return ours


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_table_with_deleted_rows(iceberg_spark: Engine, tmp_path: Path, version: str) -> None:
    path = tmp_path / "warehouse" / "ns" / "table"
    name = f"folder{version}"
    conf = {
        f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{name}.type": "hadoop",
        f"spark.sql.catalog.{name}.warehouse": str(tmp_path / "warehouse"),
        f"spark.sql.catalog.{name}.cache-enabled": "false",
    }
    with iceberg_spark.configured(conf):
        iceberg_spark.sql(
            f"create table {name}.ns.table (id bigint, city string, v double) using iceberg "
            f"partitioned by (city) tblproperties ('format-version' = '{version}', {PROPERTIES})"
        )
        iceberg_spark.sql(
            f"insert into {name}.ns.table select id, if(id % 2 = 0, 'rome', 'oslo'), id * 1.5 "
            "from range(0, 40)"
        )
        iceberg_spark.sql(f"delete from {name}.ns.table where id in (3, 4, 5)")
        iceberg_spark.sql(f"update {name}.ns.table set v = -1 where id in (6, 7)")
        iceberg_spark.sql(f"delete from {name}.ns.table where id = 8")
    before = theirs(iceberg_spark, path)
    assert sum(before.values()) == 36
    done = hudi.Table.adopt(path, record_key="id")
    assert done.rows == 36
    assert agree(iceberg_spark, path) == before
    metadata = Iceberg(path).table.metadata
    assert metadata.format_version == int(version)
    table = hudi.Table.open(path)
    changed = pa.table({"id": [1, 6, 50], "city": ["oslo", "rome", "rome"], "v": [7.0, 8.0, 9.0]})
    table.upsert(changed)
    table.delete(pa.table({"id": [9], "city": ["oslo"]}))
    after = agree(iceberg_spark, path)
    assert sum(after.values()) == 36
    table.compact()
    assert agree(iceberg_spark, path) == after
    table.upsert(changed.slice(0, 1))
    agree(iceberg_spark, path)
    # the states of before
    for one in metadata.snapshots[:-1]:
        rows = iceberg_spark.read(path, {"snapshot-id": str(one.snapshot_id)}, source="iceberg")
        assert rows.num_rows == Iceberg(path).rows(NAMES, one.snapshot_id).num_rows
