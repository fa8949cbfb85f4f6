"""Strings as values of columns, where that changes nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.schema.arrow_types import is_text

_WHOLE: Final = r"^-?[0-9]+$"
_NUMBER: Final = r"^-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NO_NUMBER: Final = r"(?i)^-?(nan|inf|infinity)$"
_PLAIN_WHOLE: Final = r"^(0|-?[1-9][0-9]*)$"
_PLAIN_NUMBER: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_TRUTH: Final = r"(?i)^(true|false)$"
_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_WRITTEN_ONCE: Final = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_boolean, pt.is_date)
"""Types whose values are one key each, however a string spells them."""
_EXACT_DIGITS: Final = 15
"""Numbers of as many digits are the same ones after they were doubles."""


class BadStringError(ValueError):
    """A string that a column cannot hold as it is."""

    def __init__(self, row: int, value: str, reason: str) -> None:
        self.row, self.value, self.reason = row, value, reason
        super().__init__(reason)


def typed(strings: pa.ChunkedArray, kind: pa.DataType, *, is_key: bool) -> pa.ChunkedArray:
    """Return strings as values of a type.

    One that is empty is null, but of a type of strings.

    With ``is_key`` each string has to be as the value is written, so that two that differ are two
    keys. A value that would lose digits is an error.
    """
    if is_text(kind):
        return strings.cast(kind)
    strings = pc.if_else(pc.equal(strings, ""), pa.scalar(None, pa.string()), strings)
    if pt.is_integer(kind):
        _require_form(strings, _WHOLE, kind)
    elif pt.is_floating(kind):
        _require_form(strings, f"{_NUMBER}|{_NO_NUMBER}", kind)
    try:
        values = _cast(strings, kind)
    except pa.ArrowException as error:
        row = _first_refused(strings, kind)
        raise BadStringError(row, strings[row].as_py(), f"which is no {kind}") from error
    if pt.is_floating(kind):
        _require_exact(strings, values, kind)
    if is_key and any(one(kind) for one in _WRITTEN_ONCE):
        _require_same(strings, values, kind)
    return values


def inferred(strings: pa.ChunkedArray, *, is_key: bool) -> pa.ChunkedArray:
    """Return strings as values of the narrowest type that has them all.

    Without a number that begins with zeros, or has more digits than its type. Where none is more
    than a string they stay what they are, and where none is there they are of the type null.
    """
    empty = pc.equal(strings, "")
    held = strings.filter(pc.invert(pc.fill_null(empty, True)))
    if not len(held):
        return pa.chunked_array([pa.nulls(len(strings))])
    for form, kind in (
        (_PLAIN_WHOLE, pa.int64()),
        (_PLAIN_NUMBER, pa.float64()),
        (_TRUTH, pa.bool_()),
        (_DAY, pa.date32()),
        ("", pa.timestamp("us")),
        ("", pa.timestamp("us", "UTC")),
    ):
        if not _all(pc.match_substring_regex(held, form)):
            continue
        if pt.is_timestamp(kind) and is_key:
            continue  # a time is written in many ways
        try:
            found = typed(strings, kind, is_key=is_key)
        except BadStringError:
            continue
        if not pt.is_floating(kind) or _keeps_digits(strings, found):
            return found
    return strings


def _cast(strings: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pt.is_time(kind):  # Arrow casts no text to one
        days = pc.binary_join_element_wise("1970-01-01T", strings, "")
        return days.cast(pa.timestamp(kind.unit)).cast(kind)
    if not pt.is_timestamp(kind) or kind.tz is None:
        return strings.cast(kind)
    try:
        return strings.cast(kind)
    except pa.ArrowInvalid:  # times without a zone are those of UTC
        return pc.assume_timezone(strings.cast(pa.timestamp(kind.unit)), kind.tz)


def _require_form(strings: pa.ChunkedArray, form: str, kind: pa.DataType) -> None:
    """Refuse what Arrow takes for a number, such as 0x1F."""
    _raise_first(strings, pc.match_substring_regex(strings, form), f"which is no {kind}")


def _require_exact(strings: pa.ChunkedArray, values: pa.ChunkedArray, kind: pa.DataType) -> None:
    """Refuse numbers beyond floats, and whole ones that these lack."""
    known = pc.or_(pc.is_finite(values), pc.match_substring_regex(strings, _NO_NUMBER))
    _raise_first(strings, known, f"which is beyond {kind}")
    whole = pc.fill_null(pc.match_substring_regex(strings, _WHOLE), False)
    digits = 16 if pt.is_float64(kind) else 4 if pt.is_float16(kind) else 8
    long = pc.and_(whole, pc.fill_null(pc.greater_equal(pc.utf8_length(strings), digits), False))
    for row in np.flatnonzero(long.to_numpy()).tolist():
        text = strings[row].as_py()
        if int(text) != int(values[row].as_py()):
            raise BadStringError(row, text, f"which would be another number as {kind}")


def _require_same(strings: pa.ChunkedArray, values: pa.ChunkedArray, kind: pa.DataType) -> None:
    back = values.cast(pa.string())
    same = pc.equal(back, strings)
    if _all(same):
        return
    row = pc.index(pc.fill_null(same, True), False).as_py()
    raise BadStringError(
        row,
        strings[row].as_py(),
        f"which is {back[row].as_py()} as {kind}: in a record key these are two",
    )


def _raise_first(strings: pa.ChunkedArray, holds: pa.ChunkedArray, reason: str) -> None:
    if not _all(holds):
        row = pc.index(pc.fill_null(holds, True), False).as_py()
        raise BadStringError(row, strings[row].as_py(), reason)


def _all(holds: pa.ChunkedArray) -> bool:
    return bool(pc.all(holds, min_count=0).as_py())


def _first_refused(strings: pa.ChunkedArray, kind: pa.DataType) -> int:
    """Where the first text is that is no value of a type."""
    good, bad = 0, len(strings)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _cast(strings.slice(0, middle), kind)
            good = middle
        except pa.ArrowException:
            bad = middle
    return good


def _keeps_digits(strings: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    """Whether doubles are the numbers that strings are, to the last digit."""
    long = pc.fill_null(pc.greater(pc.utf8_length(strings), _EXACT_DIGITS), False)
    pairs = zip(strings.filter(long).to_pylist(), values.filter(long).to_pylist(), strict=True)
    return all(Decimal(text) == Decimal(repr(value)) for text, value in pairs)
