"""Rows of a slice's log blocks, in the columns of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_core.avro.wrappers import ARRAY, Wrapped
from hudi_core.config.merge_rules import MergeRules
from hudi_core.errors import CorruptMetadataError
from hudi_core.file_slice.blocks import SliceBlock, content_of
from hudi_core.log_format.block import NATURAL_ORDER, BlockType, HeaderKey, decode_delete_content
from hudi_core.log_format.data_block import avro_rows, parquet_rows
from hudi_core.log_format.positions import decode_positions
from hudi_core.model.bound_conversions import EXACT, decimal_of
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.combine import Positions
from hudi_core.rows.deciding import Mask, deleted
from hudi_core.schema.absence import flags_column, flags_of
from hudi_core.schema.alignment import aligned, counterparts, ids_of, with_ids
from hudi_core.schema.arrow_types import field_id, is_bytes, is_text, walk
from hudi_core.schema.avro_types import record_from_avro
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import DataFiles, FetchedFiles

_DIGITS: Final = 30
_SCALE: Final = 15
_STORED: Final = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float32(),
    "DoubleWrapper": pa.float64(),
    "BytesWrapper": pa.binary(),
    "StringWrapper": pa.string(),
    "DateWrapper": pa.date32(),
    "LocalDateWrapper": pa.date32(),
    "DecimalWrapper": pa.decimal128(_DIGITS, _SCALE),
    "TimeMicrosWrapper": pa.time64("us"),
    "TimestampMicrosWrapper": pa.timestamp("us"),
}
"""What the values of a wrapper are."""
_WRAPPERS: Final[Sequence[tuple[Callable[[pa.DataType], bool], str, pa.DataType | None]]] = (
    (pt.is_boolean, "BooleanWrapper", None),
    (pt.is_int32, "IntWrapper", None),
    (pt.is_int64, "LongWrapper", None),
    (pt.is_float32, "FloatWrapper", None),
    (pt.is_float64, "DoubleWrapper", None),
    (is_text, "StringWrapper", None),
    (is_bytes, "BytesWrapper", None),
    (pt.is_date32, "IntWrapper", pa.int32()),
    (pt.is_time32, "IntWrapper", pa.int32()),
    (pt.is_time64, "LongWrapper", pa.int64()),
    (pt.is_timestamp, "LongWrapper", pa.int64()),
)
"""The wrapper of a column's values, and the numbers that they are there.

Hudi-Spark compares them with the numbers that it has in memory, and fails on wrappers of dates and
timestamps.
"""


@dataclass(frozen=True, slots=True)
class LogRows:
    """Rows and deletes of a slice's logs, as they were written.

    ``rows`` are in the columns that are wanted; those of a delete block are null but for the record
    key and the ordering columns. ``deletes`` are the rows that delete, and ``always`` those of them
    that do so whatever the ordering value of the other version is. ``bare`` are those of delete
    blocks. ``positions`` are those in the base file, ``None`` where rows are found by their keys.
    """

    rows: pa.Table
    deletes: Mask
    always: Mask
    bare: Mask
    positions: Positions | None


def has_positions(blocks: Sequence[SliceBlock], base: InstantTime) -> bool:
    """Whether all blocks have positions in the base file of an instant."""
    return all(
        block.header(HeaderKey.RECORD_POSITIONS)
        and block.header(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) == base
        for block in blocks
    )


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Rows and deletes of one block.

    As in :class:`LogRows`; ``lacking`` are columns that a block of partial updates does not have.
    ``is_bare``: whether it is a delete block.
    """

    rows: pa.Table
    deletes: Mask
    always: Mask
    lacking: frozenset[str]
    positions: Positions | None
    is_bare: bool


def joined(parts: Sequence[BlockRows]) -> LogRows:
    """The rows of several blocks, in their order."""
    tables = [part.rows for part in parts]
    names = sorted({name for part in parts for name in part.lacking})
    if names:
        tables = [_flagged(part.rows, part.lacking, names) for part in parts]
    positions = [part.positions for part in parts if part.positions is not None]
    return LogRows(
        pa.concat_tables(tables),
        np.concatenate([part.deletes for part in parts]),
        np.concatenate([part.always for part in parts]),
        np.repeat([part.is_bare for part in parts], [part.rows.num_rows for part in parts]),
        np.concatenate(positions) if positions else None,
    )


def written_rows(
    files: DataFiles, blocks: Sequence[SliceBlock], schema: pa.Schema, rules: MergeRules
) -> Iterator[tuple[pa.Table, frozenset[str]]]:
    """Yield the rows of each block, and its columns.

    The rows are in the columns of the table that it has, whatever becomes of them when the slice is
    merged; deletes are left out. With them come the paths that it stores: a renamed column has
    another one there.
    """
    for block in blocks:
        if block.place.type != BlockType.DELETE:
            found = _decoded(files, block, schema, rules)
            names = [name for name in schema.names if name in found.columns]
            yield found.rows.filter(pa.array(~found.deletes)).select(names), found.paths


def read_block(
    files: DataFiles,
    block: SliceBlock,
    schema: pa.Schema,
    rules: MergeRules,
    fetched: FetchedFiles | None = None,
    *,
    by_positions: bool,
) -> BlockRows:
    """Read the rows of a block.

    ``schema`` has the wanted columns of the table, those that decide between versions included, and
    the record key unless ``by_positions``. ``fetched`` may have the log.
    """
    found = _decoded(files, block, schema, rules, fetched)
    lacking = frozenset(schema.names) - found.columns if is_partial(block) else frozenset[str]()
    positions = _positions(block, found.rows.num_rows) if by_positions else None
    is_bare = block.place.type == BlockType.DELETE
    return BlockRows(found.rows, found.deletes, found.always, lacking, positions, is_bare)


def is_partial(block: SliceBlock) -> bool:
    """Whether a block is of partial updates."""
    return block.header(HeaderKey.IS_PARTIAL).lower() == "true"


class _Decoded(NamedTuple):
    """Rows of a block, which delete, and the block's columns.

    Of the deletes those that hold whatever is stored come apart; ``columns`` are those of the table
    that the block has, ``paths`` the names of what it stores.
    """

    rows: pa.Table
    deletes: Mask
    always: Mask
    columns: frozenset[str]
    paths: frozenset[str]


def _decoded(
    files: DataFiles,
    block: SliceBlock,
    schema: pa.Schema,
    rules: MergeRules,
    fetched: FetchedFiles | None = None,
) -> _Decoded:
    path, content = block.path, content_of(files, block, fetched)
    if block.place.type == BlockType.DELETE:
        return _deletes(content.to_pybytes(), schema, rules, path)
    header = block.header(HeaderKey.SCHEMA)
    known, ids = _numbered(header)
    own: Sequence[pa.Field | None] = list(schema)
    if known:
        own = _stored_as(header, tuple((field.name, field_id(field)) for field in schema))
    names = {field.name for field in own if field is not None}
    if block.place.type == BlockType.PARQUET:
        stored = parquet_rows(content, names, path)
    else:
        stored = avro_rows(content.to_pybytes(), header, names, path)
    fields = {field.name: field for field in with_ids(stored.schema, ids)}
    had = [None if field is None else fields.get(field.name) for field in own]
    try:
        rows = aligned(stored, had, schema)
    except pa.ArrowException as error:
        raise CorruptMetadataError(path, f"a block has other columns: {error}") from error
    found = deleted(rows, rules)
    always = found & (rules.deletes_always or not rules.stored_order)
    both = zip(schema.names, had, strict=True)
    columns = frozenset(name for name, field in both if field is not None)
    return _Decoded(rows, found, always, columns, frozenset(dict(walk(stored.schema))))


@lru_cache(maxsize=64)
def _numbered(schema: str) -> tuple[tuple[pa.Field, ...], Mapping[str, int]]:
    """A block's columns if its schema has field ids, and these."""
    known = tuple(record_from_avro(schema)) if '"field-id"' in schema else ()
    return known, ids_of(known)


@lru_cache(maxsize=64)
def _stored_as(
    header: str, wanted: tuple[tuple[str, int | None], ...]
) -> tuple[pa.Field | None, ...]:
    """A block's columns for columns of the table, by name and id."""
    known, _ = _numbered(header)
    fields = [pa.field(name, pa.null()) for name, _ in wanted]
    ids = {name: number for name, number in wanted if number is not None}
    return tuple(counterparts(known, with_ids(fields, ids)))


def _flagged(rows: pa.Table, lacking: frozenset[str], names: Sequence[str]) -> pa.Table:
    field = flags_of(names)
    flags = {name: np.full(rows.num_rows, name in lacking) for name in names}
    return rows.append_column(field, flags_column(flags, field))


def positions_of(block: SliceBlock) -> Positions:
    """The record positions of a block that has them."""
    return decode_positions(block.header(HeaderKey.RECORD_POSITIONS), block.path)


def _positions(block: SliceBlock, count: int) -> Positions:
    found = positions_of(block)
    if len(found) != count:
        raise CorruptMetadataError(
            block.path, f"a block of {count} records has {len(found)} record positions"
        )
    return found


# --- delete blocks -------------------------------------------------------------------------------


def _deletes(content: bytes, schema: pa.Schema, rules: MergeRules, path: str) -> _Decoded:
    records = decode_delete_content(content, path)
    values = [_ordering(one.ordering, len(rules.stored_order)) for one in records]
    always = np.array([one is None for one in values], bool)
    columns = {name: pa.nulls(len(records), schema.field(name).type) for name in schema.names}
    if RECORD_KEY in columns:
        columns[RECORD_KEY] = pa.array([one.record_key for one in records], pa.string())
        if columns[RECORD_KEY].null_count:
            raise CorruptMetadataError(path, "a delete block has a record without a key")
    for number, name in enumerate(rules.stored_order):
        own = [None if one is None else one[number] for one in values]
        top, *below = name.split(".")
        try:
            columns[top] = _with_values(columns[top], below, own)
        except (pa.ArrowException, ValueError, TypeError, LookupError) as error:
            raise CorruptMetadataError(
                path, f"an ordering value of a delete block does not fit the column {name}"
            ) from error
    rows = pa.table([columns[name] for name in schema.names], schema=schema)
    names = frozenset(schema.names)
    return _Decoded(rows, np.ones(len(records), bool), always, names, names)


def _ordering(value: Wrapped | None, count: int) -> tuple[Wrapped | None, ...] | None:
    """A delete's values of the ordering columns; ``None`` where it always holds."""
    if not count or value is None or value == NATURAL_ORDER:
        return None
    found = value.value if value.wrapper == ARRAY else (value,)
    if len(found) != count:
        return None
    return tuple(found)


def _with_values(
    column: pa.Array, below: Sequence[str], values: Sequence[Wrapped | None]
) -> pa.Array:
    """A column of deletes with ordering values, nested ones too."""
    if not below:
        return _of_wrappers(values, column.type)
    children = [
        _with_values(column.field(field.name), below[1:], values)
        if field.name == below[0]
        else column.field(field.name)
        for field in column.type
    ]
    return pa.StructArray.from_arrays(children, fields=list(column.type))


def wrapped_orders(columns: Sequence[pa.Array]) -> list[Wrapped | None]:
    """Ordering values of deletes as their block has them.

    ``columns`` are the ordering columns. ``None`` is a delete that always holds: one of which a
    value is null, or has more digits than the wrapper of decimals. Readers do not compare such, and
    hudi-rs takes no block with :data:`NATURAL_ORDER` beside values of other types.
    """
    each = [_wrapped(column) for column in columns]
    if len(each) == 1:
        return each[0]
    rows = zip(*each, strict=True)
    return [None if None in values else Wrapped(ARRAY, values) for values in rows]


def wrapped_numbers(columns: Sequence[pa.Array]) -> tuple[str | None, pa.Array] | None:
    """Wrapper and numbers of integral ordering values; ``None`` for others.

    Without ordering columns there is no wrapper.
    """
    if not columns:
        return None, pa.nulls(0, pa.int64())
    if len(columns) > 1 or not _is_whole(columns[0].type):
        return None
    wrapper, number = next((name, form) for fits, name, form in _WRAPPERS if fits(columns[0].type))
    return wrapper, columns[0] if number is None else columns[0].cast(number)


def _is_whole(kind: pa.DataType) -> bool:
    found = (name for fits, name, _ in _WRAPPERS if fits(kind))
    return next(found, None) in ("IntWrapper", "LongWrapper")


def _wrapped(column: pa.Array) -> list[Wrapped | None]:
    kind = column.type
    if pt.is_decimal(kind):
        return [None if value is None else _wrapped_decimal(value) for value in column.to_pylist()]
    wrapper, number = next((name, form) for fits, name, form in _WRAPPERS if fits(kind))
    values = column if number is None else column.cast(number)
    return [None if value is None else Wrapped(wrapper, value) for value in values.to_pylist()]


def _wrapped_decimal(value: Decimal) -> Wrapped | None:
    scaled = value.scaleb(_SCALE, EXACT)
    if scaled != scaled.to_integral_value() or scaled.adjusted() >= _DIGITS:
        return None
    number = int(scaled)
    content = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    return Wrapped("DecimalWrapper", content)


def _of_wrappers(values: Sequence[Wrapped | None], kind: pa.DataType) -> pa.Array:
    """Unwrapped values as an array of a column's type."""
    # in one block they are alike, but where a writer does not know the type
    by_wrapper = groupby(values, lambda one: "" if one is None else one.wrapper)
    found = [_of_one_wrapper(name, list(some), kind) for name, some in by_wrapper]
    return pa.concat_arrays(found) if found else pa.array([], kind)


def _of_one_wrapper(wrapper: str, values: Sequence[Wrapped | None], kind: pa.DataType) -> pa.Array:
    if not wrapper:
        return pa.nulls(len(values), kind)
    raw: list[Any] = [one.value for one in values if one is not None]
    if wrapper == "DecimalWrapper":
        raw = [decimal_of(value, _SCALE) for value in raw]
    return pa.array(raw, _STORED[wrapper]).cast(kind)
