"""Rows of source files, by the format of these."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.config.ingestion import IngestionConfig, SourceFormat
from hudi_core.engine.python_rows import absent_from, without_row_numbers
from hudi_core.errors import InvalidOptionError, SchemaError, SourceFileError
from hudi_core.ingestion.csv_rows import BadStringError, CsvFile, inferred, typed
from hudi_core.ingestion.json_rows import JsonFile
from hudi_core.ingestion.lines import BadLineError, decoded
from hudi_core.ingestion.source_files import SourceFolder, is_first_load
from hudi_core.schema.absence import with_absence
from hudi_core.schema.arrow_types import plain_type
from hudi_core.schema.table_schema import META_COLUMNS

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
