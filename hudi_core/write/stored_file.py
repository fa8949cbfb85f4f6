"""Reading back the base files that a write merges into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.errors import DataFileError
from hudi_core.index.base import KeyFooter
from hudi_core.metadata.bloom import TYPE_CODE, DynamicBloom
from hudi_core.model.alignment import align, counterpart, stored_fields
from hudi_core.model.schema import RECORD_KEY
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.layout import layout_of
from hudi_core.write.base_file import (
    BLOOM_FOOTER,
    BLOOM_TYPE_FOOTER,
    MAX_KEY_FOOTER,
    MIN_KEY_FOOTER,
)
from hudi_core.write.context import WriteContext
from hudi_core.write.record_keys import KnownKeys


def read_record_keys(context: WriteContext, path: str) -> pa.ChunkedArray:
    """Return the record keys of a base file, in file order.

    Parameters
    ----------
    path
        Path of the file relative to the base path.
    """
    return _read(context, path, [RECORD_KEY])[0].column(RECORD_KEY).cast(pa.string())


def read_column(context: WriteContext, path: str, name: str) -> pa.ChunkedArray:
    """Return one column of a base file in its type of now; null where the file lacks it."""
    wanted = context.schema.arrow.field(name)
    with _opened(context, path) as file:
        fields = stored_fields(file.schema_arrow)
        found = counterpart(fields, wanted)
        if found is None:
            return pa.chunked_array([pa.nulls(file.metadata.num_rows, wanted.type)])
        return align(file.read(columns=[found.name]), fields, pa.schema([wanted])).column(name)


def read_known_keys(context: WriteContext, path: str) -> KeyFooter:
    """Return what the footer of a base file says of its record keys."""
    with _opened(context, path) as file:
        known = _known_keys(file.metadata.metadata or {}, path)
        return KeyFooter(known.min_key, known.max_key, known.bloom, file.metadata.num_rows)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A base file read back.

    Attributes
    ----------
    rows
        In the types of the table's schema, meta columns first.
    keys
        What the footer says of the record keys.
    """

    rows: pa.Table
    keys: KnownKeys


def read_base_file(context: WriteContext, path: str) -> StoredFile:
    """Read a base file, in the columns of the table; those added after it was written are null."""
    table, footers = _read(context, path, None)
    rows = align(table, stored_fields(table.schema), context.schema.with_meta())
    return StoredFile(rows, _known_keys(footers, path))


def _known_keys(footers: Mapping[bytes, bytes], path: str) -> KnownKeys:
    low, high = footers.get(MIN_KEY_FOOTER.encode()), footers.get(MAX_KEY_FOOTER.encode())
    text = footers.get(BLOOM_FOOTER.encode())
    is_dynamic = footers.get(BLOOM_TYPE_FOOTER.encode()) == TYPE_CODE.encode()
    return KnownKeys(
        None if low is None else low.decode(),
        None if high is None else high.decode(),
        DynamicBloom.parse(text, path) if text is not None and is_dynamic else None,
    )


def _read(
    context: WriteContext, path: str, columns: list[str] | None
) -> tuple[pa.Table, Mapping[bytes, bytes]]:
    with _opened(context, path) as file:
        return file.read(columns=columns), file.metadata.metadata or {}


@contextmanager
def _opened(context: WriteContext, path: str) -> Iterator[pq.ParquetFile]:
    filesystem, root = data_filesystem(context.base_path, context.storage_options)
    physical = layout_of(context.table.raw).physical(path)
    try:
        with (
            filesystem.open_input_file(f"{root}/{physical}") as source,
            pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file,
        ):
            yield file
    except (OSError, pa.ArrowInvalid) as error:
        raise DataFileError(context.base_path, f"{path}: {error}") from error
