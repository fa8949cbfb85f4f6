"""Rows of files of JSON, an object each.

Arrow reads them. It takes strings that look like times for times, and rounds whole numbers where a
column has a float as well: such files are read again, or refused by line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
import pyarrow.types as pt

from hudi_core.ingestion.lines import BadLineError, block_size, decoded
from hudi_core.schema.arrow_types import children, is_list, with_children

_COLUMN: Final = re.compile(r"Column\(/([^/)]*)")
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_EXACT_BELOW: Final = {16: 1 << 11, 32: 1 << 24, 64: 1 << 53}
"""Floats of so many bits have all whole numbers below."""
_SCHEMA_HINT: Final = (
    "Pass a schema in which the column is a decimal, or have the numbers written as strings."
)


class _Object(NamedTuple):
    line: int
    end: int
    value: dict[str, Any]


@dataclass(frozen=True)
class JsonFile:
    """A file's bytes, and the columns whose types are known."""

    data: bytes
    known: pa.Schema

    def rows(self) -> pa.Table:
        """The rows; strings are strings, but where a known column has times."""
        try:
            found = _read(self.data, self.known)
            fields = {one.name: one for one in self.known}
            times = [
                pa.field(one.name, _without_times(one.type))
                for one in found.schema
                if one.name not in fields and one.type != _without_times(one.type)
            ]
            if times:
                found = _read(self.data, pa.schema([*self.known, *times]))
            found.validate(full=True)  # Arrow reads what is no UTF-8 without a word
        except (pa.ArrowException, UnicodeDecodeError) as error:
            self._refuse(error)
        inexact = [
            one
            for one, column in zip(found.schema, found.columns, strict=True)
            if any(map(_may_have_changed, column.chunks))
        ]
        if inexact:
            self._require_exact(inexact)
        return found

    def objects(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries."""
        return (one.value for one in self._scanned())

    def line_of(self, row: int) -> int:
        """The number of the line in which a row begins, from 1."""
        return next(islice(self._scanned(), row, None)).line

    @cached_property
    def _text(self) -> str:
        return decoded(self.data, "utf-8").removeprefix("\ufeff")

    def _scanned(self) -> Iterator[_Object]:
        text, decoder = self._text, json.JSONDecoder(object_pairs_hook=_distinct)
        position, line = 0, 1
        while (begin := _blank_end(text, position)) < len(text):
            line += text.count("\n", position, begin)
            try:
                value, position = decoder.raw_decode(text, begin)
            except json.JSONDecodeError as error:
                at = line + text.count("\n", begin, error.pos)
                raise BadLineError(at, f"is no JSON: {error.msg}") from error
            except (ValueError, RecursionError) as error:
                raise BadLineError(line, f"is no JSON: {error}") from error
            if not isinstance(value, dict):
                raise BadLineError(line, "holds no object")
            yield _Object(line, position, value)
            line += text.count("\n", begin, position)

    def _refuse(self, error: Exception) -> NoReturn:
        """Name the first line that Arrow does not read."""
        ends = [one.end for one in self._scanned()]
        good, bad = 0, len(ends)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                _read(self._text[: ends[middle - 1]].encode(), self.known)
                good = middle
            except pa.ArrowException as earlier:
                bad, error = middle, earlier
        reason = str(error).split("\n", 1)[0]
        if not ends:
            raise BadLineError(None, reason) from error
        one = next(islice(self._scanned(), good, None))
        column = self._column_of(one, reason)
        if column is None:
            raise BadLineError(one.line, f"cannot be read: {reason}") from error
        at = self.known.get_field_index(column)
        kind = (
            f"which is no {self.known.field(at).type}" if at >= 0 else "of another kind than before"
        )
        raise BadLineError.of_value(one.line, column, one.value.get(column), kind) from error

    def _column_of(self, one: _Object, reason: str) -> str | None:
        """The column that an error is about."""
        named = _COLUMN.search(reason)
        if named is not None and named[1] in one.value:
            return named[1]
        line = json.dumps(one.value).encode()
        for field in self.known:
            try:
                _read(line, pa.schema([field]), ignores_others=True)
            except pa.ArrowException:
                return str(field.name)
        return None

    def _require_exact(self, fields: Sequence[pa.Field]) -> None:
        """Refuse whole numbers that became floats and changed."""
        for one in self._scanned():
            for field in fields:
                changed = _changed(one.value.get(field.name), field.type)
                if changed is not None:
                    raise BadLineError.of_value(
                        one.line,
                        field.name,
                        changed,
                        f"which would be another number as {field.type}",
                        _SCHEMA_HINT,
                    )


def _read(data: bytes, known: pa.Schema, *, ignores_others: bool = False) -> pa.Table:
    others = "ignore" if ignores_others else "infer"
    return pa_json.read_json(
        pa.BufferReader(data),
        pa_json.ReadOptions(block_size=block_size(data)),
        pa_json.ParseOptions(explicit_schema=known, unexpected_field_behavior=others),
    )


def _without_times(kind: pa.DataType) -> pa.DataType:
    """A type with strings for times."""
    if pt.is_timestamp(kind):
        return pa.string()
    below = [one.with_type(_without_times(one.type)) for _, one in children(kind)]
    return with_children(kind, below) if below else kind


def _may_have_changed(array: pa.Array) -> bool:
    """Whether floats are too large to have all whole numbers."""
    kind = array.type
    if pt.is_struct(kind):
        return any(map(_may_have_changed, array.flatten()))
    if is_list(kind):
        return _may_have_changed(array.flatten())
    if not pt.is_floating(kind):
        return False
    large = pc.greater_equal(pc.abs(array), pa.scalar(_EXACT_BELOW[kind.bit_width], kind))
    return bool(pc.any(large, min_count=0).as_py())


def _changed(value: Any, kind: pa.DataType) -> int | None:
    """The first whole number that floats of a type lack."""
    if isinstance(value, dict) and pt.is_struct(kind):
        found = (_changed(value.get(one.name), one.type) for one in kind)
    elif isinstance(value, list) and is_list(kind):
        found = (_changed(one, kind.value_type) for one in value)
    elif isinstance(value, int) and pt.is_floating(kind):
        return None if _is_exact(value, kind) else value
    else:
        return None
    return next((one for one in found if one is not None), None)


def _is_exact(value: int, kind: pa.DataType) -> bool:
    try:
        narrow = kind.to_pandas_dtype()(float(value))
        return bool(int(narrow) == value)
    except OverflowError:
        return False


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has {twice!r} twice")
    return found


def _blank_end(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return position if blank is None else blank.end()
