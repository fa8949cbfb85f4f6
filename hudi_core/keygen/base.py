"""The base of key generators: columns, keys and paths of batches.

Source: Hudi's ``KeyGenUtils`` and ``KeyGenerator.constructRecordKey`` (``hudi-format`` section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import PartitionValueError, RecordKeyError, SchemaError
from hudi_core.keygen.zones import to_local_millis
from hudi_core.model.key_form import KeyForm
from hudi_core.schema.arrow_types import children
from hudi_core.schema.table_schema import TableSchema, is_column
from hudi_core.schema.widening import number_strings
from hudi_core.storage.partition_path import PartitionPathCodec

# --- values of keys as strings --------------------------------------------------------------------
# Record keys and partition values are made of them.
#
# Hudi takes a value out of an Avro record, turns some logical types into Java objects
# (``HoodieAvroUtils.convertValueForAvroLogicalTypes``) and calls ``toString`` on the result:
#
# ========================= ======================================================================
# integers, booleans        decimal digits; ``true`` and ``false``
# float, double             ``Float.toString``, ``Double.toString``: of Java 19 and later, or before
# decimal                   ``BigDecimal.toString``: ``12.50``, ``1E-9``
# date                      ``LocalDate.toString``: ``2026-01-31``, ``+10000-01-01``
# time                      microseconds since midnight
# timestamp                 microseconds since the epoch; with consistent logical timestamps, and in
#                           Spark's row writer, ``java.sql.Timestamp.toString`` of milliseconds, for
#                           timestamps with a zone only
# bytes                     hexadecimal digits, lower case
# ========================= ======================================================================
#
# ``java.sql.Timestamp`` prints in the zone of the JVM. Which of two ways it is,
# :class:`~hudi_core.model.key_form.KeyForm` says.


PLAIN: Final = KeyForm()
"""What Hudi does by default, on Java 19 and later."""
_YEAR_10000: Final = 2_932_897  # days since the epoch
_HEX: Final = np.array([list(f"{byte:02x}".encode()) for byte in range(256)], np.uint8)


def require_text_form(field: pa.Field, name: str, purpose: str) -> None:
    """Raise a :class:`SchemaError` for a column whose values have no text form."""
    if children(field.type) or pt.is_fixed_size_binary(field.type):
        raise SchemaError(
            f"Column {name} has the type {field.type}, which cannot be part of the {purpose}",
            "Use a column of a simple type.",
            column=name,
            type=str(field.type),
        )


def to_text(values: pa.Array, form: KeyForm = PLAIN) -> pa.StringArray:
    """Return values as strings; nulls stay null."""
    kind = values.type
    if pt.is_string(kind):
        return values
    if pt.is_date(kind):
        text = values.cast(pa.string())
        late = pc.greater_equal(values.cast(pa.int32()), _YEAR_10000)
        return pc.if_else(late, pc.binary_join_element_wise("+", text, ""), text)
    if pt.is_floating(kind):
        return number_strings(values, old=form.old_floats)
    if pt.is_binary(kind):
        return _hexadecimal(values)
    if pt.is_timestamp(kind) and kind.tz and form.timestamp_zone is not None:
        return _timestamps(values, form.timestamp_zone)
    if pt.is_time32(kind):
        values = values.cast(pa.int32())
    elif pt.is_temporal(kind):
        values = values.cast(pa.int64())
    return values.cast(pa.string())


def _hexadecimal(values: pa.BinaryArray) -> pa.StringArray:
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    data = np.frombuffer(b"".join(values.drop_null().to_pylist()), np.uint8)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths * 2, out=offsets[1:])
    text = pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets), pa.py_buffer(_HEX[data].tobytes())
    )
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _timestamps(values: pa.Array, zone: str) -> pa.StringArray:
    per_millisecond = 1000 if values.type.unit == "us" else 1
    # Java divides towards zero
    millis = pc.divide(values.cast(pa.int64()), per_millisecond)
    local = to_local_millis(millis.fill_null(0).to_numpy(), zone)
    clocks = pa.array(local, mask=millis.is_null().to_numpy(zero_copy_only=False))
    text = clocks.cast(pa.timestamp("ms")).cast(pa.string())
    # Timestamp drops zeros at the end of the fraction but the first
    return pc.replace_substring_regex(text, r"(\.\d)(\d*?)0+$", r"\1\2")


# --- columns of keys ------------------------------------------------------------------------------


NULL_PART: Final = "__null__"
EMPTY_PART: Final = "__empty__"


class KeyGenerator(Protocol):
    """Makes the record keys and partition paths of cast batches.

    Cast to the table's schema.
    """

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row.

        Null for a table that generates its keys.
        """
        ...

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row, dictionary encoded.

        Each path is in the dictionary once.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of keys or paths: schema path and access to values.

    Attributes
    ----------
    name
        Its path in the schema, with dots.
    top
        The column of a batch that has it.
    below
        Names of the structs' fields below that, down to the value.
    """

    name: str
    top: str
    below: tuple[str, ...]

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the column's values; null where a struct around them is."""
        values = batch.column(self.top)
        return pc.struct_field(values, list(self.below)) if self.below else values


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The columns of a key generator, found in the schema.

    Attributes
    ----------
    record_key, partition
        Those that keys are made of, and those of partition paths.
    form
        How a key is written.
    are_whole
        Whether each column of a record key must have a value, as virtual keys demand.
    """

    record_key: tuple[KeyColumn, ...]
    partition: tuple[KeyColumn, ...]
    form: KeyForm = PLAIN
    are_whole: bool = False

    @classmethod
    def resolve(
        cls,
        schema: TableSchema,
        record_key: Sequence[str],
        partition: Sequence[str],
        form: KeyForm,
        *,
        are_whole: bool = False,
    ) -> KeyColumns:
        """Find the columns; see :func:`hudi_core.keygen.key_generator` for what is raised."""
        return cls(
            tuple(_find(schema, name, RecordKeyError, "record key") for name in record_key),
            tuple(_find(schema, name, PartitionValueError, "partition") for name in partition),
            form,
            are_whole,
        )

    def text(self, batch: pa.RecordBatch, column: KeyColumn) -> pa.StringArray:
        """Return a column's values as the strings keys are made of."""
        return to_text(column.of(batch), self.form)

    def bare_key(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return keys that are the values of one column."""
        if not self.record_key:
            return no_keys(batch)
        (column,) = self.record_key
        keys = self.text(batch, column)
        self._require_keys(is_missing(keys))
        return keys

    def joined_key(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return keys ``f1:v1,f2:v2``, with placeholders for null and empty values."""
        if not self.record_key:
            return no_keys(batch)
        parts: list[pa.Array | pa.Scalar] = []
        missing = pa.scalar(True)
        before = ""
        for column in self.record_key:
            value = self.text(batch, column)
            empty = is_missing(value)
            self._require_whole(value)
            missing = pc.and_(missing, empty)
            if pc.any(empty, min_count=0).as_py():
                value = pc.fill_null(pc.if_else(empty, _or_null(value), value), NULL_PART)
            parts += [pa.scalar(f"{before}{column.name}:"), value]
            before = ","
        self._require_keys(missing)
        return pc.binary_join_element_wise(*parts, "")

    def concatenated_key(self, batch: pa.RecordBatch, between: str) -> pa.StringArray:
        """Return keys ``v1_v2``; no value may contain the separator."""
        texts = [self.text(batch, column) for column in self.record_key]
        for column, text in zip(self.record_key, texts, strict=True):
            self._require_whole(text)
            contains = pc.match_substring(text, between)
            if len(texts) > 1:
                _refuse_ambiguous([column], between, contains, "contains")
        keys = pc.binary_join_element_wise(*texts, between)
        if _overlaps_itself(between):
            several = pa.array(_occurrences(keys, between.encode()) >= len(texts))
            what = "makes with its neighbours another"
            _refuse_ambiguous(self.record_key, between, several, what)
        joints = len(between.encode()) * (len(texts) - 1)
        self._require_keys(pc.equal(pc.binary_length(keys), joints))
        return keys

    def _require_whole(self, text: pa.StringArray) -> None:
        if self.are_whole:
            self._require_keys(text.is_null())

    def _require_keys(self, missing: pa.BooleanArray) -> None:
        count = pc.sum(missing, min_count=0).as_py()
        if count:
            names = ", ".join(column.name for column in self.record_key)
            raise RecordKeyError(
                f"The record key ({names}) is null or empty in {count} of {len(missing)} rows",
                "Give every row a key, or drop these rows.",
                columns=tuple(column.name for column in self.record_key),
                rows=count,
            )


def _refuse_ambiguous(
    columns: Sequence[KeyColumn], between: str, ambiguous: pa.BooleanArray, what: str
) -> None:
    count = pc.sum(ambiguous, min_count=0).as_py()
    if count:
        names = ", ".join(column.name for column in columns)
        raise RecordKeyError(
            f"The column {names} of the record key {what} {between!r}, which is put between the "
            f"values of a key, in {count} of {len(ambiguous)} rows: two rows could have one key",
            "Make a table with another hoodie.recordkey.virtual.concatenator, or without.",
            columns=tuple(column.name for column in columns),
            rows=count,
        )


def _overlaps_itself(between: str) -> bool:
    """Whether a separator can begin within another one, as ``--`` in ``---``."""
    return any(between.startswith(between[shift:]) for shift in range(1, len(between)))


def _occurrences(keys: pa.StringArray, sought: bytes) -> npt.NDArray[np.int64]:
    """How often each key holds some bytes, those that overlap counted each."""
    _, ends, data = keys.buffers()
    held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    starts = np.ones(max(len(held) - len(sought) + 1, 0), bool)
    for place, byte in enumerate(sought):
        starts &= held[place : place + len(starts)] == byte
    bounds = np.frombuffer(ends, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    counted = np.concatenate([[0], np.cumsum(starts)])
    lasts = np.maximum(bounds[1:] - len(sought) + 1, bounds[:-1])
    found: npt.NDArray[np.int64] = (
        counted[np.minimum(lasts, len(starts))] - counted[np.minimum(bounds[:-1], len(starts))]
    )
    return found


def is_missing(strings: pa.StringArray) -> pa.BooleanArray:
    """Return which strings are null or empty."""
    return pc.fill_null(pc.equal(pc.binary_length(strings), 0), True)


def no_keys(batch: pa.RecordBatch) -> pa.StringArray:
    """Return null for every row: keys are generated on writing."""
    return pa.nulls(batch.num_rows, pa.string())


def _or_null(value: pa.StringArray) -> pa.StringArray:
    return pc.if_else(value.is_valid(), pa.scalar(EMPTY_PART), pa.scalar(None, pa.string()))


def _find(schema: TableSchema, name: str, error: type[SchemaError], purpose: str) -> KeyColumn:
    top, *below = name.split(".")
    field = schema.field(name)
    if field is None or not is_column(schema.arrow, name):
        raise error(
            f"The table has no column {name!r}, which its {purpose} names",
            f"Use one of {', '.join(schema.names)}.",
            column=name,
        )
    require_text_form(field, name, purpose)
    return KeyColumn(name, top, tuple(below))


# --- partition paths of batches, made once per distinct tuple of values ---------------------------


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
