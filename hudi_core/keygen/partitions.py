"""Partition paths of batches: each distinct tuple of values becomes a path once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.keygen.base import KeyColumns
from hudi_core.keygen.text import to_text
from hudi_core.storage.partition_path import PartitionPathCodec


def partition_paths(
    batch: pa.RecordBatch, columns: KeyColumns, codec: PartitionPathCodec
) -> pa.DictionaryArray:
    """Return the partition path of every row, each path once in the dictionary."""
    rows, tuples = _distinct_tuples(batch, columns)
    numbers: dict[str, int] = {}
    # different values may have one text: timestamps cut to milliseconds
    renumbered = [numbers.setdefault(codec.encode(values), len(numbers)) for values in tuples]
    return pa.DictionaryArray.from_arrays(
        pa.array(np.array(renumbered, np.int32)[rows]), pa.array(list(numbers), pa.string())
    )


def _distinct_tuples(
    batch: pa.RecordBatch, columns: KeyColumns
) -> tuple[npt.NDArray[np.int64], list[tuple[str | None, ...]]]:
    """Return for each row the index of its tuple of texts, and the tuples."""
    first, *others = columns.partition
    rows, texts = _distinct(first.of(batch), columns.timestamps_as_text)
    tuples: list[tuple[str | None, ...]] = [(text,) for text in texts]
    for column in others:
        indices, texts = _distinct(column.of(batch), columns.timestamps_as_text)
        # tuples so far times values of this column; of these only the ones that occur
        pairs, rows = np.unique(rows * len(texts) + indices, return_inverse=True)
        tuples = [(*tuples[pair // len(texts)], texts[pair % len(texts)]) for pair in pairs]
    return rows, tuples


def _distinct(
    values: pa.Array, timestamps_as_text: bool
) -> tuple[npt.NDArray[np.int64], list[str | None]]:
    """Return for each value the index of its text, and the texts; null is one of them."""
    if pt.is_floating(values.type):
        values = to_text(values)  # Arrow takes -0.0 and 0.0 for one value
    coded = values.dictionary_encode(null_encoding="encode")
    texts = to_text(coded.dictionary, timestamps_as_text).to_pylist()
    return coded.indices.to_numpy().astype(np.int64), texts
