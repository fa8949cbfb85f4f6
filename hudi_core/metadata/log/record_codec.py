"""Records of the metadata table to the values of HFiles, and back.

Source: ``hudi-format`` section 5. The value has an empty ``key``, as the HFile has it already, and
five meta fields in front, of which base files fill the file's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

from hudi_core.avro.columns import named_types
from hudi_core.avro.datum import ParsedSchema, decode_datum, encode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.log.records import (
    PAYLOADS,
    MetadataRecord,
    Payload,
    RecordType,
    avro_record,
    optional,
    required,
)
from hudi_core.schema.table_schema import FILE_NAME, META_COLUMNS

# --- the Avro schema of metadata records in new files --------------------------------------------

# Field names, order and unions are those of ``hudi-format`` section 5. Tables of version 8 keep no
# types of bounds. Hudi 1.0 has no field for them in these tables; Hudi 1.2 has it in both versions,
# and opens the metadata table of neither as a table where the commits keep another schema.

_NAMESPACE: Final = "org.apache.hudi.avro.model"


@cache
def record_schema() -> str:
    """The schema as JSON."""
    record = avro_record(
        "HoodieMetadataRecord",
        *(optional(name, "string") for name in META_COLUMNS),
        required("key", {"type": "string", "avro.java.string": "String"}),
        required("type", "int"),
        *(one.field for one in PAYLOADS),
    )
    record["namespace"] = _NAMESPACE
    return json.dumps(record, separators=(",", ":"))


@cache
def table_schema() -> str:
    """Return the schema in commits, without the meta fields."""
    record = json.loads(record_schema())
    record["fields"] = [one for one in record["fields"] if one["name"] not in META_COLUMNS]
    return json.dumps(record, separators=(",", ":"))


# --- schemas of other writers --------------------------------------------------------------------


# --- schemas of other writers --------------------------------------------------------------------

# A file's schema decides how its bytes are read, and anybody may have written it: a size that is a
# string, or a list that is none, is found here, once per schema, and not where it is used.


_PROMOTIONS: Final = {("int", "long"), ("float", "double"), ("int", "double"), ("long", "double")}
_DEFAULTED: Final = frozenset({"isTightBound", "fileIdEncoding"})
"""Fields that are not null and that older files may lack."""

_Named = Mapping[str, Any]


@lru_cache(maxsize=64)
def schema_incompatibility(schema: str) -> str | None:
    """The difference of a file's schema from the expected one.

    ``None`` when there is none.

    It may lack fields that can be null, and have further fields, and further kinds of records in
    its unions.
    """
    found = parse_writer_schema(schema, "").parsed
    expected = parse_writer_schema(record_schema(), "").parsed
    return _Comparison(found, expected).record(found, expected)


class _Comparison:
    """Compares two schemas, whose names differ."""

    def __init__(self, found: ParsedSchema, expected: ParsedSchema) -> None:
        self._found: _Named = named_types(found)
        self._expected: _Named = named_types(expected)

    def record(self, found: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
        kinds = {field["name"]: field["type"] for field in found["fields"]}
        for field in expected["fields"]:
            name, wanted = field["name"], field["type"]
            if name in kinds:
                if not self._fits(kinds[name], wanted):
                    return f"{_short(found)}.{name}"
            elif not isinstance(wanted, list) and name not in _DEFAULTED:
                return f"{_short(found)}.{name}"
        return None

    def _fits(self, found: Any, expected: Any) -> bool:
        found = self._found.get(found, found) if isinstance(found, str) else found
        expected = self._expected.get(expected, expected) if isinstance(expected, str) else expected
        if isinstance(found, list):
            return all(self._fits(branch, expected) for branch in found)
        if isinstance(expected, list):
            return any(self._fits(found, branch) for branch in expected) or self._is_new(
                found, expected
            )
        return self._one_fits(found, expected)

    def _one_fits(self, found: Any, expected: Any) -> bool:
        if isinstance(found, str) or isinstance(expected, str):
            # the pair is compared whole: a structure in it equals no name
            return found == expected or any(pair == (found, expected) for pair in _PROMOTIONS)
        if found["type"] != expected["type"]:
            return False
        if found["type"] == "record":
            same_name = _short(found) == _short(expected)
            return same_name and self.record(found, expected) is None
        inner = "items" if found["type"] == "array" else "values"
        return self._fits(found[inner], expected[inner])

    def _is_new(self, found: Any, expected: list[Any]) -> bool:
        """Whether a union has a record kind of later releases."""
        if not isinstance(found, dict) or found["type"] != "record":
            return False
        known = [
            self._expected.get(branch, branch) if isinstance(branch, str) else branch
            for branch in expected
        ]
        names = {_short(kind) for kind in known if isinstance(kind, dict) and "name" in kind}
        return len(names) > 1 and _short(found) not in names


def _short(record: Mapping[str, Any]) -> str:
    return str(record["name"]).rpartition(".")[2]


# --- records -------------------------------------------------------------------------------------


_Stated: TypeAlias = tuple[RecordType | int, Payload | None]
_SMALL, _MAX_KNOWN = 512, 4096
"""Bytes of the longest value that is remembered, and how many are."""
_KNOWN: Final = frozenset(RecordType)


class RecordDecoder:
    """Decodes the values of one HFile.

    Fields of ``schema`` that are not known here are left out.
    """

    def __init__(self, schema: str, path: str) -> None:
        self._path = path
        with with_rebuild_hint():
            self._schema = parse_writer_schema(schema, path).parsed
        wrong = schema_incompatibility(schema)
        if wrong is not None:
            raise CorruptMetadataError(path, f"its schema is not right at {wrong}", REBUILD)
        self._known: dict[bytes, _Stated] = {}

    def decode(self, key: bytes, value: bytes) -> MetadataRecord | None:
        """Return an entry's record; ``None`` for a deletion.

        A deletion has an empty value.
        """
        if not value:
            return None
        kind, payload = self.decode_value(value)
        try:
            return MetadataRecord(key.decode(), kind, payload)
        except UnicodeDecodeError as error:
            raise CorruptMetadataError(
                self._path, f"the key {key!r} is not UTF-8", REBUILD
            ) from error

    def decode_value(self, value: bytes) -> tuple[RecordType | int, Payload | None]:
        """Payload and kind of an entry, whatever its key.

        Equal values give the same object: the keys of one file group have few different locations.
        """
        stated = self._known.get(value)
        if stated is None:
            stated = self._decode(value)
            if len(value) <= _SMALL:
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known[value] = stated
        return stated

    def _decode(self, value: bytes) -> _Stated:
        with with_rebuild_hint():
            fields = decode_datum(value, self._schema, self._path, named=True)
        try:
            kind = fields["type"]
            name, build = _DECODERS.get(kind, ("", None))
            content = fields.get(name)
            payload = None if build is None or content is None else build(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptMetadataError(
                self._path, f"a value of type {kind} is not right ({error!r})", REBUILD
            ) from error
        return (RecordType(kind) if kind in _KNOWN else kind), payload


class RecordEncoder:
    """Encodes records for one HFile.

    ``file_name`` is that of the base file that is written; ``None`` for log blocks.
    """

    def __init__(self, file_name: str | None = None) -> None:
        self.schema: Final = record_schema()
        self._parsed = parse_writer_schema(self.schema, "HoodieMetadataRecord").parsed
        self._empty: dict[str, Any] = {
            **dict.fromkeys(META_COLUMNS),
            FILE_NAME: file_name,
            "key": "",
            **{one.field["name"]: None for one in PAYLOADS},
        }
        self._known: dict[_Stated, bytes] = {}

    def encode(self, record: MetadataRecord) -> tuple[bytes, bytes]:
        """Return a record's key and value for an HFile."""
        payload = record.payload
        if payload is None or not payload.is_shared:
            return record.key.encode(), self._encode(record.type, payload)
        # the keys of one file group have few different locations
        stated = (record.type, payload)
        value = self._known.get(stated)
        if value is None:
            value = self._encode(*stated)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[stated] = value
        return record.key.encode(), value

    def _encode(self, kind: int, payload: Payload | None) -> bytes:
        content = None if payload is None else payload.encode()
        name, _ = _DECODERS[kind]
        record = _RECORDS.get(name)
        stated = content if record is None or content is None else (record, content)
        fields = {**self._empty, "type": int(kind), name: stated}
        return encode_datum(fields, self._parsed)


_DECODERS: Final[Mapping[int, tuple[str, Callable[[Any], Payload]]]] = {
    kind: (one.field["name"], one.decode) for one in PAYLOADS for kind in one.types
}
_RECORDS: Final = {
    one.field["name"]: f"{_NAMESPACE}.{kind['name']}"
    for one in PAYLOADS
    for kind in one.field["type"]
    if "name" in kind
}
"""Names of the records of payloads: given one, fastavro does not compare the value with types."""
