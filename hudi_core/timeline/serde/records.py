"""Dataclasses of :mod:`hudi_core.model` as Avro or JSON records, derived from their fields.

``num_update_writes`` of a dataclass is ``numUpdateWrites`` of a record; types decide the rest:
tuples are arrays, mappings are maps with string keys, dataclasses are records, ``None`` is null.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from hudi_core.errors import CorruptMetadataError
from hudi_core.model.actions import (
    CleanerPlan,
    CleanMetadata,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackRequest,
)

# --- the Avro container of instant files: one record, not compressed ------------------------------
# Layout, in file order (Avro specification, "Object Container Files")::
#
#     magic     4 bytes   "Obj" 0x01
#     metadata  map       long n, n x (string key, bytes value), ..., long 0; one key is avro.schema
#     sync      16 bytes  any value, repeated after every block
#     block     long      records in the block, here 1
#               long      bytes of the block
#               bytes     the record's datum
#     sync      16 bytes
#
# ``long`` is a zigzag varint; ``string`` and ``bytes`` are a long length and the bytes. Hudi writes
# no ``avro.codec`` key. fastavro's writer always adds one, so the container is written by hand
# here.


MAGIC: Final = b"Obj\x01"
MAX_INSTANT_BYTES: Final = 256 * 1024 * 1024
"""Largest instant file that is read or written."""
MAX_SCHEMA_BYTES: Final = 1024 * 1024
"""Largest schema accepted inside an instant file."""
_SYNC_BYTES: Final = 16
_MAX_HEADER_ENTRIES: Final = 64


class Container(NamedTuple):
    """What an instant file holds."""

    schema: str
    datum: bytes


def write_container(schema: str, datum: bytes) -> bytes:
    """Return an object container that holds one record.

    The sync marker is a digest of the datum, so that equal records give equal files.
    """
    sync = hashlib.sha256(datum).digest()[:_SYNC_BYTES]
    key, text = b"avro.schema", schema.encode()
    sizes = write_long(len(key)), write_long(len(text))
    header = b"".join((write_long(1), sizes[0], key, sizes[1], text, write_long(0)))
    return b"".join((MAGIC, header, sync, write_long(1), write_long(len(datum)), datum, sync))


def read_container(data: bytes, path: str) -> Container:
    """Return schema and record of an object container.

    The container holds exactly one uncompressed record.
    """
    if len(data) > MAX_INSTANT_BYTES:
        raise CorruptMetadataError(path, f"{len(data)} bytes are more than {MAX_INSTANT_BYTES}")
    if not data:
        raise CorruptMetadataError(path, "it is empty")
    if not data.startswith(MAGIC):
        raise CorruptMetadataError(path, "it is not an Avro file")
    cursor = _Cursor(data, path, len(MAGIC))
    header = _read_header(cursor)
    codec = header.get(b"avro.codec", b"null")
    if codec != b"null":
        raise cursor.damage(f"its codec is {codec[:32]!r}, and instant files are not compressed")
    sync = cursor.take(_SYNC_BYTES)
    if cursor.left == 0:
        raise cursor.damage("it holds no record")
    count = cursor.long()
    if count != 1:
        raise cursor.damage(f"it holds {count} records instead of one")
    datum = cursor.take(cursor.long())
    if cursor.take(_SYNC_BYTES) != sync:
        raise cursor.damage("its sync markers differ")
    if cursor.left:
        raise cursor.damage("bytes follow the record")
    return Container(_schema_text(header, cursor), datum)


def _schema_text(header: dict[bytes, bytes], cursor: _Cursor) -> str:
    schema = header.get(b"avro.schema")
    if schema is None:
        raise cursor.damage("it names no schema")
    if len(schema) > MAX_SCHEMA_BYTES:
        raise cursor.damage(f"its schema has {len(schema)} bytes")
    try:
        return schema.decode()
    except UnicodeDecodeError as error:
        raise cursor.damage("its schema is not UTF-8") from error


def _read_header(cursor: _Cursor) -> dict[bytes, bytes]:
    entries: dict[bytes, bytes] = {}
    while count := cursor.long():
        if count < 0:
            # a negative count is followed by the block's size in bytes, which is of no use here
            count = -count
            cursor.long()
        if count + len(entries) > _MAX_HEADER_ENTRIES:
            raise cursor.damage("its header has too many entries")
        for _ in range(count):
            key = cursor.take(cursor.long())
            entries[key] = cursor.take(cursor.long())
    return entries


def write_long(value: int) -> bytes:
    """Return a number as Avro has it."""
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """Return a number of Avro's, and the position after it.

    ``IndexError``: there is none.
    """
    zigzag = shift = 0
    while True:
        byte = data[position]
        zigzag |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), position
        if shift > 63:
            raise IndexError(position)


class _Cursor:
    """Reads forward through the bytes of one file."""

    def __init__(self, data: bytes, path: str, position: int) -> None:
        self._data, self._path, self._position = data, path, position

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def damage(self, reason: str) -> CorruptMetadataError:
        return CorruptMetadataError(self._path, reason)

    def take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0:
            raise self.damage(f"a length at byte {self._position} is negative")
        if end > len(self._data):
            raise self.damage(f"it ends after {len(self._data)} bytes and should have {end}")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def long(self) -> int:
        zigzag = 0
        for shift in range(0, 70, 7):  # 64 bits in groups of 7
            byte = self.take(1)[0]
            zigzag |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (zigzag >> 1) ^ -(zigzag & 1)
        raise self.damage(f"a number before byte {self._position} is longer than 64 bits")


# --- values of the model as records ---------------------------------------------------------------


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


# --- the Avro schemas of instant files, derived from their values ---------------------------------
# Names, order and unions are those of Hudi 1.x (``hudi-format`` section 3); readers written in Java
# resolve by them. A field that may be ``None`` is a union with null, which is its default; what
# Hudi has otherwise is in the tables below. The attribute ``avro.java.string`` makes generic Java
# readers return ``String`` and means nothing elsewhere.


_AvroType: TypeAlias = str | dict[str, Any] | list[Any]

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}
_AVRO_SCALARS: Final[Mapping[type, _AvroType]] = {
    str: _STRING,
    int: "long",
    float: "double",
    bool: "boolean",
}
_INTS: Final = frozenset(
    {"version", "log_version", "total_files_deleted", "num_output_file_groups"}
)
"""Numbers of 32 bits."""
_NAMES: Final[Mapping[type, str]] = {ClusteringSlice: "HoodieSliceInfo"}
"""Records that are not called as their values are."""
_NULLABLE: Final = frozenset(
    {
        "partition_to_write_stats",
        "partition_to_replace_file_ids",
        "extra_metadata",
        "rollback_requests",
        "total_scan_time",
        "total_create_time",
        "total_upsert_time",
    }
)
"""Fields that readers find null where the value knows none."""
_PRESENT: Final = frozenset({"version", "num_output_file_groups", "preserve_hoodie_metadata"})
"""Unions with null whose default is not null, where the value has one; null comes second then."""
_DEFAULTS: Final[Mapping[tuple[type, str], object]] = {
    (CleanerPlan, "version"): 1,
    (CleanMetadata, "version"): 1,
    (CompactionPlan, "version"): 1,
    (CleanerPlan, "last_completed_commit_timestamp"): "",
    (CleanMetadata, "last_completed_commit_timestamp"): "",
    (RestorePlan, "instants_to_rollback"): [],
    (RestoreMetadata, "restore_instant_info"): [],
    (RollbackMetadata, "instants_rollback"): [],
    (RollbackRequest, "files_to_be_deleted"): [],
}
"""Defaults of fields in Hudi, where they are not those of the values, or not left out."""
_WITHOUT_DEFAULT: Final = frozenset(
    {(CompactionOperation, "base_instant_time"), (CompactionOperation, "file_id")}
)
"""Unions with null that every record holds."""


@cache
def schema_of(kind: type) -> dict[str, Any]:
    """The schema of instant files that hold such a value."""
    return {**_record(kind, set()), "namespace": _NAMESPACE}


def schema_of_one(name: str, fields: Mapping[str, type]) -> dict[str, Any]:
    """The schema of a record with such fields, or nulls."""
    seen: set[type] = set()
    made = [
        {"name": key, "type": ["null", _type_once(kind, seen)], "default": None}
        for key, kind in fields.items()
    ]
    return {"type": "record", "name": name, "namespace": _NAMESPACE, "fields": made}


def schema_name(kind: type) -> str:
    """The name of a value's record, without namespace."""
    return _NAMES.get(kind, f"Hoodie{kind.__name__}")


def _record(kind: type, seen: set[type]) -> dict[str, Any]:
    seen.add(kind)
    fields = [_avro_field(kind, field, seen) for field in record_fields(kind)]
    return {"type": "record", "name": schema_name(kind), "fields": fields}


def _avro_field(kind: type, field: RecordField, seen: set[type]) -> dict[str, Any]:
    avro, key = _type(field.hint, field.name, seen), (kind, field.name)
    default = None if field.default is None else field.default()
    found: dict[str, Any] = {"name": field.record_name, "type": avro}
    if field.name in _PRESENT and default is not None:
        return {**found, "type": [avro, "null"], "default": _DEFAULTS.get(key, default)}
    if field.is_optional or field.name in _NULLABLE:
        found["type"] = ["null", avro]
        return found if key in _WITHOUT_DEFAULT else {**found, "default": None}
    return {**found, "default": _DEFAULTS[key]} if key in _DEFAULTS else found


def _type(hint: Any, name: str, seen: set[type]) -> _AvroType:
    if hint in _AVRO_SCALARS:
        return "int" if hint is int and name in _INTS else _AVRO_SCALARS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0], name, seen)}
    if origin is Mapping:
        values = _type(arguments[1], name, seen)
        return {"type": "map", "values": values, "avro.java.string": "String"}
    made = _type_once(hint, seen)
    return ["null", made] if hint is RollbackMetadata else made  # those of a restore


def _type_once(kind: type, seen: set[type]) -> _AvroType:
    """A scalar, or a record.

    That is defined where it comes first, and named from then on.
    """
    if kind in _AVRO_SCALARS:
        return _AVRO_SCALARS[kind]
    return schema_name(kind) if kind in seen else _record(kind, seen)
