"""Runs streaming queries until it is killed; run by a test, in a process of its own.

``streaming_driver.py FOLDER FORMAT [finish]``: one query writes the files of ``FOLDER/incoming`` to
a table of the format, each as one batch, and another one follows that table to a copy. Prints a
line whenever more batches are done. With ``finish`` it ends when both have caught up.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import hudi_core as hudi

STREAMED = "id long, file long"
OPTIONS = {
    "hoodie.table.name": "streamed",
    "hoodie.datasource.write.recordkey.field": "id",
    # the copy may be many commits behind
    "hoodie.clean.automatic": "false",
}


def session(folder: Path) -> SparkSession:
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.local.dir", f"{folder}/local")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def ingest(spark: SparkSession, folder: Path, table_format: str) -> DataStreamWriter:
    """From files to the table, by the sink; nothing but the batch's number tells a repetition."""
    source = spark.readStream.schema(STREAMED).option("maxFilesPerTrigger", 1)
    writer = source.json(f"{folder}/incoming").writeStream.format("hudi").options(**OPTIONS)
    return (
        writer.option("hoodie.datasource.write.operation", "insert")
        .option("hoodie.table.format", table_format)
        .option("checkpointLocation", f"{folder}/{table_format}-in")
        .option("path", f"{folder}/{table_format}")
    )


def follow(spark: SparkSession, folder: Path, table_format: str) -> DataStreamWriter:
    """From the table to its copy, which Spark's executors write."""
    source = spark.readStream.format("hudi").option("maxFilesPerTrigger", 3)
    copied = source.load(f"{folder}/{table_format}").select("id", "file")
    options = {
        **OPTIONS,
        "hoodie.table.format": table_format,
        "hoodie.datasource.write.operation": "insert",
    }
    writer = copied.writeStream.foreachBatch(
        hudi.stream_sink(f"{folder}/{table_format}-copy", options)
    )
    return writer.option("checkpointLocation", f"{folder}/{table_format}-out")


def start(query: DataStreamWriter, checkpoint: Path) -> StreamingQuery:
    """Start a query; as Spark's error advises, without what a death within its first batch left.

    Spark writes the offsets of a batch before it runs it. Where not even those of the first are
    whole, Spark refuses to go on beside the rest of them, and no batch was run.
    """
    offsets = checkpoint / "offsets"
    if offsets.exists() and not any(offsets.glob("[0-9]*")):
        shutil.rmtree(checkpoint)
    return query.start()


def run(spark: SparkSession, folder: Path, table_format: str) -> None:
    """Run all of it until somebody kills this process."""
    checkpoint_in, checkpoint_out = (folder / f"{table_format}-{way}" for way in ("in", "out"))
    queries = [start(ingest(spark, folder, table_format), checkpoint_in)]
    shown = 0
    while True:
        properties = folder / table_format / ".hoodie" / "hoodie.properties"
        if len(queries) == 1 and properties.exists():
            queries.append(start(follow(spark, folder, table_format), checkpoint_out))
        done = len(list(folder.glob(f"{table_format}-*/commits/[0-9]*")))
        if done != shown:
            shown = done
            print("batches", done, flush=True)
        for query in queries:
            if not query.isActive:
                raise RuntimeError(f"a query ended: {query.exception()}")
        time.sleep(0.05)


def finish(spark: SparkSession, folder: Path, table_format: str) -> None:
    """Catch up with everything and end."""
    for step, way in ((ingest, "in"), (follow, "out")):
        query = step(spark, folder, table_format).trigger(availableNow=True)
        start(query, folder / f"{table_format}-{way}").awaitTermination()


def main() -> None:
    folder, table_format = Path(sys.argv[1]), sys.argv[2]
    spark = session(folder)
    (finish if sys.argv[3:] == ["finish"] else run)(spark, folder, table_format)
    spark.stop()


if __name__ == "__main__":
    main()
