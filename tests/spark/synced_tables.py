"""Queries of tables by their names in a Hive metastore, in a Spark of its own.

Whether Spark has Hive's catalog is settled when its process starts. Usage: ``python
synced_tables.py URI SCRATCH``, with one SQL query a line on the standard input; writes the rows of
each as one JSON list a line.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main(uri: str, scratch: str) -> None:
    """Run the queries."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch}")
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.local.dir", f"{scratch}/local")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for query in sys.stdin:
        rows = spark.sql(query).collect()
        sys.stdout.write(json.dumps([list(row) for row in rows], default=str) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
