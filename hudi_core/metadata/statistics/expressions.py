"""Expressions of expression indexes: functions of one column, as Spark computes them.

A function is kept where its values, or bounds of them, can be computed here exactly as Spark does.
What a day or an hour is depends on the time zone of a Spark session, which an index does not
name: bounds hold in every zone, 18 hours either way being the most that one can be from UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from hudi_core.errors import UnsupportedTableError
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.statistics.expression_functions import FUNCTIONS, Function, Options
from hudi_core.model.stats import ColumnStats, Scalar

Bounds = tuple[Scalar, Scalar]
COLUMN_STATS_TYPE: Final = "column_stats"
_ZONE_MICROS: Final = 18 * 3_600 * 1_000_000


@dataclass(frozen=True)
class Expression:
    """A function of a column."""

    name: str
    column: str
    kind: pa.DataType
    options: Options

    @property
    def _function(self) -> Function:
        return FUNCTIONS[self.name]

    @cached_property
    def result(self) -> pa.DataType:
        """Type of its values."""
        return self._function.result(self.kind)

    @property
    def reads_values(self) -> bool:
        """Whether bounds of the column do not give those of its values."""
        return not self._function.is_ordered(self.options)

    @cached_property
    def zone_micros(self) -> int:
        """By how many microseconds time zones may move its column."""
        return _ZONE_MICROS if self._function.zones(self.kind, self.options) else 0

    def value(self, value: Any) -> Any:
        """Its value of one in internal form; ``None`` where not certain.

        Values are those in UTC.
        """
        return self._function.of(value, self.kind, self.options)

    def bounds(self, low: Scalar, high: Scalar) -> Bounds | None:
        """Bounds of its values, in every time zone.

        From bounds of the column.

        ``None`` where they may be any.
        """
        first, last = self.shifted(low, -1), self.shifted(high, 1)
        return self._function.between(first, last, self.kind, self.options)

    def core(self, stats: ColumnStats) -> Bounds | None:
        """What any right bounds cover, whatever time zone they were made in.

        ``None`` where that is unknown.
        """
        low, high = stats.min_value, stats.max_value
        if low is None or high is None or not self._function.is_monotone:
            return None
        ends = self.value(self.shifted(low, 1)), self.value(self.shifted(high, -1))
        return None if None in ends else ends

    def bounds_of_values(self, values: pa.ChunkedArray) -> Bounds | None:
        """Bounds of its values, from all values of the column.

        ``None`` where they may be any.
        """
        found = [self.value(one) for one in values.unique().to_pylist() if one is not None]
        return None if None in found else (min(found), max(found))

    def shifted(self, value: Scalar, towards: int) -> Scalar:
        """A value, moved as far as time zones go.

        ``towards`` is 1 for later, -1 for earlier.
        """
        if not self.zone_micros:
            return value
        return self._function.moved(value, self.kind, towards * self.zone_micros)

    @property
    def is_monotone(self) -> bool:
        """Whether greater values of the column have no smaller value of it."""
        return self._function.is_monotone and not self.reads_values


def expression_of(
    definitions: IndexDefinitions, index: str, columns: Mapping[str, pa.DataType]
) -> Expression | None:
    """The expression of an index.

    ``None`` where the table does not have its column, or has it in another type.
    """
    known = definitions.columns(index)
    column = known[0] if known else ""
    kind = columns.get(column)
    if kind is None or why_not_kept(definitions, index, kind) is not None:
        return None
    return Expression(definitions.function(index), column, kind, dict(definitions.options(index)))


def require_kept(
    definitions: IndexDefinitions, index: str, kind: pa.DataType | None, base_path: str
) -> None:
    """Refuse an index that would go stale."""
    reason = why_not_kept(definitions, index, kind)
    if reason is not None:
        raise UnsupportedTableError(
            base_path,
            f"has the expression index {index}, which would go stale: {reason}",
            "Drop that index with Apache Hudi (DROP INDEX), or write with Apache Hudi.",
        )


def why_not_kept(definitions: IndexDefinitions, index: str, kind: pa.DataType | None) -> str | None:
    """Why an index is not kept; ``None`` where it is."""
    if index not in definitions.raw:
        return "its column is not recorded"
    columns, found = definitions.columns(index), definitions.raw[index].get("indexType")
    if len(columns) != 1 or "." in columns[0]:
        return f"it is of {', '.join(columns) or 'no column'}, not of one column of the table"
    if str(found).lower() != COLUMN_STATS_TYPE:
        return f"it is of the type {found}, and only {COLUMN_STATS_TYPE} are kept"
    name, options = definitions.function(index), definitions.options(index)
    return why_not(name, options, kind)


def why_not(name: str, options: Options, kind: pa.DataType | None) -> str | None:
    """Why a function is not kept; ``None`` where it is."""
    function = FUNCTIONS.get(name)
    if function is None:
        known = ", ".join(sorted(FUNCTIONS))
        return f"the function {name or '(none)'} is none of {known}"
    wrong = function.why_not(options)
    if wrong is not None:
        return f"{name} {wrong}"
    if kind is not None and not function.takes(kind):
        return f"{name} of a column of type {kind} is not computed"
    return None
