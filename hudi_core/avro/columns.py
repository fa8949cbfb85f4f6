"""Many Avro records at once, decoded into columns.

All records are of one schema and lie in one buffer. They are read field by field: the same field of
all records in a few steps of numpy, which is ten times faster and more than fastavro, which decodes
record by record. Polars and DuckDB read whole Avro files into columns, but no bare records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.avro.datum import ParsedSchema
from hudi_core.errors import CorruptMetadataError
from hudi_core.schema.arrow_types import is_list

Ints = npt.NDArray[np.int64]

MAX_ITEMS: Final = 1000
"""Most entries of an array or map: they are stepped over one by one, and are not returned."""
_PADDING: Final = 16
"""Bytes after the buffer, so that a number that is cut off is noticed after it was read."""
DECIMAL_BYTES: Final = 16
"""Bytes of a decimal in Arrow."""
_HIGHEST: Final = 0x7F
"""The greatest first byte of a number that is not negative."""
_WHOLE: Final = frozenset({"int", "long"})
_FLOATS: Final = {"float": "<f4", "double": "<f8"}


class Column(NamedTuple):
    """A field of those records that have it.

    ``rows`` are the numbers of these records, ascending. ``values`` are integers, floats or
    booleans; for strings and bytes they are the positions where each begins, and ``lengths`` their
    bytes (``None`` for other types).
    """

    rows: Ints
    values: npt.NDArray[Any]
    lengths: Ints | None = None


class Columns:
    """What :func:`decode_columns` returns: fields by path.

    A path is made of the names of fields with dots between them. Where a union has several types
    beside null, the name of the type follows after a colon: ``minValue:IntWrapper.value``.
    """

    def __init__(
        self, data: npt.NDArray[np.uint8], count: int, found: Mapping[str, Column]
    ) -> None:
        self._data, self._count, self._found = data, count, found

    def __len__(self) -> int:
        return self._count

    @property
    def paths(self) -> Sequence[str]:
        """Paths of all fields that any record has."""
        return sorted(self._found)

    def find(self, path: str) -> Column | None:
        """Return a field; ``None`` when no record has it."""
        return self._found.get(path)

    def numbers(self, path: str, kind: pa.DataType) -> pa.Array:
        """Return a number field of every record as an Arrow array."""
        column = self._found.get(path)
        if column is None:
            return pa.nulls(self._count, kind)
        values = np.zeros(self._count, column.values.dtype)
        values[column.rows] = column.values
        return pa.array(values, mask=self._missing(column)).cast(kind)

    def texts(self, path: str, kind: pa.DataType, where: str) -> pa.Array:
        """Return a field of strings or bytes as an Arrow array."""
        column = self._found.get(path)
        if column is None or column.lengths is None:
            return pa.nulls(self._count, kind)
        lengths = np.zeros(self._count, np.int64)
        lengths[column.rows] = column.lengths
        content = _taken(self._data, column.values, column.lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        valid = np.packbits(~self._missing(column), bitorder="little")
        buffers = [pa.py_buffer(valid), pa.py_buffer(offsets), pa.py_buffer(content)]
        found = pa.Array.from_buffers(pa.large_binary(), self._count, buffers)
        try:
            return found.cast(kind)
        except pa.ArrowInvalid as error:
            raise CorruptMetadataError(where, f"a string of {path} is not valid UTF-8") from error

    def decimals(self, path: str, kind: pa.DataType) -> pa.Array:
        """Return a decimal field, whose values are big-endian numbers."""
        column = self._found.get(path)
        if column is None or column.lengths is None:
            return pa.nulls(self._count, kind)
        # Arrow's are little-endian and of one width: their upper bytes repeat the sign
        numbers = np.zeros((self._count, DECIMAL_BYTES), np.uint8)
        for length in np.unique(column.lengths).tolist():
            own = column.lengths == length
            at = column.values[own][:, None] + np.arange(length)
            digits = self._data[at][:, ::-1]
            if length > DECIMAL_BYTES:
                raise pa.ArrowInvalid(f"{path} has a decimal of {length} bytes")
            rows = column.rows[own]
            if length:
                numbers[rows] = np.where(digits[:, -1:] > _HIGHEST, 0xFF, 0)
                numbers[rows, :length] = digits
        valid = np.packbits(~self._missing(column), bitorder="little")
        buffers = [pa.py_buffer(valid), pa.py_buffer(numbers)]
        found = pa.Array.from_buffers(kind, self._count, buffers)
        found.validate(full=True)
        return found

    def _missing(self, column: Column) -> npt.NDArray[np.bool_]:
        missing = np.ones(self._count, np.bool_)
        missing[column.rows] = False
        return missing


def _taken(data: npt.NDArray[np.uint8], begins: Ints, lengths: Ints) -> npt.NDArray[np.uint8]:
    """Return parts of the data, one behind the other."""
    begins, lengths = begins[lengths > 0], lengths[lengths > 0]
    ends = begins + lengths
    if (ends[:-1] > begins[1:]).any():
        shift = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
        apart: npt.NDArray[np.uint8] = data[np.arange(len(shift)) + shift]
        return apart
    # in the order of the data: Arrow takes every other part of it, numpy would go byte by byte
    bounds = np.stack([begins, ends], axis=1).reshape(-1)
    if not len(bounds):
        return data[:0]
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    parts = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
    wanted = parts.take(pa.array(np.arange(0, len(bounds), 2)))
    found: npt.NDArray[np.uint8] = np.frombuffer(wanted.buffers()[2], np.uint8, lengths.sum())
    return found


def decode_columns(
    content: bytes,
    begins: Sequence[int] | Ints,
    ends: Sequence[int] | Ints,
    schema: ParsedSchema,
    path: str,
) -> Columns:
    """Return the fields of many records.

    :class:`CorruptMetadataError` is also raised for a record with a long array or map, which is not
    damaged.
    """
    data = padded(content)
    batch = Batch(data, np.array(begins, np.int64), np.array(ends, np.int64), path)
    batch.read_all(schema)
    return Columns(data, len(begins), batch.found)


def padded(content: bytes) -> npt.NDArray[np.uint8]:
    """Return the bytes as a :class:`Batch` reads them."""
    return np.frombuffer(content + bytes(_PADDING), np.uint8)


def named_types(schema: ParsedSchema) -> dict[str, Any]:
    """Return the types of a parsed schema that have names, by name."""
    named: dict[str, Any] = {}
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            if "name" in part and "type" in part:
                named[part["name"]] = part
            waiting += [part[key] for key in ("items", "values") if key in part]
            waiting += [field["type"] for field in part.get("fields", ())]
    return named


def _branch_name(branch: Any) -> str:
    name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
    return str(name).rpartition(".")[2]


class Batch:
    """Many records while they are read.

    ``data`` comes from :func:`padded`. ``position`` is how far each record was read.
    """

    def __init__(self, data: npt.NDArray[np.uint8], begins: Ints, ends: Ints, path: str) -> None:
        self.data, self.position, self.ends, self._path = data, begins.copy(), ends, path
        self.found: dict[str, Column] = {}
        self.names: dict[str, Any] = {}

    def read_all(self, schema: ParsedSchema) -> None:
        """Read the records, which are of one schema, to their ends."""
        self.names = named_types(schema)
        self.read(schema, np.arange(len(self.position)), "")
        if (self.position != self.ends).any():
            raise self.damage("a record is shorter than the file says")

    def damage(self, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(self._path, f"its records cannot be decoded: {reason}")

    def read(self, schema: Any, rows: Ints, path: str | None) -> None:
        """Read one value of some records; without a path, skip it."""
        if isinstance(schema, str):
            schema = self.names.get(schema, schema)
        if not len(rows) or schema == "null":
            return
        if isinstance(schema, list):
            self._read_union(schema, rows, path)
        elif isinstance(schema, str):
            self._read_scalar(schema, rows, path)
        elif schema["type"] == "record":
            for field in schema["fields"]:
                name = field["name"]
                below = path if path is None else f"{path}.{name}" if path else name
                self.read(field["type"], rows, below)
        elif schema["type"] in ("array", "map"):
            self.read_items(schema, rows, path)
        elif schema["type"] == "fixed":
            begins, lengths = self.position[rows], np.full(len(rows), schema["size"])
            self._advance(rows, lengths)
            self._found(path, rows, begins, lengths)
        else:
            self.numbers(rows)  # an enum

    def _read_union(self, branches: list[Any], rows: Ints, path: str | None) -> None:
        chosen = self.numbers(rows)
        several = sum(branch != "null" for branch in branches) > 1
        # in most fields all records are alike
        is_uniform = (chosen == chosen[0]).all()
        for number in [int(chosen[0])] if is_uniform else np.unique(chosen).tolist():
            if not 0 <= number < len(branches):
                raise self.damage(f"a union has no branch {number}")
            branch = branches[number]
            below = path
            if path is not None and several:
                below = f"{path}:{_branch_name(branch)}"
            self.read(branch, rows if is_uniform else rows[chosen == number], below)

    def _read_scalar(self, kind: str, rows: Ints, path: str | None) -> None:
        lengths = None
        values: npt.NDArray[Any]
        if kind in _WHOLE:
            values = self.numbers(rows)
        elif kind == "boolean":
            values = self._bytes(rows, 1)[:, 0]
            if (values > 1).any():
                raise self.damage("a boolean is neither true nor false")
            values = values.astype(np.bool_)
        elif kind in _FLOATS:
            form = np.dtype(_FLOATS[kind])
            values = self._bytes(rows, form.itemsize).view(form)[:, 0]
        else:
            lengths = self.numbers(rows)
            values = self.position[rows]
            self._advance(rows, lengths)
        self._found(path, rows, values, lengths)

    def _found(
        self, path: str | None, rows: Ints, values: npt.NDArray[Any], lengths: Ints | None
    ) -> None:
        if path is None:
            return
        if path in self.found:
            raise self.damage(f"it has {path} twice")
        self.found[path] = Column(rows, values, lengths)

    def read_items(self, schema: Mapping[str, Any], rows: Ints, path: str | None) -> None:
        """Step over the entries of an array or map."""
        del path
        inner = schema["items"] if schema["type"] == "array" else schema["values"]
        total = np.zeros(len(self.position), np.int64)
        while len(rows):
            counts = self.numbers(rows)
            sized = counts < 0
            if sized.any():
                # such a block says its bytes, too
                self._advance(rows[sized], self.numbers(rows[sized]))
            rows, counts = rows[counts != 0], np.maximum(counts[counts != 0], 0)
            # in small numbers first: a count may be close to the greatest there is
            if (counts > MAX_ITEMS).any() or ((total[rows] + counts) > MAX_ITEMS).any():
                raise self.damage(f"a list has more than {MAX_ITEMS} entries")
            total[rows] += counts
            for number in range(int(counts.max(initial=0))):
                left = rows[counts > number]
                if schema["type"] == "map":
                    self._read_scalar("string", left, None)
                self.read(inner, left, None)

    def numbers(self, rows: Ints) -> Ints:
        """Read a zigzag number of varying length."""
        position = self.position[rows]
        byte = self.data[position]
        total = (byte & 0x7F).astype(np.uint64)
        position += 1
        more, shift = np.flatnonzero(byte >= 0x80), 7
        while len(more):
            if shift > 63:
                raise self.damage("a number is longer than 64 bits")
            byte = self.data[position[more]]
            total[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            position[more] += 1
            more, shift = more[byte >= 0x80], shift + 7
        self._set(rows, position)
        return (total >> np.uint64(1)).astype(np.int64) ^ -(total & np.uint64(1)).astype(np.int64)

    def _bytes(self, rows: Ints, count: int) -> npt.NDArray[np.uint8]:
        position = self.position[rows]
        self._set(rows, position + count)
        taken: npt.NDArray[np.uint8] = self.data[position[:, None] + np.arange(count)]
        return taken

    def _advance(self, rows: Ints, lengths: Ints) -> None:
        position = self.position[rows]
        if (lengths < 0).any() or (lengths > self.ends[rows] - position).any():
            raise self.damage("a value is longer than its record")
        self.position[rows] = position + lengths

    def _set(self, rows: Ints, position: Ints) -> None:
        if (position > self.ends[rows]).any():
            raise self.damage("a record is cut off")
        self.position[rows] = position


# --- decoded values as Arrow arrays, at any depth -------------------------------------------------
# Values are as :func:`~hudi_core.avro.datum.decode_datum` returns them: without logical types, so
# that dates, times and timestamps are numbers, and decimals the bytes of the unscaled number.


_DECIMAL_BYTES: Final = 16


def arrow_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return decoded values as an array.

    Values that are not of the type raise ``ValueError``, ``TypeError``, ``LookupError`` or
    ``OverflowError``; Arrow's own errors are among these.
    """
    if pt.is_struct(kind):
        if not kind.num_fields:  # there is no column to take the length from
            return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=[])
        columns = [
            arrow_values([None if one is None else one[field.name] for one in values], field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=_nulls(values))
    if pt.is_map(kind):
        pairs = [pair for one in values if one is not None for pair in one.items()]
        keys = arrow_values([key for key, _ in pairs], kind.key_type)
        items = arrow_values([item for _, item in pairs], kind.item_type)
        offsets = _offsets(values)
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=_nulls(values))
    if is_list(kind):
        below = list(chain.from_iterable(one for one in values if one is not None))
        elements = arrow_values(below, kind.value_type)
        offsets = _offsets(values)
        return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=_nulls(values))
    if pt.is_decimal(kind):
        return _decimals(values, kind)
    return pa.array(values, kind)


def _nulls(values: Sequence[Any]) -> pa.Array | None:
    mask = [one is None for one in values]
    return pa.array(mask, pa.bool_()) if any(mask) else None


def _validity(values: Sequence[Any]) -> pa.Buffer:
    return pa.array([one is not None for one in values], pa.bool_()).buffers()[1]


def _offsets(values: Sequence[Any]) -> pa.Array:
    lengths = (0 if one is None else len(one) for one in values)
    return pa.array([0, *accumulate(lengths)], pa.int32())


def _decimals(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Decimals from big-endian numbers in two's complement."""
    content = b"".join(
        int.from_bytes(one or b"", "big", signed=True).to_bytes(
            _DECIMAL_BYTES, "little", signed=True
        )
        for one in values
    )
    found = pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(content)])
    found.validate(full=True)
    return found


# --- one map field of many records, decoded into columns ------------------------------------------
# Entries have no fixed size, so each begins where the one before it ends. To find them all in a few
# steps they are guessed: where a key ends is looked for by how the first key ends (``.parquet``),
# or in a single record by the two bytes behind it. Whether these are the entries is decided by
# their lengths, each of which has to lead to the next. Other maps are left to who decodes record
# by record.


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
        key_ends = self._guess(rows, begins[0], lengths[0])[: counts.sum()]
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
        """Return guessed ends of keys, by what ends the first."""
        stop = int(self.ends[rows[-1]])
        if not 0 < length <= stop - begin:
            raise _UnevenError
        dot, ending = b".", self.data[begin : begin + length].tobytes()
        ending = dot + ending.rpartition(dot)[2]
        if 2 <= len(ending) <= length:
            return self._places(begin, stop, ending) + len(ending)
        if len(rows) > 1:
            raise _UnevenError
        return self._places(begin, stop, self.data[begin + length :][:2].tobytes())

    def _places(self, begin: int, stop: int, sought: bytes) -> Ints:
        places = begin + np.flatnonzero(self.data[begin : stop - len(sought) + 1] == sought[0])
        for number, byte in enumerate(sought[1:], 1):
            places = places[self.data[places + number] == byte]
        return places


# --- numbers, written -----------------------------------------------------------------------------


def encode_longs(numbers: np.ndarray) -> pa.LargeBinaryArray:
    """Numbers as Avro's ints and longs: zigzag, seven bits to a byte."""
    bits = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    places = np.arange(10, dtype=np.uint64)
    groups = bits[:, None] >> (places * np.uint64(7))
    sizes = 1 + (groups[:, 1:] != 0).sum(axis=1)
    data = (groups & np.uint64(0x7F)).astype(np.uint8)
    data[places < sizes[:, None] - 1] |= 0x80
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    taken = data[places < sizes[:, None]]
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(numbers), [None, pa.py_buffer(ends), pa.py_buffer(taken)]
    )
