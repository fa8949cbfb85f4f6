"""Spark schemas as Arrow schemas."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def to_arrow(schema: StructType) -> pa.Schema:
    """Return a Spark schema as an Arrow schema.

    Timestamps with a zone are in UTC.
    """
    return to_arrow_schema(schema, timezone="UTC")
