"""Partition paths of batches, made once per distinct tuple of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.keygen.base import PLAIN, KeyColumn, to_text
from hudi_core.model.key_form import KeyForm
from hudi_core.storage.partition_path import PartitionPathCodec

Indices = npt.NDArray[np.int64]


class FieldStrings(Protocol):
    """Makes the strings of one partition field."""

    def distinct(self, batch: pa.RecordBatch) -> tuple[Indices, Sequence[str | None]]:
        """Return each row's string index, and the strings.

        Null may be one of them.
        """
        ...


@dataclass(frozen=True, slots=True)
class ValueStrings:
    """The column's own values as strings."""

    column: KeyColumn
    form: KeyForm = PLAIN

    def distinct(self, batch: pa.RecordBatch) -> tuple[Indices, list[str | None]]:
        """Return each row's string index, and the strings.

        Null is one of them.
        """
        values = self.column.of(batch)
        if pt.is_floating(values.type):
            values = to_text(values, self.form)  # Arrow takes -0.0 and 0.0 for one value
        coded = values.dictionary_encode(null_encoding="encode")
        strings = to_text(coded.dictionary, self.form).to_pylist()
        return coded.indices.to_numpy().astype(np.int64), strings


def no_paths(batch: pa.RecordBatch) -> pa.DictionaryArray:
    """The empty path for every row."""
    paths = pa.array([""] if batch.num_rows else [], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(batch.num_rows, np.int32)), paths)


def joined_paths(
    batch: pa.RecordBatch, fields: Sequence[FieldStrings], codec: PartitionPathCodec
) -> pa.DictionaryArray:
    """Return the partition path of every row, dictionary encoded.

    Each path is in the dictionary once.
    """
    rows, tuples = _distinct_tuples(batch, fields)
    numbers: dict[str, int] = {}
    # different values may have one string: timestamps cut to milliseconds
    renumbered = [numbers.setdefault(codec.encode(values), len(numbers)) for values in tuples]
    return pa.DictionaryArray.from_arrays(
        pa.array(np.array(renumbered, np.int32)[rows]), pa.array(list(numbers), pa.string())
    )


def _distinct_tuples(
    batch: pa.RecordBatch, fields: Sequence[FieldStrings]
) -> tuple[Indices, list[tuple[str | None, ...]]]:
    """Return each row's tuple index, and the tuples of strings."""
    first, *others = fields
    rows, strings = first.distinct(batch)
    tuples: list[tuple[str | None, ...]] = [(text,) for text in strings]
    for field in others:
        indices, strings = field.distinct(batch)
        # tuples so far times values of this column; of these only the ones that occur
        pairs, rows = np.unique(rows * len(strings) + indices, return_inverse=True)
        tuples = [(*tuples[pair // len(strings)], strings[pair % len(strings)]) for pair in pairs]
    return rows, tuples
