"""Dataclasses of :mod:`hudi_core.model` as Avro or JSON records, derived from their fields.

``num_update_writes`` of a dataclass is ``numUpdateWrites`` of a record; types decide the rest:
tuples are arrays, mappings are maps with string keys, dataclasses are records, ``None`` is null.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

_IRREGULAR: Final = {"rollback_requests": "RollbackRequests"}
"""Hudi's field names that camel case does not give."""
_SCALARS: Final = frozenset({str, int, bool, float})


class RecordMismatchError(ValueError):
    """A record does not match its dataclass; the message explains."""


_Encoder: TypeAlias = Callable[[Any], object]
_Decoder: TypeAlias = Callable[[object], object]


class RecordField(NamedTuple):
    """A field of a dataclass, and of its record.

    ``hint`` is its type, without ``None`` where it ``is_optional``; ``where`` is for messages.
    """

    name: str
    record_name: str
    where: str
    hint: Any
    is_optional: bool
    default: Callable[[], object] | None
    encode: _Encoder | None
    decode: _Decoder


def to_record(value: object) -> dict[str, object]:
    """Return a dataclass instance as a record: dictionaries, lists and scalars."""
    record: dict[str, object] = {}
    for field in record_fields(type(value)):
        item = getattr(value, field.name)
        if item is not None and field.encode is not None:
            item = field.encode(item)
        record[field.record_name] = item
    return record


def from_record(kind: type[T], record: object) -> T:
    """Return the instance of the dataclass ``kind`` that a record holds.

    A field that the record lacks, and a null where the dataclass knows none, gives the dataclass'
    default. Fields that the dataclass does not know are ignored.
    """
    if not isinstance(record, dict):
        raise RecordMismatchError(f"{kind.__name__} is not a record")
    values: dict[str, object] = {}
    for field in record_fields(kind):
        item = record.get(field.record_name)
        if item is not None:
            values[field.name] = field.decode(item)
        elif field.is_optional and (field.default is None or field.record_name in record):
            values[field.name] = None
        elif field.default is not None:
            values[field.name] = field.default()
        else:
            raise RecordMismatchError(f"{field.where} is missing")
    return kind(**values)


def record_fields(kind: type) -> tuple[RecordField, ...]:
    """The fields of a dataclass, in their order."""
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = _derive(kind)
    return fields


_FIELDS: Final[dict[type, tuple[RecordField, ...]]] = {}
"""Derived once per dataclass; deriving twice in two threads gives the same."""


def _derive(kind: type) -> tuple[RecordField, ...]:
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind!r} is not a dataclass")
    hints = typing.get_type_hints(kind)
    return tuple(_field(kind, field, hints[field.name]) for field in dataclasses.fields(kind))


def _field(kind: type, field: dataclasses.Field[Any], hint: Any) -> RecordField:
    is_optional = False
    if isinstance(hint, types.UnionType):
        present = [part for part in typing.get_args(hint) if part is not types.NoneType]
        if len(present) != 1:
            raise TypeError(f"{field.name}: a record cannot distinguish the types of {hint}")
        hint, is_optional = present[0], True
    default: Callable[[], object] | None = None
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory
    elif field.default is not dataclasses.MISSING:
        default = _constant(field.default)
    record_name = _record_name(field.name)
    where = f"{kind.__name__}.{record_name}"
    return RecordField(
        field.name, record_name, where, hint, is_optional, default, *_codec(hint, where)
    )


def _record_name(name: str) -> str:
    first, *rest = name.split("_")
    return _IRREGULAR.get(name) or first + "".join(word.capitalize() for word in rest)


def _constant(value: object) -> Callable[[], object]:
    return lambda: value


def _codec(hint: Any, where: str) -> tuple[_Encoder | None, _Decoder]:
    """The codec of a type in records; no encoder where nothing changes."""
    if hint in _SCALARS:
        return None, _scalar_decoder(hint, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return to_record, partial(from_record, hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        encode, decode = _codec(arguments[0], where)
        decoder = _array_decoder(decode, where)
        return list if encode is None else partial(_encoded_array, encode), decoder
    if origin is Mapping:
        encode, decode = _codec(arguments[1], where)
        decoder = _map_decoder(decode, where)
        return dict if encode is None else partial(_encoded_map, encode), decoder
    raise TypeError(f"no record type matches {hint}")


def _encoded_array(inner: Callable[[Any], object], items: Iterable[Any]) -> list[object]:
    return [inner(item) for item in items]


def _encoded_map(inner: Callable[[Any], object], items: Mapping[str, Any]) -> dict[str, object]:
    return {key: inner(item) for key, item in items.items()}


def _scalar_decoder(kind: type, where: str) -> _Decoder:
    def decode(item: object) -> object:
        # exactly the type: isinstance takes True for an int; JSON may write a double without a
        # point
        if type(item) is kind:
            return item
        if kind is float and type(item) is int:
            return float(item)
        raise RecordMismatchError(
            f"{where} is of type {type(item).__name__} and should be {kind.__name__}"
        )

    return decode


def _array_decoder(inner: _Decoder, where: str) -> _Decoder:
    def decode(items: object) -> object:
        if not isinstance(items, list):
            raise RecordMismatchError(f"{where} is not an array")
        return tuple(inner(item) for item in items)

    return decode


def _map_decoder(inner: _Decoder, where: str) -> _Decoder:
    def decode(items: object) -> object:
        if not isinstance(items, dict):
            raise RecordMismatchError(f"{where} is not a map")
        return {key: inner(item) for key, item in items.items()}

    return decode
