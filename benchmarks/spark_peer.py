"""Plain Spark: parquet files without any table, and the session that all Spark variants share."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from variant import Traits
from workload import KEY, PARTITION, Batch, cores

CODEC = "zstd level 1"


@cache
def session() -> SparkSession:
    """Return the one session: all cores, UTC, no web interface."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark: SparkSession = (
        SparkSession.builder.master(f"local[{cores()}]")
        .appName("benchmarks")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        # two tasks a core: what a user who knows the machine would set
        .config("spark.sql.shuffle.partitions", str(2 * cores()))
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.hadoop.parquet.compression.codec.zstd.level", "1")
        .getOrCreate()
    )
    return spark


def read(rows: Batch) -> DataFrame:
    """Return the rows of a batch, as many partitions as there are cores or more."""
    return session().read.parquet(str(rows.folder))


class SparkFiles:
    """Parquet files written by Spark: the yardstick of a Spark user."""

    slow = False
    loads = True

    def __init__(self, *, partitioned: bool, meta_columns: bool = False) -> None:
        self._partitioned = partitioned
        self._meta_columns = meta_columns
        self.upserts = not partitioned
        self.name = "spark-flat"
        if partitioned:
            self.name = "spark-partitioned-meta" if meta_columns else "spark-partitioned"

    @property
    def traits(self) -> Traits:
        layout = "a folder per city" if self._partitioned else "flat"
        return Traits(
            layout=layout + (", 5 meta columns" if self._meta_columns else ""),
            index="anti-join with the whole table, which is rewritten" if self.upserts else "-",
            ordering="no" if self.upserts else "-",
            codec=CODEC,
            statistics="parquet footers",
            fsync="none",
        )

    def load(self, rows: Batch, table: Path) -> None:
        frame = read(rows)
        if self._meta_columns:
            # the partition column moves into the folder names, as Spark does it
            frame = frame.withColumns(_meta_columns())
        writer = frame.write.option("compression", "zstd")
        if self._partitioned:
            writer = writer.partitionBy(PARTITION)
        writer.parquet(str(table))

    def upsert(self, rows: Batch, table: Path) -> None:
        batch = read(rows)
        kept = session().read.parquet(str(table)).join(batch, KEY, "left_anti")
        written = table.with_name(table.name + ".new")
        kept.unionByName(batch).write.option("compression", "zstd").parquet(str(written))
        shutil.rmtree(table)
        written.rename(table)

    def files(self, table: Path) -> Sequence[Path]:
        return sorted(table.rglob("*.parquet"))


def _meta_columns() -> dict[str, Column]:
    """Hudi's meta columns as Spark expressions."""
    instant = "20260101000000000"
    number = fn.monotonically_increasing_id().cast("string")
    return {
        "_hoodie_commit_time": fn.lit(instant),
        "_hoodie_commit_seqno": fn.concat_ws("_", fn.lit(instant), number),
        "_hoodie_record_key": fn.col(KEY),
        "_hoodie_partition_path": fn.col(PARTITION),
        "_hoodie_file_name": fn.lit(f"{uuid.UUID(int=1)}-0_0-0-0_{instant}.parquet"),
    }
