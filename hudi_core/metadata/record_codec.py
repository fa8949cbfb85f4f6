"""Records of the metadata table to the values of HFiles, and back.

Source: ``hudi-format`` section 5. The value has an empty ``key``, as the HFile has it already, and
five meta fields in front, of which base files fill the file's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from hudi_core.avro import decode_datum, encode_datum, parse_writer_schema
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.payload import Payload
from hudi_core.metadata.record_compatibility import schema_incompatibility
from hudi_core.metadata.record_schema import record_schema
from hudi_core.metadata.records import PAYLOADS, MetadataRecord, RecordType
from hudi_core.schema.table_schema import FILE_NAME, META_COLUMNS

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
        fields = {**self._empty, "type": int(kind), name: content}
        return encode_datum(fields, self._parsed)


_DECODERS: Final[Mapping[int, tuple[str, Callable[[Any], Payload]]]] = {
    kind: (one.field["name"], one.decode) for one in PAYLOADS for kind in one.types
}
