"""Rows of CSV files, as the strings that they hold."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
import pyarrow.csv as pa_csv

from hudi_core.ingestion.lines import BadLineError, block_size, decoded

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
        for name in names:
            if names.count(name) > 1:
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
