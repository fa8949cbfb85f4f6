"""Decodes one map field of many Avro records into columns.

Entries have no fixed size, so each begins where the one before it ends. To find them all in a few
steps they are guessed: where a key ends is looked for by how the first key ends (``.parquet``).
Whether these are the entries is decided by their lengths, each of which has to lead to the next. A
map whose keys end otherwise is left to who decodes record by record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hudi_core.avro.columns import Batch, Column, Columns, Ints, padded
from hudi_core.avro.datum import ParsedSchema
from hudi_core.errors import CorruptMetadataError

KEY = "key"
"""Path of the keys among an entry's columns."""


class MapColumns(NamedTuple):
    """What :func:`decode_map` returns.

    ``present`` are the numbers of the records that have the map, even an empty one. ``owners``
    gives for each entry the number of its record, ascending; ``entries`` has the keys as
    :data:`KEY`.
    """

    records: Columns
    present: Ints
    owners: Ints
    entries: Columns


def decode_map(values: Sequence[bytes], schema: ParsedSchema, field: str) -> MapColumns | None:
    """Return the fields of many records, one of them a map.

    The entries of the map are records and come as columns.

    ``None`` means that the bytes are not such records, or cannot be read this way: decode them one
    by one, which shows which of the two it is.
    """
    data = padded(b"".join(values))
    ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends
    batch = _Batch(data, begins, ends, field)
    try:
        batch.read_all(schema)
    except (_UnevenError, CorruptMetadataError):
        return None
    records = Columns(data, len(values), batch.found)
    entries = Columns(data, len(batch.owners), batch.entries)
    return MapColumns(records, batch.present, batch.owners, entries)


class _UnevenError(Exception):
    """Entries that are not where they were guessed."""


class _Batch(Batch):
    """Records that are read with the entries of a map."""

    def __init__(self, data: npt.NDArray[np.uint8], begins: Ints, ends: Ints, field: str) -> None:
        super().__init__(data, begins, ends, field)
        self._field = field
        self.present: Ints = np.empty(0, np.int64)
        self.owners: Ints = np.empty(0, np.int64)
        self.entries: dict[str, Column] = {}

    def read_items(self, schema: Mapping[str, Any], rows: Ints, path: str | None) -> None:
        """Read the entries of the map that is wanted."""
        if path != self._field or schema["type"] != "map":
            super().read_items(schema, rows, path)
            return
        self.present = rows
        counts = self.numbers(rows)
        if (counts < 0).any():
            raise _UnevenError  # blocks that say their size
        rows, counts = rows[counts > 0], counts[counts > 0]
        if not len(rows):
            return
        lengths, begins = self.numbers(rows), self.position[rows]
        # an entry has several bytes: more of them than bytes are none
        if (counts > self.ends[rows] - begins).any():
            raise _UnevenError
        key_ends = self._guess(rows, begins[0], lengths[0])
        if len(key_ends) != counts.sum():
            raise _UnevenError
        owners = np.repeat(rows, counts)
        last = np.cumsum(counts) - 1
        first = last - counts + 1
        inner = Batch(self.data, key_ends, self.ends[owners], self._field)
        inner.names = self.names
        inner.read(schema["values"], np.arange(len(owners)), "")
        # behind each value: the length of the next key, or the end of the map
        following = inner.numbers(np.arange(len(owners)))
        if following[last].any():
            raise _UnevenError
        key_begins = np.empty(len(owners), np.int64)
        key_begins[1:] = inner.position[:-1]
        key_lengths = np.empty(len(owners), np.int64)
        key_lengths[1:] = following[:-1]
        key_begins[first], key_lengths[first] = begins, lengths
        if (key_lengths < 0).any() or (key_begins + key_lengths != key_ends).any():
            raise _UnevenError
        self.position[rows] = inner.position[last]
        self.owners = owners
        self.entries = {**inner.found, KEY: Column(np.arange(len(owners)), key_begins, key_lengths)}

    def _guess(self, rows: Ints, begin: int, length: int) -> Ints:
        """Return guessed ends of keys, by the ending of the first."""
        stop = int(self.ends[rows[-1]])
        if not 0 < length <= stop - begin:
            raise _UnevenError
        dot, ending = b".", self.data[begin : begin + length].tobytes()
        ending = dot + ending.rpartition(dot)[2]
        if len(ending) < 2 or length < len(ending):
            raise _UnevenError
        places = begin + np.flatnonzero(self.data[begin : stop - len(ending) + 1] == ending[0])
        for number, byte in enumerate(ending[1:], 1):
            places = places[self.data[places + number] == byte]
        return places + len(ending)
