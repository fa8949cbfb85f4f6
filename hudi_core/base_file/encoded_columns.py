"""String columns that stay dictionary encoded from file to file.

In a parquet file, a string column of few distinct values is stored as one small number per row.
Left so, it is read, filtered and written as numbers; decoded to one string per row, each of these
steps costs several times as much. Arrow's parquet reader and writer take such columns as they are,
and the files are the same either way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

ENCODED: Final = pa.dictionary(pa.int32(), pa.string())
"""The type of an encoded column."""

_DISTINCT: Final = ("parquet-mr ", "parquet-cpp", "parquet-rs ")
"""Writers whose dictionaries hold each value once. Of a value that is there twice, Arrow drops one
and leaves the numbers of the rows as they are, which then mean other values."""
_BYTES_A_VALUE: Final = 3
"""Bytes per value of a column chunk, dictionary included, up to which its values are few."""


def is_encoded(kind: pa.DataType) -> bool:
    """Whether a column has a dictionary."""
    return bool(pt.is_dictionary(kind))


def constant(text: str, count: int) -> pa.DictionaryArray:
    """Return one string as the value of ``count`` rows."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def encoded_schema(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return a schema with some of its columns encoded."""
    return pa.schema(
        [field.with_type(ENCODED) if field.name in names else field for field in schema],
        metadata=schema.metadata,
    )


def compact_columns(footer: pq.FileMetaData, schema: pa.Schema) -> set[str]:
    """Return the dictionary-encoded string columns of a file.

    Each distinct value is stored once in them.
    """
    if not (footer.created_by or "").startswith(_DISTINCT):
        return set()
    strings = {field.name for field in schema if pt.is_string(field.type)}
    sizes = dict.fromkeys(strings, 0)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for leaf in range(footer.num_columns):
            chunk = group.column(leaf)
            name = chunk.path_in_schema
            if name in strings:
                if not chunk.has_dictionary_page:
                    strings.discard(name)
                sizes[name] += chunk.total_uncompressed_size
    return {name for name in strings if sizes[name] <= _BYTES_A_VALUE * footer.num_rows}


def require_valid_codes(column: pa.ChunkedArray) -> None:
    """Refuse a damaged dictionary column whose codes point past the dictionary.

    Arrow does not check them.
    """
    for chunk in column.chunks:
        found = pc.min_max(chunk.indices)
        low, high = found["min"].as_py(), found["max"].as_py()
        if low is not None and not 0 <= low <= high < len(chunk.dictionary):
            raise pa.ArrowInvalid(f"a dictionary of {len(chunk.dictionary)} has no number {high}")


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary-encoded column as plain strings."""
    if not is_encoded(column.type):
        return column
    return pa.chunked_array(chain.from_iterable(map(_decoded, column.chunks)), pa.string())


def joined(
    pieces: Sequence[pa.Table], schema: pa.Schema, names: Collection[str] | None = None
) -> pa.Table:
    """Return several tables concatenated, their dictionaries unified.

    A dictionary of the result holds only values that occur.

    The tables have one schema, but for which columns are encoded; ``schema`` is that schema with
    nothing encoded. ``names`` are the columns to encode, by default those that one of the tables
    has encoded.
    """
    for piece in pieces:
        if piece.column_names != schema.names:
            raise pa.ArrowInvalid(f"columns {piece.column_names}, not {schema.names}")
    if names is None:
        names = {field.name for piece in pieces for field in piece.schema if is_encoded(field.type)}
    columns = []
    for position, field in enumerate(schema):
        own = [piece.column(position) for piece in pieces]
        if len(own) == 1 and field.name not in names and own[0].type == field.type:
            columns += own
            continue
        chunks = [chunk for column in own for chunk in column.chunks]
        if field.name in names:
            columns.append(_encoded(chunks))
        else:
            columns.append(pa.chunked_array(chain.from_iterable(map(_decoded, chunks)), field.type))
    return pa.Table.from_arrays(columns, schema=encoded_schema(schema, names))


def _decoded(array: pa.Array) -> Iterator[pa.Array]:
    """Yield decoded values, in pieces of at most 2 GB."""
    if not is_encoded(array.type):
        yield array
        return
    try:
        yield array.dictionary_decode()
    except pa.ArrowInvalid:
        if len(array) <= 1:
            raise
        half = len(array) // 2
        yield from _decoded(array[:half])
        yield from _decoded(array[half:])


def _encoded(chunks: Iterable[pa.Array]) -> pa.ChunkedArray:
    """Encode a column by one dictionary, without values that no row has.

    A file's dictionary would else keep every value that its rows ever had.
    """
    arrays = [array if is_encoded(array.type) else array.dictionary_encode() for array in chunks]
    column = pa.chunked_array(arrays, ENCODED).unify_dictionaries()
    if not len(column):
        return column
    dictionary = column.chunk(0).dictionary
    used = np.zeros(len(dictionary), np.bool_)
    for chunk in column.chunks:
        indices = chunk.indices.drop_null() if chunk.null_count else chunk.indices
        used[indices.to_numpy()] = True
    if used.all():
        return column
    numbers = pa.array(np.cumsum(used, dtype=np.int32) - 1, pa.int32())
    kept = dictionary.filter(pa.array(used))
    return pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(numbers.take(chunk.indices), kept)
            for chunk in column.chunks
        ],
        ENCODED,
    )
