"""Metadata records as values, whatever file they come from."""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Final, Self, TypeAlias

import pyarrow as pa

from hudi_core.avro.wrappers import SCALARS, Wrapped, unwrap, wrap_all, wrapper_union

# --- payloads: fields of the Avro record ---------------------------------------------------------

# A field of its Avro record.


def required(name: str, kind: Any) -> dict[str, Any]:
    """A field of an Avro record."""
    return {"name": name, "type": kind}


def optional(name: str, kind: Any) -> dict[str, Any]:
    """A field of an Avro record that may be null."""
    return {"name": name, "type": ["null", kind], "default": None}


def avro_record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """An Avro record."""
    return {"type": "record", "name": name, "fields": list(fields)}


class Payload(ABC):
    """What a record says.

    A value of one of the fields of its Avro record.
    """

    __slots__ = ()

    types: ClassVar[tuple[int, ...]]
    field: ClassVar[dict[str, Any]]
    is_shared: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def decode(cls, content: Any) -> Self:
        """The payload of a field's value.

        A wrong value raises any of ``KeyError``, ``TypeError``, ``ValueError`` and
        ``AttributeError``.
        """

    @abstractmethod
    def encode(self) -> Mapping[str, Any]:
        """The value of the field."""


class RemovablePayload(Payload):
    """A payload that may say that what it is of is gone."""

    __slots__ = ()

    is_deleted: bool


# --- records -------------------------------------------------------------------------------------


_Fields: TypeAlias = Mapping[str, Any]
_UUID_FILE_ID: Final = re.compile(
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,8}))?"
)
_BY_UUID, _BY_TEXT = 0, 1
_NONE: Final = -1
"""What marks the number of a file id that has none, as those of Flink, and for all numbers of
one that is kept as text: readers in Java take no nulls there."""
_LONG: Final = (1 << 64) - 1
_STRING: Final = {"type": "string", "avro.java.string": "String"}


class RecordType(IntEnum):
    """The type number in every metadata record."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTERS = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a partition, or a partition of the table.

    The latter in the record of all partitions.

    ``size`` is 0 for a partition, and for a file that is gone.
    """

    size: int
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class FileList(Payload):
    """Files or partitions by name, of one ``files`` record.

    A log block holds only those that its instant changed.
    """

    files: Mapping[str, FileEntry]

    types: ClassVar[tuple[int, ...]] = (RecordType.ALL_PARTITIONS, RecordType.FILES)
    field: ClassVar[dict[str, Any]] = required(
        "filesystemMetadata",
        [
            "null",
            {
                "type": "map",
                "values": avro_record(
                    "HoodieMetadataFileInfo",
                    required("size", "long"),
                    required("isDeleted", "boolean"),
                ),
                "avro.java.string": "String",
            },
        ],
    )

    @classmethod
    def decode(cls, content: Any) -> Self:
        files = {
            name: FileEntry(entry["size"], entry["isDeleted"]) for name, entry in content.items()
        }
        if any(entry.size < 0 for entry in files.values()):
            raise ValueError("a size is negative")
        return cls(files)

    def encode(self) -> _Fields:
        return {
            name: {"size": entry.size, "isDeleted": entry.is_deleted}
            for name, entry in self.files.items()
        }


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a bound, in statistics of version 2.

    ``info`` is what the type needs: ``"<precision>,<scale>"`` of a decimal.
    """

    ordinal: int
    info: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnRange(RemovablePayload):
    """Statistics of a column in a file or in a partition.

    ``file_name`` is the partition's name in statistics of a partition; ``column_name`` is a path
    with dots. A bound of ``None`` is not known. ``value_count`` includes nulls. ``is_tight_bound``,
    of a partition: the bounds are those of the present rows, not wider. ``value_type`` is ``None``
    in version 1.
    """

    file_name: str | None
    column_name: str | None
    min_value: Wrapped | None = None
    max_value: Wrapped | None = None
    value_count: int | None = None
    null_count: int | None = None
    total_size: int | None = None
    total_uncompressed_size: int | None = None
    is_deleted: bool = False
    is_tight_bound: bool = False
    value_type: ValueType | None = None

    types: ClassVar[tuple[int, ...]] = (RecordType.COLUMN_STATS, RecordType.PARTITION_STATS)
    field: ClassVar[dict[str, Any]] = optional(
        "ColumnStatsMetadata",
        avro_record(
            "HoodieMetadataColumnStats",
            optional("fileName", _STRING),
            optional("columnName", _STRING),
            {"name": "minValue", "type": wrapper_union(SCALARS, arrays=True), "default": None},
            {"name": "maxValue", "type": ["null", *SCALARS, "ArrayWrapper"], "default": None},
            optional("valueCount", "long"),
            optional("nullCount", "long"),
            optional("totalSize", "long"),
            optional("totalUncompressedSize", "long"),
            required("isDeleted", "boolean"),
            {"name": "isTightBound", "type": "boolean", "default": False},
            optional(
                "valueType",
                avro_record(
                    "HoodieValueTypeInfo",
                    required("typeOrdinal", "int"),
                    optional("additionalInfo", _STRING),
                ),
            ),
        ),
    )

    @classmethod
    def decode(cls, content: Any) -> Self:
        kind = content.get("valueType")
        return cls(
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

    def encode(self) -> _Fields:
        kind = self.value_type
        low, high = wrap_all(self.min_value, self.max_value)
        return {
            "fileName": self.file_name,
            "columnName": self.column_name,
            "minValue": low,
            "maxValue": high,
            "valueCount": self.value_count,
            "nullCount": self.null_count,
            "totalSize": self.total_size,
            "totalUncompressedSize": self.total_uncompressed_size,
            "isDeleted": self.is_deleted,
            "isTightBound": self.is_tight_bound,
            "valueType": kind and {"typeOrdinal": kind.ordinal, "additionalInfo": kind.info},
        }


@dataclass(frozen=True, slots=True)
class BloomFilterEntry(RemovablePayload):
    """Bloom filter of a file.

    ``bloom`` is the filter as in the file's footer: base64 text, in bytes. ``type_code`` is
    ``DYNAMIC_V0``.
    """

    type_code: str
    instant_time: str
    bloom: bytes
    is_deleted: bool = False

    types: ClassVar[tuple[int, ...]] = (RecordType.BLOOM_FILTERS,)
    field: ClassVar[dict[str, Any]] = optional(
        "BloomFilterMetadata",
        avro_record(
            "HoodieMetadataBloomFilter",
            required("type", _STRING),
            required("timestamp", _STRING),
            required("bloomFilter", "bytes"),
            required("isDeleted", "boolean"),
        ),
    )

    @classmethod
    def decode(cls, content: Any) -> Self:
        return cls(
            content["type"], content["timestamp"], content["bloomFilter"], content["isDeleted"]
        )

    def encode(self) -> _Fields:
        return {
            "type": self.type_code,
            "timestamp": self.instant_time,
            "bloomFilter": self.bloom,
            "isDeleted": self.is_deleted,
        }


@dataclass(frozen=True, slots=True)
class RecordLocation(Payload):
    """The file group that holds a record key.

    ``partition_name`` is empty without partitions; ``file_id`` is ``<uuid>-<n>`` or any other text.
    ``instant_ms`` is when the key was brought, in milliseconds since the epoch by the clock of the
    timeline's time zone.
    """

    partition_name: str
    file_id: str
    instant_ms: int | None
    position: int | None = None

    types: ClassVar[tuple[int, ...]] = (RecordType.RECORD_INDEX,)
    is_shared: ClassVar[bool] = True
    field: ClassVar[dict[str, Any]] = optional(
        "recordIndexMetadata",
        avro_record(
            "HoodieRecordIndexInfo",
            optional("partitionName", _STRING),
            optional("fileIdHighBits", "long"),
            optional("fileIdLowBits", "long"),
            optional("fileIndex", "int"),
            optional("fileId", _STRING),
            optional("instantTime", "long"),
            {"name": "fileIdEncoding", "type": "int", "default": 0},
            optional("position", "long"),
        ),
    )

    @classmethod
    def decode(cls, content: Any) -> Self:
        if content.get("fileIdEncoding", _BY_UUID) == _BY_UUID:
            bits = (content["fileIdHighBits"] & _LONG) << 64 | content["fileIdLowBits"] & _LONG
            index = content["fileIndex"]
            file_id = str(uuid.UUID(int=bits)) + ("" if index == _NONE else f"-{index}")
        else:
            file_id = content["fileId"]
        return cls(
            content["partitionName"] or "", file_id, content["instantTime"], content.get("position")
        )

    def encode(self) -> _Fields:
        fields: dict[str, Any] = {
            "partitionName": self.partition_name,
            "instantTime": self.instant_ms,
            "position": self.position,
        }
        match = _UUID_FILE_ID.fullmatch(self.file_id)
        if match is None:
            return {
                **fields,
                "fileIdHighBits": _NONE,
                "fileIdLowBits": _NONE,
                "fileIndex": _NONE,
                "fileId": self.file_id,
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


@dataclass(frozen=True, slots=True)
class SecondaryEntry(RemovablePayload):
    """An entry of a secondary index; its key says it all."""

    is_deleted: bool = False

    types: ClassVar[tuple[int, ...]] = (RecordType.SECONDARY_INDEX,)
    is_shared: ClassVar[bool] = True
    field: ClassVar[dict[str, Any]] = optional(
        "SecondaryIndexMetadata",
        avro_record("HoodieSecondaryIndexInfo", required("isDeleted", "boolean")),
    )

    @classmethod
    def decode(cls, content: Any) -> Self:
        return cls(content["isDeleted"])

    def encode(self) -> _Fields:
        return {"isDeleted": self.is_deleted}


PAYLOADS: Final[tuple[type[Payload], ...]] = (
    FileList,
    BloomFilterEntry,
    ColumnRange,
    RecordLocation,
    SecondaryEntry,
)
"""In the order of their fields in a record."""


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record.

    A ``type`` beyond :class:`RecordType` is of a later release, and ``payload`` is ``None`` then.
    """

    key: str
    type: RecordType | int
    payload: Payload | None


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


# --- what one instant changes in the metadata table ----------------------------------------------


@dataclass(frozen=True, slots=True)
class AlikeRecords:
    """New records that differ in their keys alone.

    Of very many keys, no object for each.

    Each key is there once; ``type`` and ``payload`` are those of a
    :class:`~hudi_core.metadata.log.records.MetadataRecord`.
    """

    keys: pa.StringArray
    type: RecordType
    payload: Payload


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What becomes of the records of one partition of the metadata table.

    ``records`` are new or to be merged, each key once, in any order; no key of ``deleted`` is among
    them. Of a record index kept by partitions, only ``owned`` is used: the change of each
    partition's keys.
    """

    records: tuple[MetadataRecord, ...] = ()
    deleted: tuple[str, ...] = ()
    alike: tuple[AlikeRecords, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deleted or self.new)

    @property
    def new(self) -> int:
        """Number of its records."""
        return len(self.records) + sum(len(some.keys) for some in self.alike)
