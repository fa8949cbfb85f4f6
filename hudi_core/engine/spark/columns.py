"""File columns as table columns, in Spark's own expressions.

The same as :func:`hudi_core.schema.alignment.align` for Arrow: by field id where files carry ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import col, lit, struct, transform, transform_values, when
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructType

from hudi_core.schema.alignment import counterpart, same_by_name
from hudi_core.schema.arrow_types import children, is_list, with_children

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
