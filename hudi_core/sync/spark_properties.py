"""Properties by which Spark reads an entry as a source's table (RFC-15).

Spark hands a source in Python the stored columns, and none of the options that a table was made
with; so the first column has them in its metadata, where :mod:`pyspark_hudi` looks. Hudi's own
source has no use for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.schema.arrow_types import DOC, is_bytes, is_list, is_text

PREFIX: Final = "spark.sql.sources.schema"
PROVIDER_KEY: Final = "spark.sql.sources.provider"
NOTED_KEY: Final = "hudi.read"
"""Metadata of a column under which the options of its table's reads are."""
_FLAT: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pt.is_boolean, "boolean"),
    (pt.is_int64, "long"),
    (pt.is_integer, "integer"),
    (pt.is_float64, "double"),
    (pt.is_floating, "float"),
    (pt.is_date, "date"),
    (pt.is_time, "long"),  # microseconds, as in the files
    (is_text, "string"),
    (is_bytes, "binary"),
)


def spark_properties(
    schema: pa.Schema,
    partition_columns: Sequence[str],
    read_options: Mapping[str, str],
    *,
    length: int,
    version: str | None,
) -> dict[str, str]:
    """The properties of an entry.

    ``schema`` is in the order of the files; Spark has partition columns last, and one that is
    missing is a string. ``length`` is in characters of one property; ``version`` is Spark's,
    ``None`` to name none.
    """
    known = {field.name: field for field in schema}
    keys = [known.get(name, pa.field(name, pa.string())) for name in partition_columns]
    fields = [field for field in schema if field.name not in set(partition_columns)] + keys
    columns = [_column(field) for field in fields]
    columns[0]["metadata"][NOTED_KEY] = dict(read_options)
    text = json.dumps({"type": "struct", "fields": columns}, separators=(",", ":"))
    parts = [text[begin : begin + length] for begin in range(0, len(text), length)]
    found = {PROVIDER_KEY: "hudi", f"{PREFIX}.numParts": str(len(parts))}
    found |= {f"{PREFIX}.part.{number}": part for number, part in enumerate(parts)}
    if partition_columns:
        found[f"{PREFIX}.numPartCols"] = str(len(partition_columns))
        found |= {f"{PREFIX}.partCol.{n}": name for n, name in enumerate(partition_columns)}
    if version is not None:
        found["spark.sql.create.version"] = version
    return found


def _column(field: pa.Field) -> dict[str, Any]:
    doc = (field.metadata or {}).get(DOC)
    return {
        "name": field.name,
        "type": _type(field.type),
        "nullable": field.nullable,
        "metadata": {} if not doc else {"comment": doc.decode()},
    }


def _type(kind: pa.DataType) -> Any:
    if pt.is_struct(kind):
        return {"type": "struct", "fields": [_column(one) for one in kind]}
    if pt.is_map(kind):
        return {
            "type": "map",
            "keyType": _type(kind.key_type),
            "valueType": _type(kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    if is_list(kind):
        element = kind.value_field
        return {
            "type": "array",
            "elementType": _type(element.type),
            "containsNull": element.nullable,
        }
    return _flat(kind)


def _flat(kind: pa.DataType) -> str:
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return next(name for fits, name in _FLAT if fits(kind))
