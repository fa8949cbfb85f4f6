"""The data source ``hudi`` by name and path, and tables of Spark's catalog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import hudi_core as hudi
from tests.spark.source.source_tables import ALL, OPTIONS, found, frame, load, save

pytestmark = pytest.mark.spark

ROME, OSLO = ["k000", "k003"], ["k001", "k004"]


def test_the_name_of_hudis_own_source(spark: SparkSession, shared: str) -> None:
    assert found(spark.read.format("org.apache.hudi").load(shared)) == ALL
    assert found(spark.read.format("Org.Apache.Hudi").load(shared)) == ALL


def test_paths_within_a_table(spark: SparkSession, shared: str) -> None:
    assert found(load(spark, f"{shared}/*/*")) == ALL
    assert found(load(spark, f"{shared}/rome")) == ROME
    assert found(load(spark, f"{shared}/{{rome,osl?}}/*.parquet")) == sorted(ROME + OSLO)
    both = spark.read.format("hudi").load([f"{shared}/rome", f"{shared}/oslo"])
    assert found(both) == sorted(ROME + OSLO)
    assert found(hudi.read(spark, f"{shared}/o*")) == OSLO
    with pytest.raises(PySparkException, match="has nothing at paris"):
        load(spark, f"{shared}/paris").collect()
    other = f"{shared}-2"
    save(frame(spark, 1), other)
    with pytest.raises(PySparkException, match="paths of several tables"):
        spark.read.format("hudi").load([f"{shared}/rome", other])


def test_spark_itself_refuses_to_partition(spark: SparkSession, tmp_path: Path) -> None:
    """When this fails, Spark hands the columns on, and they need not be given as an option."""
    writer = frame(spark, 1).write.format("hudi").options(**OPTIONS).partitionBy("city")
    with pytest.raises(PySparkException, match="do not match the existing table's"):
        writer.mode("append").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("made", ["LOCATION '{path}'", "OPTIONS (path '{path}')"])
@pytest.mark.parametrize("source", ["hudi", "org.apache.hudi"])
def test_tables_of_the_catalog(spark: SparkSession, shared: str, made: str, source: str) -> None:
    spark.sql(f"CREATE TABLE of_catalog USING {source} {made.format(path=shared)}")
    try:
        assert found(spark.table("of_catalog")) == ALL
        query = "SELECT id FROM of_catalog WHERE city = 'rome' AND price >= 0"
        assert found(spark.sql(query)) == ROME
        assert spark.sql("SELECT count(*) n FROM of_catalog").first() == (6,)
    finally:
        spark.sql("DROP TABLE of_catalog")
    assert found(load(spark, shared)) == ALL, "dropping a name leaves the table"


def test_a_table_of_the_catalog_keeps_what_it_was_made_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    save(frame(spark, 3), path)
    first = hudi.Table.open(path).timeline.completed_writes()[0].requested_time
    spark.sql(
        f"CREATE TABLE then USING hudi OPTIONS (path '{path}/*', `as.of.instant` '{first}', "
        "`fs.s3a.access.key` 'canary', `fs.s3a.secret.key` 'canary')"
    )
    spark.catalog.createTable("now", path=f"{path}/rome", source="hudi")
    try:
        save(frame(spark, 6, ts=2), path)
        assert found(spark.table("then")) == ALL[:3]
        assert found(spark.table("now")) == ROME
        older = spark.read.option("as.of.instant", first).table("now")
        assert found(older) == ["k000"]
        [noted] = [field.metadata for field in spark.table("then").schema if field.metadata]
        names = noted["hudi.read"].pop("columns")
        assert json.loads(names) == spark.table("then").columns
        assert noted == {"hudi.read": {"path": f"{path}/*", "as.of.instant": first}}
        # rows that were read from there are written anywhere
        save(spark.table("then"), str(tmp_path / "copy"))
        assert found(load(spark, str(tmp_path / "copy"))) == ALL[:3]
    finally:
        spark.sql("DROP TABLE then")
        spark.sql("DROP TABLE now")


def test_columns_of_a_read_by_path_name_no_place(spark: SparkSession, shared: str) -> None:
    columns = load(spark, shared).schema
    assert not [field.metadata for field in columns if field.metadata]
    # Spark copies what columns carry: with a place of their own they would read that one
    spark.catalog.createTable("other", path=f"{shared}/rome", source="hudi", schema=columns)
    with pytest.raises(PySparkException, match="the table's path is missing"):
        spark.table("other").collect()
    spark.sql("DROP TABLE other")


def test_a_table_with_stated_columns_says_how_to_read_it(spark: SparkSession, shared: str) -> None:
    spark.sql(f"CREATE TABLE stated (id string, city string) USING hudi LOCATION '{shared}'")
    try:
        with pytest.raises(PySparkException) as caught:
            spark.table("stated").collect()
        assert "CREATE TABLE t USING hudi LOCATION '/path'" in str(caught.value)
        way_out = f"SELECT id FROM stated WITH (path = '{shared}') WHERE city = 'oslo'"
        assert found(spark.sql(way_out)) == OSLO
    finally:
        spark.sql("DROP TABLE stated")


def test_temporary_views(spark: SparkSession, shared: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW seen USING hudi OPTIONS (path '{shared}/rome')")
    try:
        assert found(spark.sql("SELECT * FROM seen")) == ROME
    finally:
        spark.catalog.dropTempView("seen")
