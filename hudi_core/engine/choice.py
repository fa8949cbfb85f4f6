"""The choice of an engine, which imports Spark's only on demand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.base import Engine
from hudi_core.engine.local import LocalEngine
from hudi_core.model.instant_time import InstantTime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


def engine_for(data: Any) -> Engine:
    """Return the engine for these rows: Spark for DataFrames, else local."""
    if not is_spark_frame(data):
        return LocalEngine()
    from hudi_core.engine.spark import SparkEngine  # noqa: PLC0415 - pyspark is optional

    return SparkEngine(data.sparkSession)


def is_spark_frame(data: Any) -> bool:
    """Return whether the rows are a Spark DataFrame, without importing Spark."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(data, module.DataFrame)


def is_spark_schema(schema: Any) -> bool:
    """Return whether a schema is a Spark ``StructType``, without importing Spark."""
    module = sys.modules.get("pyspark.sql.types")
    return module is not None and isinstance(schema, module.StructType)


def arrow_schema(schema: Any) -> pa.Schema:
    """Return a Spark ``StructType`` as an Arrow schema."""
    from hudi_core.engine.spark.schema import to_arrow  # noqa: PLC0415 - pyspark is optional

    return to_arrow(schema)


def frame_of_files(
    spark: SparkSession,
    files: Sequence[tuple[pa.Schema, Sequence[str]]],
    schema: pa.Schema,
    commit_times: frozenset[InstantTime] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows of planned files; see :func:`hudi_core.engine.spark.read_files`."""
    from hudi_core.engine.spark import read_files  # noqa: PLC0415 - pyspark is optional

    return read_files(spark, files, schema, commit_times, options)


def frame_of_batches(
    spark: SparkSession,
    tasks: Sequence[T],
    function: Callable[[T], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """Return rows that tasks read by themselves.

    See :func:`hudi_core.engine.spark.read_batches`.
    """
    from hudi_core.engine.spark import read_batches  # noqa: PLC0415 - pyspark is optional

    return read_batches(spark, tasks, function, schema)


def connected_scheme(spark: SparkSession, schemes: Sequence[str]) -> str | None:
    """Return a URI scheme that Spark itself can open.

    See :func:`hudi_core.engine.spark.connected_scheme`.
    """
    from hudi_core.engine.spark import connected_scheme  # noqa: PLC0415 - pyspark is optional

    return connected_scheme(spark, schemes)


def frame_where(
    frame: DataFrame,
    row_filter: pc.Expression | Sequence[tuple[str, str, Any]] | None,
    columns: Sequence[str] | None,
) -> DataFrame:
    """Return the rows and columns of a DataFrame that were requested."""
    from hudi_core.engine.spark import quoted, where  # noqa: PLC0415 - pyspark is optional

    if row_filter is not None:
        frame = where(frame, row_filter)
    return frame if columns is None else frame.select(*map(quoted, columns))
