"""Date patterns such as ``yyyy/MM/dd``, for Hudi's timestamp key generator.

A run of one letter is a field of the date, everything else is literal; text in single quotes
does too, and two quotes are one quote. The letters:

====== ================================= ====== =================================
y, Y   year                              H      hour of the day, 0 to 23
M      month; from three on its name     k      hour of the day, 1 to 24
d      day of the month                  K      hour of the half day, 0 to 11
D      day of the year                   h      hour of the half day, 1 to 12
E      name of the day of the week       a      AM or PM
e      number of the day, Monday is 1    m, s   minute, second
x, w   year and week of ISO 8601         S      fraction of a second
\\                                        Z      offset from UTC; only in what is read
====== ================================= ====== =================================

Names are English. Source: Joda-Time's ``DateTimeFormat``, whose other letters are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hudi_core.model.partition_transform import PartitionTransform

_MAX_LENGTH: Final = 256
_TOKEN: Final = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
_WRITTEN: Final = frozenset("yYMdDEexwHkKhamsS")
_READ: Final = frozenset("yYMdDHkKhamsSZ")
_GRAIN: Final = {
    **dict.fromkeys("S", "ms"),
    **dict.fromkeys("s", "s"),
    **dict.fromkeys("m", "m"),
    **dict.fromkeys("HkKha", "h"),
    **dict.fromkeys("dDEexw", "D"),
    **dict.fromkeys("M", "M"),
    **dict.fromkeys("yY", "Y"),
}
"""The shortest period a letter distinguishes, as numpy names it."""
_GRAINS: Final = ("ms", "s", "m", "h", "D", "M", "Y")
_WIDTHS: Final = {"y": 4, "M": 2, "d": 2, "D": 3, "H": 2, "m": 2, "s": 2}
"""How wide a field is that leaves no doubt where it ends."""
_WHOLE: Final = {
    frozenset("y"): PartitionTransform.YEAR,
    frozenset("yM"): PartitionTransform.MONTH,
    frozenset("yMd"): PartitionTransform.DAY,
    frozenset("yD"): PartitionTransform.DAY,
    frozenset("yMdH"): PartitionTransform.HOUR,
    frozenset("yDH"): PartitionTransform.HOUR,
    frozenset("yMdHm"): PartitionTransform.OTHER,
    frozenset("yMdHms"): PartitionTransform.OTHER,
}
"""Fields that distinguish one period from all others, and what other formats call it."""


@dataclass(frozen=True, slots=True)
class DateField:
    """A run of one letter."""

    letter: str
    width: int

    @property
    def is_number(self) -> bool:
        """Whether it is spelled with digits."""
        return self.letter not in "aEZ" and not (self.letter == "M" and self.width > 2)


@dataclass(frozen=True)
class DatePattern:
    """A pattern, taken apart.

    Attributes
    ----------
    text
        As it was given.
    tokens
        Fields, and literal strings.
    """

    text: str
    tokens: tuple[DateField | str, ...]

    @classmethod
    def to_write(cls, text: str) -> DatePattern:
        """Return a pattern that timestamps are written with.

        Raises
        ------
        ValueError
            With a reason that completes "... cannot be used: ...".
        """
        return cls(text, _tokens(text, _WRITTEN))

    @classmethod
    def to_read(cls, text: str) -> DatePattern:
        """Return a pattern that strings are read with.

        Raises
        ------
        ValueError
            With a reason that completes "... cannot be used: ...".
        """
        found = cls(text, _tokens(text, _READ))
        letters = [field.letter for field in found.fields]
        if not {"y", "Y"} & set(letters):
            raise ValueError(f"the format {text!r} has no year")
        if len(set(letters)) < len(letters) or {"y", "Y"} <= set(letters):
            raise ValueError(f"the format {text!r} has a field twice")
        if any(field.letter in "yY" and field.width == 2 for field in found.fields):
            raise ValueError(f"a year of two digits, as in {text!r}, is of several centuries")
        if any(field.letter == "Z" and field.width > 2 for field in found.fields):
            raise ValueError(f"names of zones, as in {text!r}, are not read")
        return found

    @property
    def fields(self) -> tuple[DateField, ...]:
        """The fields, without the strings between them."""
        return tuple(token for token in self.tokens if isinstance(token, DateField))

    @property
    def has_offset(self) -> bool:
        """Whether strings name their offset from UTC."""
        return any(field.letter == "Z" for field in self.fields)

    @cached_property
    def grain(self) -> str:
        """The shortest period that the pattern distinguishes, as numpy names it."""
        found = {_GRAIN[field.letter] for field in self.fields if field.letter != "Z"}
        return next(each for each in _GRAINS if each in found)

    @property
    def levels(self) -> int:
        """How many folders what is written takes, where slashes make folders."""
        return 1 + sum(token.count("/") for token in self.tokens if isinstance(token, str))

    @cached_property
    def is_whole(self) -> bool:
        """Whether each formatted string means exactly one period."""
        return frozenset(field.letter for field in self.fields) in _WHOLE and all(
            field.width == _WIDTHS[field.letter] for field in self.fields
        )

    @property
    def transform(self) -> PartitionTransform:
        """The part of a timestamp that formatted strings keep, in their zone."""
        if not self.is_whole:
            return PartitionTransform.OTHER
        return _WHOLE[frozenset(field.letter for field in self.fields)]


def _tokens(text: str, letters: frozenset[str]) -> tuple[DateField | str, ...]:
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"a format has at most {_MAX_LENGTH} characters")
    tokens: list[DateField | str] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"a quote of the format {text!r} is not closed")
        if found[1]:
            if found[1] not in letters:
                raise ValueError(f"the letter {found[1]!r} of the format {text!r} is not supported")
            tokens.append(DateField(found[1], len(found[0])))
        else:
            tokens.append("'" if found[0] == "''" else (found[2] or found[0]).replace("''", "'"))
        at = found.end()
    if not any(isinstance(token, DateField) for token in tokens):
        raise ValueError(f"the format {text!r} has no field")
    return tuple(tokens)
