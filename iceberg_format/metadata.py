"""The timeline of the table, and its files by the manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile, DataFileContent

from hudi_core.spi import (
    FileColumns,
    FileIndex,
    FileStatus,
    MetaClientView,
    NamedFile,
    PartitionPath,
    PathNotFoundError,
    Scalar,
    StatedColumn,
    TimelineView,
    ValueRanges,
    fence,
)
from hudi_core.spi.files import Positions, bounds_to_array, field_id, leaves, table_lister
from iceberg_format.deletes import about, read_deletions, union
from iceberg_format.foreign import look_for_foreign
from iceberg_format.kept_files import FilesByPartition, files_of_snapshots
from iceberg_format.leftovers import leftovers
from iceberg_format.lineage import watermark_of
from iceberg_format.manifest_files import Metadata
from iceberg_format.manifests import ManifestStore
from iceberg_format.schema import NAMES_KEY, mapped_names, name_mapping
from iceberg_format.summary import has_deletions
from iceberg_format.table import IcebergTable
from iceberg_format.writes import is_split


class IcebergMetadataFactory:
    """Makes what lists the table's files."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the table's file lister, which reads on demand."""
        return ManifestLister(IcebergTable.open(meta_client))


@dataclass(frozen=True)
class ManifestLister(FileIndex):
    """Lists the files of all kept Iceberg snapshots.

    Past ones serve time travel.

    Where it has forgotten states (a watermark replaces them: expired snapshots, or what was
    before the table got this format), their files come from the table's metadata table, or its
    folders: time travel in Hudi's view, cleaning and rollback look for them. So do log files, of
    which Iceberg has the deleted rows alone.

    The metadata is read once.
    """

    table: IcebergTable

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions."""
        if not self.table.client.config.partition_fields:
            return [PartitionPath("")]
        forgotten = self._earlier.list_partitions() if self._earlier is not None else ()
        return sorted({*self._by_partition, *forgotten})

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition."""
        found = self._by_partition
        forgotten = self._earlier.list_files(partitions) if self._earlier is not None else {}
        listed = {}
        for one in partitions:
            files = {file.path: file for file in forgotten.get(one, ())}
            for path, file in found.get(one, {}).items():
                files[path] = FileStatus(path, file.file_size_in_bytes)
            listed[one] = tuple(files[path] for path in sorted(files))
        return listed

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        """Ranges over the rows of each file; ``None`` for an unknown column."""
        number = self.table.client.schema.field_ids().get(column)
        field_type = None if number is None else self._types.get(number)
        if number is None or field_type is None:
            return None
        found = [self._statistics(path) for path in files.paths().to_pylist()]
        low, high = (
            bounds_to_array([_bound(field_type, one.get(number)) for one in side], kind)
            for side in ([one.lows for one in found], [one.highs for one in found])
        )
        nulls, values = (
            pa.array([one.get(number) for one in counts], pa.int64())
            for counts in ([one.nulls for one in found], [one.values for one in found])
        )
        return ValueRanges(low, high, pc.greater(nulls, 0), pc.greater(values, nulls))

    def named_files(self) -> Iterator[NamedFile]:
        """Yield the files of the current snapshot."""
        current = self._metadata.current_snapshot()
        if current is None:
            return
        files = self.table.files
        store = ManifestStore(files, self.table.folder, self._metadata)
        paths = {number: path for path, number in self.table.client.schema.field_ids().items()}
        deleted: Counter[str] = Counter()
        for file in store.deletions(current):
            # rows of an equality delete are values, each of any number of rows
            is_counted = file.content is DataFileContent.POSITION_DELETES
            of = about(file) if is_counted else None
            if of is None:
                rows = file.record_count if is_counted else None
                path = files.path(file.file_path)
                yield NamedFile(path, file.file_size_in_bytes, 0, deleted_rows=rows)
            else:
                deleted[files.data_path(of)] += file.record_count
        for file in store.live(current):
            path = files.data_path(file.file_path)
            kept = _Statistics.of(file)
            numbers = kept.nulls.keys() | kept.lows.keys() | kept.highs.keys()
            yield NamedFile(
                path,
                file.file_size_in_bytes,
                file.record_count,
                {
                    paths[number]: self._stated(kept, number)
                    for number in numbers & paths.keys() & self._types.keys()
                },
                deleted_rows=deleted[path],
            )

    def deleted_positions(self, paths: Sequence[str]) -> Mapping[str, Positions]:
        """Positions that the current snapshot's deletes have of some files."""
        files, wanted = self.table.files, frozenset(paths)
        # one that is about several files may be about any
        places = [file for of in (None, *paths) for file in self._deletions.get(of, ())]

        def read(file: DataFile) -> list[tuple[str, Positions]]:
            return list(read_deletions(files, file))

        found: dict[str, Positions] = {}
        for uri, positions in chain.from_iterable(self.table.client.run_map(read, places)):
            path = files.data_path(uri)
            if path in wanted:
                found[path] = union(found.get(path), positions)
        return found

    def reads_old_lists(self) -> bool:
        """Iceberg's specification wants three levels, and its Java library fails on two."""
        return False

    def unreadable(self, columns: pa.Schema) -> str | None:
        """Whether columns without field ids are not in the name mapping."""
        if any(field_id(field) is not None for _, field in leaves(columns)):
            return None
        held, wanted = columns.names, mapped_names(name_mapping(None, self._metadata.schema()))
        for path, number in wanted.items():
            if path.partition(".")[0] in held and self._mapped.get(path) != number:
                return (
                    f"no field ids, and {NAMES_KEY} does not have its column {path}: readers see "
                    "null, or fail"
                )
        return None

    def leftovers(self) -> Iterator[str]:
        """Yield files of the metadata folder that no version reaches."""
        return leftovers(self.table)

    def _statistics(self, path: str) -> _Statistics:
        file = self._by_partition.get(PartitionPath(path.rpartition("/")[0]), {}).get(path)
        return _NOTHING if file is None else _Statistics.of(file)

    def _stated(self, kept: _Statistics, number: int) -> StatedColumn:
        kind = self._types[number]
        low, high = (_bound(kind, side.get(number)) for side in (kept.lows, kept.highs))
        return StatedColumn(low, high, kept.nulls.get(number))

    @cached_property
    def _deletions(self) -> Mapping[str | None, Sequence[DataFile]]:
        """Files of deleted positions by the data file that they are about."""
        current = self._metadata.current_snapshot()
        store = ManifestStore(self.table.files, self.table.folder, self._metadata)
        found: dict[str | None, list[DataFile]] = {}
        for file in () if current is None else store.deletions(current):
            if file.content is DataFileContent.POSITION_DELETES:
                of = about(file)
                path = None if of is None else self.table.files.data_path(of)
                found.setdefault(path, []).append(file)
        return found

    @cached_property
    def _metadata(self) -> Metadata:
        return self.table.load().metadata

    @cached_property
    def _mapped(self) -> Mapping[str, int]:
        return mapped_names(self._metadata.properties.get(NAMES_KEY))

    @cached_property
    def _earlier(self) -> FileIndex | None:
        metadata = self._metadata
        # a table of another type now may have had logs
        has_logs = is_split(self.table) or any(map(has_deletions, metadata.snapshots))
        if not watermark_of(metadata) and not has_logs:
            return None
        return table_lister(self.table.client)

    @cached_property
    def _types(self) -> Mapping[int, Any]:
        schema = self._metadata.schema()
        return {
            number: schema.find_type(number)
            for number in schema.field_ids
            if schema.find_type(number).is_primitive
        }

    @cached_property
    def _by_partition(self) -> FilesByPartition:
        metadata = self._metadata
        while True:
            store = ManifestStore(self.table.files, self.table.folder, metadata)
            try:
                return files_of_snapshots(store)
            except PathNotFoundError:
                now = self.table.reload().metadata
                if _snapshots(metadata) <= _snapshots(now):
                    raise
                # a writer has expired some, with their manifests, since the metadata was read
                metadata = now


class _Statistics(NamedTuple):
    """Statistics of a data file by field id.

    The format requires none of them.
    """

    values: Mapping[int, int]
    nulls: Mapping[int, int]
    lows: Mapping[int, bytes]
    highs: Mapping[int, bytes]

    @classmethod
    def of(cls, file: DataFile) -> _Statistics:
        return cls(
            file.value_counts or {},
            file.null_value_counts or {},
            file.lower_bounds or {},
            file.upper_bounds or {},
        )


_NOTHING: Final = _Statistics({}, {}, {}, {})


def _bound(kind: Any, data: bytes | None) -> Scalar | None:
    found: Scalar | None = None if data is None else from_bytes(kind, data)
    return found


def _snapshots(metadata: Metadata) -> frozenset[int]:
    return frozenset(one.snapshot_id for one in metadata.snapshots)


# --- the timeline ---------------------------------------------------------------------------------


class IcebergTimelineFactory:
    """Gives the timeline in which only what Iceberg holds is complete."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline: one listing, and the current metadata."""
        timeline = meta_client.timeline()
        table = IcebergTable.open(meta_client)
        state = table.load()
        look_for_foreign(table, state)
        return fence(timeline, (state.lineage,))
