"""A table state as a lazy frame of polars.

polars asks for columns, for the first rows, and for rows that a predicate of its own accepts. The
predicate decides about partitions, files and row groups as far as it means the same to Arrow; to
the rows that are read polars applies all of it, so that null, NaN and everything else are what they
are in its own frames.
"""

from __future__ import annotations

import io
import json
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.types as pt
from polars.io.plugins import register_io_source

from hudi_core.read.filters import Filter
from hudi_core.read.predicate import (
    MIRRORED,
    Anything,
    Comparison,
    IsNull,
    Predicate,
    all_of,
    any_of,
    exactly,
    known_part,
    not_of,
    one_of,
)
from hudi_core.read.query import SnapshotQuery

_COMPARISONS: Final = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
}
_BOUNDS: Final = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
Node = Any
"""A part of a predicate in polars' JSON."""


def lazy_frame(query: SnapshotQuery, condition: Filter | None, as_of: str | None) -> pl.LazyFrame:
    """The rows of a state, read when polars asks for them."""
    columns = _frame(query.schema.empty_table()).schema
    source = _Source(query, condition, as_of)
    return register_io_source(source.frames, schema=columns, is_pure=True)


@dataclass(frozen=True, slots=True)
class _Source:
    query: SnapshotQuery
    condition: Filter | None
    as_of: str | None

    def frames(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,
        batch_rows: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yield what polars asks for.

        ``rows`` limits the rows before ``predicate`` is applied, not after; ``None`` for no limit.
        """
        schema = self.query.schema
        shown = schema.names if columns is None else columns
        asked = () if predicate is None else predicate.meta.root_names()
        names = list(dict.fromkeys([*shown, *(name for name in asked if name in schema.names)]))
        if rows is not None:
            batches = self.query.first(rows, names, self.condition, self.as_of)
        else:
            wanted = None if predicate is None else wanted_rows(predicate, schema)
            given = [one for one in (self.condition, wanted) if one is not None]
            both = reduce(operator.and_, given) if given else None
            batches = self.query.to_arrow(names, both, self.as_of, batch_rows)
        nothing = batches.schema.empty_table()
        for part in chain([nothing], (pa.Table.from_batches([one]) for one in batches)):
            frame = _frame(part)
            yield (frame if predicate is None else frame.filter(predicate)).select(shown)


def _frame(rows: pa.Table) -> pl.DataFrame:
    found = pl.from_arrow(rows)
    assert isinstance(found, pl.DataFrame)  # noqa: S101 - of a table
    return found


def wanted_rows(predicate: pl.Expr, schema: pa.Schema) -> Filter | None:
    """Rows among which all are that a predicate accepts; ``None`` for all."""
    try:
        node = json.loads(predicate.meta.serialize(format="json"))
        known = known_part(_Reading(schema).predicate(node))
    except (pl.exceptions.PolarsError, ValueError, RecursionError):
        return None  # it has no such form, or is nested too deeply
    return None if known is None else Filter.of(known)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Takes predicates over single columns and literals apart.

    To polars NaN equals itself and is greater than every number; a comparison of null is null, and
    so is whether it is one of some values. There a predicate of ours may be false, which makes no
    difference where it is, and accepts more under a negation.
    """

    schema: pa.Schema

    def predicate(self, node: Node) -> Predicate:
        match node:
            case {"Column": str(name)} if name in self.schema.names:
                is_boolean = pt.is_boolean(self.schema.field(name).type)
                return Comparison(name, "=", pa.scalar(True)) if is_boolean else Anything()
            case {"BinaryExpr": {"left": left, "op": "And" | "Or" as op, "right": right}}:
                parts = self.predicate(left), self.predicate(right)
                return all_of(*parts) if op == "And" else any_of(*parts)
            case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _COMPARISONS:
                return self._compared(left, _COMPARISONS[op], right)
            case {"Function": {"input": [*inputs], "function": {"Boolean": function}}}:
                return self._boolean(function, inputs)
            case {"Function": {"input": [one, values], "function": {"Sql": {"IsIn": how}}}}:
                return self._one_of(one, values, how)
        return Anything()

    def _boolean(self, function: Node, inputs: Sequence[Node]) -> Predicate:
        match function, inputs:
            case "Not", [inner]:
                return not_of(self.predicate(inner))
            case "IsNull" | "IsNotNull", [{"Column": str(name)}] if name in self.schema.names:
                return IsNull(name) if function == "IsNull" else not_of(IsNull(name))
            case {"IsIn": how}, [one, values]:
                return self._one_of(one, values, how)
            case {"IsBetween": {"closed": closed}}, [one, low, high] if closed in _BOUNDS:
                above, below = _BOUNDS[closed]
                return all_of(self._compared(one, above, low), self._compared(one, below, high))
        return Anything()

    def _compared(self, left: Node, op: str, right: Node) -> Predicate:
        if "Column" not in left:
            left, op, right = right, MIRRORED[op], left
        name = left.get("Column")
        if name not in self.schema.names:
            return Anything()
        kind = self.schema.field(name).type
        values = _values(right, kind)
        if values is None or len(values) != 1:
            return Anything()
        if pt.is_floating(kind) and op in (">", ">="):
            return not_of(Comparison(name, "<=" if op == ">" else "<", values[0]))
        return Comparison(name, op, values[0])

    def _one_of(self, one: Node, listed: Node, how: Node) -> Predicate:
        name = one.get("Column")
        if name not in self.schema.names or how != {"nulls_equal": False}:
            return Anything()
        values = _values(listed, self.schema.field(name).type)
        if not values:
            return Anything()
        return all_of(one_of(name, pa.array(values)), not_of(IsNull(name)))


def _values(node: Node, kind: pa.DataType) -> list[pa.Scalar] | None:
    """Literals in the type of a column; ``None`` where that differs."""
    if set(node) != {"Literal"}:
        return None
    literal = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
    found = pl.select(literal).to_series()
    if isinstance(found.dtype, pl.List):
        found = found.explode()
    given = found.to_arrow()
    if not _is_compared_alike(given.type, kind):
        return None
    values = [exactly(value, kind) for value in given]
    return None if None in values else values


def _is_compared_alike(given: pa.DataType, kind: pa.DataType) -> bool:
    if pt.is_uint64(given):
        return False  # with signed integers they are compared as floating-point numbers
    if pt.is_timestamp(given) and pt.is_timestamp(kind):
        # the finer ones are rounded; polars has no seconds
        is_same: bool = given.unit == ("ms" if kind.unit == "s" else kind.unit)
        return is_same
    return True
