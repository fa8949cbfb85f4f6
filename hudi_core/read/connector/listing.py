"""Files of partitions, as each kind of query reads them (RFC-40's ``HudiFileListing``).

A listing is made once for a scan, and sees one state of the table; threads list partitions with it
at the same time. Nothing is looked for in storage to see whether it is there: what the index of the
table names is read.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.model.files import FileSlice, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.read.changes.incremental import IncrementalQuery
from hudi_core.read.connector.domain import Domain, Range
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.filters import Filter
from hudi_core.read.partition_pruning import PartitionPruner
from hudi_core.read.plan import PlannedSlice, ReadPlan
from hudi_core.read.query import SnapshotQuery
from hudi_core.schema.table_schema import COMMIT_TIME


class FileListing(ABC):
    """The partitions and files that a scan reads.

    ``predicate`` combines the rows that are asked for with those that the query means.
    """

    schema: pa.Schema
    pruner: PartitionPruner
    predicate: TupleDomain
    mark: str

    @abstractmethod
    def partitions(self) -> Sequence[PartitionPath]:
        """The partitions to scan, sorted."""
        ...

    @abstractmethod
    def list_files(self, partitions: Sequence[PartitionPath]) -> Sequence[PlannedSlice]:
        """The files to read of some partitions.

        None of one that does not exist.
        """
        ...

    def keep(self, partitions: Sequence[PartitionPath]) -> Sequence[PartitionPath]:
        """Those that may hold a wanted row by their paths."""
        return [] if self.predicate.is_none else self.pruner.keep(partitions, self.wanted)

    @cached_property
    def wanted(self) -> Filter | None:
        """The predicate as a filter; ``None`` where every row is wanted."""
        return self.predicate.to_filter(self.schema)


class SnapshotListing(FileListing):
    """The rows of a table as it is, or was."""

    def __init__(
        self, query: SnapshotQuery, predicate: TupleDomain, as_of: str | None = None
    ) -> None:
        self.schema, self.pruner, self.predicate = query.schema, query.pruner, predicate
        self.mark = files_mark(query.client.config)
        self._query = query
        self._time: InstantTime | None = None
        if not predicate.is_none:
            self._time = query.state(as_of, self.wanted)

    def partitions(self) -> Sequence[PartitionPath]:
        """See :meth:`FileListing.partitions`."""
        return [] if self.predicate.is_none else self._query.partitions(self.wanted)

    def list_files(self, partitions: Sequence[PartitionPath]) -> Sequence[PlannedSlice]:
        """See :meth:`FileListing.list_files`."""
        if self.predicate.is_none:
            return []
        # workers read later, when blocks may have been appended to a log
        until = self._time or self._query.latest_time
        return self._query.planned_slices(self._slices(partitions), until)

    def _slices(self, partitions: Sequence[PartitionPath]) -> Sequence[FileSlice]:
        return self._query.slices_of(partitions, self._time, self.wanted)


class ReadOptimizedListing(SnapshotListing):
    """The rows of a table as its base files have them.

    For a table without logs it is the snapshot. Of one with logs nothing is concluded from what is
    known of its rows now: base files may have others.
    """

    def _slices(self, partitions: Sequence[PartitionPath]) -> Sequence[FileSlice]:
        return self._query.slices_of(self.keep(partitions), self._time, None)


class IncrementalListing(FileListing):
    """The rows that completed writes of a window changed.

    As the last of them left them.

    ``begin`` is exclusive, ``end`` inclusive.
    """

    def __init__(
        self,
        query: IncrementalQuery,
        predicate: TupleDomain,
        begin: str | None = None,
        end: str | None = None,
    ) -> None:
        self.schema, self.pruner, self.predicate = query.schema, query.pruner, predicate
        self.mark = files_mark(query.client.config)
        plan = ReadPlan((), query.schema, frozenset())
        if not predicate.is_none:
            plan = query.plan(begin, end, self.wanted)
            self.predicate = predicate.intersect(_written_at(plan))
            del self.wanted  # it was that of fewer conditions
        in_order = sorted(plan.files, key=lambda file: file.partition_path)
        self._files = {
            path: [*files] for path, files in groupby(in_order, lambda file: file.partition_path)
        }

    def partitions(self) -> Sequence[PartitionPath]:
        """See :meth:`FileListing.partitions`."""
        return list(self._files)

    def list_files(self, partitions: Sequence[PartitionPath]) -> Sequence[PlannedSlice]:
        """See :meth:`FileListing.list_files`."""
        return [file for path in partitions for file in self._files.get(path, ())]


def _written_at(plan: ReadPlan) -> TupleDomain:
    times = plan.commit_times
    if times is None:
        return TupleDomain()
    kind = plan.schema.field(COMMIT_TIME).type
    domain = Domain.of(kind, [Range.of(str(time)) for time in times])
    return TupleDomain.of_domains({COMMIT_TIME: domain})


# --- what properties say of a table's files, as splits carry it ----------------------------------

# A worker reads splits by a table that it has opened before. By the mark it knows whether that is
# the table as it was when the scan was planned.


_DIGITS: Final = 16


def files_mark(config: TableConfig) -> str:
    """Mark of how files are found, and record keys had.

    It changes with a move of the files, a rewriting of keys, and a table that takes another one's
    place; not with what is of no account to a reader of files, such as partitions of the metadata
    table or, where keys are stored, columns. Options do not count: other processes have others.
    """
    facts: list[Any] = [
        config.name,
        config.placement.properties,
        config.populate_meta_fields,
        config.virtual_keys,
        config.keeps_virtual_keys,
        config.keys_differ_by_file,
    ]
    if config.makes_keys or config.keys_differ_by_file:
        # keys are made of columns, which a worker looks up in the timeline
        facts += [
            config.record_key_fields,
            config.keygen_name,
            config.key_concatenator,
            config.version,
            config.timeline_path,
            config.field_ids,
        ]
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
