"""Plans scans: which splits a query of a table reads (RFC-40's ``HudiSplitManager``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from hudi_core.config.connector import ConnectorConfig
from hudi_core.errors import SchemaError
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.changes.incremental import IncrementalQuery
from hudi_core.read.connector.handles import QueryKind, TableHandle
from hudi_core.read.connector.listing import (
    FileListing,
    IncrementalListing,
    ReadOptimizedListing,
    SnapshotListing,
    files_mark,
)
from hudi_core.read.connector.loader import LoadLimits, SplitLoad
from hudi_core.read.connector.metadata import ConnectorMetadata
from hudi_core.read.connector.partitions import (
    BatchSizes,
    MetastorePartitions,
    PartitionSource,
    TablePartitions,
)
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.connector.split_source import SplitSource
from hudi_core.read.connector.splits import Split, SplitFactory
from hudi_core.read.filters import Filter, RowFilter
from hudi_core.read.query import SnapshotQuery
from hudi_core.read.query_times import QueryTime, completed_time, requested_time
from hudi_core.schema.table_schema import PARTITION_PATH
from hudi_core.table_handle import OpenTable

Wanted: TypeAlias = TupleDomain | RowFilter | Filter | None
"""Rows to read: a predicate, or a filter that is one; ``None`` for all."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a scan reads of a table.

    ``begin`` is exclusive, ``end`` inclusive; ``None`` means no bound. ``as_of`` is for snapshots;
    ``kind`` is ``None`` for the one of the handle.
    """

    kind: QueryKind | None = None
    as_of: QueryTime | None = None
    begin: QueryTime | None = None
    end: QueryTime | None = None


class ScanState(NamedTuple):
    """A state of a table that a scan reads.

    ``finished`` is the latest completion time of the writes requested up to ``instant``: where it
    is later than before, a write has come into the state since. ``mark`` is described at
    :func:`~hudi_core.read.connector.listing.files_mark`.
    """

    instant: InstantTime | None
    finished: str | None
    mark: str


@dataclass(frozen=True)
class SplitManager:
    """Plans scans of tables."""

    metadata: ConnectorMetadata

    def scan(
        self, handle: TableHandle, wanted: Wanted = None, query: Query | None = None
    ) -> SplitSource:
        """The splits of a scan, which are being loaded from now on.

        Raises ``SchemaError`` also where a condition on a partition column is required and missing.
        Errors found later are raised by the batches of splits.
        """
        config = self.metadata.config
        opened = self.metadata.open_path(handle.base_path)
        handle = handle.as_stored(opened.client.config)
        listing = self._listing(opened, handle, wanted, query or Query())
        if config.partition_filter_required:
            _require_partition_filter(handle, listing.predicate)
        return self.load(handle, listing)

    def in_order(
        self, handle: TableHandle, wanted: Wanted = None, query: Query | None = None
    ) -> Iterator[Split]:
        """Yield the splits of a scan by partitions and files.

        Without threads: of one state of the table they come in the same order from every process.
        See :meth:`scan`.
        """
        opened = self.metadata.open_path(handle.base_path)
        handle = handle.as_stored(opened.client.config)
        listing = self._listing(opened, handle, wanted, query or Query())
        factory = self._factory(handle, listing)
        with closing(self._partitions(handle, listing)) as source:
            for batch in source.batches():
                owners = {info.path: info for info in batch}
                files = listing.list_files(list(owners))
                for one in sorted(files, key=lambda planned: planned.path):
                    yield from factory.splits(one, owners[one.partition_path])

    def latest_state(self, handle: TableHandle) -> ScanState:
        """The latest state of a table."""
        opened = self.metadata.open_path(handle.base_path)
        writes = opened.timeline().completed_writes()
        instant = max((one.requested_time for one in writes), default=None)
        return _state(opened, writes, instant)

    def state_at(self, handle: TableHandle, instant: InstantTime | None) -> ScanState:
        """What is known now of a former state of a table."""
        opened = self.metadata.open_path(handle.base_path)
        return _state(opened, opened.timeline().completed_writes(), instant)

    def load(self, handle: TableHandle, listing: FileListing) -> SplitSource:
        """The splits of what a listing finds."""
        config = self.metadata.config
        factory = self._factory(handle, listing)
        limits = LoadLimits(
            config.loader_parallelism,
            config.generator_parallelism,
            config.max_outstanding,
            config.max_partition_batch,
        )
        load = SplitLoad(self._partitions(handle, listing), listing, factory, limits)
        return SplitSource(load, handle.base_path, config.max_per_second)

    def _factory(self, handle: TableHandle, listing: FileListing) -> SplitFactory:
        return SplitFactory.of(
            handle.base_path,
            listing.schema,
            listing.predicate,
            listing.mark,
            self.metadata.config,
        )

    def _listing(
        self, opened: OpenTable, handle: TableHandle, wanted: Wanted, query: Query
    ) -> FileListing:
        # one timeline for the query and for what lists the files
        opened = opened.seeing(opened.client.timeline())
        client, timeline, index = opened.client, opened.timeline(), opened.lister()
        kind = query.kind or handle.kind
        if kind is QueryKind.INCREMENTAL:
            changed = IncrementalQuery(client, timeline, index)
            window = completed_time(query.begin), completed_time(query.end)
            return IncrementalListing(changed, _predicate(wanted, changed.schema), *window)
        as_of, base_files_only = requested_time(query.as_of), kind is QueryKind.READ_OPTIMIZED
        snapshot = SnapshotQuery(client, index, timeline, base_files_only=base_files_only)
        made = ReadOptimizedListing if base_files_only else SnapshotListing
        return made(snapshot, _predicate(wanted, snapshot.schema), as_of)

    def _partitions(self, handle: TableHandle, listing: FileListing) -> PartitionSource:
        config, entry = self.metadata.config, handle.entry
        sizes = BatchSizes(config.min_partition_batch, config.max_partition_batch)
        # an entry without partition columns says nothing about the partitions of the table
        of_table = entry is None or not entry.partition_columns or not handle.partition_columns
        if entry is None or of_table or config.partition_listing:
            return TablePartitions(listing, sizes)
        return MetastorePartitions(
            self.metadata.metastore(),
            entry,
            listing,
            handle,
            sizes,
        )


def _state(opened: OpenTable, writes: Sequence[Instant], instant: InstantTime | None) -> ScanState:
    times = (
        one.effective_completion_time
        for one in writes
        if instant is not None and one.requested_time <= instant
    )
    return ScanState(instant, max(times, default=None), files_mark(opened.client.config))


def _predicate(wanted: Wanted, schema: pa.Schema) -> TupleDomain:
    return wanted if isinstance(wanted, TupleDomain) else TupleDomain.of(wanted, schema)


def _require_partition_filter(handle: TableHandle, predicate: TupleDomain) -> None:
    keys = {*handle.partition_columns, PARTITION_PATH}
    if handle.partition_columns and not predicate.is_none and keys.isdisjoint(predicate.columns):
        raise SchemaError(
            f"The scan of the table at {handle.base_path} limits no partition column, which "
            f"{ConnectorConfig.partition_filter_required.key} asks for",
            f"Limit one of {', '.join(handle.partition_columns)}.",
            table=handle.base_path,
        )
