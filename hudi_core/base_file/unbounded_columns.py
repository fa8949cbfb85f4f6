"""Parquet footers without the bounds of columns that hold NaN.

parquet-cpp leaves NaN out of the bounds of a column chunk. Engines to which NaN is the greatest
number, as it is to Spark and DuckDB, then skip row groups in which they would find rows. parquet-mr
writes no bounds there, and every reader takes a chunk without bounds for one with any value.

Whether a column has NaN is known when its last row has come. pyarrow decides on statistics when a
file begins, and gives its footer out as bytes alone: a struct of Thrift's compact protocol. Nothing
states how long a struct is, so that one may be shortened in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC: Final = b"PAR1"
_LENGTH_BYTES: Final = 4

# types of Thrift's compact protocol
_BOOLEANS: Final = frozenset({1, 2})
_BYTE, _DOUBLE, _BINARY, _LIST, _STRUCT = 3, 7, 8, 9, 12
_INTEGERS: Final = frozenset({4, 5, 6})
_END: Final = 0

# fields of Parquet's structs
_ROW_GROUPS, _KEY_VALUES = 4, 5  # of FileMetaData
_CHUNKS = 1  # of RowGroup
_METADATA = 3  # of ColumnChunk
_STATISTICS = 12  # of ColumnMetaData
_NULL_COUNT = 3  # of Statistics
_KEY, _VALUE = 1, 2  # of KeyValue


def unbounded_end(
    footer: pq.FileMetaData, columns: Collection[int], key_values: Mapping[str, str]
) -> bytes:
    """End of a Parquet file that takes the place of its footer.

    ``footer`` is without key-value metadata. ``columns`` are numbers of leaf columns that have no
    bounds in any row group; their null counts stay.
    """
    sink = pa.BufferOutputStream()
    footer.write_metadata_file(sink)
    data = sink.getvalue().to_pybytes()[len(_MAGIC) : -len(_MAGIC) - _LENGTH_BYTES]
    cursor, fields = _Cursor(data), {}
    for number, kind in cursor.fields():
        start = cursor.at
        if number == _ROW_GROUPS:
            value = b"".join(_without_bounds(cursor, frozenset(columns)))
        else:
            cursor.skip(kind)
            value = data[start : cursor.at]
        fields[number] = kind, value
    fields[_KEY_VALUES] = _LIST, _entries(key_values)
    whole = _struct(fields)
    return whole + len(whole).to_bytes(_LENGTH_BYTES, "little") + _MAGIC


def _without_bounds(cursor: _Cursor, columns: Collection[int]) -> Iterator[bytes]:
    """Pieces of the list of row groups, some columns' bounds omitted."""
    data, done = cursor.data, cursor.at
    for _ in cursor.structs():
        for _ in cursor.find(_CHUNKS):
            for column, _ in enumerate(cursor.structs()):
                for _ in cursor.find(_METADATA):
                    for _ in cursor.find(_STATISTICS):
                        if column not in columns:
                            cursor.skip(_STRUCT)
                            continue
                        yield data[done : cursor.at]
                        kept = {}
                        for number, kind in cursor.fields():
                            start = cursor.at
                            cursor.skip(kind)
                            if number == _NULL_COUNT:
                                kept[number] = kind, data[start : cursor.at]
                        yield _struct(kept)
                        done = cursor.at
    yield data[done : cursor.at]


# --- Thrift's compact protocol ------------------------------------------------------------------


class _Cursor:
    """A place in a footer; footers have no sets and no maps."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct.

        The caller moves on behind the value of each.
        """
        number = 0
        while (header := self.data[self.at]) != _END:
            self.at += 1
            if header >> 4:
                number += header >> 4
            else:
                zigzag = self._varint()
                number = (zigzag >> 1) ^ -(zigzag & 1)
            yield number, header & 0x0F
        self.at += 1

    def find(self, wanted: int) -> Iterator[int]:
        """Yield where a field of a struct is; skip all others."""
        for number, kind in self.fields():
            if number == wanted:
                yield number
            else:
                self.skip(kind)

    def structs(self) -> Iterator[None]:
        """Yield for each struct of a list.

        The caller moves on behind each.
        """
        count, _ = self._list()
        for _ in range(count):
            yield

    def skip(self, kind: int) -> None:
        """Go behind a value."""
        if kind in _INTEGERS:
            while self.data[self.at] & 0x80:
                self.at += 1
            self.at += 1
        elif kind == _BINARY:
            length = self._varint()
            self.at += length
        elif kind == _STRUCT:
            for _, each in self.fields():
                self.skip(each)
        elif kind == _LIST:
            count, each = self._list()
            for _ in range(count):
                # as a field a boolean has no bytes, the type is its value
                self.skip(_BYTE if each in _BOOLEANS else each)
        elif kind not in _BOOLEANS:
            self.at += {_BYTE: 1, _DOUBLE: 8}[kind]

    def _list(self) -> tuple[int, int]:
        """Return the length of a list and the type of its values."""
        header = self.data[self.at]
        self.at += 1
        return (self._varint() if header >> 4 == 0x0F else header >> 4), header & 0x0F

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
            shift += 7


def _struct(fields: Mapping[int, tuple[int, bytes]]) -> bytes:
    parts, before = [], 0
    for number, (kind, value) in sorted(fields.items()):
        # no struct of a footer has gaps of more than 15 fields
        parts += [bytes([number - before << 4 | kind]), value]
        before = number
    return b"".join([*parts, bytes([_END])])


def _entries(values: Mapping[str, str]) -> bytes:
    entries = [
        _struct({_KEY: (_BINARY, _text(key)), _VALUE: (_BINARY, _text(value))})
        for key, value in values.items()
    ]
    return b"".join([bytes([0xF0 | _STRUCT]), _to_varint(len(entries)), *entries])


def _text(value: str) -> bytes:
    data = value.encode()
    return _to_varint(len(data)) + data


def _to_varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
