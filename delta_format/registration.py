"""How Hive metastores and Glue know Delta tables, in Spark's words."""

from __future__ import annotations

from delta_format.location import root_of
from hudi_core.spi import MetaClientView, Registration


def registration(meta_client: MetaClientView) -> Registration:
    """The entry of a table, as Spark makes it.

    Trino reads it as well. Its present state is that of the log, so that the entry stays as it is.
    """
    return Registration(
        location=root_of(meta_client),
        parameters={"spark.sql.sources.provider": "delta"},
        input_format="org.apache.hadoop.mapred.SequenceFileInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        serde="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        serde_parameters={"serialization.format": "1"},
        has_path=True,
    )
