"""Conditions and values in Spark's SQL, parsed by sqlglot.

SQL text is parsed once, its columns are found among those it may name, and it is written again: in
DuckDB's words for rows in this process, in Spark's for its DataFrames. What can be known of its
columns beforehand becomes a predicate, which leaves out partitions and files.
"""

from __future__ import annotations

import datetime as dt
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.config.optional_libraries import require_library
from hudi_core.errors import ExpressionLimitError, SchemaError
from hudi_core.read.predicate import (
    MIRRORED,
    Anything,
    Comparison,
    IsNull,
    Predicate,
    all_of,
    any_of,
    not_of,
    one_of,
)
from hudi_core.schema.arrow_types import is_text
from hudi_core.write.conditional.duckdb_sql import in_duckdb

# --- tokens --------------------------------------------------------------------------------------


class TokenKind(Enum):
    """Kinds of tokens."""

    WORD = "word"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"


_TOKEN: Final = re.compile(
    r"""
    (?P<blank>\s+ | --(?:\\\n|[^\r\n])*)
    | (?P<block>/\*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<string>'(?:\\.|''|[^'\\])*' | "(?:\\.|""|[^"\\])*")
    | (?P<name>`(?:``|[^`])*`)
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?:[dDfFlLsSyY]|[bB][dD])?(?![\w]))
    | (?P<word>\w+)
    | (?P<symbol>=>|<=>|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS: Final = {
    "raw": TokenKind.STRING,
    "string": TokenKind.STRING,
    "name": TokenKind.NAME,
    "number": TokenKind.NUMBER,
    "word": TokenKind.WORD,
    "symbol": TokenKind.SYMBOL,
}
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a name in backticks, a literal or a symbol.

    ``end`` is exclusive.
    """

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """It in upper case, if it is a word; else blank."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    @property
    def value(self) -> str:
        """What a string, a name or a word means."""
        if self.kind is TokenKind.NAME:
            return self.text[1:-1].replace("``", "`")
        if self.kind is not TokenKind.STRING:
            return self.text
        if self.text[0] in "rR":
            return self.text[2:-1]
        quote = self.text[0]
        return _ESCAPE.sub(_unescaped, self.text[1:-1].replace(quote * 2, quote))


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the tokens of SQL text, without blanks and comments."""
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:  # nothing: every character is a symbol
            return
        kind = found.lastgroup
        if kind == "block":
            place = _end_of_comment(text, found.end())
            continue
        place = found.end()
        if kind != "blank":
            yield Token(_KINDS[kind], found.group(), found.start(), found.end())


def quoted_string(value: str) -> str:
    """A value as a string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _end_of_comment(text: str, place: int) -> int:
    """Where a comment ends, which may have others within."""
    depth = 1
    for found in re.finditer(r"/\*|\*/", text[place:]):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return place + found.end()
    return len(text)


def _unescaped(found: re.Match[str]) -> str:
    four, eight, octal, other = found.groups()
    if four or eight:
        return chr(int(four or eight, 16))
    if octal:
        return chr(int(octal, 8))
    # those of LIKE keep their backslash
    return f"\\{other}" if other in "%_" else _ESCAPED.get(other, other)


def plain_strings(text: str) -> str:
    """SQL text whose strings mean to sqlglot what they mean to Spark.

    To sqlglot a doubled quote is two strings, and their sum lacks it; and it keeps escapes of
    characters by their numbers.
    """
    parts: list[str] = []
    place = 0
    for one in tokens_of(text):
        if one.kind is TokenKind.STRING:
            parts += (text[place : one.start], quoted_string(one.value))
            place = one.end
    return "".join((*parts, text[place:]))


# --- conditions and statements -------------------------------------------------------------------


Tree: TypeAlias = Any
"""An expression of sqlglot's, which may be missing."""
EXTRA: Final = "sql"
_DIALECT: Final = "spark"
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SHOWN: Final = 200
_COMPARISONS: Final = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_REFUSED: Final = {
    "Query": "a subquery",
    "Subquery": "a subquery",
    "AggFunc": "an aggregate",
    "Window": "a window function",
    "Star": "a star",
    "Placeholder": "a parameter",
    "Parameter": "a parameter",
}
"""Classes of sqlglot that no expression over one row is made of."""


@dataclass(frozen=True, slots=True)
class Visible:
    """The columns that SQL text may name.

    ``schema`` has the names of joined rows; ``prefixes`` are what names begin with there, by alias
    of their table. The alias is empty where a column needs none.
    """

    schema: pa.Schema
    prefixes: Mapping[str, str]

    def find(self, parts: Sequence[str], text: str) -> tuple[str, Sequence[str]]:
        """Return the column of a dotted name, and the fields below it."""
        alias = self._same(parts[0], self.prefixes) if len(parts) > 1 else None
        if alias is not None:
            name = self._same(self.prefixes[alias] + parts[1], self.schema.names)
            if name is not None:
                return name, parts[2:]
        found = [
            name
            for prefix in dict.fromkeys(self.prefixes.values())
            if (name := self._same(prefix + parts[0], self.schema.names)) is not None
        ]
        if len(found) == 1:
            return found[0], parts[1:]
        shown = ".".join(parts)
        raise SchemaError(
            f"The column {shown!r} in {text!r} is "
            + ("in both tables" if found else "in no table that it may name"),
            f"The columns are {', '.join(self.schema.names)}. A string value needs quotes of "
            f"its own: \"'{shown}'\".",
            column=shown,
        )

    @staticmethod
    def _same(name: str, among: Sequence[str] | Mapping[str, str]) -> str | None:
        """The name as it is spelt, or but for its case."""
        if name in among:
            return name
        return next((one for one in among if one.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class SqlText:
    """One expression."""

    text: str
    tree: Tree
    columns: frozenset[str]

    @classmethod
    def parse(cls, text: str, visible: Visible) -> SqlText:
        """Parse an expression over the columns of one row."""
        sqlglot = library("sqlglot", text)
        try:
            with shallow(text):
                tree = sqlglot.parse_one(plain_strings(text), dialect=_DIALECT)
        except sqlglot.errors.SqlglotError as error:
            reason = str(error).split("\n", 1)[0]
            raise SchemaError(
                f"{text!r} is no expression in Spark's SQL: {reason}",
                "Correct it; a string value needs quotes of its own.",
                text=text,
            ) from error
        return cls.of(tree, visible, text)

    @classmethod
    def of(cls, tree: Tree, visible: Visible, text: str) -> SqlText:
        """Find the columns of a parsed expression; see :meth:`parse`."""
        exp = library("sqlglot.expressions", text)
        for name, what in _REFUSED.items():
            if tree.find(getattr(exp, name)) is not None:
                raise SchemaError(
                    f"{text!r} has {what}, and it is about one row",
                    "Compute it beforehand, as a column of the source.",
                    text=text,
                )
        if not isinstance(tree, exp.Condition | exp.Func | exp.Paren | exp.Cast):
            raise SchemaError(
                f"{text!r} is no expression", "Give a condition or a value.", text=text
            )
        found: set[str] = set()

        def resolved(node: Tree) -> Tree:
            if not isinstance(node, exp.Column):
                return node
            name, below = visible.find([part.name for part in node.parts], text)
            found.add(name)
            column = exp.column(exp.to_identifier(name, quoted=True))
            fields = [exp.to_identifier(one, quoted=True) for one in below]
            return exp.Dot.build([column, *fields]) if fields else column

        with shallow(text):
            return cls(text, tree.transform(resolved), frozenset(found))

    def sql(self, dialect: str) -> str:
        """The expression in the words of ``duckdb`` or ``spark``."""
        with shallow(self.text):
            if dialect == "duckdb":
                return in_duckdb(self.tree, self.text)
            return str(self.tree.sql(dialect=dialect))

    def predicate(self, columns: Mapping[str, pa.Field]) -> Predicate:
        """What it says of single columns, and nothing of the rest."""
        reading = _Reading(importlib.import_module("sqlglot.expressions"), columns)
        with shallow(self.text):
            return reading.predicate(self.tree)

    def equalities(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs of columns that all of its rows have equal.

        Of fields of structs the paths.
        """
        exp = importlib.import_module("sqlglot.expressions")
        for part in _conjuncts(exp, self.tree):
            if isinstance(part, exp.EQ):
                sides = [_path(exp, side) for side in (part.this, part.expression)]
                if sides[0] is not None and sides[1] is not None:
                    yield sides[0], sides[1]

    def is_column(self, name: str) -> bool:
        """Whether it is nothing but a column of joined rows."""
        exp = importlib.import_module("sqlglot.expressions")
        tree = self.tree.unnest()
        return isinstance(tree, exp.Column) and tree.name == name

    @property
    def conjuncts(self) -> int:
        """How many conditions it joins by ``AND``."""
        return len(list(_conjuncts(importlib.import_module("sqlglot.expressions"), self.tree)))


def library(module: str, text: str) -> Any:
    """Return a module of a library that reads, or runs, SQL text."""
    need = f"SQL text needs {module.partition('.')[0]}"
    return require_library(module, EXTRA, ("SQL", text), need)


def _path(exp: Any, tree: Tree) -> str | None:
    """The path of a column, or of a field of structs."""
    side = tree.unnest()
    if isinstance(side, exp.Column):
        return str(side.name)
    if not isinstance(side, exp.Dot) or not isinstance(side.expression, exp.Identifier):
        return None
    around = _path(exp, side.this)
    return None if around is None else f"{around}.{side.expression.name}"


@contextmanager
def shallow(text: str, is_too_deep: Callable[[Exception], bool] | None = None) -> Iterator[None]:
    """Let sqlglot walk SQL text, which it does by recursion.

    ``is_too_deep`` is whether an error of another parser means what Python's ``RecursionError``
    does.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, RecursionError) and not (is_too_deep and is_too_deep(error)):
            raise
        raise ExpressionLimitError(
            f"{text[:_SHOWN]!r}{'...' if len(text) > _SHOWN else ''} is nested too deeply",
            "Take parentheses, NOT or functions out of each other; any number of conditions may "
            "be joined by AND and OR.",
            text=text,
        ) from error


def _conjuncts(exp: Any, tree: Tree) -> Iterator[Tree]:
    rest = [tree]
    while rest:
        one = rest.pop()
        if isinstance(one, exp.And):
            rest += [one.expression, one.this]
        elif isinstance(one, exp.Paren):
            rest.append(one.this)
        else:
            yield one


@dataclass(frozen=True, slots=True)
class _Reading:
    """Takes expressions over single columns and literals apart."""

    exp: Any
    columns: Mapping[str, pa.Field]

    def predicate(self, tree: Tree) -> Predicate:
        exp = self.exp
        if isinstance(tree, exp.Paren):
            return self.predicate(tree.this)
        if isinstance(tree, exp.And | exp.Or):
            parts = map(self.predicate, tree.flatten())  # not by recursion: there may be thousands
            return all_of(*parts) if isinstance(tree, exp.And) else any_of(*parts)
        if isinstance(tree, exp.Not):
            return not_of(self.predicate(tree.this))
        op = _COMPARISONS.get(type(tree).__name__)
        if op is not None:
            return self._compared(tree.this, op, tree.expression)
        return self._of_column(tree)

    def _of_column(self, tree: Tree) -> Predicate:
        exp = self.exp
        if isinstance(tree, exp.In):
            return self._one_of(tree)
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            low, high = tree.args["low"], tree.args["high"]
            parts = self._compared(tree.this, ">=", low), self._compared(tree.this, "<=", high)
            return all_of(*parts)
        field = self._column(tree.this if isinstance(tree, exp.Is) else tree)
        if field is not None:
            if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
                return IsNull(field.name)
            if isinstance(tree, exp.Column) and pt.is_boolean(field.type):
                return Comparison(field.name, "=", pa.scalar(True))
        return Anything()

    def _compared(self, left: Tree, op: str, right: Tree) -> Predicate:
        field = self._column(left)
        if field is None:
            field, right, op = self._column(right), left, MIRRORED[op]
        if field is None:
            return Anything()
        name, kind = field.name, field.type
        value = _literal(self.exp, right, kind)
        if value is None:
            return Anything()
        if pt.is_floating(kind) and op in (">", ">="):
            # in SQL NaN is greater than every number, and no bound covers it
            return not_of(Comparison(name, "<=" if op == ">" else "<", value))
        return Comparison(name, op, value)

    def _one_of(self, tree: Tree) -> Predicate:
        field = self._column(tree.this)
        if field is None or tree.args.get("query") is not None or tree.args.get("unnest"):
            return Anything()
        name, kind = field.name, field.type
        values = [_literal(self.exp, one, kind) for one in tree.expressions]
        known = [one.as_py() for one in values if one is not None]
        if not known or len(known) < len(values):
            return Anything()
        # of a null it is null, which makes no difference where it is, and one under NOT
        return all_of(one_of(name, pa.array(known, kind)), not_of(IsNull(name)))

    def _column(self, tree: Tree) -> pa.Field | None:
        while isinstance(tree, self.exp.Paren):
            tree = tree.this
        return self.columns.get(tree.name) if isinstance(tree, self.exp.Column) else None


def _literal(exp: Any, tree: Tree, kind: pa.DataType) -> pa.Scalar | None:
    """A literal in a column's type; ``None`` where that is uncertain."""
    sign = 1
    while isinstance(tree, exp.Paren | exp.Neg):
        sign, tree = (-sign if isinstance(tree, exp.Neg) else sign), tree.this
    if isinstance(tree, exp.Boolean):
        return pa.scalar(bool(tree.this)) if pt.is_boolean(kind) else None
    is_date = isinstance(tree, exp.Cast) and tree.to.is_type("date")
    literal = tree.this if is_date else tree
    if not isinstance(literal, exp.Literal):
        return None
    try:
        if not literal.is_string:
            return _number(sign * Decimal(literal.name), kind)
        if pt.is_date(kind):
            is_plain = _DATE.fullmatch(literal.name) is not None
            return pa.scalar(dt.date.fromisoformat(literal.name), kind) if is_plain else None
        return pa.scalar(literal.name, kind) if is_text(kind) and not is_date else None
    except (pa.ArrowInvalid, ValueError, OverflowError, InvalidOperation):
        return None


def _number(number: Decimal, kind: pa.DataType) -> pa.Scalar | None:
    if pt.is_integer(kind):
        return pa.scalar(int(number), kind) if number == int(number) else None
    if pt.is_decimal(kind):
        return pa.scalar(number, kind)
    if pt.is_floating(kind):
        value = pa.scalar(float(number), pa.float64()).cast(kind)
        return value if value.as_py() == float(number) else None
    return None
