"""Floating-point numbers as Java spells them.

``Double.toString`` and ``Float.toString`` give the shortest digits that tell the number from its
neighbours, but never fewer than two; plain from 0.001 up to ten million, else as ``1.0E10``. Java
before 19 sometimes gave a digit more (JDK-4511638).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7


def double_text(value: float) -> str:
    """Return the text of ``Double.toString``."""
    value = float(value)
    digits = repr(value)
    if value and math.isfinite(value):
        # of two digits, Java takes those nearest to the number: 4.9E-324, where Python says 5e-324
        two = f"{value:.1e}"
        if float(two) == value:
            digits = two
    return _spell(value, digits)


def float_text(value: np.float32) -> str:
    """Return the text of ``Float.toString``."""
    number = float(value)
    digits = np.format_float_scientific(np.float32(value), unique=True)
    if number and math.isfinite(number):
        two = f"{number:.1e}"
        if np.float32(two) == np.float32(value):
            digits = two
    return _spell(number, digits)


def _spell(value: float, text: str) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _decimal(text.lstrip("-"))
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(text: str) -> tuple[str, int]:
    """Return the significant digits of a positive number, and the exponent of the first of them."""
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = len(whole) - 1 - leading + int(power or 0)
    return digits.rstrip("0") or "0", exponent
