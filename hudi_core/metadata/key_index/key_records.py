"""Key indexes as records: locations, and keys of values.

The rows of the files that an instant wrote, and of those that they replace, say what it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.base_file.footer import read_columns
from hudi_core.config.table import TableConfig
from hudi_core.errors import UnsupportedTableError
from hudi_core.file_slice.slice_rows import StoredSlices
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.keys import secondary_key
from hudi_core.metadata.log.records import (
    MetadataRecord,
    RecordLocation,
    RecordType,
    SecondaryEntry,
)
from hudi_core.model.files import (
    FileGroupId,
    FileId,
    FileSlice,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.java_float import double_text, float_text
from hudi_core.schema.table_schema import RECORD_KEY

Location = tuple[PartitionPath, FileId]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base file of the table, or a log."""

    partition_path: PartitionPath
    file_id: FileId
    name: str

    @property
    def is_log(self) -> bool:
        """Whether it is a log."""
        return LogFileName.parse(self.name) is not None

    @property
    def path(self) -> str:
        """Path below the table."""
        return join_path(self.partition_path, self.name)

    @property
    def group(self) -> FileGroupId:
        """Its file group."""
        return FileGroupId(self.partition_path, self.file_id)


def index_millis(time: InstantTime, config: TableConfig) -> int:
    """Return an instant's time in the record index, in milliseconds.

    Since the epoch, by the clock of the timeline's time zone.
    """
    return config.zone.epoch_millis(time)


# --- secondary indexes ------------------------------------------------------


def values_of_keys(
    client: TableMetaClient, parts: Iterable[pa.Table], column: str
) -> set[tuple[str | None, str]]:
    """The values of a column with the record keys that have them."""
    found: set[tuple[str | None, str]] = set()
    for rows in parts:
        texts = value_texts(rows.column(column), column, client.base_path)
        found.update(zip(texts, rows.column(RECORD_KEY).to_pylist(), strict=True))
    return found


def value_texts(values: pa.ChunkedArray, column: str, base_path: str) -> list[str | None]:
    """Return the values of an indexed column as its index spells them."""
    kind = values.type
    for matches, spell in _SPELLINGS:
        if matches(kind):
            found: list[str | None] = spell(values)
            return found
    raise UnsupportedTableError(
        base_path,
        f"has a secondary index of {column}, which is of type {kind}",
        "Drop the index, or write with Apache Hudi.",
    )


def _texts(values: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = values.to_pylist()
    return found


def _numbers(values: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = pc.cast(values, pa.string()).to_pylist()
    return found


def _spelled(spell: Callable[[Any], str]) -> Callable[[pa.ChunkedArray], list[Any]]:
    def spell_all(values: pa.ChunkedArray) -> list[Any]:
        return [None if one is None else spell(one) for one in values.to_pylist()]

    return spell_all


def _float(value: float) -> str:
    return float_text(np.float32(value))


_SPELLINGS: Final[
    tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.ChunkedArray], list[Any]]], ...]
] = (
    (pt.is_null, lambda values: [None] * len(values)),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), _texts),
    (pt.is_boolean, _numbers),
    (pt.is_integer, _numbers),
    (pt.is_date32, lambda values: _numbers(values.cast(pa.int32()))),
    (pt.is_timestamp, lambda values: _numbers(values.cast(pa.int64()))),
    (pt.is_float32, _spelled(_float)),
    (pt.is_float64, _spelled(double_text)),
)


def all_locations(
    client: TableMetaClient, slices: Sequence[FileSlice], stored: StoredSlices
) -> Iterable[MetadataRecord]:
    """Yield a location for every key of some slices.

    For the first building of the index.
    """
    for one, keys in zip(slices, keys_of_slices(client, slices, stored), strict=True):
        yield from locations(client, one.group, keys, one.base_instant)


def locations(
    client: TableMetaClient, group: FileGroupId, keys: pa.Array, time: InstantTime
) -> Iterator[MetadataRecord]:
    """Yield the locations of keys in a file group."""
    millis = index_millis(time, client.config)
    where = RecordLocation(group.partition_path, group.file_id, millis)
    for key in keys.to_pylist():
        yield MetadataRecord(key, RecordType.RECORD_INDEX, where)


def keys_of_slices(
    client: TableMetaClient, slices: Sequence[FileSlice], stored: StoredSlices
) -> Iterable[pa.Array]:
    """The record keys of slices, each key of a slice once."""
    found = _columns(client, slices, stored, [RECORD_KEY])
    return (pc.unique(rows.column(RECORD_KEY)) for rows in found)


def _columns(
    client: TableMetaClient,
    slices: Sequence[FileSlice],
    stored: StoredSlices,
    names: Sequence[str],
) -> Iterable[pa.Table]:
    """Columns of each slice; logs are merged in this process."""
    plain = [one.base_file.path for one in slices if one.base_file and not one.log_files]
    read = iter(client.map_files(partial(read_columns, client.for_tasks, names=names), plain))
    for one in slices:
        is_plain = one.base_file is not None and not one.log_files
        yield next(read) if is_plain else stored.merged(one, names)


def all_entries(
    client: TableMetaClient, slices: Sequence[FileSlice], stored: StoredSlices, column: str
) -> Iterable[MetadataRecord]:
    """Return an entry for every value and key of some slices.

    For the first building of the index of a column.
    """
    parts = _columns(client, slices, stored, [RECORD_KEY, column])
    return entries(values_of_keys(client, parts, column))


def entries(values: Iterable[tuple[str | None, str]]) -> list[MetadataRecord]:
    """The entries of values with the record keys that have them."""
    entry = SecondaryEntry(is_deleted=False)
    return [
        MetadataRecord(secondary_key(*one), RecordType.SECONDARY_INDEX, entry) for one in values
    ]
