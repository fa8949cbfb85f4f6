"""Writes with keys and without, in a session in which every task has three attempts; run by a test.

``retrying_session.py FOLDER OPERATION...``: the operations are those without keys. Prints what the
tests look at as one line of JSON.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from tests.spark import keyless_writer, retrying_writer


def session(scratch: str) -> SparkSession:
    built: SparkSession = (
        SparkSession.builder.master("local[2,3]")
        .appName("retries")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", scratch)
        .getOrCreate()
    )
    built.sparkContext.setLogLevel("OFF")
    return built


def main(folder: str, *operations: str) -> None:
    spark = session(f"{folder}/scratch")
    found = {
        "keyed": retrying_writer.report(spark, folder),
        "keyless": keyless_writer.report(spark, folder, operations),
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
