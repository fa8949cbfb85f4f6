"""Conditions and values of conditional writes, as callers give them.

A condition is an Arrow expression, a list of conditions as of read filters, or a string with
Spark's SQL. A value is such a string, an Arrow expression, or any other Python value, which is a
literal. SQL is computed before the rest, by DuckDB or by Spark, as columns of the joined rows; so
what is left of all of them is Arrow expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.read.filters import Condition, Filter, require_computable, to_filter
from hudi_core.read.predicate import known_part
from hudi_core.rows.changes import FILE, SOURCE, Met, assigned
from hudi_core.schema.arrow_types import LIST_ELEMENT, MAP_VALUE, is_list
from hudi_core.write.conditional.sql_text import SqlText, Visible

Where: TypeAlias = str | pc.Expression | Sequence[Condition]
"""A condition: a string in SQL, an Arrow expression, or conditions that all have to hold."""
Values: TypeAlias = Mapping[str, Any]
"""Values by column: a string in SQL, an Arrow expression, or a Python value."""
_TEXT: Final = "_hoodie_text_"


@dataclass(frozen=True, slots=True)
class Text:
    """An SQL expression that is computed as a column of joined rows.

    ``before`` are the conditions of earlier clauses, whose rows do not get here; ``condition`` is
    that of its own clause, where it is SQL as well.
    """

    name: str
    sql: SqlText
    met: Met
    before: tuple[SqlText, ...] = ()
    condition: SqlText | None = None

    def guarded(self, dialect: str) -> str:
        """The column, computed for no other rows: of those it may fail."""
        here = [f"{_quoted(FILE, dialect)} IS {'' if self.met is Met.SOURCE else 'NOT '}NULL"]
        if self.met is not Met.SOURCE:
            here.append(
                f"{_quoted(SOURCE, dialect)} IS {'' if self.met is Met.TARGET else 'NOT '}NULL"
            )
        cases = [f"WHEN NOT ({' AND '.join(here)}) THEN NULL"]
        cases += [f"WHEN {one.sql(dialect)} THEN NULL" for one in self.before]
        last = "TRUE" if self.condition is None else self.condition.sql(dialect)
        return f"CASE {' '.join(cases)} WHEN {last} THEN ({self.sql.sql(dialect)}) END"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A condition that is known to fit.

    ``expression`` is ``None`` where it always holds. ``filter`` is by columns of the table and
    accepts at least the same rows; ``None`` for all. ``text`` is set only where the condition was
    given as SQL.
    """

    expression: pc.Expression | None = None
    filter: Filter | None = None
    columns: frozenset[str] = frozenset()
    text: SqlText | None = None


@dataclass(slots=True)
class Compiler:
    """Brings the expressions of one write into one form."""

    texts: list[Text] = field(default_factory=list)

    def condition(
        self,
        given: Where | SqlText | None,
        visible: Visible,
        met: Met,
        before: Sequence[SqlText] = (),
    ) -> Compiled:
        """Bring a condition into the common form."""
        if given is None:
            return Compiled()
        if isinstance(given, str):
            given = SqlText.parse(given, visible)
        if isinstance(given, SqlText):
            column = self._column(Text(self._next, given, met, tuple(before)))
            return Compiled(column, _pruning(given, visible), given.columns, given)
        found = to_filter(given, visible.schema)
        if found is None:
            raise SchemaError("A condition is empty", "Leave it out where all rows are meant.")
        return Compiled(found.expression, found, found.columns)

    def value(
        self,
        given: Any,
        column: pa.Field,
        visible: Visible,
        met: Met,
        *,
        before: Sequence[SqlText] = (),
        condition: SqlText | None = None,
    ) -> pc.Expression:
        """Bring the value of a column into the common form; see :meth:`condition`."""
        if isinstance(given, pc.Expression):
            require_computable(given)
            return given
        if isinstance(given, str):
            given = SqlText.parse(given, visible)
        if isinstance(given, SqlText):
            return self._column(Text(self._next, given, met, tuple(before), condition))
        return pc.scalar(_literal(given, column))

    @property
    def _next(self) -> str:
        return f"{_TEXT}{len(self.texts)}"

    def _column(self, text: Text) -> pc.Expression:
        self.texts.append(text)
        return pc.field(text.name)


def _literal(given: Any, column: pa.Field) -> pa.Scalar:
    _require_names(given, column.type, column.name)
    try:
        scalar = given if isinstance(given, pa.Scalar) else pa.scalar(given, _kind(given, column))
        array = pa.array([scalar.as_py()], scalar.type)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        OverflowError,
    ) as error:
        raise SchemaError(
            f"The value {given!r} does not fit the column {column.name}, which is {column.type}",
            "Give a value of that type; a string is an expression in SQL.",
            column=column.name,
            value=given,
        ) from error
    return assigned(pa.chunked_array([array]), column)[0]


def _require_names(given: Any, kind: pa.DataType, path: str) -> None:
    """Refuse dictionaries that are no whole values of a struct."""
    if pt.is_struct(kind) and isinstance(given, Mapping):
        names = [one.name for one in kind]
        if set(given) != set(names):
            raise SchemaError(
                f"The value {given!r} does not have the columns of {path}",
                f"Give each of {', '.join(names)}, with None where there is no value.",
                column=path,
                value=given,
            )
        for one in kind:
            _require_names(given[one.name], one.type, f"{path}.{one.name}")
    elif is_list(kind) and isinstance(given, list | tuple):
        for value in given:
            _require_names(value, kind.value_type, f"{path}.{LIST_ELEMENT}")
    elif pt.is_map(kind) and isinstance(given, Mapping):
        for value in given.values():
            _require_names(value, kind.item_type, f"{path}.{MAP_VALUE}")


def _kind(given: Any, column: pa.Field) -> pa.DataType | None:
    """The type of a Python value; ``None`` where it has its own."""
    nested = isinstance(given, list | dict | tuple)
    return column.type if given is None or nested else None


def _pruning(text: SqlText, visible: Visible) -> Filter | None:
    known = known_part(text.predicate({one.name: one for one in visible.schema}))
    return None if known is None else Filter.of(known)


def _quoted(name: str, dialect: str) -> str:
    return f'"{name}"' if dialect == "duckdb" else f"`{name}`"
