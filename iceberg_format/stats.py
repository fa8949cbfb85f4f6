"""Manifest statistics of a data file: rows, bytes, bounds.

Everything comes from the statistics that the writer collected. In a replay there are none:
then the footer is read, with which the writer's agree but for columns with NaN: it has neither
their number nor bounds.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    PrimitiveType,
    StringType,
)
from pyiceberg.utils.truncate import (
    truncate_upper_bound_binary_string,
    truncate_upper_bound_text_string,
)

from hudi_core.spi import ColumnStats, CorruptMetadataError, Scalar, Storage, TableSchema
from hudi_core.spi.files import columns_of_old_lists, field_id, footer_statistics, leaves
from iceberg_format.manifest_files import new_file
from iceberg_format.partition import partition_of

BOUND_LENGTH: Final = 16
"""Characters of a string, or bytes, that a bound keeps: what Iceberg's own writers keep."""
_DIGITS: Final = Context(prec=76)
_REPEATED: Final = frozenset({"list", "key_value"})


def data_file(
    uri: str,
    size: int,
    rows: int,
    columns: Mapping[str, ColumnStats],
    *,
    schema: Schema,
    metadata: TableMetadata,
    paths: Mapping[str, int],
    counts_nan: bool = True,
) -> DataFile:
    """Return a file as manifests have it.

    ``columns`` are by leaf path; ``paths`` gives field ids by path. ``counts_nan``: the statistics
    have the number of NaN, which those of a footer lack.
    """
    spec_id, partition = partition_of(metadata, schema, columns)
    sizes: dict[int, int] = {}
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    nans: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for path, column in columns.items():
        number = paths.get(path)
        if number is None:
            continue
        sizes[number] = column.compressed_size
        kind = schema.find_type(number)
        if _REPEATED & set(path.split(".")) or not isinstance(kind, PrimitiveType):
            continue  # counts and bounds of repeated values mean other things to other readers
        values[number] = column.value_count
        if column.null_count is not None:
            nulls[number] = column.null_count
        may_have_nan = False
        if isinstance(kind, FloatType | DoubleType):
            may_have_nan = not counts_nan or column.nan_count > 0
            # a file of nothing but NaN is left out by Iceberg-Spark where it looks for values
            # above a bound, and to Spark NaN is the greatest number
            if counts_nan and column.nan_count < column.value_count:
                nans[number] = column.nan_count
        if column.min_value is not None and column.max_value is not None:
            lower[number] = _lower(kind, column.min_value)
            # by one that leaves NaN out, engines to which NaN is the greatest number lose its rows
            bound = None if may_have_nan else _upper(kind, column.max_value)
            if bound is not None:
                upper[number] = bound
    found = new_file(
        content=DataFileContent.DATA,
        file_path=uri,
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=rows,
        file_size_in_bytes=size,
        column_sizes=sizes,
        value_counts=values,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lower,
        upper_bounds=upper,
    )
    found.spec_id = spec_id
    return found


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """What a footer says of a file.

    ``columns`` are by leaf path. ``has_ids``: its columns carry field ids, as all that are written
    here. ``old_lists`` are columns with lists of two levels, which no file written here has.
    """

    rows: int
    columns: dict[str, ColumnStats]
    has_ids: bool
    old_lists: tuple[str, ...]


def read_footer(storage: Storage, path: str, size: int, schema: TableSchema) -> StoredColumns:
    """Return rows and statistics of a file from its footer.

    Columns that the file keeps in another type than the table has now have no statistics. Those of
    a file that carries no field ids are matched by their names.
    """
    try:
        file = pq.ParquetFile(pa.PythonFile(_StoredFile(storage, path, size), mode="r"))
        stored = leaves(file.schema_arrow)
        footer = file.metadata
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptMetadataError(
            path, f"its footer cannot be read: {error}", "Restore the data file from a backup."
        ) from error
    by_id = any(field_id(field) is not None for _, field in stored)
    now: dict[int | str | None, tuple[str, pa.DataType]] = {
        field_id(field) if by_id else name: (name, field.type)
        for name, field in leaves(schema.with_meta())
    }
    found = {}
    by_file = footer_statistics(stored, footer)
    for old, field in stored:
        name, kind = now.get(field_id(field) if by_id else old, ("", None))
        if kind == field.type:
            found[name] = by_file[old]
    old_lists = columns_of_old_lists(stored, footer)
    return StoredColumns(footer.num_rows, found, by_id, old_lists)


class _StoredFile(io.RawIOBase):
    """A storage file with random access, not held in memory."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        super().__init__()
        self._storage, self._path, self._size, self._at = storage, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = min(len(view), max(self._size - self._at, 0))
        data = self._storage.read_range(self._path, self._at, length) if length else b""
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def _lower(kind: PrimitiveType, value: Scalar) -> bytes:
    if isinstance(kind, StringType | BinaryType):
        return to_bytes(kind, value[:BOUND_LENGTH])  # type: ignore[index]
    if isinstance(kind, FloatType | DoubleType) and not value:
        return to_bytes(kind, -0.0)
    return to_bytes(kind, _scaled(kind, value))


def _upper(kind: PrimitiveType, value: Scalar) -> bytes | None:
    if isinstance(kind, StringType) and isinstance(value, str):
        text = truncate_upper_bound_text_string(value, BOUND_LENGTH)
        # the next code point may be one that no text can hold
        if text is None or any("\ud800" <= letter <= "\udfff" for letter in text):
            return None
        return to_bytes(kind, text)
    if isinstance(kind, BinaryType) and isinstance(value, bytes):
        return truncate_upper_bound_binary_string(value, BOUND_LENGTH)
    if isinstance(kind, FloatType | DoubleType) and not value:
        return to_bytes(kind, 0.0)
    return to_bytes(kind, _scaled(kind, value))


def _scaled(kind: PrimitiveType, value: Scalar) -> Scalar:
    """Return a decimal with its type's scale."""
    if isinstance(kind, DecimalType) and isinstance(value, Decimal):
        unscaled = int(value.scaleb(kind.scale, _DIGITS))
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -kind.scale))
    return value
