"""Tokens of Spark's SQL, and strings as others read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final


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
