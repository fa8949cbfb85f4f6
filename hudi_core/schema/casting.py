"""Arrow arrays brought to the types of a table, without losing anything.

Arrow's own ``cast`` is not enough: it turns strings into numbers and zoned into plain timestamps
without a word, does not decode run-end encoded columns, and in pyarrow 26 loses the values of the
last row of a list view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.schema.arrow_types import (
    children,
    is_bytes,
    is_list,
    is_text,
    normalise_type,
)
from hudi_core.schema.widening import widened

# --- type promotions that keep every stored value, for all formats --------------------------------
# Files that were written before the change stay as they are, and every reader turns their values
# into the new type. A change is *exact* when no value is lost by that and all readers turn it into
# the same one; only exact changes are made. The others are listed because Hudi, or another format,
# allows them. Whatever is not listed is refused. One reservation: Hudi's own readers widen a float
# by way of its shortest text (0.1 becomes 0.1, not 0.10000000149011612); here the number stays what
# it is, as everywhere else.
#
# *On write*: rows that bring the wider type change the column by themselves; other changes have to
# be asked for. Hudi makes all of its changes on write, so that one batch of strings or of numbers
# that a tool turned into doubles would retype a column of integers for good. Rows make those *by
# option* too where ``hoodie.write.schema.widen.numbers`` says so. Some of these are not exact:
# whole numbers become the nearest floating-point number, and such numbers are spelled as Java does
# (:mod:`hudi_core.schema.widening`), with digits that depend on its release.
#
# A table format declares which of them it can hold, by their names
# (:attr:`~hudi_core.model.capability.FormatCapabilities.promotions`).
#
# Source: Hudi's ``SchemaChangeUtils`` and its rules for schema evolution on write.


BY_OPTION: Final = "hoodie.write.schema.widen.numbers"
"""The option that lets rows make further changes."""
_Test = Callable[[pa.DataType], bool]


@dataclass(frozen=True, slots=True)
class Promotion:
    """One row of the table.

    ``source`` and ``target`` are words. ``exact``: every value stays the same for all readers.
    ``hudi``: Hudi allows it. ``on_write``: rows of the wider type make the change by themselves;
    ``by_option``: they make or may request it where an option allows it.
    """

    source: str
    target: str
    fits: Callable[[pa.DataType, pa.DataType], bool]
    exact: bool = True
    hudi: bool = True
    on_write: bool = False
    by_option: bool = False

    @property
    def name(self) -> str:
        """What it is called by, such as ``int to long``."""
        return f"{self.source} to {self.target}"


def _pair(source: _Test, target: _Test) -> Callable[[pa.DataType, pa.DataType], bool]:
    return lambda stored, wanted: bool(source(stored) and target(wanted))


def _digits(kind: pa.DataType) -> int:
    """Return a decimal's digits before the point; -1 otherwise."""
    return int(kind.precision - kind.scale) if pt.is_decimal(kind) else -1


def _holds_digits(count: int) -> _Test:
    return lambda kind: _digits(kind) >= count


def _any_of(*tests: _Test) -> _Test:
    return lambda kind: any(test(kind) for test in tests)


def _more_precise(stored: pa.DataType, wanted: pa.DataType) -> bool:
    both = pt.is_decimal(stored) and pt.is_decimal(wanted)
    return bool(both and stored.scale == wanted.scale and stored.precision < wanted.precision)


def _finer(stored: pa.DataType, wanted: pa.DataType) -> bool:
    both = pt.is_decimal(stored) and pt.is_decimal(wanted)
    return bool(both and stored.scale < wanted.scale and _digits(stored) <= _digits(wanted))


_INT, _LONG, _FLOAT, _DOUBLE = pt.is_int32, pt.is_int64, pt.is_float32, pt.is_float64

PROMOTIONS: Final = (
    Promotion("int", "long", _pair(_INT, _LONG), on_write=True),
    Promotion("int", "double", _pair(_INT, _DOUBLE), by_option=True),
    Promotion("int", "decimal, 10 digits before the point", _pair(_INT, _holds_digits(10))),
    Promotion("int", "float", _pair(_INT, _FLOAT), exact=False, by_option=True),
    Promotion("int, long", "string", _pair(_any_of(_INT, _LONG), pt.is_string), by_option=True),
    Promotion("long", "decimal, 20 digits before the point", _pair(_LONG, _holds_digits(20))),
    Promotion(
        "long",
        "float, double",
        _pair(_LONG, _any_of(_FLOAT, _DOUBLE)),
        exact=False,
        by_option=True,
    ),
    Promotion("float", "double", _pair(_FLOAT, _DOUBLE), on_write=True),
    Promotion(
        "float, double",
        "string",
        _pair(_any_of(_FLOAT, _DOUBLE), pt.is_string),
        exact=False,
        by_option=True,
    ),
    Promotion(
        "float, double",
        "decimal",
        _pair(_any_of(_FLOAT, _DOUBLE), pt.is_decimal),
        exact=False,
    ),
    Promotion("decimal", "decimal of more digits", _more_precise, on_write=True),
    Promotion(
        "decimal",
        "decimal of more digits behind the point, no fewer before",
        _finer,
        on_write=True,
    ),
    Promotion("decimal", "string", _pair(pt.is_decimal, pt.is_string), exact=False),
    Promotion("date", "string", _pair(pt.is_date32, pt.is_string)),
    Promotion(
        "date",
        "timestamp without zone",
        _pair(pt.is_date32, lambda kind: bool(pt.is_timestamp(kind) and kind.tz is None)),
        hudi=False,
    ),
    Promotion("string", "binary", _pair(pt.is_string, pt.is_binary)),
    Promotion(
        "string",
        "date, decimal",
        _pair(pt.is_string, _any_of(pt.is_date32, pt.is_decimal)),
        exact=False,
    ),
)


def promotion(stored: pa.DataType, wanted: pa.DataType) -> Promotion | None:
    """Return the table row of a type promotion, if any."""
    return next((each for each in PROMOTIONS if each.fits(stored, wanted)), None)


def can_promote(
    stored: pa.DataType, wanted: pa.DataType, *, on_write: bool = False, widely: bool = False
) -> bool:
    """Return whether a Hudi table may make this change of type.

    Types must be normalised. ``on_write``: by rows of the wider type, not on demand; ``widely``: an
    option allows more.
    """
    found = promotion(stored, wanted)
    if found is None or not found.hudi:
        return False
    if widely and found.by_option:
        return True
    return found.exact and (found.on_write or not on_write)


def way_out(stored: pa.DataType, wanted: pa.DataType) -> str:
    """The option that allows a refused change, for its error; else empty."""
    found = promotion(stored, wanted)
    return f", or set {BY_OPTION}=true" if found is not None and found.by_option else ""


# --- casts ----------------------------------------------------------------------------------------


_INT64_DIGITS = 19


def cast_array(
    array: pa.Array, field: pa.Field, path: str, *, widely: bool = False, grows: bool = True
) -> pa.Array:
    """Return an array as the column ``field`` of a table holds it.

    Integers may become wider or narrower integers, floats or decimals when every value stays
    exactly what it is; a column of nulls may become anything that may be null; structs may lack
    columns that may be null.

    With ``widely`` integers may become the nearest floating-point numbers, and numbers strings.
    ``grows`` is only for the hint of an error. A struct with a field that the table lacks is
    refused.
    """
    if array.null_count and not field.nullable:
        raise SchemaError(
            f"Column {path} is required, and {array.null_count} of {len(array)} rows have no value",
            "Fill the nulls.",
            column=path,
            nulls=array.null_count,
        )
    if array.type == field.type:
        return array
    if isinstance(array, pa.DictionaryArray):
        return cast_array(_decoded(array), field, path, widely=widely, grows=grows)
    if isinstance(array, pa.RunEndEncodedArray):
        return cast_array(pc.run_end_decode(array), field, path, widely=widely, grows=grows)
    if pt.is_null(array.type):
        return pa.nulls(len(array), field.type)
    return _cast(array, field.type, path, widely, grows)


def _cast(array: pa.Array, stored: pa.DataType, path: str, widely: bool, grows: bool) -> pa.Array:
    given = array.type
    if pt.is_struct(given) and pt.is_struct(stored):
        return _cast_struct(array, stored, path, widely)
    both_maps = pt.is_map(given) and pt.is_map(stored)
    if both_maps or (is_list(given) and pt.is_list(stored)):
        below = children(stored)
        return with_values(
            array,
            lambda values, at: cast_array(
                values, below[at].field, f"{path}.{below[at].suffix}", widely=widely
            ),
            stored,
        )
    wide = promotion(given, stored) if widely else None
    if wide is not None and wide.by_option:
        return widened(array, stored)
    if children(given) or children(stored) or not _go_together(given, stored):
        option = way_out(given, stored)
        if grows and not option and (option := way_out(stored, given)):
            option += f", which makes the column {given} for good"
        raise SchemaError(
            f"Column {path} has the type {given}, and the table has {stored}",
            f"Cast the column before the write{'' if widely else option}.",
            column=path,
            given=str(given),
            stored=str(stored),
        )
    return _cast_values(array, stored, path)


def without_views(rows: pa.Table) -> pa.Table:
    """Return rows whose strings and bytes are no views.

    As views polars gives them, and Arrow sorts, joins and gathers none.
    """
    for at, field in enumerate(rows.schema):
        if _has_view(field.type):
            plain = pa.field(field.name, normalise_type(field.type, field.name))
            chunks = [cast_array(chunk, plain, field.name) for chunk in rows.column(at).chunks]
            rows = rows.set_column(at, plain, pa.chunked_array(chunks, plain.type))
    return rows


def _has_view(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _has_view(kind.value_type)
    is_view = pt.is_string_view(kind) or pt.is_binary_view(kind)
    return is_view or any(_has_view(one.type) for _, one in children(kind))


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    values = array.dictionary
    if _has_view(values.type):
        # Arrow gathers no views, as which polars gives categories
        plain = values.cast(normalise_type(values.type, ""))
        array = pa.DictionaryArray.from_arrays(array.indices, plain)
    return array.dictionary_decode()


def require_known_columns(given: list[str], known: list[str], where: str) -> None:
    """Raise a :class:`SchemaError` that names the columns the table lacks."""
    stored = set(known)
    extra = [name for name in given if name not in stored]
    if extra:
        raise SchemaError(
            f"{where} lacks the columns {', '.join(extra)}",
            "Drop them, or add them to the table first.",
            columns=tuple(extra),
        )


def only_fields(array: pa.Array, stored: pa.DataType) -> pa.Array:
    """Values without the fields of structs that a type lacks."""
    if not (pt.is_struct(array.type) and pt.is_struct(stored)):
        return array
    names = {field.name for field in stored}
    kept = [field for field in array.type if field.name in names]
    columns = [
        only_fields(array.field(field.name), stored.field(field.name).type) for field in kept
    ]
    same = len(kept) == array.type.num_fields
    if same and all(one.type == field.type for one, field in zip(columns, kept, strict=True)):
        return array
    fields = [field.with_type(one.type) for one, field in zip(columns, kept, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=null_mask(array))


def missing_column(field: pa.Field, rows: int, path: str) -> pa.Array:
    """Return nulls for a column that a batch lacks."""
    if not field.nullable:
        raise SchemaError(
            f"Column {path} is required, and the rows do not have it",
            "Add the column to the rows.",
            column=path,
        )
    return pa.nulls(rows, field.type)


def _go_together(given: pa.DataType, stored: pa.DataType) -> bool:
    if pt.is_integer(given):
        return bool(pt.is_integer(stored) or pt.is_floating(stored) or pt.is_decimal(stored))
    if pt.is_timestamp(given):
        # a local time is not an instant of time: which zone was meant is not ours to guess
        return bool(pt.is_timestamp(stored) and (given.tz is None) == (stored.tz is None))
    same_kind = (pt.is_floating, pt.is_decimal, pt.is_date, pt.is_time, is_text, is_bytes)
    return any(test(given) and test(stored) for test in same_kind)


def _cast_values(array: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    try:
        if pt.is_integer(array.type) and pt.is_decimal(kind):
            # Arrow asks for room for every integer of the type, not only for those that are there
            digits = min(38, _INT64_DIGITS + 1 + kind.scale)
            array = array.cast(pa.decimal128(digits, kind.scale))
        result = _near_start(array).cast(kind)
        if pt.is_floating(kind) and kind.bit_width < array.type.bit_width:
            _require_exact(array, result)
    except pa.ArrowInvalid as error:
        timely = pt.is_timestamp(array.type) or pt.is_time(array.type)
        nanoseconds = timely and array.type.unit == "ns"
        raise SchemaError(
            f"Column {path} holds values that {kind} cannot represent exactly ({error})",
            "Round or cast the column before the write"
            + (", or set hoodie.write.truncate.nanoseconds=true." if nanoseconds else "."),
            column=path,
            stored=str(kind),
        ) from error
    return result


def _near_start(array: pa.Array) -> pa.Array:
    """Values whose offsets need no more than 32 bits."""
    if not (array.offset and (pt.is_large_string(array.type) or pt.is_large_binary(array.type))):
        return array
    ends = np.frombuffer(array.buffers()[1], np.int64)
    is_far = ends[array.offset + len(array)] > np.iinfo(np.int32).max
    return array.take(pa.array(np.arange(len(array)))) if is_far else array


def _require_exact(array: pa.Array, narrow: pa.Array) -> None:
    if not pt.is_floating(array.type):
        return  # Arrow checks integers itself
    same = pc.or_(pc.equal(narrow.cast(array.type), array), pc.is_nan(array))
    if not pc.all(same, min_count=0).as_py():
        raise pa.ArrowInvalid("digits would be lost")


def _cast_struct(array: pa.StructArray, kind: pa.DataType, path: str, widely: bool) -> pa.Array:
    places = {field.name: at for at, field in enumerate(array.type)}
    known = [field.name for field in kind]
    require_known_columns([*places], known, f"The struct {path} of the table")
    # children of a null struct are nulls too, but not values that a required child lacks
    mask = array.is_null() if array.null_count else None
    columns = []
    for field in kind:
        below = f"{path}.{field.name}"
        if field.name not in places:
            columns.append(missing_column(field, len(array), below))
            continue
        child = array.field(places[field.name])
        if not field.nullable and mask is not None and child.null_count:
            cast_array(child.filter(pc.invert(mask)), field, below, widely=widely)
            columns.append(cast_array(child, field.with_nullable(True), below, widely=widely))
        else:
            columns.append(cast_array(child, field, below, widely=widely))
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=mask)


def with_values(
    array: pa.Array,
    change: Callable[[pa.Array, int], pa.Array],
    kind: pa.DataType | None = None,
) -> pa.Array:
    """Return a list or map whose values are changed.

    ``change`` gets the elements of lists; of maps the keys and then the items, with the numbers 0
    and 1. ``kind`` is the type of the result, by default as its values give it.
    """
    mask = null_mask(array)
    if not pt.is_map(array.type):
        # flatten() leaves out what null lists hide, so that lengths alone say where lists begin
        values = change(array.flatten(), 0)
        return pa.ListArray.from_arrays(list_offsets(array), values, type=kind, mask=mask)
    entries = map_entries(array)
    flat = entries.flatten()
    both = [change(flat.field(at), at) for at in range(2)]
    return pa.MapArray.from_arrays(list_offsets(entries), *both, type=kind, mask=mask)


def map_entries(array: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of structs ``key``, ``value``."""
    pairs = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    entries = pa.ListArray.from_arrays(array.offsets, pairs)
    if array.null_count:
        entries = pc.if_else(array.is_valid(), entries, pa.scalar(None, entries.type))
    return entries


def list_offsets(array: pa.Array) -> pa.Array:
    """Return where each list begins among the values that ``flatten()`` gives."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def null_mask(array: pa.Array) -> pa.Array | None:
    """Return which values are null; ``None`` where none is."""
    return array.is_null() if array.null_count else None


# --- timestamps and times without the nanoseconds that microseconds cannot hold -------------------


def without_nanoseconds(array: pa.Array) -> pa.Array:
    """Return an array with nanoseconds cut off, at any depth.

    Towards the past.

    Arrays that have none are returned as they are.
    """
    kind = array.type
    if not _has_nanoseconds(kind):
        return array
    if isinstance(array, pa.DictionaryArray):
        return without_nanoseconds(array.dictionary_decode())
    if isinstance(array, pa.RunEndEncodedArray):
        return without_nanoseconds(pc.run_end_decode(array))
    if children(kind):
        return _nested(array)
    micros = pa.time64("us") if pt.is_time(kind) else pa.timestamp("us", kind.tz)
    # a cast alone would cut towards 1970
    return pc.floor_temporal(array, unit="microsecond").cast(micros)


def _nested(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_struct(kind):
        below = [without_nanoseconds(array.field(n)) for n in range(kind.num_fields)]
        names = [field.name for field in kind]
        return pa.StructArray.from_arrays(below, names=names, mask=null_mask(array))
    return with_values(array, lambda values, _: without_nanoseconds(values))


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _has_nanoseconds(kind.value_type)
    if pt.is_timestamp(kind) or pt.is_time(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(field.type) for _, field in children(kind))
