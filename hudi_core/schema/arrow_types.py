"""Arrow types a table may have, and paths of nested fields.

A path names a field at any depth: ``address.city`` in a struct, ``tags.list.element`` in a list,
``props.key_value.key`` and ``props.key_value.value`` in a map. These are the paths of the columns
in parquet files, so that one grammar serves field ids and statistics.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import SchemaError

FIELD_ID: Final = b"PARQUET:field_id"
"""Metadata key under which Arrow and parquet keep the id of a field, as decimal text."""
DOC: Final = b"doc"
"""Metadata key under which a field keeps the comment of its Avro schema."""
MAX_DECIMAL_PRECISION: Final = 38

LIST_ELEMENT: Final = "list.element"
MAP_KEY: Final = "key_value.key"
MAP_VALUE: Final = "key_value.value"

# Avro's rule for names; hudi-rs cannot read a table that breaks it
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SAME: Final = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
_STORED_AS: Final[dict[pa.DataType, pa.DataType]] = {
    **{kind: kind for kind in _SAME},
    **{kind: pa.int32() for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())},
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


class Child(NamedTuple):
    """A direct child of a nested field, and its path suffix."""

    suffix: str
    field: pa.Field


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's five list types."""
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's three string types."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's four binary types."""
    return bool(
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
        or pt.is_fixed_size_binary(kind)
    )


_FAMILIES: Final[tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...]] = (
    (is_text, pa.string()),
    (is_bytes, pa.binary()),
    (pt.is_date, pa.date32()),
    (pt.is_time, pa.time64("us")),
)


def children(kind: pa.DataType) -> tuple[Child, ...]:
    """Return a type's direct children; empty for a flat type."""
    if not pt.is_nested(kind):
        return ()
    if pt.is_struct(kind):
        return tuple(Child(field.name, field) for field in kind)
    if pt.is_map(kind):
        return (Child(MAP_KEY, kind.key_field), Child(MAP_VALUE, kind.item_field))
    if is_list(kind):
        return (Child(LIST_ELEMENT, kind.value_field),)
    return ()


def has_map(kind: pa.DataType) -> bool:
    """Whether a type is a map, or has one below."""
    return pt.is_map(kind) or any(has_map(one.field.type) for one in children(kind))


def with_children(kind: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """Return a struct, list or map type like ``kind`` with other children."""
    if pt.is_struct(kind):
        return pa.struct(fields)
    if pt.is_map(kind):
        return pa.map_(fields[0], fields[1])
    return pa.list_(fields[0])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with Arrow's plain strings, bytes and lists.

    Arrow has several types for each. They are the same in a Parquet file, whose writer notes which
    one its rows had.
    """
    below = children(kind)
    if below:
        return with_children(kind, [one.with_type(plain_type(one.type)) for _, one in below])
    if is_text(kind):
        return pa.string()
    return pa.binary() if pt.is_large_binary(kind) or pt.is_binary_view(kind) else kind


def walk(fields: Sequence[pa.Field]) -> Iterator[tuple[str, pa.Field]]:
    """Yield every field with its path, depth first, parents first."""
    for field in fields:
        yield from _walk(field.name, field)


def _walk(path: str, field: pa.Field) -> Iterator[tuple[str, pa.Field]]:
    yield path, field
    for suffix, child in children(field.type):
        yield from _walk(f"{path}.{suffix}", child)


def leaves(schema: pa.Schema) -> tuple[tuple[str, pa.Field], ...]:
    """Return a schema's leaf fields and paths, in parquet order."""
    return tuple((path, field) for path, field in walk(schema) if not children(field.type))


def field_id(field: pa.Field) -> int | None:
    """Return the field id in a field's metadata; ``None`` without one."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def normalise_field(field: pa.Field, path: str) -> pa.Field:
    """Return a field as tables store it.

    Metadata but the comment is dropped.
    """
    if not _NAME.fullmatch(field.name):
        raise SchemaError(
            f"Column {path!r} has a name that Hudi's Avro schemas cannot hold",
            "Use letters of ASCII, digits and underscores, and no digit at the start.",
            column=path,
        )
    doc = (field.metadata or {}).get(DOC)
    metadata = None if doc is None else {DOC: doc}
    return pa.field(field.name, normalise_type(field.type, path), field.nullable, metadata)


def normalise_type(kind: pa.DataType, path: str) -> pa.DataType:
    """Return the stored type for values of ``kind``; lossless.

    ==================================== ==========================================
    given                                stored
    ==================================== ==========================================
    int8, int16, uint8, uint16           int32 (Avro has no smaller one)
    uint32; uint64                       int64; decimal128(20, 0)
    float16                              float32
    any string type; any binary type     string; binary
    any decimal of at most 38 digits     decimal128 of the same precision and scale
    date64; time of any unit             date32; time64[us]
    timestamp of any unit                timestamp[us], in UTC when it has a zone
    any list type                        list
    dictionary, run-end encoded          the type of the values
    ==================================== ==========================================

    Nanoseconds that microseconds cannot hold are refused when such rows are written.

    Refused are null, durations, intervals, unions, extension types, maps whose keys are not
    strings, structs without fields, and decimals beyond 38 digits or with a negative scale.
    """
    if isinstance(kind, pa.BaseExtensionType):
        _refuse(kind, path, "Cast the column to its storage type.")
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return normalise_type(kind.value_type, path)
    if children(kind):
        return _normalise_nested(kind, path)
    if pt.is_decimal(kind):
        if not 0 <= kind.scale <= kind.precision <= MAX_DECIMAL_PRECISION:
            _refuse(kind, path, "Use at most 38 digits and a scale from 0 to the precision.")
        return pa.decimal128(kind.precision, kind.scale)
    stored = _normalise_primitive(kind)
    if stored is None:
        _refuse(kind, path, "Cast the column to a type that Hudi tables have.")
    return stored


def _normalise_nested(kind: pa.DataType, path: str) -> pa.DataType:
    if pt.is_struct(kind):
        fields = [normalise_field(field, f"{path}.{field.name}") for field in kind]
        names = [field.name for field in fields]
        require_distinct(names, f"The struct {path}")
        require_case_distinct(names, names, f"The struct {path}")
        return pa.struct(fields)
    if pt.is_map(kind):
        key = normalise_type(kind.key_type, f"{path}.{MAP_KEY}")
        if not pt.is_string(key):
            _refuse(kind, path, "Keys of maps are strings in Hudi's Avro schemas.")
        value = normalise_type(kind.item_type, f"{path}.{MAP_VALUE}")
        return pa.map_(
            pa.field("key", key, False), pa.field("value", value, kind.item_field.nullable)
        )
    element = normalise_type(kind.value_type, f"{path}.{LIST_ELEMENT}")
    return pa.list_(pa.field("element", element, kind.value_field.nullable))


def _normalise_primitive(kind: pa.DataType) -> pa.DataType | None:
    if pt.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if kind in _STORED_AS:
        return _STORED_AS[kind]
    return next((stored for test, stored in _FAMILIES if test(kind)), None)


def repeated_names(names: Iterable[str]) -> list[str]:
    """Names that occur twice, in order."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def require_distinct(names: Sequence[str], where: str) -> None:
    """Raise a :class:`SchemaError` when a name occurs twice."""
    duplicates = repeated_names(names)
    if duplicates:
        raise SchemaError(
            f"{where} has several columns named {', '.join(duplicates)}",
            "Rename all but one of them.",
            columns=tuple(duplicates),
        )


def require_case_distinct(new: Iterable[str], names: Iterable[str], where: str) -> None:
    """Refuse new names that differ from another in case only.

    Spark, Hive and Trino do not distinguish such columns: none of them could read the table.

    ``new`` names are about to be stored; ``names`` are all of their level, the new ones included.
    """
    by_case: dict[str, list[str]] = {}
    for name in names:
        by_case.setdefault(name.lower(), []).append(name)
    for name in new:
        same = by_case[name.lower()]
        if len(same) > 1:
            raise SchemaError(
                f"{where} would have the columns {' and '.join(same)}, which differ in case only",
                "Readers such as Spark do not distinguish them: rename all but one of them.",
                columns=tuple(same),
            )


def _refuse(kind: pa.DataType, path: str, hint: str) -> NoReturn:
    raise SchemaError(
        f"Column {path} has the type {kind}, which a table cannot store",
        hint,
        column=path,
        type=str(kind),
    )
