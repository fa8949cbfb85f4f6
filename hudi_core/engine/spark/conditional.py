"""Rows of a table that conditional writes change, as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    DataType,
    NullType,
    NumericType,
    StringType,
)

from hudi_core.engine.base import Engine
from hudi_core.engine.spark.engine import SparkEngine
from hudi_core.engine.spark.scan import quoted, quoted_name, read_batches, to_arrow
from hudi_core.errors import SchemaError

T = TypeVar("T")
Read = Callable[[T], Iterator[pa.RecordBatch]]
Named = tuple[DataFrame, tuple[str, ...]]
"""Rows, and what their columns are called but for names that Spark cannot work with."""


def changed_frame(
    engine: Engine,
    tasks: Sequence[T],
    function: Read[T],
    schema: pa.Schema,
    *,
    columns: Mapping[str, str],
    wanted: str | None,
) -> Named:
    """Return rows that tasks read, with further columns.

    ``columns`` are expressions in Spark's SQL by name; ``wanted`` is a condition in it, ``None``
    for all rows.
    """
    frame = read_batches(_engine(engine).session, tasks, function, schema)
    try:
        if wanted is not None:
            frame = frame.where(sql.expr(wanted))
        return _with(frame, columns)
    except (AnalysisException, ParseException) as error:
        raise _unfit(error) from error


def merged_frame(
    engine: Engine,
    tasks: Sequence[T],
    function: Read[T],
    schema: pa.Schema,
    source: DataFrame,
    *,
    on: str,
    how: str,
    present: str,
    columns: Mapping[str, str],
) -> Named:
    """Return rows that tasks read, joined with those of a source.

    ``columns`` are expressions in Spark's SQL over both sides, by name; ``on`` is a condition in
    it. ``present`` is the column that says whether there is a source row; the tasks read it with
    the others.
    """
    target = read_batches(_engine(engine).session, tasks, function, schema).drop(present)
    source = source.withColumn(present, sql.lit(True))
    try:
        return _with(target.join(source, sql.expr(on), how), columns)
    except (AnalysisException, ParseException) as error:
        raise _unfit(error) from error


def bounds_of(source: DataFrame, names: Sequence[str]) -> tuple[DataFrame, list[pa.Array]]:
    """Return rows to read again, and the bounds of some columns.

    Empty where a column has no values, or none that are ordered.
    """
    kept = source.localCheckpoint(eager=False)
    kinds = {name: kept.schema[name].dataType for name in names}
    nested = {name for name in names if kinds[name].typeName() in ("array", "map", "struct")}
    asked = [
        function(quoted(name)).alias(f"{number}{word}")
        for number, name in enumerate(names)
        if name not in nested
        for word, function in (("min", sql.min), ("max", sql.max))
    ]
    if not asked:
        return kept, [pa.nulls(0) for _ in names]
    found = kept.agg(*asked).toArrow()
    bounds = []
    for number, name in enumerate(names):
        if name in nested:
            bounds.append(pa.nulls(0))
            continue
        ends = [found.column(f"{number}{word}") for word in ("min", "max")]
        kind = to_arrow(kept.select(quoted(name)).schema).field(0).type
        both = pa.chunked_array([chunk for end in ends for chunk in end.chunks]).combine_chunks()
        bounds.append(both.drop_null().cast(kind))
    return kept, bounds


def _with(frame: DataFrame, columns: Mapping[str, str]) -> Named:
    if columns:
        texts = (sql.expr(text).alias(name) for name, text in columns.items())
        frame = frame.select("*", *texts)
    names = tuple(frame.columns)
    # Spark hands no rows to Python whose columns have dots in their names
    return frame.toDF(*(f"c{number}" for number in range(len(names)))), names


def _engine(engine: Engine) -> SparkEngine:
    if not isinstance(engine, SparkEngine):
        raise TypeError(f"the rows of {type(engine).__name__} are no DataFrames")
    return engine


def _unfit(error: AnalysisException | ParseException) -> SchemaError:
    reason = str(error).strip().split("\n", 1)[0].rstrip(".")
    return SchemaError(
        f"Spark does not understand an expression of a conditional write: {reason}",
        "Correct it; a string value needs quotes of its own.",
        reason=reason,
    )


def fitted(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """Return rows in the types that SQL assigns without a cast.

    Numbers become other numbers if they are in their range, nulls become anything, and what is no
    string becomes one. Other values stay for the write to judge.
    """
    struct = from_arrow_schema(schema)
    columns = []
    for field in frame.schema:
        text = quoted_name([field.name])
        wanted = struct[field.name].dataType if field.name in struct.names else field.dataType
        if wanted != field.dataType:
            kind, given = wanted.simpleString(), field.dataType
            if isinstance(wanted, NumericType) and isinstance(given, NumericType):
                text = f"{checked_cast(text, kind)} AS {text}"
            elif isinstance(given, NullType) or _spells(given, wanted):
                text = f"CAST({text} AS {kind}) AS {text}"
        columns.append(text)
    return frame.selectExpr(*columns)


def _spells(given: DataType, wanted: DataType) -> bool:
    """Whether values are assigned to strings as they are spelled."""
    if not isinstance(wanted, StringType):
        return False
    return isinstance(given, AtomicType) and not isinstance(given, StringType | BinaryType)


def with_constants(
    frame: DataFrame, values: Mapping[str, Any], kinds: Mapping[str, str]
) -> DataFrame:
    """Return rows with further columns, which have one value each."""
    more = [sql.lit(value).cast(kinds[name]).alias(name) for name, value in values.items()]
    return frame.select("*", *more) if more else frame


def with_casts(frame: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Return rows whose strings in some columns became values of other types.

    A string that spells none fails the query.
    """
    columns = []
    for name in frame.columns:
        text = quoted_name([name])
        if name in kinds:
            text = f"{checked_cast(text, kinds[name])} AS {text}"
        columns.append(text)
    return frame.selectExpr(*columns)


def checked_cast(text: str, kind: str) -> str:
    """An expression's cast that fails where a value is lost."""
    wrong = f"raise_error(concat('a value of {text} is no {kind}: ', {text}))"
    fits = f"TRY_CAST({text} AS {kind})"
    return (
        f"CASE WHEN {text} IS NULL OR {fits} IS NOT NULL THEN {fits} "
        f"ELSE CAST({wrong} AS {kind}) END"
    )
