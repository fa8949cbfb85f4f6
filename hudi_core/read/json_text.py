"""Rows as JSON strings, made column by column.

In the form of Hudi's change data capture: dates are days and timestamps microseconds since the
epoch, bytes are base64, numbers that are none are strings (``"NaN"``). Nulls are written; decimals
are numbers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.schema.arrow_types import is_bytes, is_list, is_text
from hudi_core.schema.casting import list_offsets, map_entries

_NULL: Final = "null"
_ESCAPES: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NOT_FINITE: Final = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def json_rows(rows: pa.Table) -> pa.Array:
    """Each row as the text of a JSON object."""
    columns = [column.combine_chunks() for column in rows.columns]
    return _object(rows.column_names, columns, rows.num_rows)


def _object(names: list[str], columns: list[pa.Array], count: int) -> pa.Array:
    parts: list[pa.Array | pa.Scalar] = []
    for name, column in zip(names, columns, strict=True):
        opening = "," if parts else "{"
        parts += [pa.scalar(f"{opening}{json.dumps(name, ensure_ascii=False)}:"), _values(column)]
    if not parts:
        return pa.repeat("{}", count)
    return pc.binary_join_element_wise(*parts, pa.scalar("}"), pa.scalar(""))


def _values(array: pa.Array) -> pa.Array:
    """Each value as JSON text; none of them is null."""
    return pc.fill_null(json_values(array), _NULL)


def json_values(array: pa.Array) -> pa.Array:
    """Each value as JSON text; nulls stay."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    form = next((form for is_one, form in _FORMS if is_one(array.type)), None)
    return array.cast(pa.string()) if form is None else form(array)


def _bytes(array: pa.Array) -> pa.Array:
    values = array.to_pylist()
    found = [None if one is None else base64.b64encode(one).decode() for one in values]
    return _quoted(pa.array(found, pa.string()))


def _timestamps(array: pa.Array) -> pa.Array:
    exact = array.cast(pa.timestamp("us", array.type.tz))
    return exact.cast(pa.int64()).cast(pa.string())


def _floats(array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    if not pc.all(pc.is_finite(array), min_count=0).as_py():
        for name, text in _NOT_FINITE.items():
            texts = pc.if_else(pc.equal(texts, name), text, texts)
    # a whole number stays a floating-point one to readers that distinguish them
    return pc.replace_substring_regex(texts, r"^(-?[0-9]+)$", r"\1.0")


def _structs(array: pa.StructArray) -> pa.Array:
    names = [array.type.field(number).name for number in range(array.type.num_fields)]
    texts = _object(names, array.flatten(), len(array))
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))


def _maps(array: pa.MapArray) -> pa.Array:
    entries = map_entries(array)
    pairs = entries.flatten()
    keys, values = pairs.flatten()
    names = json_values(keys)
    if not is_text(keys.type):
        names = _quoted(pc.replace_substring(names, '"', ""))
    texts = pc.binary_join_element_wise(names, _values(values), ":")
    return _joined(entries, texts, "{", "}")


def _joined(lists: pa.Array, texts: pa.Array, opening: str, closing: str) -> pa.Array:
    """The strings of each list's elements as one."""
    parts = pa.ListArray.from_arrays(list_offsets(lists), texts)
    joined = pc.binary_join_element_wise(opening, pc.binary_join(parts, ","), closing, "")
    return pc.if_else(lists.is_valid(), joined, pa.scalar(None, pa.string()))


def _quoted(texts: pa.Array) -> pa.Array:
    texts = texts.cast(pa.string())
    escaped = pc.replace_substring(texts, "\\", "\\\\")
    escaped = pc.replace_substring(escaped, '"', '\\"')
    special = pc.match_substring_regex(escaped, r"[\x00-\x1f]")
    if pc.any(special).as_py():
        for code in range(0x20):
            one = chr(code)
            escaped = pc.replace_substring(escaped, one, _ESCAPES.get(one, f"\\u{code:04x}"))
    return pc.binary_join_element_wise('"', escaped, '"', "")


_FORMS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], pa.Array]], ...]] = (
    (is_text, _quoted),
    (is_bytes, _bytes),
    (pt.is_floating, _floats),
    (pt.is_timestamp, _timestamps),
    (pt.is_date32, lambda array: array.cast(pa.int32()).cast(pa.string())),
    (pt.is_time, lambda array: array.cast(pa.time64("us")).cast(pa.int64()).cast(pa.string())),
    (pt.is_struct, _structs),
    (pt.is_map, _maps),
    (is_list, lambda array: _joined(array, _values(array.flatten()), "[", "]")),
)
"""Types that Arrow's own text of a value is not JSON of, each with its form."""
