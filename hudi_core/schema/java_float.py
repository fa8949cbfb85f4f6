"""Floating-point numbers as Java spells them in record keys.

``Double.toString`` and ``Float.toString`` of Java 19 and later give the shortest digits that differ
from those of its neighbours, but never fewer than two; plain from 0.001 up to ten million, else
as ``1.0E10``. Java before 19 takes the form by the same rule and gives a digit more for some
numbers, see :mod:`hudi_core.schema.old_java_float`. The digits are Python's and numpy's own; only
their form is made here.
"""

from __future__ import annotations

import math

import numpy as np

from hudi_core.schema.old_java_float import old_double_digits, old_float_digits

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
