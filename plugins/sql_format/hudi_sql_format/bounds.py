"""Bounds of columns as they are kept in the database.

The database never compares bounds, since its order of strings differs: it stores them, and
gives back exactly what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.spi import ColumnStats, FileStats, Scalar

_LEFT_OUT: Final = frozenset(
    {"_hoodie_commit_seqno", "_hoodie_partition_path", "_hoodie_file_name"}
)
"""Columns that no filter is on."""
_MOST_BYTES: Final = 256
"""Of a lower bound that is longer the beginning is kept, of an upper one nothing."""
_NUMBER, _REAL, _BYTES = "number", "real", "bytes"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


_KINDS: Final[Mapping[str, tuple[Callable[[pa.DataType], bool], str]]] = {
    "boolean": (pt.is_boolean, _NUMBER),
    "integer": (pt.is_integer, _NUMBER),
    "date": (pt.is_date, _NUMBER),
    "time": (pt.is_time, _NUMBER),
    "timestamp": (pt.is_timestamp, _NUMBER),
    "real": (pt.is_floating, _REAL),
    "decimal": (pt.is_decimal, _BYTES),
    "text": (_is_text, _BYTES),
    "bytes": (_is_bytes, _BYTES),
}
"""Kinds of columns, and in which columns of the database their bounds are.

A column that became one of another kind has no bounds in the files of before.
"""


def kind_of(kind: pa.DataType) -> str | None:
    """The kind of a column; ``None`` for one without bounds."""
    return next((name for name, (is_kind, _) in _KINDS.items() if is_kind(kind)), None)


def store_of(kind: str) -> str:
    """End of the names of the columns with bounds of a kind."""
    return _KINDS[kind][1]


def columns_of(schema: Iterable[pa.Field], prefix: str = "") -> dict[str, str]:
    """Kinds of columns with bounds, by path; not below lists."""
    found: dict[str, str] = {}
    for field in schema:
        path = f"{prefix}{field.name}"
        if pt.is_struct(field.type):
            found |= columns_of(field.type, f"{path}.")
        elif path not in _LEFT_OUT:
            kind = kind_of(field.type)
            if kind is not None:
                found[path] = kind
    return found


def bound_rows(
    stats: FileStats, kinds: Mapping[str, str], ids: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Rows of the statistics of one file, without its number."""
    return [
        _row(stats[path], kind) | {"field_id": ids[path], "kind": kind}
        for path, kind in kinds.items()
        if path in stats and path in ids
    ]


def _row(stats: ColumnStats, kind: str) -> dict[str, Any]:
    store = store_of(kind)
    row: dict[str, Any] = dict.fromkeys(
        f"{end}_{one}" for end in ("low", "high") for one in (_NUMBER, _REAL, _BYTES)
    )
    if stats.min_value is not None and stats.max_value is not None:
        row[f"low_{store}"] = _stored(stats.min_value, store, is_upper=False)
        row[f"high_{store}"] = _stored(stats.max_value, store, is_upper=True)
    return row | {"null_count": stats.null_count, "value_count": stats.value_count}


def _stored(bound: Scalar, store: str, *, is_upper: bool) -> int | float | bytes | None:
    if store == _NUMBER:
        return int(bound)
    if store == _REAL:
        return float(bound)
    data = bound if isinstance(bound, bytes) else str(bound).encode()
    if len(data) <= _MOST_BYTES:
        return data
    if is_upper or isinstance(bound, Decimal):
        return None
    if isinstance(bound, bytes):
        return data[:_MOST_BYTES]
    return data[:_MOST_BYTES].decode(errors="ignore").encode()


def require_stored(value: Any, store: str) -> Any:
    """A value from the database, if it can be a bound.

    SQLite keeps any value in any column.
    """
    types = {_NUMBER: (int,), _REAL: (float, int), _BYTES: (bytes,)}[store]
    if value is not None and not isinstance(value, types):
        raise TypeError(f"{value!r} is no {types[0].__name__}")
    return value


def bounds_from(values: Sequence[Any], kind: str) -> Sequence[Scalar | None]:
    """Bounds in internal form, from what the database gave back."""
    if kind == "boolean":
        return [None if one is None else bool(one) for one in values]
    if kind == "decimal":
        return [None if one is None else Decimal(one.decode()) for one in values]
    if kind == "text":
        return [None if one is None else one.decode() for one in values]
    return values
