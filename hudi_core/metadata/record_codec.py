"""Records of the metadata table to the values of HFiles, and back.

Source: ``hudi-format`` section 5. The value has an empty ``key``, as the HFile has it already, and
five meta fields in front, of which base files fill the file's name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from hudi_core.avro import decode_datum, encode_datum, parse_writer_schema
from hudi_core.avro.wrappers import unwrap, wrap
from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.partition_types import RecordType
from hudi_core.metadata.record_compatibility import schema_incompatibility
from hudi_core.metadata.record_schema import record_schema
from hudi_core.metadata.records import (
    BloomFilterEntry,
    ColumnRange,
    FileEntry,
    FileList,
    MetadataRecord,
    Payload,
    RecordLocation,
    SecondaryEntry,
    ValueType,
)
from hudi_core.schema.table_schema import FILE_NAME, META_COLUMNS

_Fields = Mapping[str, Any]
_Said: TypeAlias = tuple[RecordType | int, Payload | None]
_SMALL, _MAX_KNOWN = 512, 4096
"""Bytes of the longest value that is remembered, and how many are."""
_UUID_FILE_ID: Final = re.compile(
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,8}))?"
)
_BY_UUID, _BY_TEXT = 0, 1
_NONE: Final = -1
"""What stands for the number of a file id that has none, as those of Flink, and for all numbers of
one that is kept as text: readers in Java take no nulls there."""
_LONG: Final = (1 << 64) - 1
_KNOWN: Final = frozenset(RecordType)


class RecordDecoder:
    """Decodes the values of one HFile.

    Parameters
    ----------
    schema
        Avro schema of the file, JSON; fields beyond those we know are left out.
    path
        The file, for errors.

    Raises
    ------
    CorruptMetadataError
        The schema is damaged or unsafe.
    """

    def __init__(self, schema: str, path: str) -> None:
        self._path = path
        with with_rebuild_hint():
            self._schema = parse_writer_schema(schema, path).parsed
        wrong = schema_incompatibility(schema)
        if wrong is not None:
            raise CorruptMetadataError(path, f"its schema is not right at {wrong}", REBUILD)
        self._known: dict[bytes, _Said] = {}

    def decode(self, key: bytes, value: bytes) -> MetadataRecord | None:
        """Return the record of an entry; ``None`` for an empty value, which deletes the key.

        Raises
        ------
        CorruptMetadataError
            The value is not a record of the file's schema, or lacks what its kind has to have.
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

        Raises
        ------
        CorruptMetadataError
            See :meth:`decode`; an empty value, too.
        """
        said = self._known.get(value)
        if said is None:
            said = self._decode(value)
            if len(value) <= _SMALL:
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known[value] = said
        return said

    def _decode(self, value: bytes) -> _Said:
        with with_rebuild_hint():
            fields = decode_datum(value, self._schema, self._path, named=True)
        try:
            kind = fields["type"]
            name, build = _PAYLOADS.get(kind, ("", None))
            content = fields.get(name)
            payload = None if build is None or content is None else build(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptMetadataError(
                self._path, f"a value of type {kind} is not right ({error!r})", REBUILD
            ) from error
        return (RecordType(kind) if kind in _KNOWN else kind), payload


class RecordEncoder:
    """Encodes records for one HFile.

    Parameters
    ----------
    file_name
        Name of the base file that is written; ``None`` for log blocks.
    """

    def __init__(self, file_name: str | None = None) -> None:
        self.schema: Final = record_schema()
        self._parsed = parse_writer_schema(self.schema, "HoodieMetadataRecord").parsed
        self._empty: dict[str, Any] = {
            **dict.fromkeys(META_COLUMNS),
            FILE_NAME: file_name,
            "key": "",
            **{name: None for name, _ in _PAYLOADS.values()},
        }
        self._known: dict[_Said, bytes] = {}

    def encode(self, record: MetadataRecord) -> tuple[bytes, bytes]:
        """Return the key and the value of a record, as an HFile takes them."""
        payload = record.payload
        if not isinstance(payload, RecordLocation | SecondaryEntry):
            return record.key.encode(), self._encode(record.type, payload)
        # the keys of one file group have few different locations
        said = (record.type, payload)
        value = self._known.get(said)
        if value is None:
            value = self._encode(*said)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[said] = value
        return record.key.encode(), value

    def _encode(self, kind: int, payload: Payload | None) -> bytes:
        content = None if payload is None else _CONTENTS[type(payload)](payload)
        name, _ = _PAYLOADS[kind]
        fields = {**self._empty, "type": int(kind), name: content}
        return encode_datum(fields, self._parsed)


# --- what a record says, by kind ---------------------------------------------


def _file_list(content: _Fields) -> FileList:
    files = {name: FileEntry(entry["size"], entry["isDeleted"]) for name, entry in content.items()}
    if any(entry.size < 0 for entry in files.values()):
        raise ValueError("a size is negative")
    return FileList(files)


def _file_list_content(value: FileList) -> _Fields:
    return {
        name: {"size": entry.size, "isDeleted": entry.is_deleted}
        for name, entry in value.files.items()
    }


def _column_range(content: _Fields) -> ColumnRange:
    kind = content.get("valueType")
    return ColumnRange(
        file_name=content["fileName"],
        column_name=content["columnName"],
        min_value=unwrap(content["minValue"]),
        max_value=unwrap(content["maxValue"]),
        value_count=content["valueCount"],
        null_count=content["nullCount"],
        total_size=content["totalSize"],
        total_uncompressed_size=content["totalUncompressedSize"],
        is_deleted=content["isDeleted"],
        is_tight_bound=content.get("isTightBound", False),
        value_type=kind and ValueType(kind["typeOrdinal"], kind["additionalInfo"]),
    )


def _column_range_content(value: ColumnRange) -> _Fields:
    kind = value.value_type
    return {
        "fileName": value.file_name,
        "columnName": value.column_name,
        "minValue": wrap(value.min_value),
        "maxValue": wrap(value.max_value),
        "valueCount": value.value_count,
        "nullCount": value.null_count,
        "totalSize": value.total_size,
        "totalUncompressedSize": value.total_uncompressed_size,
        "isDeleted": value.is_deleted,
        "isTightBound": value.is_tight_bound,
        "valueType": kind and {"typeOrdinal": kind.ordinal, "additionalInfo": kind.info},
    }


def _bloom(content: _Fields) -> BloomFilterEntry:
    return BloomFilterEntry(
        content["type"], content["timestamp"], content["bloomFilter"], content["isDeleted"]
    )


def _bloom_content(value: BloomFilterEntry) -> _Fields:
    return {
        "type": value.type_code,
        "timestamp": value.instant_time,
        "bloomFilter": value.bloom,
        "isDeleted": value.is_deleted,
    }


def _location(content: _Fields) -> RecordLocation:
    if content.get("fileIdEncoding", _BY_UUID) == _BY_UUID:
        bits = (content["fileIdHighBits"] & _LONG) << 64 | content["fileIdLowBits"] & _LONG
        index = content["fileIndex"]
        file_id = str(uuid.UUID(int=bits)) + ("" if index == _NONE else f"-{index}")
    else:
        file_id = content["fileId"]
    return RecordLocation(
        content["partitionName"] or "", file_id, content["instantTime"], content.get("position")
    )


def _location_content(value: RecordLocation) -> _Fields:
    fields: dict[str, Any] = {
        "partitionName": value.partition_name,
        "instantTime": value.instant_ms,
        "position": value.position,
    }
    match = _UUID_FILE_ID.fullmatch(value.file_id)
    if match is None:
        return {
            **fields,
            "fileIdHighBits": _NONE,
            "fileIdLowBits": _NONE,
            "fileIndex": _NONE,
            "fileId": value.file_id,
            "fileIdEncoding": _BY_TEXT,
        }
    bits = uuid.UUID(match[1]).int
    return {
        **fields,
        "fileIdHighBits": _signed(bits >> 64),
        "fileIdLowBits": _signed(bits & _LONG),
        "fileIndex": _NONE if match[2] is None else int(match[2]),
        "fileId": "",
        "fileIdEncoding": _BY_UUID,
    }


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _secondary(content: _Fields) -> SecondaryEntry:
    return SecondaryEntry(content["isDeleted"])


def _secondary_content(value: SecondaryEntry) -> _Fields:
    return {"isDeleted": value.is_deleted}


_PAYLOADS: Final[Mapping[int, tuple[str, Callable[[Any], Payload]]]] = {
    RecordType.ALL_PARTITIONS: ("filesystemMetadata", _file_list),
    RecordType.FILES: ("filesystemMetadata", _file_list),
    RecordType.COLUMN_STATS: ("ColumnStatsMetadata", _column_range),
    RecordType.PARTITION_STATS: ("ColumnStatsMetadata", _column_range),
    RecordType.BLOOM_FILTERS: ("BloomFilterMetadata", _bloom),
    RecordType.RECORD_INDEX: ("recordIndexMetadata", _location),
    RecordType.SECONDARY_INDEX: ("SecondaryIndexMetadata", _secondary),
}
_CONTENTS: Final[Mapping[type, Callable[[Any], _Fields]]] = {
    FileList: _file_list_content,
    ColumnRange: _column_range_content,
    BloomFilterEntry: _bloom_content,
    RecordLocation: _location_content,
    SecondaryEntry: _secondary_content,
}
