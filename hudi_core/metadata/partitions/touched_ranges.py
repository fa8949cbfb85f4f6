"""Ranges of the partitions that a write touches.

A partition may have very many files, of which a write replaces few: its stored range is updated
with the ranges of those. Only where that is not enough, the ranges of all its files are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hudi_core.metadata.column_records import partition_range_record
from hudi_core.metadata.indexed_columns import IndexedColumns
from hudi_core.metadata.key_records import DataFile
from hudi_core.metadata.keys import partition_stats_key
from hudi_core.metadata.merged_ranges import updated_range
from hudi_core.metadata.partition_types import PARTITION_STATS
from hudi_core.metadata.partitions.ranges import ranges_of_files, ranges_of_partitions
from hudi_core.metadata.partitions.work import Commit
from hudi_core.metadata.records import ColumnRange, MetadataRecord
from hudi_core.model.files import PartitionPath

_Place = tuple[PartitionPath, str]
"""A column in a partition."""
_FEW_FILES: Final = 32
"""Of so many files, ranges take less to read than those of partitions do: on an object store, a
request for every log file."""


def touched_ranges(
    commit: Commit,
    columns: IndexedColumns,
    fresh: Mapping[str, Mapping[str, ColumnRange]],
) -> Iterator[MetadataRecord]:
    """Yield the ranges of every partition that a write touches."""
    files = _Files(commit)
    updated = dict(_updated(commit, files, columns, fresh))
    for (partition, path), whole in updated.items():
        yield partition_range_record(partition, path, whole)
    wanted = {
        partition: {path: columns[path] for path in columns if (partition, path) not in updated}
        for partition in commit.touched
    }
    yield from ranges_of_partitions(commit, wanted, files.after, fresh)


class _Files:
    """The files of touched partitions: replaced, staying, and new."""

    def __init__(self, commit: Commit) -> None:
        self.gone: dict[PartitionPath, list[DataFile]] = {one: [] for one in commit.touched}
        self.came: dict[PartitionPath, list[DataFile]] = {one: [] for one in commit.touched}
        staying: dict[PartitionPath, list[DataFile]] = {one: [] for one in commit.touched}
        for file in commit.before:
            side = self.gone if file.group in commit.groups else staying
            side[file.partition_path].append(file)
        new = [file for _, file in commit.new]
        for file in new:
            self.came[file.partition_path].append(file)
        self.after = [*new, *(file for held in staying.values() for file in held)]
        self.updatable = [
            path for path, held in staying.items() if len(held) > len(self.gone[path]) + _FEW_FILES
        ]
        """Partitions of which many more files stay than go."""


def _updated(
    commit: Commit,
    files: _Files,
    columns: IndexedColumns,
    fresh: Mapping[str, Mapping[str, ColumnRange]],
) -> Iterator[tuple[_Place, ColumnRange]]:
    """Yield the new ranges that follow from the replaced and new files."""
    if PARTITION_STATS not in commit.stored.complete or not files.updatable:
        return
    keys = {
        partition_stats_key(path, partition): (partition, path)
        for partition in files.updatable
        for path in columns
    }
    stored = {
        keys[key]: record.payload
        for key, record in commit.snapshot.lookup(PARTITION_STATS, keys).items()
        if isinstance(record.payload, ColumnRange)
    }
    replaced = ranges_of_files(
        commit, ((file, columns) for partition in files.updatable for file in files.gone[partition])
    )
    for (partition, path), one in stored.items():
        old = (replaced.get((file.path, path)) for file in files.gone[partition])
        new = (fresh[file.path].get(path) for file in files.came[partition])
        gone, came = ([part for part in some if part is not None] for some in (old, new))
        found = updated_range(one, gone, came, columns[path])
        if found is not None:
            yield (partition, path), found
