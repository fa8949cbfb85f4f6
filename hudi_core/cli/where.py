"""The conditions of ``--where``: ``column operator literal``, joined by AND.

A small grammar of its own; nothing is evaluated, and no text becomes part of a query.

    where     = condition { AND condition }
    condition = column ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) literal
              | column [ NOT ] IN "(" literal { "," literal } ")"
              | column IS [ NOT ] NULL
    column    = name | '"' name '"'
    literal   = number | "'" text "'" | TRUE | FALSE

Key words in any case; a quote within quotes is written twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from hudi_core.read.filters import Condition

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<word>[^\W\d][\w.]*)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_OPERATORS: Final = {sign: sign for sign in ("=", "==", "!=", "<", "<=", ">", ">=")} | {"<>": "!="}
_BOOLEANS: Final = {"true": True, "false": False}
_KEY_WORDS: Final = frozenset({"and", "in", "is", "not", "null", *_BOOLEANS})


def parse_where(text: str | None) -> list[Condition] | None:
    """Return the conditions of ``--where``; ``None`` without any."""
    return None if text is None else _Parser(text).conditions()


class _Parser:
    """Reads one condition from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._kind, self._token = "", ""
        self._next()

    def conditions(self) -> list[Condition]:
        found = [self._condition()]
        while self._takes("and"):
            found.append(self._condition())
        if self._kind:
            raise self._wrong("AND")
        return found

    def _condition(self) -> Condition:
        name = self._column()
        if self._takes("is"):
            negated = self._takes("not")
            self._require("null")
            return name, "is not null" if negated else "is null", None
        negated = self._takes("not")
        if negated or self._is("in"):
            self._require("in")
            return name, "not in" if negated else "in", self._literals()
        operator = _OPERATORS.get(self._token) if self._kind == "sign" else None
        if operator is None:
            raise self._wrong("an operator")
        self._next()
        return name, operator, self._literal()

    def _column(self) -> str:
        if self._kind == "quoted":
            name = self._token[1:-1].replace('""', '"')
        elif self._kind == "word" and self._token.lower() not in _KEY_WORDS:
            name = self._token
        else:
            raise self._wrong("a column")
        self._next()
        return name

    def _literals(self) -> list[object]:
        self._require("(")
        found = [self._literal()]
        while self._takes(","):
            found.append(self._literal())
        self._require(")")
        return found

    def _literal(self) -> object:
        token = self._token
        value: object = None
        match self._kind:
            case "text":
                value = token[1:-1].replace("''", "'")
            case "number":
                value = float(token) if re.search("[.eE]", token) else int(token)
            case "word":
                value = _BOOLEANS.get(token.lower())
        if value is None:
            raise self._wrong("a number, a 'text', true or false")
        self._next()
        return value

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is not None:
            self._kind = match.lastgroup or ""
            self._token = match[self._kind]
            self._at = match.end()
        elif self._text[self._at :].strip():
            self._kind, self._token = "unknown", self._text[self._at :].split()[0]
        else:
            self._kind, self._token = "", ""

    def _is(self, word: str) -> bool:
        return self._kind in ("word", "sign") and self._token.lower() == word

    def _takes(self, word: str) -> bool:
        found = self._is(word)
        if found:
            self._next()
        return found

    def _require(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong(word.upper())

    def _wrong(self, wanted: str) -> typer.BadParameter:
        here = f"at {self._token}" if self._kind else "at its end"
        return typer.BadParameter(
            f"{self._text!r} lacks {wanted} {here}; conditions are written "
            "\"city = 'Rome' AND fare > 3\"",
            param_hint="'--where'",
        )
