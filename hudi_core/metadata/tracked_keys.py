"""Key index changes from spilled keys, without reading files.

What has to be read are the files of groups that a write takes out of the table as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from hudi_core.base_file.footer import read_columns
from hudi_core.errors import CorruptMetadataError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.changes import PartitionChange
from hudi_core.metadata.key_changes import DELETED, INSERTED, keys_of, location_changes
from hudi_core.metadata.key_records import DataFile, index_millis, value_texts
from hudi_core.metadata.keys import partition_path, secondary_key
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.payload import Payload
from hudi_core.metadata.records import MetadataRecord, RecordLocation, RecordType, SecondaryEntry
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.commit import WriteStatus
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import data_filesystem


@dataclass(frozen=True, slots=True)
class TrackedKeys:
    """What a write did to the keys of its files.

    Attributes
    ----------
    client
        The table.
    time
        Of the write.
    files
        What became of the keys of each file; see :mod:`hudi_core.metadata.key_changes`.
    replaced
        The files of the groups that it takes out of the table.
    """

    client: TableMetaClient
    time: InstantTime
    files: tuple[tuple[WriteStatus, pa.Table], ...]
    replaced: tuple[DataFile, ...]

    @classmethod
    def read(
        cls,
        client: TableMetaClient,
        time: InstantTime,
        statuses: Sequence[WriteStatus],
        replaced: Sequence[DataFile],
    ) -> TrackedKeys | None:
        """Read what the tasks left; ``None`` where one of them left nothing.

        Raises
        ------
        CorruptMetadataError
            What one left is missing or damaged.
        """
        if any(status.changed_keys is None for status in statuses):
            return None

        def one(status: WriteStatus) -> pa.Table:
            return _read(client, status.changed_keys)

        tables = client.run_map(one, list(statuses))
        return cls(client, time, tuple(zip(statuses, tables, strict=True)), tuple(replaced))

    def has(self, column: str) -> bool:
        """Whether the tasks kept account of the values of a column."""
        return all(f"after.{column}" in table.column_names for _, table in self.files)

    def by_partition(self) -> dict[PartitionPath, TrackedKeys]:
        """Key changes by partition."""
        files: dict[PartitionPath, list[tuple[WriteStatus, pa.Table]]] = {}
        replaced: dict[PartitionPath, list[DataFile]] = {}
        for pair in self.files:
            files.setdefault(PartitionPath(pair[0].partition_path), []).append(pair)
        for file in self.replaced:
            replaced.setdefault(file.partition_path, []).append(file)
        return {
            path: replace(
                self, files=tuple(files.get(path, ())), replaced=tuple(replaced.get(path, ()))
            )
            for path in sorted(files.keys() | replaced.keys())
        }

    def locations(self) -> PartitionChange:
        """Changes that the write makes to the record index."""
        millis = index_millis(self.time, self.client.config)
        tables = [
            (RecordLocation(status.partition_path, status.file_id, millis), table)
            for status, table in self.files
        ]
        gone = [rows.column(RECORD_KEY).combine_chunks() for rows in self._replaced([RECORD_KEY])]
        return location_changes(tables, gone)

    def repeats(self, snapshot: MetadataSnapshot, change: PartitionChange) -> bool:
        """Whether a key ends up in several file groups.

        As far as the record index knows where keys were.

        Parameters
        ----------
        snapshot
            The metadata table before the write.
        change
            See :meth:`locations`.
        """
        came = [pc.unique(keys_of(table, INSERTED)) for _, table in self.files]
        total = pa.chunked_array(came, pa.string())
        if pc.count_distinct(total).as_py() < len(total):
            return True
        stored = snapshot.lookup(RECORD_INDEX, total.to_pylist())
        gone = set[str]()
        for keys in [
            *(keys_of(table, DELETED) for _, table in self.files),
            *(rows.column(RECORD_KEY) for rows in self._replaced([RECORD_KEY])),
        ]:
            gone.update(keys.to_pylist())
        return any(
            key in stored
            and key not in gone
            and _place(stored[key].payload) != _place(some.payload)
            for some in change.alike
            for key in some.keys.to_pylist()
        )

    def values(self, column: str) -> PartitionChange:
        """Changes that the write makes to the secondary index of a column.

        Raises
        ------
        UnsupportedTableError
            The column is of a type that no index is kept of.
        """
        new: dict[str, None] = {}
        old: dict[str, None] = {}
        for _, table in self.files:
            change = table.column("change").to_numpy()
            new |= self._entries(table, "key", f"after.{column}", change >= 0)
            old |= self._entries(table, "key", f"before.{column}", change <= 0)
        for rows in self._replaced([RECORD_KEY, column]):
            old |= self._entries(rows, RECORD_KEY, column, np.ones(rows.num_rows, bool))
        gone = [key for key in old if key not in new]
        # what was there already, with the same value in another file, is repeated: it is no error
        return PartitionChange((*_entries(new, False), *_entries(gone, True)))

    def _entries(
        self, rows: pa.Table, key: str, column: str, chosen: np.ndarray
    ) -> dict[str, None]:
        some = rows.filter(pa.array(chosen))
        texts = value_texts(some.column(column), column, self.client.base_path)
        keys = some.column(key).to_pylist()
        return dict.fromkeys(map(secondary_key, texts, keys))

    def _replaced(self, columns: Sequence[str]) -> list[pa.Table]:
        def one(file: DataFile) -> pa.Table:
            return read_columns(self.client, file.path, columns)

        return list(self.client.run_map(one, list(self.replaced)))


def _place(where: Payload | None) -> tuple[str, str] | None:
    if not isinstance(where, RecordLocation):
        return None
    return partition_path(where.partition_name), where.file_id


def _entries(keys: Sequence[str] | dict[str, None], is_deleted: bool) -> list[MetadataRecord]:
    entry = SecondaryEntry(is_deleted)
    return [MetadataRecord(key, RecordType.SECONDARY_INDEX, entry) for key in keys]


def _read(client: TableMetaClient, left: pa.Table | str | None) -> pa.Table:
    if not isinstance(left, str):
        return left
    filesystem, root = data_filesystem(client.base_path, client.storage_options)
    path = f"{root}/{left}"
    local = isinstance(filesystem, pafs.LocalFileSystem)
    try:
        with pa.memory_map(path) if local else filesystem.open_input_file(path) as source:
            table = pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise CorruptMetadataError(f"{client.base_path}/{left}", str(error)) from error
    return table
