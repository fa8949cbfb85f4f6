"""Parsers of option values: string in, value out.

A ``ValueError`` gives the reason where a value cannot be parsed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

Member = TypeVar("Member", bound=StrEnum)
Meant = TypeVar("Meant")


def boolean(text: str) -> bool:
    """Parse ``true`` or ``false``, in any case."""
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("it is neither true nor false")


def optional_flag(text: str) -> bool | None:
    """Parse ``true`` or ``false``; a blank text counts as not given."""
    return boolean(text) if text else None


def integer(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Return a parser of decimal integers within inclusive bounds."""

    def parse(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
            raise ValueError("it is not a whole number")
        value = int(text)
        if value < minimum:
            raise ValueError(f"it is less than {minimum}")
        if maximum is not None and value > maximum:
            raise ValueError(f"it is more than {maximum}")
        return value

    return parse


def number(above: float, below: float) -> Callable[[str], float]:
    """Return a parser of finite numbers strictly between two bounds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("it is not a number") from None
        if not (math.isfinite(value) and above < value < below):
            raise ValueError(f"it is not between {above:g} and {below:g}")
        return value

    return parse


def text_or_none(text: str) -> str | None:
    """Return the text; a blank one counts as not given."""
    return text or None


def local_folder(text: str) -> str | None:
    """Parse a local folder; a blank string counts as missing."""
    scheme, separator, _ = text.partition("://")
    if separator and scheme.lower() != "file":
        raise ValueError(
            f"{scheme}:// is no folder of this machine; give a local path, such as /var/cache/hudi"
        )
    return text or None


def optional(parse: Callable[[str], int]) -> Callable[[str], int | None]:
    """Return a parser for which a blank text counts as not given."""

    def parse_optional(text: str) -> int | None:
        return parse(text) if text else None

    return parse_optional


def names(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of names.

    Blanks around commas and empty parts are ignored.
    """
    parts = tuple(filter(None, map(str.strip, text.split(","))))
    if len(set(parts)) < len(parts):
        twice = sorted({part for part in parts if parts.count(part) > 1})
        raise ValueError(f"it names {', '.join(twice)} twice")
    return parts


def member(kind: type[Member], spell: Callable[[str], str] = str.upper) -> Callable[[str], Member]:
    """Return a parser of the members of an enum.

    ``spell`` writes a text as members are written.
    """

    def parse(text: str) -> Member:
        word = spell(text)
        if word not in tuple(kind):
            raise ValueError(f"it is none of {', '.join(kind)}")
        return kind(word)

    return parse


def meanings_of(known: Mapping[str, Meant]) -> Callable[[str], tuple[Meant, ...]]:
    """Return a parser of words, separated by commas, into their meanings."""

    def parse(text: str) -> tuple[Meant, ...]:
        given = names(text)
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"{unknown[0]} is none of {', '.join(known)}")
        return tuple(dict.fromkeys(known[name] for name in given))

    return parse


def regular_expression(text: str) -> str:
    """Parse a regular expression; blank for none."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is not a regular expression ({error})") from None
    return text
