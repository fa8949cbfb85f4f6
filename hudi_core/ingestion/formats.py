"""Rows of source files, by the format of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.config.ingestion import IngestionConfig, SourceFormat
from hudi_core.errors import InvalidOptionError, SchemaError, SourceFileError
from hudi_core.ingestion.source_files import SourceFolder, is_first_load
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
    """

    folder: SourceFolder
    config: IngestionConfig
    source_format: SourceFormat
    known: pa.Schema | None

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
        with self.folder.open(path) as file:
            return pq.ParquetFile(file).read()

    def json(self, path: str) -> pa.Table:
        """The rows of lines that are JSON objects each."""
        with self.folder.open(path) as file:
            data = file.read()
        if not data.strip():
            return pa.table({})
        known = pa.schema([one for one in self._known() if _is_of_json(one.type)])
        read = pa_json.ReadOptions(block_size=_block_size(data))
        parse = pa_json.ParseOptions(explicit_schema=known)
        return pa_json.read_json(pa.BufferReader(data), read, parse)

    def csv(self, path: str, *names: str) -> pa.Table:
        """The rows of a CSV file.

        Parameters
        ----------
        names
            Columns before those that the schema names, where the file has no line with names.
        """
        config, known = self.config, self._known()
        if not config.csv_header and not names:
            names = (*self._names(),)
        with self.folder.open(path) as file:
            data = file.read()
        if not data.strip():
            return pa.table({})
        separator = "\t" if _end(path) == _TAB else config.csv_separator
        read = pa_csv.ReadOptions(column_names=list(names) or None, block_size=_block_size(data))
        parse = pa_csv.ParseOptions(
            delimiter=separator, quote_char=config.csv_quote, newlines_in_values=True
        )
        convert = pa_csv.ConvertOptions(
            column_types={one.name: one.type for one in known if not pt.is_nested(one.type)},
            null_values=[config.csv_null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return pa_csv.read_csv(pa.BufferReader(data), read, parse, convert)

    def dms(self, path: str) -> pa.Table:
        """The rows of a file of DMS, with the column of changes."""
        is_load = is_first_load(path)
        if _end(path) == ".parquet":
            rows = self.parquet(path)
        else:
            columns = [name for name in self._names() if name != CHANGE]
            rows = self.csv(path, *(columns if is_load else [CHANGE, *columns]))
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

    def _names(self) -> Sequence[str]:
        if self.known is None:
            raise InvalidOptionError(
                "schema",
                None,
                "CSV files without a line of names do not say what their columns are",
                "Pass the columns in their order, as an Arrow schema.",
            )
        return [one.name for one in self._known()]

    def _known(self) -> Sequence[pa.Field]:
        return [one for one in self.known or () if one.name not in META_COLUMNS]


_READERS: Final[Mapping[SourceFormat, Callable[[RowReader, str], pa.Table]]] = {
    SourceFormat.PARQUET: RowReader.parquet,
    SourceFormat.JSON: RowReader.json,
    SourceFormat.CSV: RowReader.csv,
    SourceFormat.DMS: RowReader.dms,
}


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
    """The whole file, as far as Arrow's readers can: types are found in the first block alone.

    And no line may be longer than a block.
    """
    return min(max(len(data), _LEAST_BLOCK), _LARGEST_BLOCK)


def _end(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    return f".{name.rpartition('.')[2]}"
