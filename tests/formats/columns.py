"""The columns of tables that are written in several formats, and the values of their partitions."""

from __future__ import annotations

import pyarrow as pa

TYPED = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("city", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("price", pa.decimal128(38, 10)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("day", pa.date32()),
        pa.field("flag", pa.bool_()),
        pa.field("inner", pa.struct([pa.field("x", pa.int32()), pa.field("word", pa.string())])),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
"""A column of every kind that all formats hold."""
CITIES = ("rome", "oslo", "new york", "a%b", None)
"""Values of the partition column: with a space, with a sign that paths escape, and none."""
