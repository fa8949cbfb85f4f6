"""Planned files as a DataFrame, by Spark's own parquet reader.

It reads an exact list of files and never lists a folder.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, isnan, lit, struct, transform, transform_values, when
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, DoubleType, FloatType, StructType

from hudi_core.engine.spark.shipping import guarded
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.alignment import counterpart, same_by_name
from hudi_core.schema.arrow_types import children, is_list, with_children
from hudi_core.schema.table_schema import COMMIT_TIME

# --- file columns as table columns, in Spark's own expressions ------------------------------------
# The same as :func:`hudi_core.schema.alignment.align` for Arrow: by field id where files carry ids.


# --- Spark schemas as Arrow schemas --------------------------------------------------------------


def to_arrow(schema: StructType) -> pa.Schema:
    """Return a Spark schema as an Arrow schema.

    Timestamps with a zone are in UTC.
    """
    return to_arrow_schema(schema, timezone="UTC")


# --- columns -------------------------------------------------------------------------------------


_TIME_TYPE: Final = "spark.sql.timeType.enabled"


def readable(session: SparkSession, schema: pa.Schema) -> pa.Schema:
    """Return a schema that Spark can read files with.

    Spark has times of day where ``spark.sql.timeType.enabled`` is set. Elsewhere it reads them as
    longs: microseconds since midnight.
    """
    if str(session.conf.get(_TIME_TYPE, "false")).lower() == "true":
        return schema
    return pa.schema([field.with_type(_without_times(field.type)) for field in schema])


def columns_to_read(stored: pa.Schema, wanted: pa.Schema) -> StructType:
    """Return a file's columns that the table has, by their stored names."""
    if reads_alike(stored, wanted):
        return from_arrow_schema(wanted)
    found = [counterpart(stored, field) for field in wanted]
    return from_arrow_schema(pa.schema([field for field in found if field is not None]))


def reads_alike(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether Spark reads a file rightly by the table's schema alone."""
    if not same_by_name(list(stored), list(wanted)):
        return False
    found = ((counterpart(stored, field), field) for field in wanted)
    return all(own is None or own.type == field.type for own, field in found)


def table_columns(stored: pa.Schema, wanted: pa.Schema) -> list[Column]:
    """Return the table's columns as expressions over those of :func:`columns_to_read`."""
    columns = []
    for field in wanted:
        found = counterpart(stored, field)
        column = (
            lit(None) if found is None else _aligned(quoted(found.name), found.type, field.type)
        )
        columns.append(column.cast(from_arrow_type(field.type)).alias(field.name))
    return columns


def quoted(name: str) -> Column:
    """Return the column of that very name, whatever characters it has."""
    return col(quoted_name([name]))


def quoted_name(parts: Sequence[str]) -> str:
    """Return a dotted name in quotes, whatever characters it has."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def _aligned(column: Column, stored: pa.DataType, wanted: pa.DataType) -> Column:
    if pt.is_struct(stored) and pt.is_struct(wanted):
        return _aligned_struct(column, list(stored), wanted)
    if is_list(stored) and is_list(wanted):
        return transform(column, _element(stored.value_type, wanted.value_type))
    if pt.is_map(stored) and pt.is_map(wanted):
        value = _element(stored.item_type, wanted.item_type)
        return transform_values(column, lambda _, item: value(item))
    return column if stored == wanted else column.cast(from_arrow_type(wanted))


def _element(stored: pa.DataType, wanted: pa.DataType) -> Callable[[Column], Column]:
    return lambda element: _aligned(element, stored, wanted)


def _aligned_struct(column: Column, stored: Sequence[pa.Field], wanted: pa.DataType) -> Column:
    members = []
    for field in wanted:
        found = counterpart(stored, field)
        member = (
            lit(None)
            if found is None
            else _aligned(column.getField(found.name), found.type, field.type)
        )
        members.append(member.cast(from_arrow_type(field.type)).alias(field.name))
    return when(column.isNotNull(), struct(*members))


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pt.is_time(kind):
        return pa.int64()
    below = children(kind)
    if not below:
        return kind
    return with_children(kind, [field.with_type(_without_times(field.type)) for _, field in below])


# --- planned files as a DataFrame -----------------------------------------------------------------


T = TypeVar("T")

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
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the rows of the files in the columns of ``schema``.

    ``files`` are absolute paths or URIs, by the columns they were written with. They are matched by
    field id where the files have ids; a column that a file lacks reads null. Without
    ``commit_times`` all rows are read, otherwise those with one of them in ``_hoodie_commit_time``;
    ``options`` are Hadoop's, for the store.
    """
    wanted = readable(session, schema)
    struct = from_arrow_schema(wanted)
    frames = [
        _read(session, uris, readable(session, stored), wanted, options or {})
        for stored, uris in files
    ]
    frame = reduce(DataFrame.unionAll, frames) if frames else session.createDataFrame([], struct)
    if commit_times is not None:
        frame = frame.where(col(COMMIT_TIME).isin(*sorted(commit_times)))
    return frame


def read_batches(
    session: SparkSession,
    tasks: Sequence[T],
    function: Callable[[T], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """Return the rows that a function makes of each task, lazily.

    Nothing is read before the DataFrame is used, and it is read again each time.

    ``function`` crosses to the executors, as do the tasks, which are frozen values; at most as many
    Spark tasks run as there are ``tasks``.
    """
    struct = from_arrow_schema(readable(session, schema))
    if not tasks:
        return session.createDataFrame([], struct)
    exact = to_arrow(struct)
    jobs = pa.table(
        {
            "task": pa.array(range(len(tasks)), pa.int32()),
            "work": pa.array([pickle.dumps(task) for task in tasks], pa.binary()),
        }
    )

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for work in batch.column("work"):
                # made by the driver above, and only ever inside Spark's authenticated channel
                for rows in function(pickle.loads(work.as_py())):  # noqa: S301
                    yield rows.cast(exact)

    frame = session.createDataFrame(jobs).repartitionById(len(tasks), "task")
    return frame.mapInArrow(guarded(run), struct)


def connected_scheme(session: SparkSession, schemes: Sequence[str]) -> str | None:
    """Return the first URI scheme the session's JVM can open, or ``None``.

    Stock Spark opens local paths alone; what else there is depends on the jars it was given. A
    session without a JVM of its own, as of Spark Connect, opens none that is known here.
    """
    jvm = getattr(session, "_jvm", None)
    if jvm is None:
        return None
    conf = session.sparkContext._jsc.hadoopConfiguration()
    for scheme in schemes:
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
        except Py4JError:  # no class for the scheme, or one that is not there
            continue
        return scheme
    return None


def where(
    frame: DataFrame, row_filter: pc.Expression | Sequence[tuple[str, str, Any]]
) -> DataFrame:
    """Keep the rows that a filter accepts.

    The filter was checked against the table before.

    Conditions become Spark's own; an Arrow expression is applied to the rows as Arrow batches. Both
    mean the same: NaN is different from every number, and neither less nor greater.
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


def _condition(column: Column, op: str, value: Any, kind: DataType) -> Column:
    is_float = isinstance(kind, FloatType | DoubleType)
    if op in _COMPARISONS:
        condition = _compared(column, op, value, kind)
        if is_float:
            # to Spark NaN equals itself and is greater than every number
            is_nan = isnan(column) | isnan(lit(value).cast(kind))
            return is_nan & column.isNotNull() | condition if op == "!=" else ~is_nan & condition
        return condition
    if op == "is null":
        return column.isNull()
    if op == "is not null":
        return column.isNotNull()
    found = column.isin([lit(each).cast(kind) for each in value])
    if is_float and any(each == 0 for each in value):
        found |= _compared(column, "=", 0.0, kind)
    return found if op == "in" else ~found


def _compared(column: Column, op: str, value: Any, kind: DataType) -> Column:
    """A comparison that is true of both zeros.

    To Spark's parquet reader -0.0 is less than 0.0 where it looks at statistics and dictionaries,
    and so it would leave out files that have such rows.
    """
    if value == 0 and isinstance(kind, FloatType | DoubleType):
        low, high = (lit(zero).cast(kind) for zero in (-0.0, 0.0))
        if op in ("=", "=="):
            return (column >= low) & (column <= high)
        value = {"<=": 0.0, ">=": -0.0}.get(op, value)
    found: Column = _COMPARISONS[op](column, lit(value).cast(kind))
    return found


def _read(
    session: SparkSession,
    uris: Sequence[str],
    stored: pa.Schema,
    wanted: pa.Schema,
    options: Mapping[str, str],
) -> DataFrame:
    # the list is exact: no globs in names, no columns from folder names
    reader = session.read.schema(columns_to_read(stored, wanted)).options(**options)
    reader = reader.option("__globPaths__", "false").option("recursiveFileLookup", "true")
    with _listed_by_driver(session):
        frame = reader.parquet(*uris)
    return frame if reads_alike(stored, wanted) else frame.select(*table_columns(stored, wanted))


@contextmanager
def _listed_by_driver(session: SparkSession) -> Iterator[None]:
    """Keep Spark from starting a listing task per path.

    The plan already knows the files.
    """
    before = session.conf.get(_DISCOVERY_THRESHOLD)
    session.conf.set(_DISCOVERY_THRESHOLD, str(1 << 20))
    try:
        yield
    finally:
        session.conf.set(_DISCOVERY_THRESHOLD, before or "32")
