"""The values of the metadata table: what a record says, whatever file it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hudi_core.avro.wrappers import Wrapped
from hudi_core.metadata.partition_types import RecordType


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a partition; in the record of all partitions, a partition.

    Attributes
    ----------
    size
        Bytes; 0 of a partition, and of a file that is gone.
    is_deleted
        Whether it is gone.
    """

    size: int
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class FileList:
    """Files by name, or partitions by name, of one record of the partition ``files``.

    A log block holds only those that its instant changed.
    """

    files: Mapping[str, FileEntry]


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a bound, in statistics of version 2.

    Attributes
    ----------
    ordinal
        See :class:`~hudi_core.metadata.bounds.BoundType`.
    info
        What the type needs: ``"<precision>,<scale>"`` of a decimal.
    """

    ordinal: int
    info: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Statistics of a column in a file or in a partition.

    Attributes
    ----------
    file_name
        The file; of a partition, its name.
    column_name
        Path of the column, with dots.
    min_value, max_value
        Bounds; see :mod:`hudi_core.metadata.bounds`. ``None``: no bound is known.
    value_count, null_count
        Number of values, nulls included, and of nulls.
    total_size, total_uncompressed_size
        Bytes of the column.
    is_deleted
        Whether the file is gone.
    is_tight_bound
        Of a partition: whether the bounds are those of the present rows, not wider.
    value_type
        Type of the bounds; ``None`` in statistics of version 1.
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


@dataclass(frozen=True, slots=True)
class BloomFilterEntry:
    """Bloom filter of a file.

    Attributes
    ----------
    type_code
        ``DYNAMIC_V0``.
    instant_time
        Instant that wrote the file.
    bloom
        The filter as in the file's footer: base64 text, in bytes.
    is_deleted
        Whether the file is gone.
    """

    type_code: str
    instant_time: str
    bloom: bytes
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """The file group that holds a record key.

    Attributes
    ----------
    partition_name
        Partition path of the data table, empty without partitions.
    file_id
        The file group, ``<uuid>-<n>``, or any other text.
    instant_ms
        Milliseconds since the epoch of the instant that brought the key, by the clock of the
        timeline's time zone.
    position
        Row in the file, where it is known.
    """

    partition_name: str
    file_id: str
    instant_ms: int | None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class SecondaryEntry:
    """An entry of a secondary index; its key says it all."""

    is_deleted: bool = False


Payload: TypeAlias = FileList | ColumnRange | BloomFilterEntry | RecordLocation | SecondaryEntry


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record.

    Attributes
    ----------
    key
        See :mod:`hudi_core.metadata.keys`.
    type
        What it is; a number beyond :class:`RecordType` is of a later release.
    payload
        What it says; ``None`` when it is of a kind that is not known.
    """

    key: str
    type: RecordType | int
    payload: Payload | None
