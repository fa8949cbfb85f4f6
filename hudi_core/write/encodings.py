"""Which columns of a file are dictionary encoded.

A dictionary makes columns with few distinct values small and quick to read, and costs about three
times the encoding of one with many (``performance`` section 1). So the first row group is sampled.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.model.arrow_types import leaves
from hudi_core.write.encoded_columns import is_encoded
from hudi_core.write.statistics import leaf_columns

_PIECES: Final = 4
_PIECE_ROWS: Final = 256
_REPEATS: Final = 4
"""How often each value of a sample occurs on average, at least, where a dictionary pays."""


def dictionary_leaves(group: pa.Table, schema: pa.Schema) -> list[str]:
    """Return the paths of the leaves of a file to dictionary encode, by a sample of its rows.

    Parameters
    ----------
    group
        The first row group.
    schema
        The schema of the file, nothing encoded.
    """
    if not group.num_rows:
        return []
    step = max(_PIECE_ROWS, group.num_rows // _PIECES)
    starts = range(0, group.num_rows, step)
    sample = pa.concat_tables([group.slice(start, _PIECE_ROWS) for start in starts])
    return [
        path
        for (path, field), chunks in zip(leaves(schema), leaf_columns(sample), strict=True)
        if not pt.is_boolean(field.type) and _repeats(chunks)
    ]


def leaf_paths(footer: pq.FileMetaData) -> list[str]:
    """Return the paths of the leaves of a file, in its order."""
    return [footer.schema.column(leaf).path for leaf in range(footer.num_columns)]


def dictionary_paths(footer: pq.FileMetaData) -> frozenset[str]:
    """Return the paths of the leaves that a file has dictionary encoded."""
    if not footer.num_row_groups:
        return frozenset()
    group = footer.row_group(0)
    chunks = map(group.column, range(footer.num_columns))
    return frozenset(chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page)


def _repeats(chunks: list[pa.Array]) -> bool:
    if chunks and is_encoded(chunks[0].type):
        return True
    values = pa.chunked_array(chunks)
    present = len(values) - values.null_count
    return bool(present and pc.count_distinct(values).as_py() * _REPEATS <= present)
