"""Types of columns in Hive's words, as Hudi's sync tools write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.schema.arrow_types import is_bytes, is_list, is_text

_FLAT: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pt.is_boolean, "boolean"),
    (pt.is_int64, "bigint"),
    (pt.is_integer, "int"),
    (pt.is_float64, "double"),
    (pt.is_floating, "float"),
    (pt.is_date, "date"),
    (pt.is_time, "bigint"),  # Hive has no times of day: microseconds, as in the files
    (is_text, "string"),
    (is_bytes, "binary"),
)
_WIDER: Final = {
    "int": ("bigint", "double"),
    "float": ("double",),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


def hive_type(kind: pa.DataType, *, timestamps: bool) -> str:
    """A column's type.

    Without ``timestamps`` they are the numbers that are in the files.
    """
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_timestamp(kind):
        return "timestamp" if timestamps and kind.unit in ("us", "ms") else "bigint"
    if pt.is_struct(kind):
        fields = (f"{one.name}:{hive_type(one.type, timestamps=timestamps)}" for one in kind)
        return f"struct<{','.join(fields)}>"
    if pt.is_map(kind):
        key = hive_type(kind.key_type, timestamps=timestamps)
        return f"map<{key},{hive_type(kind.item_type, timestamps=timestamps)}>"
    if is_list(kind):
        return f"array<{hive_type(kind.value_type, timestamps=timestamps)}>"
    return next(name for fits, name in _FLAT if fits(kind))


def may_become(before: str, after: str) -> bool:
    """Whether readers of one type of a column may take another.

    Nested types may change in any way that keeps them nested: a metastore does not look into them.
    """
    before, after = _plain(before), _plain(after)
    if before == after or after in _WIDER.get(before, ()):
        return True
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(after)
    if old and new:
        return int(old[2]) == int(new[2]) and int(old[1]) <= int(new[1])
    outer = before.partition("<")[0]
    return "<" in before and after.startswith(f"{outer}<")


def same_type(one: str, other: str) -> bool:
    """Whether two strings are one type: case and blanks do not count."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text).lower()
