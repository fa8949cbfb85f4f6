"""Which columns of a file are dictionary encoded.

A dictionary makes columns with few distinct values small and quick to read, and costs about three
times the encoding of one with many (``performance`` section 1). So the first row group is sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_core.base_file.encoded_columns import is_encoded
from hudi_core.base_file.statistics import leaf_columns
from hudi_core.schema.arrow_types import leaves

FEW_ROWS: Final = 4096
"""Of fewer rows, dictionaries save 2 % of the bytes, and to sample takes a third of the time."""
_PIECES: Final = 4
_PIECE_ROWS: Final = 256
_SAMPLE_BYTES: Final = 4 << 20
_REPEATS: Final = 4
"""How often each value of a sample occurs on average, at least, where a dictionary pays."""
_PAYING_BYTES: Final = 4
"""Bytes per value, dictionary included, up to which a column chunk's dictionary pays."""


def dictionary_leaves(
    group: pa.Table,
    schema: pa.Schema,
    decided: Mapping[str, bool] | None = None,
    *,
    is_whole: bool = False,
) -> list[str]:
    """Return the paths of the leaves of a file to dictionary encode.

    ``group`` is the first row group, and a sample of its rows decides. Leaves in ``decided`` are
    not sampled: those with true are encoded. Nor are those of few rows that are the ``is_whole``
    file, of which those alone that come encoded are.
    """
    known = dict(decided or {})
    known |= {field.name: True for field in group.schema if is_encoded(field.type)}
    every = leaves(schema)
    tops = {path.partition(".")[0] for path, _ in every if path not in known}
    open_ = [name for name in schema.names if name in tops]
    if open_ and group.num_rows >= (FEW_ROWS if is_whole else 1):
        sample = _sample(group.select(open_))
        fields = leaves(pa.schema([schema.field(name) for name in open_]))
        known |= {
            path: not pt.is_boolean(field.type) and _repeats(chunks)
            for (path, field), chunks in zip(fields, leaf_columns(sample), strict=True)
            if path not in known
        }
    return [path for path, _ in every if known.get(path)]


def decided_leaves(footer: pq.FileMetaData) -> dict[str, bool]:
    """Return which leaf columns are dictionary encoded, and which are not.

    Only where that still applies to the file's next version: leaves that had no value yet, and
    dictionaries that have grown with the rows, are left out.
    """
    decided = {}
    for number in range(footer.num_columns if footer.num_row_groups else 0):
        chunk = footer.row_group(0).column(number)
        statistics = chunk.statistics
        has_values = statistics is None or statistics.null_count != chunk.num_values
        is_small = chunk.total_uncompressed_size <= _PAYING_BYTES * chunk.num_values
        if has_values and (is_small or not chunk.has_dictionary_page):
            decided[chunk.path_in_schema] = chunk.has_dictionary_page
    return decided


def leaf_paths(footer: pq.FileMetaData) -> list[str]:
    """Return the paths of the leaves of a file, in its order."""
    return [footer.schema.column(leaf).path for leaf in range(footer.num_columns)]


def _sample(group: pa.Table) -> pa.Table:
    step = max(_PIECE_ROWS, group.num_rows // _PIECES)
    starts = range(0, group.num_rows, step)
    return pa.concat_tables([group.slice(start, _PIECE_ROWS) for start in starts])


def _repeats(chunks: list[pa.Array]) -> bool:
    values = pa.chunked_array(chunks)
    if values.nbytes > _SAMPLE_BYTES:
        values = values.slice(0, max(_REPEATS, len(values) * _SAMPLE_BYTES // values.nbytes))
    present = len(values) - values.null_count
    return bool(present and pc.count_distinct(values).as_py() * _REPEATS <= present)
