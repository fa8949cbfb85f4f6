"""Queries of past states, of changes, and of tables by path.

Spark has no words for these where a source is written in Python. They are read into views, which
take their place in the text; all else of a query stays as it is written.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from hudi_core.errors import InstantNotFoundError, NotATableError
from hudi_core.statements.running import Statement, Target
from hudi_core.statements.words import Scanner, spelled
from hudi_core.table import Table
from hudi_core.write.conditional.sql_text import Token, TokenKind, tokens_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAY_BE: Final = re.compile(r"hudi_table_changes|\bas\s+of\b|\bhudi`?\s*\.\s*`", re.IGNORECASE)
_CHANGES: Final = "HUDI_TABLE_CHANGES"
_BEFORE_TABLES: Final = ("FROM", "JOIN", "TABLE", "USING")
_TIMES: Final = ("TIMESTAMP", "SYSTEM_TIME")
_VERSIONS: Final = ("VERSION", "SYSTEM_VERSION")
_OPERATORS: Final = frozenset("+-*/%|")
_TYPED: Final = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE")
_NO_ALIAS: Final = frozenset(
    (
        *("WHERE", "GROUP", "ORDER", "SORT", "DISTRIBUTE", "CLUSTER", "HAVING", "LIMIT", "OFFSET"),
        *("WINDOW", "QUALIFY", "UNION", "EXCEPT", "MINUS", "INTERSECT", "JOIN", "INNER", "CROSS"),
        *("LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "LATERAL", "ON", "USING", "WHEN"),
        *("SET", "TABLESAMPLE", "PIVOT", "UNPIVOT", "SELECT", "INSERT", "FOR"),
    )
)
"""Words after a table that are no alias of it."""


def query(statement: Statement, text: str) -> DataFrame:
    """Run a query by Spark, past states and changes by us."""
    with _views(statement, text) as replaced:
        return statement.query(replaced)


def run_query(statement: Statement) -> DataFrame:
    """Run a whole statement of Spark's."""
    if _MAY_BE.search(statement.text) is None:
        return statement.by_spark()
    with _views(statement, statement.text) as replaced:
        same = replaced == statement.text
        return statement.by_spark() if same else statement.query(replaced)


@contextlib.contextmanager
def _views(statement: Statement, text: str) -> Iterator[str]:
    """SQL text whose tables Spark can find while it plans."""
    names: list[str] = []
    try:
        if _MAY_BE.search(text) is not None:
            for one in reversed(list(_Places(statement, text).found())):
                name = f"_hudi_{uuid.uuid4().hex}"
                one.frame.createOrReplaceTempView(name)
                names.append(name)
                alias = f" AS {one.alias}" if one.alias else ""
                text = f"{text[: one.start]}{name}{alias}{text[one.end :]}"
        yield text
    finally:
        # Spark has resolved them by then; a session without a JVM of its own does so later
        if getattr(statement.spark, "_jvm", None) is not None:
            for name in names:
                statement.spark.catalog.dropTempView(name)


@dataclass(frozen=True, slots=True)
class _Place:
    """A part of a query, and the rows that take its place."""

    start: int
    end: int
    frame: DataFrame
    alias: str | None = None


class _Places:
    """The parts of a query that Spark cannot read."""

    def __init__(self, statement: Statement, text: str) -> None:
        self._statement, self._text = statement, text
        self._tokens = list(tokens_of(text))

    def found(self) -> Iterator[_Place]:
        """Yield them, in order."""
        place = 0
        while place < len(self._tokens):
            found = self._at(place)
            if found is not None:
                yield found[0]
            place = place + 1 if found is None else found[1]

    def _at(self, place: int) -> tuple[_Place, int] | None:
        """The part that begins at a token, and the token after it."""
        token = self._tokens[place]
        if token.word == _CHANGES and self._is_symbol(place + 1, "("):
            return self._changes(place)
        if token.kind not in (TokenKind.WORD, TokenKind.NAME) or not self._may_name_table(place):
            return None
        parts, end = self._name(place)
        clause = self._clause(end)
        if clause is None:
            return self._by_path(place, parts, end)
        target = self._statement.find(parts)
        if target is None:
            return None
        words, after = clause
        value, end = self._value(after)
        table = self._statement.open(target)
        as_of = _version(table, value) if words in _VERSIONS else _time(value)
        frame = table.read(self._statement.spark, as_of=as_of)
        return self._placed(place, end, frame, parts[-1])

    def _by_path(self, place: int, parts: Sequence[str], end: int) -> tuple[_Place, int] | None:
        if len(parts) != 2 or parts[0].lower() != "hudi" or self._is_symbol(end, "("):
            return None
        target = self._statement.find(parts)
        if target is None or target.name is not None:
            return None
        frame = self._statement.open(target).read(self._statement.spark)
        return self._placed(place, end, frame, None)

    def _placed(
        self, start: int, end: int, frame: DataFrame, name: str | None
    ) -> tuple[_Place, int]:
        alias = None if name is None or self._has_alias(end) else spelled([name])
        begin, last = self._tokens[start].start, self._tokens[end - 1].end
        return _Place(begin, last, frame, alias), end

    def _changes(self, place: int) -> tuple[_Place, int]:
        """``hudi_table_changes(table, kind, begin [, end])``."""
        after = self._after_group(place + 1)
        inner = self._text[self._tokens[place + 1].end : self._tokens[after - 1].start]
        values = self._statement.constants(Scanner(inner).items())
        if not 3 <= len(values) <= 4:
            raise self._statement.refusal(
                "hudi_table_changes takes a table or path, latest_state or cdc, a begin, and an end"
            )
        name, kind, begin = values[:3]
        end = _time(values[3]) if len(values) > 3 else None
        table = self._statement.open(self._table_of(str(name)))
        if str(kind).lower() not in ("latest_state", "cdc"):
            raise self._statement.refusal(f"there are no changes {kind!r}: use latest_state or cdc")
        read = table.changes if str(kind).lower() == "cdc" else table.incremental
        frame = read(_begin(begin), end, self._statement.spark)
        return self._placed(place, after, frame, None)

    def _table_of(self, name: str) -> Target:
        parts = None if "/" in name else Scanner(name).name()
        found = None if parts is None else self._statement.find(parts)
        if found is not None:
            return found
        if "/" in name or "\\" in name:
            return self._statement.target(name)
        raise NotATableError(
            name,
            "is no table of the catalog that was created USING hudi",
            "Give its path, which has a slash.",
        )

    # --- tokens ----------------------------------------------------------------------------------

    def _word(self, place: int) -> str:
        return self._tokens[place].word if 0 <= place < len(self._tokens) else ""

    def _is_symbol(self, place: int, symbol: str) -> bool:
        found = self._tokens[place] if 0 <= place < len(self._tokens) else None
        return found is not None and found.kind is TokenKind.SYMBOL and found.text == symbol

    def _may_name_table(self, place: int) -> bool:
        before = self._tokens[place - 1] if place else None
        if before is None:
            return False
        return before.word in _BEFORE_TABLES or before.text in (",", "(")

    def _name(self, place: int) -> tuple[list[str], int]:
        parts = [self._tokens[place].value]
        place += 1
        while self._is_symbol(place, ".") and place + 1 < len(self._tokens):
            following: Token = self._tokens[place + 1]
            if following.kind not in (TokenKind.WORD, TokenKind.NAME):
                break
            parts.append(following.value)
            place += 2
        return parts, place

    def _clause(self, place: int) -> tuple[str, int] | None:
        """The word of a past state, and where its time begins."""
        place += self._word(place) == "FOR"
        word = self._word(place)
        if word not in (*_TIMES, *_VERSIONS):
            return None
        is_clause = self._word(place + 1) == "AS" and self._word(place + 2) == "OF"
        return (word, place + 3) if is_clause else None

    def _value(self, place: int) -> tuple[Any, int]:
        """A time or version, and the token after it."""
        begin = place
        place = self._after_operand(place)
        while place < len(self._tokens) and self._tokens[place].text in _OPERATORS:
            while place < len(self._tokens) and self._tokens[place].text in _OPERATORS:
                place += 1
            place = self._after_operand(place)
        if place == begin:
            raise self._statement.refusal("AS OF names no time")
        first = self._tokens[begin]
        if place == begin + 1 and first.kind is TokenKind.STRING:
            return first.value, place
        text = self._text[first.start : self._tokens[place - 1].end]
        [value] = self._statement.constants([text])
        return value, place

    def _after_operand(self, place: int) -> int:
        if place >= len(self._tokens):
            return place
        token, following = self._tokens[place], self._tokens[place + 1 : place + 2]
        if token.word == "INTERVAL":
            place += 1 + self._is_symbol(place + 1, "-")
            return place + 2 + 2 * (self._word(place + 2) == "TO")
        is_typed = token.word in _TYPED and [one.kind for one in following] == [TokenKind.STRING]
        if is_typed or self._is_symbol(place, ":"):
            return place + 2
        if token.kind in (TokenKind.WORD, TokenKind.NAME):
            _, place = self._name(place)
        elif not self._is_symbol(place, "("):
            return place + 1
        return self._after_group(place) if self._is_symbol(place, "(") else place

    def _after_group(self, place: int) -> int:
        depth = 0
        while place < len(self._tokens):
            depth += self._is_symbol(place, "(") - self._is_symbol(place, ")")
            place += 1
            if depth == 0:
                return place
        raise self._statement.refusal("a parenthesis is not closed")

    def _has_alias(self, place: int) -> bool:
        if place >= len(self._tokens):
            return False
        token = self._tokens[place]
        if token.kind is TokenKind.NAME or token.word == "AS":
            return True
        return token.kind is TokenKind.WORD and token.word not in _NO_ALIAS


def _begin(value: Any) -> Any:
    """The begin of changes; ``None`` for that of the table."""
    text = str(value).strip().lower()
    return None if text == "earliest" or not text.strip("0") else _time(value)


def _time(value: Any) -> Any:
    """A time that a statement names."""
    if isinstance(value, date):  # times are dates as well
        return value
    return str(int(value)) if isinstance(value, int | Decimal) else str(value)


def _version(table: Table, value: Any) -> str:
    """The instant that ``VERSION AS OF`` names."""
    text = str(_time(value))
    if text not in {one.requested_time for one in table.timeline.completed_writes()}:
        raise InstantNotFoundError(text, f"the completed writes of {table.path}")
    return text
