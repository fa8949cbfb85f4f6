"""The timeline of the table, and its files by the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

import pyarrow as pa

from delta_format.foreign import look_for_foreign
from delta_format.location import LOG_FOLDER
from delta_format.log import open_log
from delta_format.snapshot import Snapshot
from delta_format.vectors import positions
from hudi_core.spi import (
    FileColumns,
    FileIndex,
    FileStatus,
    MetaClientView,
    NamedFile,
    PartitionPath,
    TimelineView,
    ValueRanges,
    fence,
)
from hudi_core.spi.files import Positions, table_lister

_OF_A_LOG: Final = re.compile(
    r"\d{20}\.(json|crc|checkpoint\..*parquet|checkpoint\..*json|\d{20}\.compacted\.json)"
    r"|_last_checkpoint|_commits|_last_vacuum_info|\..*\.crc"
)
"""Names of files of a log, and of what Delta-Spark keeps beside them; others are what a library was
about to rename."""


class DeltaMetadataFactory:
    """Makes what lists the table's files."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the table's file lister, which reads on demand."""
        return DeltaLister(meta_client)


class DeltaLister(FileIndex):
    """Lists a table's files, the present ones by its Delta log.

    A version does not name the files of earlier ones, which time travel, cleaning and rollback look
    for. These come from the table's metadata table, or its folders.
    """

    def __init__(self, meta_client: MetaClientView) -> None:
        self._client = meta_client
        self._earlier = table_lister(meta_client)
        self._newest: Snapshot | None = None

    def named_files(self) -> Iterable[NamedFile]:
        """Yield the files of the newest version; as the log names them."""
        self._newest = Snapshot(open_log(self._client))
        return self._newest.named_files()

    def deleted_positions(self, paths: Sequence[str]) -> Mapping[str, Positions]:
        """Positions of the vectors of some files."""
        files = () if self._newest is None else self._newest.at_paths(frozenset(paths))
        vectors = {one.path: one.vector for one in files if one.vector is not None}
        read = self._client.run_map(partial(positions, self._client), [*vectors.values()])
        return dict(zip(vectors, read, strict=True))

    def leftovers(self) -> Iterator[str]:
        """Yield files in the log's folder that the protocol does not know."""
        for status in self._client.root.list(LOG_FOLDER):
            if not _OF_A_LOG.fullmatch(status.name):
                yield status.path

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        """Ranges over the rows of the present files.

        Of others nothing is known.
        """
        return self._snapshot.ranges(files.paths(), column, kind)

    @cached_property
    def _snapshot(self) -> Snapshot:
        return Snapshot(open_log(self._client))

    @cached_property
    def _present(self) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        found: dict[PartitionPath, list[FileStatus]] = {}
        for file in self._snapshot.files():
            found.setdefault(file.partition_path, []).append(file.status)
        return found

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path, sorted; ``[""]`` for a table without partitions."""
        return sorted({*self._present, *self._earlier.list_partitions()})

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return the files of each partition, in-flight and old ones included."""
        earlier = self._earlier.list_files(partitions)
        listed = {}
        for path in partitions:
            files = {file.path: file for file in earlier.get(path, ())}
            files |= {file.path: file for file in self._present.get(path, ())}
            listed[path] = [files[name] for name in sorted(files)]
        return listed


# --- the timeline ---------------------------------------------------------------------------------


class DeltaTimelineFactory:
    """Returns the Hudi timeline, fenced by the Delta log."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline: one listing, and the log's newest version."""
        timeline = meta_client.timeline()
        head = open_log(meta_client)
        recent = head.among(len(timeline.instants))
        look_for_foreign(meta_client, head)
        return fence(timeline, [recent])
