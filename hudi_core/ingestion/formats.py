"""Rows of source files, by the format of these."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.config.ingestion import IngestionConfig, SourceFormat
from hudi_core.engine.python_rows import absent_from, without_row_numbers
from hudi_core.errors import InvalidOptionError, SchemaError, SourceFileError
from hudi_core.ingestion.csv_rows import BadStringError, CsvFile, inferred, typed
from hudi_core.ingestion.lines import BadLineError, block_size, decoded
from hudi_core.ingestion.source_files import SourceFolder, is_first_load
from hudi_core.schema.absence import with_absence
from hudi_core.schema.arrow_types import children, is_list, plain_type, with_children
from hudi_core.schema.table_schema import META_COLUMNS

# --- rows of files of JSON, an object each --------------------------------------------------------
# Arrow reads them. It takes strings that look like times for times, and rounds whole numbers where
# a column has a float as well: such files are read again, or refused by line.


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


# --- formats --------------------------------------------------------------------------------------


CHANGE: Final = "Op"
"""Column of DMS: I, U or D."""
_INSERT: Final = "I"
_CHANGES: Final = (_INSERT, "U", "D")
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy")
_ENDS: Final = {
    ".parquet": SourceFormat.PARQUET,
    ".json": SourceFormat.JSON,
    ".jsonl": SourceFormat.JSON,
    ".ndjson": SourceFormat.JSON,
    ".csv": SourceFormat.CSV,
    ".tsv": SourceFormat.CSV,
}
_TAB: Final = ".tsv"
_KEY_HINT: Final = (
    "Keys are compared as the column writes them. Nothing of the file's commit was written: mend "
    "the file, or make a table in which the column holds strings."
)


def format_of(paths: Sequence[str]) -> SourceFormat:
    """The format of files, by their names."""
    found = {_ENDS.get(_end(path)) for path in paths}
    if len(found) == 1 and (only := found.pop()) is not None:
        return only
    raise InvalidOptionError(
        IngestionConfig.source_format.key,
        None,
        f"the names of the files do not say what these hold, such as {paths[0]}",
        f"Set it to one of {', '.join(SourceFormat)}.",
    )


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads the rows of files.

    ``known`` are columns whose types the table or the caller gives; ``names`` those of CSV files
    without a line of names. Without ``marks_absent`` columns that a JSON row lacks are null.
    """

    folder: SourceFolder
    config: IngestionConfig
    source_format: SourceFormat
    known: pa.Schema | None
    names: Sequence[str] = ()
    keys: frozenset[str] = frozenset()
    marks_absent: bool = False

    def read(self, path: str) -> pa.Table:
        """The rows of a file."""
        try:
            read = _READERS[self.source_format](self, path)
            twice = [name for name, count in Counter(read.column_names).items() if count > 1]
            if twice:
                raise BadLineError(None, f"it has several columns named {twice[0]!r}")
        except BadLineError as error:
            raise SourceFileError(
                self.folder.location,
                path,
                str(error),
                error.hint,
                line=error.line,
                column=error.column,
                value=error.value,
            ) from error
        except (pa.ArrowException, OSError) as error:
            reason = str(error).split("\n", 1)[0]
            raise SourceFileError(self.folder.location, path, reason) from error
        return read.drop_columns([name for name in read.column_names if name in META_COLUMNS])

    def parquet(self, path: str) -> pa.Table:
        """The rows of a Parquet file."""
        with self.folder.open(path, is_seekable=True) as file:
            # of nanoseconds INT96 has too few years
            rows = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
        rows = without_row_numbers(rows)
        # files of one folder may differ in what their writers noted beside the same columns
        return rows.cast(pa.schema([one.with_type(plain_type(one.type)) for one in rows.schema]))

    def json(self, path: str) -> pa.Table:
        """The rows of lines that are JSON objects each."""
        data = self._text(path)
        if not data.strip():
            return pa.table({})
        known = pa.schema([one for one in self._known() if _is_of_json(one.type)])
        file = JsonFile(data, known)
        rows = self._typed(file.rows(), file.line_of)
        if not self.marks_absent:
            return rows
        lacking = absent_from(
            file.objects(), rows, lambda row: f"Line {file.line_of(row):,} of {path}"
        )
        return with_absence(rows, lacking)

    def csv(self, path: str, *names: str) -> pa.Table:
        """The rows of a CSV file: strings, but for known columns.

        ``names`` are columns before those that the schema names, where the file has no line with
        names.
        """
        file = self._csv_file(path, *names)
        return pa.table({}) if file is None else self._typed(file.rows(), file.line_of)

    def _csv_file(self, path: str, *names: str) -> CsvFile | None:
        """A CSV file; ``None`` where it is empty."""
        config = self.config
        data = self._text(path)
        if not names and not config.csv_header:
            names = (*self._names(),)
        if not data.strip():
            return None
        separator = "\t" if _end(path) == _TAB else config.csv_separator
        return CsvFile(
            data, separator, config.csv_quote, config.csv_null, config.csv_encoding, names or None
        )

    def _typed(self, rows: pa.Table, line_of: Callable[[int], int]) -> pa.Table:
        """Rows whose known columns have their types."""
        for one in self._known():
            at = rows.schema.get_field_index(one.name)
            given = None if at < 0 else rows.schema.field(at).type
            if given is None or given == one.type or pt.is_null(given):
                continue
            column = rows.column(at)
            if not pt.is_string(given):
                if _is_of_json(one.type) or pt.is_nested(given):
                    continue  # read as what it is, or to be cast
                row = pc.index(column.is_valid(), True).as_py()
                reason = f"which is no {one.type}"
                raise BadLineError.of_value(line_of(row), one.name, column[row].as_py(), reason)
            try:
                column = typed(column, one.type, is_key=one.name in self.keys)
            except BadStringError as error:
                hint = _KEY_HINT if one.name in self.keys else None
                raise BadLineError.of_value(
                    line_of(error.row), one.name, error.value, error.reason, hint
                ) from error
            rows = rows.set_column(at, one.name, column)
        return rows

    def _text(self, path: str) -> bytes:
        with self.folder.open(path) as file:
            found: bytes = file.read()
        return found

    def dms(self, path: str) -> pa.Table:
        """The rows of a file of DMS, with the column of changes."""
        is_load = is_first_load(path)
        file = None
        if _end(path) == ".parquet":
            rows = self.parquet(path)
        elif (file := self._dms_csv(path, has_change=not is_load)) is not None:
            rows = self._typed(file.rows(), file.line_of)
        else:
            return pa.table({})
        if CHANGE in rows.column_names:
            _require_changes(rows.column(CHANGE).cast(pa.string()), file)
            return rows
        if not is_load:
            raise SchemaError(
                f"{path} has no column {CHANGE}, which says what happened to a row",
                "Name files of the first load LOAD..., as DMS does, or ingest it as what it is.",
                path=path,
            )
        inserted = pa.repeat(pa.scalar(_INSERT), rows.num_rows)
        return rows.add_column(0, CHANGE, inserted)

    def _dms_csv(self, path: str, *, has_change: bool) -> CsvFile | None:
        """A CSV file of DMS."""
        if self.config.csv_names_columns:
            return self._csv_file(path)
        columns = [name for name in self._names() if name != CHANGE]
        if not has_change:
            # by an option of DMS the first load has the column too
            encoding = self.config.csv_encoding
            first = decoded(self._text(path).split(b"\n", 1)[0], encoding)
            separator = "\t" if _end(path) == _TAB else self.config.csv_separator
            has_change = len(next(csv.reader([first], delimiter=separator), [])) > len(columns)
        return self._csv_file(path, *([CHANGE, *columns] if has_change else columns))

    def _names(self) -> Sequence[str]:
        if not self.names:
            raise InvalidOptionError(
                "schema",
                None,
                "CSV files without a line of names do not say what their columns are",
                "Name the columns in their order: with `hudi ingest` by `--schema FILE`, an Avro "
                "schema in JSON, with hudi.ingest by schema=, an Arrow schema. For files of DMS "
                f"that have such a line, set {IngestionConfig.csv_names_columns.key}=true.",
            )
        return [name for name in self.names if name not in META_COLUMNS]

    def _known(self) -> Sequence[pa.Field]:
        return [one for one in self.known or () if one.name not in META_COLUMNS]


_READERS: Final[Mapping[SourceFormat, Callable[[RowReader, str], pa.Table]]] = {
    SourceFormat.PARQUET: RowReader.parquet,
    SourceFormat.JSON: RowReader.json,
    SourceFormat.CSV: RowReader.csv,
    SourceFormat.DMS: RowReader.dms,
}


def without_untyped(rows: pa.Table, known: pa.Schema | None) -> pa.Table:
    """Rows without new columns that have no value, and so no type."""
    stored = () if known is None else known.names
    untyped = [one.name for one in rows.schema if one.name not in stored and _has_null(one.type)]
    return rows.drop_columns(untyped)


def _require_changes(changes: pa.ChunkedArray, file: CsvFile | None) -> None:
    """Refuse changes of no kind of DMS, which would be updates."""
    row = pc.index(pc.is_in(changes, pa.array(_CHANGES)), False).as_py()
    if row < 0:
        return
    value, reason = changes[row].as_py(), f"which is none of {', '.join(_CHANGES)}"
    if file is None:
        what = f"row {row + 1:,} has {value!r} in the column {CHANGE}, {reason}"
        raise BadLineError(None, what, column=CHANGE, value=value)
    raise BadLineError.of_value(file.line_of(row), CHANGE, value, reason)


def holds_csv(source_format: SourceFormat, paths: Sequence[str]) -> bool:
    """Whether files of a format hold CSV."""
    is_dms = source_format is SourceFormat.DMS
    return source_format is SourceFormat.CSV or (
        is_dms and not any(_end(path) == ".parquet" for path in paths)
    )


def with_inferred(rows: pa.Table, known: pa.Schema | None, keys: Collection[str]) -> pa.Table:
    """Rows whose new columns of strings have the types that these show."""
    stored = () if known is None else known.names
    for at, one in enumerate(rows.schema):
        if one.name not in stored and one.name != CHANGE and pt.is_string(one.type):
            rows = rows.set_column(at, one.name, inferred(rows.column(at), is_key=one.name in keys))
    return rows


def _has_null(given: pa.DataType) -> bool:
    inner = (given.field(at).type for at in range(given.num_fields))
    return pt.is_null(given) or any(map(_has_null, inner))


def _is_of_json(given: pa.DataType) -> bool:
    """Whether Arrow's reader of JSON makes values of a type."""
    if pt.is_struct(given):
        return all(_is_of_json(given.field(at).type) for at in range(given.num_fields))
    if pt.is_list(given):
        return _is_of_json(given.value_type)
    return any(
        is_kind(given)
        for is_kind in (
            pt.is_integer,
            pt.is_floating,
            pt.is_boolean,
            pt.is_string,
            pt.is_decimal,
            pt.is_timestamp,
        )
    )


def _end(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    return f".{name.rpartition('.')[2]}"
