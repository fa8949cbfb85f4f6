"""The choice of an engine, which imports Spark's only on demand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.base import Engine
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import InvalidOptionError
from hudi_core.model.instant_time import InstantTime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from hudi_core.engine.spark import SessionCatalog

T = TypeVar("T")


def engine_for(data: Any) -> Engine:
    """Return the engine for these rows: Spark for DataFrames, else local."""
    if not is_spark_frame(data):
        return LocalEngine()
    from hudi_core.engine.spark import SparkEngine  # noqa: PLC0415 - pyspark is optional

    return SparkEngine(data.sparkSession)


def chosen_engine(
    engine: Engine | None, data: Any = None, *, spark: SparkSession | None = None
) -> Engine:
    """The engine that a caller gave, or that of rows."""
    if engine is None:
        return engine_for(data) if spark is None else engine_of(spark)
    if not all(hasattr(engine, name) for name in ("name", "parallelism", "map_tasks")):
        raise InvalidOptionError(
            "engine",
            engine if isinstance(engine, str) else type(engine).__qualname__,
            "it is no engine",
            "Leave it out: rows of a Spark DataFrame are written by Spark, all others in this "
            "process. Or give hudi_core.LocalEngine(...).",
        )
    return engine


def engine_of(spark: SparkSession | None) -> Engine:
    """Return the engine of a session; the local one without a session."""
    if spark is None:
        return LocalEngine()
    from hudi_core.engine.spark import SparkEngine  # noqa: PLC0415 - pyspark is optional

    return SparkEngine(spark)


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
    from hudi_core.engine.spark.columns import to_arrow  # noqa: PLC0415 - pyspark is optional

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


def changed_frame(
    engine: Engine,
    tasks: Sequence[T],
    function: Callable[[T], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    *,
    columns: Mapping[str, str],
    wanted: str | None,
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return rows that tasks read, with columns in SQL.

    See :func:`hudi_core.engine.spark.changed_frame`.
    """
    from hudi_core.engine.spark import changed_frame  # noqa: PLC0415 - pyspark is optional

    return changed_frame(engine, tasks, function, schema, columns=columns, wanted=wanted)


def merged_frame(
    engine: Engine,
    tasks: Sequence[T],
    function: Callable[[T], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    source: DataFrame,
    *,
    on: str,
    how: str,
    present: str,
    columns: Mapping[str, str],
) -> tuple[DataFrame, tuple[str, ...]]:
    """Return rows that tasks read, joined with those of a source.

    See :func:`hudi_core.engine.spark.merged_frame`.
    """
    from hudi_core.engine.spark import merged_frame  # noqa: PLC0415 - pyspark is optional

    return merged_frame(
        engine, tasks, function, schema, source, on=on, how=how, present=present, columns=columns
    )


def bounds_of(source: DataFrame, names: Sequence[str]) -> tuple[DataFrame, list[pa.Array]]:
    """Return rows to read again, and the bounds of some columns.

    See :func:`hudi_core.engine.spark.bounds_of`.
    """
    from hudi_core.engine.spark import bounds_of  # noqa: PLC0415 - pyspark is optional

    return bounds_of(source, names)


def catalog_of(spark: SparkSession) -> SessionCatalog:
    """Return the names of a session; see :class:`hudi_core.engine.spark.SessionCatalog`."""
    from hudi_core.engine.spark import SessionCatalog  # noqa: PLC0415 - pyspark is optional

    return SessionCatalog(spark)


def noted(columns: StructType, note: Mapping[str, Any]) -> StructType:
    """Return columns whose first one carries the options of reads.

    See :func:`hudi_core.engine.spark.noted`.
    """
    from hudi_core.engine.spark import noted  # noqa: PLC0415 - pyspark is optional

    return noted(columns, note)


def fitted(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """Return rows with the numbers of a table's columns.

    See :func:`hudi_core.engine.spark.fitted`.
    """
    from hudi_core.engine.spark import fitted  # noqa: PLC0415 - pyspark is optional

    return fitted(frame, schema)


def with_constants(
    frame: DataFrame, values: Mapping[str, Any], kinds: Mapping[str, str]
) -> DataFrame:
    """Return rows with further columns, which have one value each.

    See :func:`hudi_core.engine.spark.with_constants`.
    """
    from hudi_core.engine.spark import with_constants  # noqa: PLC0415 - pyspark is optional

    return with_constants(frame, values, kinds)


def with_casts(frame: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Return rows whose strings in some columns became values of other types.

    See :func:`hudi_core.engine.spark.with_casts`.
    """
    from hudi_core.engine.spark import with_casts  # noqa: PLC0415 - pyspark is optional

    return with_casts(frame, kinds)
