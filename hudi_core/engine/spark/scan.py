"""Planned files as a DataFrame: Spark's own parquet reader over an exact list, never a directory
scan."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_core.model.instant_time import InstantTime
from hudi_core.model.schema import COMMIT_TIME

_DISCOVERY_THRESHOLD: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def read_files(
    session: SparkSession,
    uris: Sequence[str],
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    commit_times: Collection[InstantTime] | None = None,
) -> DataFrame:
    """Return the rows of the files in the types of ``schema``.

    Parameters
    ----------
    uris
        Absolute paths or URIs of parquet files.
    schema
        Columns of the table; a file that lacks one reads null.
    columns
        Names of the columns to return; ``None`` for all.
    commit_times
        Only rows with one of these in ``_hoodie_commit_time``; ``None`` for all rows.
    """
    struct = from_arrow_schema(schema)
    if uris:
        # the list is exact: no globs in names, no columns from folder names
        reader = session.read.schema(struct)
        reader = reader.option("__globPaths__", "false").option("recursiveFileLookup", "true")
        with _listed_by_driver(session):
            frame = reader.parquet(*uris)
    else:
        frame = session.createDataFrame([], struct)
    if commit_times is not None:
        frame = frame.where(col(COMMIT_TIME).isin(*sorted(commit_times)))
    return frame if columns is None else frame.select(*map(_quoted, columns))


def _quoted(name: str) -> Column:
    return col("`" + name.replace("`", "``") + "`")


@contextmanager
def _listed_by_driver(session: SparkSession) -> Iterator[None]:
    """Keep Spark from starting one task per path just to learn what the plan knows already."""
    before = session.conf.get(_DISCOVERY_THRESHOLD)
    session.conf.set(_DISCOVERY_THRESHOLD, str(1 << 20))
    try:
        yield
    finally:
        session.conf.set(_DISCOVERY_THRESHOLD, before or "32")
