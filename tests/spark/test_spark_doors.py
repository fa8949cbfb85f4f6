"""The data source ``hudi``: modes, failures, filters, columns, and stores.

That it gives what the Python API gives for every operation is shown where only the wheel is
installed, in ``tests/packaging/test_wheels.py``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import hudi_core as hudi
from hudi_core.engine.choice import connected_scheme
from hudi_core.engine.spark import SparkEngine
from hudi_core.errors import DataFileError, InvalidOptionError
from hudi_core.storage.hadoop import hadoop_schemes

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "doors",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
CITIES = ("rome", "oslo", "lima")


def frame(spark: SparkSession, count: int, ts: int = 1) -> DataFrame:
    made = [
        {"id": f"k{n:03d}", "city": CITIES[n % 3], "ts": ts, "price": float(n)}
        for n in range(count)
    ]
    return spark.createDataFrame(pa.Table.from_pylist(made)).repartition(2)


def save(
    data: DataFrame, path: str, told: str = "append", more: Mapping[str, str] | None = None
) -> None:
    data.write.format("hudi").options(**{**OPTIONS, **(more or {})}).mode(told).save(path)


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("hudi").options(**options).load(path)


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def staged(path: Path) -> list[Path]:
    return list((path / ".hoodie/.temp").rglob("*.arrow"))


def test_save_modes(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def count() -> int:
        return int(hudi.read(None, path).num_rows)

    save(frame(spark, 6), path, more={"mode": "errorifexists"})
    save(frame(spark, 9), path, more={"mode": "ignore"})
    assert count() == 6
    with pytest.raises(PySparkException, match="holds a table already"):
        save(frame(spark, 9), path, more={"mode": "errorifexists"})
    save(frame(spark, 9, ts=2), path)
    assert count() == 9
    save(frame(spark, 2), path, "overwrite")
    assert count() == 2
    assert len(hudi.Table.open(path).timeline.completed_writes()) == 1
    save(frame(spark, 3), path, more={"mode": "overwrite"})
    assert count() == 3
    with pytest.raises(PySparkException, match="mode='ignore'"):
        save(frame(spark, 9), path, "overwrite", more={"mode": "ignore"})
    with pytest.raises(PySparkException, match="no such mode"):
        save(frame(spark, 9), path, more={"mode": "upsert"})
    assert staged(tmp_path / "t") == []


@pytest.mark.parametrize("mode", [None, "errorifexists", "ignore"])
def test_spark_itself_refuses_the_other_modes(
    spark: SparkSession, tmp_path: Path, mode: str | None
) -> None:
    """When this fails, Spark has learnt them, and the option ``mode`` has had its day."""
    writer = frame(spark, 1).write.format("hudi").options(**OPTIONS)
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        (writer.mode(mode) if mode else writer).save(str(tmp_path / "t"))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_task_that_fails_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "t"
    save(frame(spark, 6), str(path))
    before = files(path)

    fails = "if(id = 'k004', raise_error('a row that cannot be made'), id) id"
    # one task: another may end after its job was given up, and what it leaves a later job removes
    rows = frame(spark, 6).coalesce(1).selectExpr(fails, "city", "ts", "price")
    with pytest.raises(PySparkException, match="a row that cannot be made"):
        save(rows, str(path), mode)
    assert files(path) == before
    new = tmp_path / "new"
    with pytest.raises(PySparkException, match="a row that cannot be made"):
        save(rows, str(new), mode)
    assert files(new) == set()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_that_do_not_fit_are_refused_in_the_commit(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "t"
    save(frame(spark, 6), str(path))
    before = hudi.read(None, str(path))
    null_key = frame(spark, 3).selectExpr("nullif(id, 'k001') id", "city", "ts", "price")
    with pytest.raises(PySparkException, match="RecordKeyError"):
        save(null_key, str(path), mode)
    assert hudi.read(None, str(path)) == before
    assert staged(path) == []


def test_options_are_refused_before_a_row_is_made(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = spark.sql(
        "select cast(raise_error('too late') as string) as id, 'rome' as city, 1 as ts"
    )
    for wrong, message in (
        ({"hoodie.datasource.write.operation": "merge"}, "'merge' cannot be used"),
        ({"hoodie.datasource.write.recordkey.field": "nothing"}, "is no column"),
        ({"hoodie.table.format": "strange"}, "No installed plugin"),
    ):
        with pytest.raises(PySparkException, match=message):
            save(rows, str(path), more=wrong)
    save(frame(spark, 2), str(path))
    with pytest.raises(PySparkException, match="OptionConflictError"):
        save(rows, str(path), more={"hoodie.datasource.write.recordkey.field": "ts"})
    with pytest.raises(PySparkException, match="path is missing"):
        rows.write.format("hudi").options(**OPTIONS).mode("append").save()


def test_a_write_is_done_once_and_keeps_what_it_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    once = {"txnAppId": "job", "txnVersion": "7"}
    kept = {"hoodie.datasource.write.commitmeta.key.prefix": "Ingest.", "Ingest.source": "kafka"}
    save(frame(spark, 6), path, more={**once, **kept})
    before = files(tmp_path)
    save(frame(spark, 9), path, more={**once, "mode": "errorifexists"})
    assert files(tmp_path) == before
    again = hudi.write(frame(spark, 9), path, options=OPTIONS, idempotency=("job", 6))
    assert again is not None
    assert (again.is_repetition, again.inserted) == (True, 6)
    # Spark hands names over in lower case
    assert again.metadata.extra_metadata["ingest.source"] == "kafka"
    first = hudi.write(frame(spark, 9), path, options=OPTIONS, idempotency=("job", 8))
    assert first is not None
    assert (first.is_repetition, first.inserted) == (False, 3)
    assert load(spark, path).count() == 9


def test_a_session_that_encrypts_is_not_answered_with_plain_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("parquet.crypto.factory.class", "org.apache.parquet.crypto.keytools.X")
    try:
        with pytest.raises(InvalidOptionError, match="files are not encrypted"):
            hudi.write(frame(spark, 2), str(tmp_path / "t"), options=OPTIONS)
    finally:
        conf.unset("parquet.crypto.factory.class")
    assert not (tmp_path / "t").exists()


def test_no_rows_at_all(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    save(frame(spark, 4).where("id = 'none'"), path)
    assert load(spark, path).count() == 0
    assert load(spark, path).columns[5:] == ["id", "city", "ts", "price"]


def test_what_a_dead_job_left_is_removed_in_time(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    save(frame(spark, 4), str(path))
    for name, days in (("dead", 8), ("slow", 6)):
        file = path / f".hoodie/.temp/.incoming/{name}/0.arrow"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
        then = time.time() - days * 86_400
        os.utime(file, (then, then))
    save(frame(spark, 5), str(path))
    assert [file.parent.name for file in staged(path)] == ["slow"]
    save(frame(spark, 6), str(path), "overwrite")
    assert [file.parent.name for file in staged(path)] == ["slow"]


CONDITIONS = [
    "city = 'rome'",
    "city in ('rome', 'oslo')",
    "city <> 'rome' and ts >= 1",
    "not (city in ('rome'))",
    "city > 'lima' and id like 'k%'",
    "price > 3",
    "price = double('NaN')",
    "city <=> 'rome'",
    "not (city <=> 'rome')",
    "city is null",
    "ts is not null and city = 'rome' or id = 'k001'",
]


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_filters_find_the_same_rows_whether_pushed_down_or_not(
    spark: SparkSession, tmp_path: Path, pushdown: str
) -> None:
    path = str(tmp_path / "t")
    data = frame(spark, 12).selectExpr(
        "id", "city", "ts", "if(id = 'k005', double('NaN'), price) price"
    )
    save(data, path)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    try:
        for condition in CONDITIONS:
            expected = sorted(row.id for row in data.where(condition).collect())
            found = load(spark, path).where(condition)
            assert sorted(row.id for row in found.collect()) == expected, condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_only_the_columns_that_are_named_are_read(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    save(frame(spark, 5), path)
    few = spark.read.format("hudi").schema("price double, id string").load(path)
    assert few.columns == ["price", "id"]
    assert sorted(row.id for row in few.collect()) == [f"k{n:03d}" for n in range(5)]
    with pytest.raises(PySparkException, match="SchemaError"):
        spark.read.format("hudi").schema("nothing int").load(path).collect()


# --- names, paths and SQL -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six rows in three partitions, in a table that no test changes."""
    path = str(tmp_path_factory.mktemp("doors") / "t")
    frame(spark, 6).write.format("org.apache.hudi").options(**OPTIONS).mode("append").save(path)
    return path


def found(data: DataFrame) -> list[str]:
    return sorted(row.id for row in data.collect())


ALL = [f"k{n:03d}" for n in range(6)]
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
        noted = [field.metadata for field in spark.table("then").schema if field.metadata]
        assert noted == [{"hudi.read": {"path": f"{path}/*", "as.of.instant": first}}]
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


# --- errors ---------------------------------------------------------------------------------------


def only_ours(message: str) -> bool:
    """Whether an error says what is wrong, without pages of Python or Java around it."""
    return len(message) < 1000 and "Traceback" not in message and "\tat " not in message


def test_errors_of_the_door_come_without_tracebacks(
    spark: SparkSession, shared: str, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    save(frame(spark, 1), str(damaged))
    for file in damaged.glob("rome/*.parquet"):
        file.write_bytes(b"no such file")
    rows = frame(spark, 2)
    no_key = rows.selectExpr("cast(null as string) id", "city", "ts", "price")
    merge = {"hoodie.datasource.write.operation": "merge"}
    for kind, ask in (
        ("NotATableError", lambda: load(spark, str(tmp_path / "nothing"))),
        ("UnknownPartitionError", lambda: load(spark, f"{shared}/paris").collect()),
        (
            "TimeOutOfRangeError",
            lambda: load(spark, shared, **{"as.of.instant": "2001-01-01"}).collect(),
        ),
        ("DataFileError", lambda: load(spark, str(damaged)).collect()),
        ("InvalidOptionError", lambda: save(rows, str(damaged), more=merge)),
        ("RecordKeyError", lambda: save(no_key, shared)),
    ):
        with pytest.raises(PySparkException, match=f"hudi_core.errors.{kind}: ") as caught:
            ask()
        assert only_ours(str(caught.value)), str(caught.value)


def test_errors_of_tasks_keep_their_type(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    hudi.write(frame(spark, 6), path, options=OPTIONS)
    for file in (tmp_path / "t").glob("rome/*.parquet"):
        file.write_bytes(b"no such file")
    on_executors = SparkEngine(spark, tasks_on_driver=False)
    with pytest.raises(DataFileError) as caught:
        hudi.write(frame(spark, 6), path, options=OPTIONS, engine=on_executors)
    assert only_ours(str(caught.value))
    [left] = hudi.Table.open(path).timeline.completed_writes()
    assert left.is_completed


# --- S3: no connector in the JVM ------------------------------------------------------------------


def test_the_doors_open_tables_on_s3(spark: SparkSession, s3: Any) -> None:
    path = s3.new_root()
    save(frame(spark, 9), path, more=s3.given)
    save(frame(spark, 12, ts=2), path, more=s3.given)
    delete = {**s3.given, "hoodie.datasource.write.operation": "delete"}
    save(frame(spark, 3), path, more=delete)
    found = load(spark, path, **s3.given).orderBy("id").collect()
    assert [row.id for row in found] == [f"k{n:03d}" for n in range(3, 12)]
    assert {row.ts for row in found} == {2}
    first = hudi.Table.open(path, s3.given).timeline.completed_writes()[0]
    past = load(spark, path, **s3.given, **{"as.of.instant": first.requested_time})
    assert past.count() == 9
    save(frame(spark, 2), path, "overwrite", more=s3.given)
    assert load(spark, path, **s3.given).count() == 2
    assert load(spark, f"{path}/rom*", **s3.given).count() == 1
    assert load(spark, f"{path}/oslo/*", **s3.given).count() == 1
    left = s3.objects(path)
    assert not [name for name in left if name.endswith(".arrow")]
    assert not [name for name, data in left.items() if b"test-secret-key" in data]


def test_the_engine_on_spark_writes_and_reads_s3(spark: SparkSession, s3: Any) -> None:
    path = s3.new_root()
    options = {**OPTIONS, **s3.given}
    for operation, count in (("bulk_insert", 6), ("upsert", 9), ("delete", 2)):
        given = {**options, "hoodie.datasource.write.operation": operation}
        hudi.write(frame(spark, count, ts=count), path, "append", given)
    table = hudi.Table.open(path, s3.given)
    here = table.to_arrow().sort_by("id")
    assert here.column("id").to_pylist() == [f"k{n:03d}" for n in range(2, 9)]
    assert table.read(spark).orderBy("id").toArrow().to_pylist() == here.to_pylist()
    some = table.read(spark, columns=["id"], filter=[("city", "=", "rome")])
    assert some.columns == ["id"]
    assert sorted(row.id for row in some.collect()) == ["k003", "k006"]
    instants = table.timeline.completed_writes()
    assert table.read(spark, as_of=instants[0]).count() == 6
    assert table.incremental(instants[0], instants[1], spark).count() == 9
    theirs = hudi_rs.HudiTableBuilder.from_base_uri(path).with_storage_options(
        {
            "aws_access_key_id": "test-access-key",
            "aws_secret_access_key": "test-secret-key",
            "aws_endpoint": s3.endpoint,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
    )
    assert sum(batch.num_rows for batch in theirs.build().read()) == 7


def test_changes_are_read_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    logs = {"hoodie.table.cdc.enabled": "true"}
    for operation, count in (("upsert", 9), ("delete", 2)):
        given = {**OPTIONS, **logs, "hoodie.datasource.write.operation": operation}
        hudi.write(frame(spark, count, ts=count), path, "append", given)
    table = hudi.Table.open(path)
    last = table.timeline.completed_writes()[-1]
    stats = table._opened.client.read_commit(last).stats
    named = [one for stat in stats for one in stat.cdc_stats or ()]
    assert named
    assert all(Path(table.path, one).exists() for one in named)
    first, _ = table.timeline.completed_writes()
    here = table.incremental(first, columns=["id"], deletes=True)
    there = table.incremental(first, spark=spark, columns=["id"], deletes=True)
    assert there.toArrow().sort_by("id").to_pylist() == here.sort_by("id").to_pylist()
    assert {row["_change_type"] for row in here.to_pylist()} == {"delete"}

    feed = table.changes().sort_by([("op", "ascending"), ("after", "ascending")])
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "earliest",
    }
    for found in (table.changes(spark=spark), load(spark, path, **options)):
        assert found.columns == feed.column_names
        assert set(found.toArrow().to_pylist()[0]) == set(feed.column_names)
        assert sorted(map(tuple, found.collect()), key=repr) == sorted(
            (tuple(row.values()) for row in feed.to_pylist()), key=repr
        )
    assert load(spark, path, **options).where("op = 'd'").count() == 2


def test_spark_reads_by_itself_where_its_jvm_can(spark: SparkSession) -> None:
    assert connected_scheme(spark, hadoop_schemes("/lake/t")) == "file"
    assert connected_scheme(spark, hadoop_schemes("s3://lake/t")) is None
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.s3a.impl", "org.apache.hadoop.fs.LocalFileSystem")
    try:
        assert connected_scheme(spark, hadoop_schemes("s3://lake/t")) == "s3a"
    finally:
        conf.unset("fs.s3a.impl")
    conf.set("fs.s3a.impl", "org.example.NoSuchClass")
    try:
        assert connected_scheme(spark, hadoop_schemes("s3a://lake/t")) is None
    finally:
        conf.unset("fs.s3a.impl")
