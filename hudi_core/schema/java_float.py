"""Floating-point numbers as Java spells them in record keys.

``Double.toString`` and ``Float.toString`` of Java 19 and later give the shortest digits that differ
from those of its neighbours, but never fewer than two; plain from 0.001 up to ten million, else
as ``1.0E10``. Java before 19 takes the form by the same rule and gives a digit more for some
numbers, see below. The digits are Python's and numpy's own; only
their form is made here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

_PLAIN_FROM, _PLAIN_BELOW = -3, 7
"""Exponents of the first digit."""


def double_text(value: float, *, old: bool = False) -> str:
    """The text of ``Double.toString``.

    ``old`` is Java before 19.
    """
    value = float(value)
    if not (value and math.isfinite(value)):
        return _special(value)
    if old:
        return _spell(value < 0, *old_double_digits(abs(value)))
    digits = repr(value)
    # of two digits, Java takes those nearest to the number: 4.9E-324, where Python says 5e-324
    two = f"{value:.1e}"
    return _spell(value < 0, *_decimal(two if float(two) == value else digits))


def float_text(value: np.float32, *, old: bool = False) -> str:
    """The text of ``Float.toString``.

    ``old`` is Java before 19.
    """
    number = float(value)
    if not (number and math.isfinite(number)):
        return _special(number)
    if old:
        return _spell(number < 0, *old_float_digits(abs(number)))
    digits = np.format_float_scientific(np.float32(value), unique=True)
    two = f"{number:.1e}"
    return _spell(number < 0, *_decimal(two if np.float32(two) == np.float32(value) else digits))


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f"{sign}{'Infinity' if value else '0.0'}"


def _spell(is_negative: bool, digits: str, exponent: int) -> str:
    sign = "-" if is_negative else ""
    if not _PLAIN_FROM <= exponent < _PLAIN_BELOW:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"


def _decimal(text: str) -> tuple[str, int]:
    """The significant digits of a number, and the exponent of the first."""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = len(whole) - 1 - leading + int(power or 0)
    return digits.rstrip("0") or "0", exponent


# --- digits of Java before 19 ---------------------------------------------------------------------

# They distinguish a number from its neighbours, but are not always the fewest that do
# (JDK-4511638): ``4.73E21`` is spelled ``4.729999999999999E21``. Which numbers these are follows
# from how the digits are found: one after the other, the rest scaled by powers of two and five,
# until what is left is smaller than half the gap to a neighbour; whole numbers digit by digit.
# Where all that fits 32 or 64 bits it is done in these, and what overflows wraps around. Python and
# numpy choose the fewest digits, and cannot do it otherwise.


_WIDTH: Final = 53
"""Bits of a double's significand; a float's is widened to it."""
_SINGLE: Final = 24
_LEAST_DOUBLE, _LEAST_SINGLE = -1022, -126
"""Exponents of the least numbers whose significand is whole."""
_GREATEST_WHOLE: Final = 62
_EXACT_FIVES: Final = 27
"""Powers of five whose bits are known exactly; of others three for each are reckoned."""
_LOG10_2: Final = 0.30103

Digits = tuple[str, int]
"""Digits, and the exponent of the first of them."""


def old_double_digits(value: float) -> Digits:
    """The digits of a positive, finite double."""
    return _digits(value, _WIDTH, _LEAST_DOUBLE)


def old_float_digits(value: float) -> Digits:
    """The digits of a positive, finite float."""
    return _digits(value, _SINGLE, _LEAST_SINGLE)


def _digits(value: float, width: int, least: int) -> Digits:
    fraction, power = math.frexp(value)
    exponent = power - 1  # of the first bit
    # a number below the least whole one has fewer bits that count
    precision = width - max(0, least - exponent)
    significand = int(math.ldexp(fraction, _WIDTH))
    trailing = (significand & -significand).bit_length() - 1
    bits = _WIDTH - trailing
    below = max(0, bits - exponent - 1)  # of them behind the point
    if not below and exponent <= _GREATEST_WHOLE:
        return _whole_digits(significand, exponent, precision)
    return _fraction_digits(significand >> trailing, exponent, precision, below)


def _whole_digits(significand: int, exponent: int, precision: int) -> Digits:
    """All digits of a whole number that its bits determine."""
    shift = exponent - (_WIDTH - 1)
    number = significand << shift if shift >= 0 else significand >> -shift
    unknown = exponent - precision - 1
    dropped = int(unknown * _LOG10_2) if unknown > 1 else 0
    if dropped:
        number, rest = divmod(number, 10**dropped)
        number += rest >= 10**dropped // 2
    digits = str(number)
    return digits.rstrip("0"), len(digits) - 1 + dropped


def _fraction_digits(odd: int, exponent: int, precision: int, below: int) -> Digits:
    """The first digits that distinguish a number from its neighbours.

    ``odd`` is the number without powers of two, ``exponent`` that of its first bit; ``precision``
    bits of it count, and ``below`` are behind the point.
    """
    bits = odd.bit_length()
    decimal = _estimated(odd, exponent)
    fives_above, fives_below = max(0, -decimal), max(0, decimal)
    twos = fives_above + below + exponent
    gap, scale = twos - precision, fives_below + below
    twos -= bits - 1
    shared = min(twos, scale)
    twos, scale, gap = twos - shared, scale - shared, gap - shared
    if bits == 1:
        gap -= 1  # below a power of two the next number is half as far
    if gap < 0:
        twos, scale, gap = twos - gap, scale - gap, 0
    needed = max(bits + twos + _bits(fives_above), scale + 1 + _bits(fives_below + 1))
    left = _Rest(
        value=odd * 5**fives_above << twos,
        unit=5**fives_below << scale,
        gap=5**fives_above << gap,
        width=32 if needed < 32 else 64 if needed < 64 else None,
    )
    steps = left.steps()
    digit, low, high = next(steps)
    found = []
    if digit == 0 and not high:
        decimal -= 1
    else:
        found.append(digit)
    if decimal < -3 or decimal >= 8:
        low = high = False  # a second digit is written in any case
    while not (low or high):
        digit, low, high = next(steps)
        found.append(digit)
    text = "".join(map(str, found))
    if high and (not low or left.rounds_up(found[-1])):
        above = str(int(text) + 1)
        if len(above) > len(text):
            return above[:-1], decimal + 1
        text = above
    return text, decimal


@dataclass(slots=True)
class _Rest:
    """The rest of a number while its digits are taken off.

    ``value`` is the rest, ``unit`` what the next digit counts, ``gap`` half the distance to the
    next number; ``width`` are the bits in which Java calculates, ``None`` for as many as are
    needed.
    """

    value: int
    unit: int
    gap: int
    width: int | None

    def steps(self) -> Iterator[tuple[int, bool, bool]]:
        """Yield each digit, and whether the remainder ends the number.

        The two flags: the remainder is low enough, it is high enough.
        """
        tens = 10 * self.unit
        while True:
            digit, rest = divmod(self.value, self.unit)
            self.value, self.gap = 10 * rest, self._wrapped(10 * self.gap)
            if self.gap <= 0:
                yield digit, True, True  # what overflowed is more than the rest
                continue
            above = self._wrapped(self.value + self.gap)
            is_high = above >= tens if self.width is None else above > tens
            yield digit, self.value < self.gap, is_high

    def rounds_up(self, last: int) -> bool:
        """Whether the rest is nearer to the digit above the last one."""
        twice, tens = 2 * self.value, 10 * self.unit
        return twice > tens or (twice == tens and last % 2 == 1)

    def _wrapped(self, number: int) -> int:
        if self.width is None:
            return number
        number &= (1 << self.width) - 1
        return number - (1 << self.width) if number >> (self.width - 1) else number


def _estimated(odd: int, exponent: int) -> int:
    """The exponent of the first digit, or one more."""
    fraction = math.ldexp(odd, 1 - odd.bit_length())  # from 1 to 2
    guess = (fraction - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981
    return math.floor(guess)


def _bits(power: int) -> int:
    if power == 0:
        return 0
    return (5**power).bit_length() if power < _EXACT_FIVES else 3 * power
