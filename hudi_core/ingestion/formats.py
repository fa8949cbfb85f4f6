"""Rows of source files, by the format of these."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.config.ingestion import IngestionConfig, SourceFormat
from hudi_core.errors import InvalidOptionError, SchemaError, SourceFileError
from hudi_core.ingestion.source_files import SourceFolder, is_first_load
from hudi_core.schema.arrow_types import is_text
from hudi_core.schema.table_schema import META_COLUMNS

CHANGE: Final = "Op"
"""Column of DMS: I, U or D."""
_INSERT: Final = "I"
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
_LEAST_BLOCK, _LARGEST_BLOCK = 1 << 16, 1 << 30


def format_of(paths: Sequence[str]) -> SourceFormat:
    """The format of files, by their names.

    Raises
    ------
    InvalidOptionError
        The names do not say it, or say several.
    """
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

    Attributes
    ----------
    folder
        Where the files are.
    config
        How they are read.
    source_format
        What they hold.
    known
        Columns whose types are known: those of the table, or those that the caller gives.
    names
        Columns of CSV files without a line of names, in their order.
    """

    folder: SourceFolder
    config: IngestionConfig
    source_format: SourceFormat
    known: pa.Schema | None
    names: Sequence[str] = ()

    def read(self, path: str) -> pa.Table:
        """The rows of a file.

        Raises
        ------
        SourceFileError
            It cannot be read as what it should be.
        """
        try:
            read = _READERS[self.source_format](self, path)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).split("\n", 1)[0]
            raise SourceFileError(self.folder.location, path, reason) from error
        return read.drop_columns([name for name in read.column_names if name in META_COLUMNS])

    def parquet(self, path: str) -> pa.Table:
        """The rows of a Parquet file."""
        with self.folder.open(path, is_seekable=True) as file:
            # of nanoseconds INT96 has too few years
            return pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()

    def json(self, path: str) -> pa.Table:
        """The rows of lines that are JSON objects each."""
        data = self._text(path)
        if not data.strip():
            return pa.table({})
        known = pa.schema([one for one in self._known() if _is_of_json(one.type)])
        read = pa_json.ReadOptions(block_size=_block_size(data))
        parse = pa_json.ParseOptions(explicit_schema=known)
        return _typed(pa_json.read_json(pa.BufferReader(data), read, parse), self._known())

    def csv(self, path: str, *names: str) -> pa.Table:
        """The rows of a CSV file.

        Parameters
        ----------
        names
            Columns before those that the schema names, where the file has no line with names.
        """
        config = self.config
        data = self._text(path)
        if not names and not config.csv_header:
            names = (*self._names(),)
        if not data.strip():
            return pa.table({})
        separator = "\t" if _end(path) == _TAB else config.csv_separator
        read = pa_csv.ReadOptions(column_names=list(names) or None, block_size=_block_size(data))
        parse = pa_csv.ParseOptions(
            delimiter=separator, quote_char=config.csv_quote, newlines_in_values=True
        )
        convert = pa_csv.ConvertOptions(
            # what is known is read as text, for Arrow knows fewer forms than it casts
            column_types={one.name: pa.string() for one in self._known()},
            null_values=[config.csv_null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return _typed(pa_csv.read_csv(pa.BufferReader(data), read, parse, convert), self._known())

    def _text(self, path: str) -> bytes:
        with self.folder.open(path) as file:
            found: bytes = file.read()
        return found

    def dms(self, path: str) -> pa.Table:
        """The rows of a file of DMS, with the column of changes."""
        is_load = is_first_load(path)
        if _end(path) == ".parquet":
            rows = self.parquet(path)
        else:
            rows = self._dms_csv(path, has_change=not is_load)
        if CHANGE in rows.column_names or not rows.num_columns:
            return rows
        if not is_load:
            raise SchemaError(
                f"{path} has no column {CHANGE}, which says what happened to a row",
                "Name files of the first load LOAD..., as DMS does, or ingest it as what it is.",
                path=path,
            )
        inserted = pa.repeat(pa.scalar(_INSERT), rows.num_rows)
        return rows.add_column(0, CHANGE, inserted)

    def _dms_csv(self, path: str, *, has_change: bool) -> pa.Table:
        """The rows of a CSV file of DMS."""
        if self.config.csv_names_columns:
            return self.csv(path)
        columns = [name for name in self._names() if name != CHANGE]
        if not has_change:
            # by an option of DMS the first load has the column too
            first = self._text(path).split(b"\n", 1)[0].decode()
            separator = "\t" if _end(path) == _TAB else self.config.csv_separator
            has_change = len(next(csv.reader([first], delimiter=separator), [])) > len(columns)
        return self.csv(path, *([CHANGE, *columns] if has_change else columns))

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


def _has_null(given: pa.DataType) -> bool:
    inner = (given.field(at).type for at in range(given.num_fields))
    return pt.is_null(given) or any(map(_has_null, inner))


def _typed(rows: pa.Table, known: Sequence[pa.Field]) -> pa.Table:
    """Rows whose known columns have their types, where texts allow it."""
    for one in known:
        at = rows.schema.get_field_index(one.name)
        if at < 0 or rows.schema.field(at).type == one.type:
            continue
        column = rows.column(at)
        if pt.is_string(column.type) and not is_text(one.type):
            column = _of_texts(column, one)
        elif pt.is_timestamp(column.type) and pt.is_date(one.type):
            column = column.cast(one.type)
        rows = rows.set_column(at, one.name, column)
    return rows


def _of_texts(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Values of texts; what is empty is null."""
    texts = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    try:
        if not pt.is_timestamp(field.type) or field.type.tz is None:
            return texts.cast(field.type)
        try:
            return texts.cast(field.type)
        except pa.ArrowInvalid:  # times without a zone are those of UTC
            return pc.assume_timezone(texts.cast(pa.timestamp(field.type.unit)), field.type.tz)
    except pa.ArrowException as error:
        raise pa.ArrowInvalid(f"column {field.name}: {error}") from error


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


def _block_size(data: bytes) -> int:
    """The bytes of a whole file, as far as Arrow's readers can.

    Types are found in the first block alone, and no line may be longer than a block.
    """
    return min(max(len(data), _LEAST_BLOCK), _LARGEST_BLOCK)


def _end(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    return f".{name.rpartition('.')[2]}"
