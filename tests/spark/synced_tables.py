"""Statements on tables by their names in a Hive metastore, in a Spark of its own.

Whether Spark has Hive's catalog is settled when its process starts. Usage: ``python
synced_tables.py URI SCRATCH``, with one statement a line on the standard input; writes the rows of
each as one JSON list a line, or the class of its error.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import hudi_core as hudi


def main(uri: str, scratch: str) -> None:
    """Run the statements."""
    plain = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch}")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.local.dir", f"{scratch}/local")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .enableHiveSupport()
        .getOrCreate()
    )
    plain.sparkContext.setLogLevel("ERROR")
    spark = hudi.sql_session(plain)
    for query in sys.stdin:
        try:
            found: object = [list(row) for row in spark.sql(query).collect()]
        except Exception as error:  # noqa: BLE001 - the test judges it
            found = f"{type(error).__name__}: {error}"[:2000]
        print(json.dumps(found, default=str), flush=True)
    plain.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
