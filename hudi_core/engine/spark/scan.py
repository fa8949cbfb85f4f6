"""Planned files as a DataFrame: Spark's own parquet reader over an exact list, never a scan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructType

from hudi_core.model.instant_time import InstantTime
from hudi_core.model.schema import COMMIT_TIME

_DISCOVERY_THRESHOLD: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def read_files(
    session: SparkSession,
    files: Sequence[tuple[pa.Schema, Sequence[str]]],
    schema: pa.Schema,
    commit_times: Collection[InstantTime] | None = None,
) -> DataFrame:
    """Return the rows of the files in the types of ``schema``.

    Parameters
    ----------
    files
        Absolute paths or URIs of parquet files, by the types they were written with; a file that
        lacks a column reads null.
    schema
        Columns of the table.
    commit_times
        Only rows with one of these in ``_hoodie_commit_time``; ``None`` for all rows.
    """
    struct = from_arrow_schema(schema)
    frames = [_read(session, uris, from_arrow_schema(kinds), struct) for kinds, uris in files]
    frame = reduce(DataFrame.unionAll, frames) if frames else session.createDataFrame([], struct)
    if commit_times is not None:
        frame = frame.where(col(COMMIT_TIME).isin(*sorted(commit_times)))
    return frame


def where(
    frame: DataFrame, row_filter: pc.Expression | Sequence[tuple[str, str, Any]]
) -> DataFrame:
    """Keep the rows that a filter accepts, one that was checked against the table before.

    Conditions become Spark's own; an Arrow expression is applied to the rows as Arrow batches.
    """
    if isinstance(row_filter, pc.Expression):

        def matching(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.filter(row_filter)

        return frame.mapInArrow(matching, frame.schema)
    for name, words, value in row_filter:
        kind = frame.schema[name].dataType
        frame = frame.where(_condition(quoted(name), " ".join(words.lower().split()), value, kind))
    return frame


def quoted(name: str) -> Column:
    """Return the column of that very name, whatever characters it has."""
    return col("`" + name.replace("`", "``") + "`")


def _condition(column: Column, op: str, value: Any, kind: DataType) -> Column:
    if op in _COMPARISONS:
        condition: Column = _COMPARISONS[op](column, lit(value).cast(kind))
        return condition
    if op == "is null":
        return column.isNull()
    if op == "is not null":
        return column.isNotNull()
    found = column.isin([lit(each).cast(kind) for each in value])
    return found if op == "in" else ~found


def _read(
    session: SparkSession, uris: Sequence[str], written: StructType, wanted: StructType
) -> DataFrame:
    # the list is exact: no globs in names, no columns from folder names
    reader = session.read.schema(written)
    reader = reader.option("__globPaths__", "false").option("recursiveFileLookup", "true")
    with _listed_by_driver(session):
        frame = reader.parquet(*uris)
    if written == wanted:
        return frame
    return frame.select(
        *[quoted(field.name).cast(field.dataType).alias(field.name) for field in wanted]
    )


@contextmanager
def _listed_by_driver(session: SparkSession) -> Iterator[None]:
    """Keep Spark from starting one task per path just to learn what the plan knows already."""
    before = session.conf.get(_DISCOVERY_THRESHOLD)
    session.conf.set(_DISCOVERY_THRESHOLD, str(1 << 20))
    try:
        yield
    finally:
        session.conf.set(_DISCOVERY_THRESHOLD, before or "32")
