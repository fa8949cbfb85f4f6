"""A statement as words, and a place among them.

Only what a statement begins with, and its clauses, are recognised here; expressions and queries are
handed on as they are written. So nothing that Spark understands is ever refused for its spelling,
and whatever is not recognised is Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from hudi_core.write.conditional.sql_text import Token, TokenKind, tokens_of

_OPENING: Final = {"(": ")", "[": "]"}


@dataclass(slots=True)
class Scanner:
    """A place in a statement.

    Tokens are found as far as they are looked at.
    """

    text: str
    place: int = 0
    _seen: list[Token] = field(default_factory=list)
    _more: Iterator[Token] | None = None

    def peek(self, ahead: int = 0) -> Token | None:
        """The next token, or one after it."""
        if self._more is None:
            self._more = tokens_of(self.text)
        while len(self._seen) <= self.place + ahead:
            found = next(self._more, None)
            if found is None:
                return None
            self._seen.append(found)
        return self._seen[self.place + ahead]

    def take(self, *words: str) -> bool:
        """Go past words, if they are next; ``|`` separates alternatives."""
        for ahead, word in enumerate(words):
            found = self.peek(ahead)
            if found is None or found.word not in word.split("|"):
                return False
        self.place += len(words)
        return True

    def is_symbol(self, symbol: str, ahead: int = 0) -> bool:
        """Whether a symbol is next."""
        found = self.peek(ahead)
        return found is not None and found.kind is TokenKind.SYMBOL and found.text == symbol

    def take_symbol(self, symbol: str) -> bool:
        """Go past a symbol, if it is next."""
        is_next = self.is_symbol(symbol)
        self.place += is_next
        return is_next

    def take_string(self) -> str | None:
        """Go past a string, and return its value."""
        found = self.peek()
        if found is None or found.kind is not TokenKind.STRING:
            return None
        self.place += 1
        return found.value

    def name(self) -> tuple[str, ...] | None:
        """Go past a dotted name, and return its parts."""
        parts: list[str] = []
        while True:
            found = self.peek()
            if found is None or found.kind not in (TokenKind.WORD, TokenKind.NAME):
                return None
            parts.append(found.value)
            self.place += 1
            if not self.take_symbol("."):
                return tuple(parts)

    def group(self) -> str | None:
        """Go past what is in parentheses, and return it."""
        opening = self.peek()
        if opening is None or not self.is_symbol("("):
            return None
        depth = 0
        while (found := self.peek()) is not None:
            self.place += 1
            if found.kind is TokenKind.SYMBOL:
                depth += (found.text in _OPENING) - (found.text in _OPENING.values())
            if depth == 0:
                return self.text[opening.end : found.start]
        return None

    def until(self, ends: Callable[[Scanner], bool]) -> str:
        """Go on to an end outside of parentheses; return what is passed."""
        begin = self.peek()
        if begin is None:
            return ""
        depth, last = 0, begin.start
        while (found := self.peek()) is not None:
            if depth == 0 and (self.is_symbol(";") or ends(self)):
                break
            if found.kind is TokenKind.SYMBOL:
                depth += (found.text in _OPENING) - (found.text in _OPENING.values())
            last, self.place = found.end, self.place + 1
        return self.text[begin.start : last]

    def rest(self) -> str:
        """What is left of the statement."""
        return self.until(lambda _: False)

    def items(self) -> list[str]:
        """Go past items that commas separate, to the end of the statement."""
        found: list[str] = []
        while not self.is_at_end:
            found.append(self.until(lambda scanner: scanner.is_symbol(",")))
            if not self.take_symbol(","):
                break
        return found

    @property
    def is_at_end(self) -> bool:
        """Whether nothing follows but semicolons."""
        ahead = 0
        while self.is_symbol(";", ahead):
            ahead += 1
        return self.peek(ahead) is None


def items_of(text: str) -> list[str]:
    """The items of a list that commas separate."""
    return Scanner(text).items()


def properties_of(text: str) -> dict[str, str] | None:
    """Properties, as of ``TBLPROPERTIES``; ``None`` for what is no list of such."""
    found: dict[str, str] = {}
    for item in items_of(text):
        scanner = Scanner(item)
        key = scanner.take_string()
        if key is None:
            name = scanner.name()
            if name is None:
                return None
            key = ".".join(name)
        scanner.take_symbol("=")
        value = _literal(scanner)
        if value is None or not scanner.is_at_end:
            return None
        found[key] = value
    return found


def _literal(scanner: Scanner) -> str | None:
    """The value of a property, as a string; ``None`` for an expression."""
    found = scanner.take_string()
    while found is not None and (more := scanner.take_string()) is not None:
        found += more
    if found is not None or scanner.is_at_end:
        return found or ""
    tokens = list(tokens_of(scanner.rest()))
    text = "".join(one.text for one in tokens)
    is_word = text.lower() in ("true", "false")
    is_number = tokens[-1].kind is TokenKind.NUMBER and text.lstrip("-") == tokens[-1].text
    return (text.lower() if is_word else text) if is_word or is_number else None


def spelled(parts: Sequence[str]) -> str:
    """A dotted name as SQL spells it, whatever is in its parts."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
