"""Reads columns, bloom filters and footers of base files for indexes.

Ranges of columns never come from here when a write commits: its writers collected them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.footer_statistics import columns_of_old_lists, footer_statistics
from hudi_core.base_file.key_footer import BOUNDS_FOOTER, BOUNDS_OF_ALL
from hudi_core.base_file.statistics import leaf_columns
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.stats import ColumnStats, FileStats
from hudi_core.schema.alignment import stored_fields
from hudi_core.schema.arrow_types import leaves
from hudi_core.schema.table_schema import RECORD_KEY

BLOOM_FOOTER: Final = b"org.apache.hudi.bloomfilter"
_WITHOUT_BOUNDS: Final = "parquet-mr"
"""What writes no bounds of a column with NaN, as it says in its files."""


def read_columns(
    client: TableMetaClient, path: str, names: Sequence[str], rows: int | None = None
) -> pa.Table:
    """Return columns of a data file; those that it lacks are null.

    Record keys that are virtual are made.
    """
    keys = FileKeys.of(client) if RECORD_KEY in names and client.config.makes_keys else None
    with opened_file(client, path) as file:
        stored = stored_fields(file.schema_arrow)
        held = {field.name for field in stored}
        own = [name for name in names if name in held]
        needed = [] if keys is None else keys.columns(stored, path)
        wanted = list(dict.fromkeys([*own, *needed]))
        found = file.read(wanted) if rows is None else _first_rows(file, wanted, rows)
    columns = {
        name: found.column(name) if name in held else pa.nulls(found.num_rows) for name in names
    }
    if keys is not None:
        columns[RECORD_KEY] = keys.of_rows(found, stored, path)
    return pa.table(columns)


def _first_rows(file: pq.ParquetFile, names: Sequence[str], rows: int) -> pa.Table:
    schema = pa.schema([file.schema_arrow.field(name) for name in names])
    batches = islice(file.iter_batches(batch_size=rows, columns=list(names)), 1)
    return pa.Table.from_batches(batches, schema)


def read_file_metadata(client: TableMetaClient, path: str) -> pq.FileMetaData:
    """The footer of a data file."""
    with opened_file(client, path) as file:
        return file.metadata


def read_bloom(client: TableMetaClient, path: str) -> bytes:
    """Return the bloom filter in a file's footer; empty without one."""
    footers = read_file_metadata(client, path).metadata or {}
    return bytes(footers.get(BLOOM_FOOTER, b""))


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of a data file.

    Attributes
    ----------
    schema
        Columns of the file, with the field ids that it carries.
    rows
        Number of rows.
    columns
        Statistics by leaf path, of the columns that are wanted.
    old_lists
        Names of the columns that hold lists of two levels, see
        :func:`~hudi_core.base_file.footer_statistics.columns_of_old_lists`.
    """

    schema: pa.Schema
    rows: int
    columns: FileStats
    old_lists: tuple[str, ...] = ()


def read_footer(client: TableMetaClient, path: str, schema: pa.Schema) -> Footer:
    """Return the footer of a data file.

    Statistics of columns that the file holds in a type of another family than the table are left
    out.
    """
    with opened_file(client, path) as file:
        return footer_of(file, schema)


def footer_of(file: pq.ParquetFile, schema: pa.Schema) -> Footer:
    """Return the footer of an open data file; see :func:`read_footer`."""
    stored, rows = file.schema_arrow, file.metadata.num_rows
    own = leaves(stored)
    if len(own) != len(file.metadata.schema):
        return Footer(stored, rows, {})
    found = footer_statistics(own, file.metadata)
    wanted = {name: field.type for name, field in leaves(schema)}
    columns = {
        name: found[name]
        for name, field in own
        if name in wanted and _is_alike(field.type, wanted[name])
    }
    return Footer(stored, rows, columns, columns_of_old_lists(own, file.metadata))


def columns_with_hidden_nan(file: pq.ParquetFile) -> list[str]:
    """Columns of which a footer has bounds that leave NaN out.

    Releases before this one wrote such files, and so do other writers. Their values are read, those
    of floating-point columns alone.
    """
    entries, creator = file.metadata.metadata or {}, file.metadata.created_by or ""
    if entries.get(BOUNDS_FOOTER.encode()) == BOUNDS_OF_ALL.encode():
        return []
    if creator.startswith(_WITHOUT_BOUNDS):
        return []
    floating = {
        number: path
        for number, (path, field) in enumerate(leaves(file.schema_arrow))
        if pt.is_floating(field.type)
    }
    found: set[str] = set()
    for group in range(file.num_row_groups):
        chunks = file.metadata.row_group(group)
        bounded = {path for number, path in floating.items() if _is_bounded(chunks.column(number))}
        found |= _with_nan(file, group, bounded - found)
    return sorted(found)


def _is_bounded(chunk: pq.ColumnChunkMetaData) -> bool:
    return chunk.statistics is not None and chunk.statistics.has_min_max


def _with_nan(file: pq.ParquetFile, group: int, paths: Collection[str]) -> set[str]:
    """Those of some leaf columns of a row group that hold NaN."""
    if not paths:
        return set()
    names = list(dict.fromkeys(path.partition(".")[0] for path in paths))
    found: set[str] = set()
    for rows in file.iter_batches(row_groups=[group], columns=names):
        table = pa.Table.from_batches([rows])
        for (path, _), chunks in zip(leaves(table.schema), leaf_columns(table), strict=True):
            if path in paths and any(pc.any(pc.is_nan(one)).as_py() for one in chunks):
                found.add(path)
    return found


def read_statistics(
    client: TableMetaClient, path: str, schema: pa.Schema
) -> dict[str, ColumnStats]:
    """Return the statistics of a data file by leaf path; see :func:`read_footer`."""
    return dict(read_footer(client, path, schema).columns)


def _is_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if stored.equals(wanted) or (pt.is_signed_integer(stored) and pt.is_int64(wanted)):
        return True
    if pt.is_timestamp(stored) and pt.is_timestamp(wanted):
        # bounds are microseconds, whatever the file's unit
        return stored.unit in ("ms", "us") and wanted.unit in ("ms", "us")
    return False


@contextmanager
def opened_file(client: TableMetaClient, path: str) -> Iterator[pq.ParquetFile]:
    """A data file, opened for a block whose errors become damage."""
    try:
        with client.files.open(path) as source:
            yield pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    except (OSError, pa.ArrowException, ValueError, ArithmeticError) as error:
        # strings and numbers of a damaged footer may be none, too
        raise client.files.unreadable([path], f"{path}: {error}") from error
