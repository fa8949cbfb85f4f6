"""The choice of an engine, which imports Spark's only on demand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.engine.base import Engine
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import InvalidOptionError


class _OnDemand:
    """Functions and classes of Spark's engine, imported at their first call."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            # pyspark is optional
            return getattr(import_module("hudi_core.engine.spark"), name)(*arguments, **named)

        return call


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudi_core.engine import spark as _spark
else:
    _spark = _OnDemand()

bounds_of = _spark.bounds_of
catalog_of = _spark.SessionCatalog
changed_frame = _spark.changed_frame
connected_scheme = _spark.connected_scheme
fitted = _spark.fitted
frame_of_batches = _spark.read_batches
frame_of_files = _spark.read_files
merged_frame = _spark.merged_frame
noted = _spark.noted
with_casts = _spark.with_casts
with_constants = _spark.with_constants


def engine_for(data: Any) -> Engine:
    """Return the engine for these rows: Spark for DataFrames, else local."""
    if not is_spark_frame(data):
        return LocalEngine()
    return _spark.SparkEngine(data.sparkSession)


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
    return _spark.SparkEngine(spark)


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
    return _spark.to_arrow(schema)


def frame_where(
    frame: DataFrame,
    row_filter: pc.Expression | Sequence[tuple[str, str, Any]] | None,
    columns: Sequence[str] | None,
) -> DataFrame:
    """Return the rows and columns of a DataFrame that were requested."""
    if row_filter is not None:
        frame = _spark.where(frame, row_filter)
    return frame if columns is None else frame.select(*map(_spark.quoted, columns))
