"""Rows of CSV files, as the strings that they hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.types as pt

from hudi_core.ingestion.lines import BadLineError, block_size, decoded
from hudi_core.schema.arrow_types import is_text, repeated_names

_UTF_8 = "utf-8"


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file's bytes, and how they are read.

    ``null`` is what a missing value is written as. ``names`` is ``None`` where the first line has
    them.
    """

    data: bytes
    separator: str
    quote: str
    null: str
    encoding: str
    names: Sequence[str] | None

    def rows(self) -> pa.Table:
        """The rows; all columns hold strings."""
        data = self.data
        if self.encoding != _UTF_8:
            data = decoded(data, self.encoding).encode()
        try:
            names = self._columns()
            return self._read(data, names)
        except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
            self._refuse(error)

    def line_of(self, row: int) -> int:
        """The number of the line in which a row begins, from 1."""
        for at, (line, _) in enumerate(self._records()):
            if at == row + (self.names is None):
                return line
        raise AssertionError(f"there are fewer than {row} rows")

    def _columns(self) -> list[str]:
        if self.names is not None:
            return [*self.names]
        line, names = next(self._records(), (1, []))
        for name in repeated_names(names):
            raise BadLineError(line, f"names the column {name!r} twice", column=name)
        return names

    def _read(self, data: bytes, names: Sequence[str]) -> pa.Table:
        """The rows; no type is guessed."""
        read = pa_csv.ReadOptions(
            column_names=None if self.names is None else [*names], block_size=block_size(data)
        )
        parse = pa_csv.ParseOptions(
            delimiter=self.separator, quote_char=self.quote, newlines_in_values=True
        )
        convert = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[self.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        if b"\n" not in data:
            data += b"\n"  # or Arrow takes a line of names for no line
        found = pa_csv.read_csv(pa.BufferReader(data), read, parse, convert)
        if set(found.column_names) <= set(names):
            return found
        return self._read(data, found.column_names)  # Arrow splits the first line in another way

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The records that are not empty, and where they begin."""
        lines = io.TextIOWrapper(
            io.BytesIO(self.data),
            "utf-8-sig" if self.encoding == _UTF_8 else self.encoding,
            newline="",
        )
        reader = csv.reader(lines, delimiter=self.separator, quotechar=self.quote)
        line = 1
        for record in reader:
            if record:
                yield line, record
            line = reader.line_num + 1

    def _refuse(self, error: Exception) -> NoReturn:
        """Name the first line that is wrong."""
        decoded(self.data, self.encoding)
        try:
            width = len(self.names or ())
            for line, record in self._records():
                width = width or len(record)
                if len(record) != width:
                    raise BadLineError(
                        line, f"has {len(record)} values, where there are {width} columns"
                    )
        except csv.Error as unread:
            raise BadLineError(None, f"it is no CSV: {unread}") from error
        raise BadLineError(None, str(error).split("\n", 1)[0]) from error


# --- strings as values of columns, where that changes nothing -------------------------------------


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
