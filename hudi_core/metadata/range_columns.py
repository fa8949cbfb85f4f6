"""Column statistics as an Arrow table, without a Python object for each.

For readers that compare the bounds of many files with a filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.avro import parse_writer_schema
from hudi_core.avro.columns import Columns, decode_columns
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.record_compatibility import schema_incompatibility

_STATS: Final = "ColumnStatsMetadata"
INT_WRAPPERS: Final = (
    "BooleanWrapper",
    "IntWrapper",
    "LongWrapper",
    "DateWrapper",
    "TimeMicrosWrapper",
    "TimestampMicrosWrapper",
    "LocalDateWrapper",
)
FLOAT_WRAPPERS: Final = ("FloatWrapper", "DoubleWrapper")
_BYTES: Final = ("StringWrapper", "BytesWrapper", "DecimalWrapper")
_COUNTS: Final = {
    "value_count": "valueCount",
    "null_count": "nullCount",
    "total_size": "totalSize",
    "total_uncompressed_size": "totalUncompressedSize",
}


def decode_ranges(entries: Iterable[tuple[bytes, bytes]], schema: str, path: str) -> pa.Table:
    """Return the statistics that entries of one HFile hold, in their order.

    Columns, null where a record does not say: ``key``, ``file_name``, ``column_name`` (strings);
    for ``min`` and ``max`` each ``_wrapper`` (name of the wrapper), ``_int`` (booleans, whole
    numbers, dates, times), ``_float`` and ``_bytes`` (strings, bytes, unscaled decimals), of which
    at most one is not null; ``value_count``, ``null_count``, ``total_size``,
    ``total_uncompressed_size``; ``is_deleted``, ``is_tight_bound``; ``type_ordinal``,
    ``type_info``. See :class:`~hudi_core.metadata.records.ColumnRange`. An entry that deletes its
    key has ``is_deleted`` true and nothing else.
    """
    pairs = list(entries)
    values = [value for _, value in pairs]
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    full = np.flatnonzero(sizes)
    with with_rebuild_hint():
        parsed = parse_writer_schema(schema, path).parsed
        wrong = schema_incompatibility(schema)
        if wrong is not None:
            raise CorruptMetadataError(path, f"its schema is not right at {wrong}", REBUILD)
        ends = np.cumsum(sizes)[full]
        found = decode_columns(b"".join(values), ends - sizes[full], ends, parsed, path)
        deleted = found.numbers(f"{_STATS}.isDeleted", pa.bool_())
        if deleted.null_count:
            raise CorruptMetadataError(path, "a value holds no column statistics")
        table = pa.table(_columns(found, deleted, path))
    if len(full) < len(sizes):
        places = np.full(len(sizes), -1)
        places[full] = np.arange(len(full))
        table = table.take(pa.array(places, mask=places < 0))
        filled = pc.fill_null(table["is_deleted"], True)
        table = table.set_column(table.schema.get_field_index("is_deleted"), "is_deleted", filled)
    try:
        keys = pa.array([key for key, _ in pairs], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptMetadataError(path, "a key is not UTF-8", REBUILD) from error
    return table.add_column(0, "key", keys)


def _columns(found: Columns, deleted: pa.Array, path: str) -> dict[str, pa.Array]:
    columns = {
        "file_name": found.texts(f"{_STATS}.fileName", pa.string(), path),
        "column_name": found.texts(f"{_STATS}.columnName", pa.string(), path),
    }
    for side in ("min", "max"):
        columns |= _bound(found, side, path)
    for name, field in _COUNTS.items():
        columns[name] = found.numbers(f"{_STATS}.{field}", pa.int64())
    columns["is_deleted"] = deleted
    tight = found.numbers(f"{_STATS}.isTightBound", pa.bool_())
    columns["is_tight_bound"] = pc.fill_null(tight, False)
    columns["type_ordinal"] = found.numbers(f"{_STATS}.valueType.typeOrdinal", pa.int32())
    columns["type_info"] = found.texts(f"{_STATS}.valueType.additionalInfo", pa.string(), path)
    return columns


def _bound(found: Columns, side: str, path: str) -> dict[str, pa.Array]:
    prefix = f"{_STATS}.{side}Value"
    wrapper = np.full(len(found), None, object)
    parts: dict[str, list[pa.Array]] = {"int": [], "float": [], "bytes": []}
    for form, names in (("int", INT_WRAPPERS), ("float", FLOAT_WRAPPERS), ("bytes", _BYTES)):
        for name in names:
            where = f"{prefix}:{name}.value"
            column = found.find(where)
            if column is None:
                continue
            wrapper[column.rows] = name
            if form == "bytes":
                parts[form].append(found.texts(where, pa.binary(), path))
            else:
                kind = pa.int64() if form == "int" else pa.float64()
                parts[form].append(found.numbers(where, kind))
    kinds = {"int": pa.int64(), "float": pa.float64(), "bytes": pa.binary()}
    return {
        f"{side}_wrapper": pa.array(wrapper, pa.string()),
        **{
            f"{side}_{form}": pc.coalesce(*arrays) if arrays else pa.nulls(len(found), kinds[form])
            for form, arrays in parts.items()
        },
    }
