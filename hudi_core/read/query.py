"""Snapshot queries: the state of a table now, or as of an instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import FileGroupId, FileSlice, PartitionPath
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime, parse_query_time
from hudi_core.model.protocols import FileLister, TimelineView
from hudi_core.read.filters import RowFilter, to_expression
from hudi_core.read.plan import ReadPlan, planned_file, read_schema
from hudi_core.read.pruning import PartitionPruner
from hudi_core.read.scan import scan
from hudi_core.read.skipping import DataSkipper
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.replaced import replaced_groups, written_files


class SnapshotQuery:
    """Reads one table at one state of its timeline.

    Parameters
    ----------
    client
        The table.
    lister
        Tells which files there are.
    timeline
        The instants that count, fenced by the table's format.

    Raises
    ------
    UnsupportedTableError
        The table is of a kind that cannot be read rightly, such as MERGE_ON_READ.
    """

    def __init__(self, client: TableMetaClient, lister: FileLister, timeline: TimelineView) -> None:
        client.config.validate_for_read(client.base_path)
        self._client = client
        self._lister = lister
        self._timeline = timeline

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's latest schema, meta columns first; as in Hudi, of past states too."""
        return read_schema(self._client, self._timeline)

    @cached_property
    def view(self) -> FileSystemView:
        """The file groups of the table."""
        return self._view_of(self._lister)

    @cached_property
    def _replaced(self) -> Mapping[FileGroupId, Instant]:
        return replaced_groups(self._timeline, self._client.read_commit)

    def _view_of(self, lister: FileLister) -> FileSystemView:
        written = written_files(self._timeline, self._client.read_commit)
        return FileSystemView(lister, self._timeline, self._replaced, written)

    @cached_property
    def _pruner(self) -> PartitionPruner:
        return PartitionPruner(self._client.config, self.schema)

    def plan(self, as_of: str | None = None, row_filter: RowFilter | None = None) -> ReadPlan:
        """Return the files to read.

        Parameters
        ----------
        as_of
            A query time (see :func:`hudi_core.model.instant_time.parse_query_time`): instants
            requested later do not count. Before the first commit the table is empty. ``None``: the
            latest state.
        row_filter
            Partitions that cannot hold a row it accepts are neither listed nor read, and files
            that cannot are not read.

        Raises
        ------
        InvalidInstantTimeError
            ``as_of`` is no time.
        SchemaError
            The filter does not fit the table.
        """
        time = None if as_of is None else parse_query_time(as_of)
        slices = self._slices(time, row_filter)
        return ReadPlan(
            tuple(
                planned_file(
                    self._client,
                    found.group,
                    path=found.base_file.path,
                    size=found.base_file.size,
                    instant=found.base_instant,
                    partition_values=self._pruner.values(found.partition_path),
                )
                for found in slices
                if found.base_file is not None
            ),
            self.schema,
        )

    def file_slices(
        self, as_of: str | None = None, row_filter: RowFilter | None = None
    ) -> tuple[FileSlice, ...]:
        """Return the slices that :meth:`plan` reads."""
        time = None if as_of is None else parse_query_time(as_of)
        return self._slices(time, row_filter)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter | None = None,
        as_of: str | None = None,
        batch_rows: int | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows; see :meth:`plan` and :func:`hudi_core.read.scan.scan`."""
        plan = self.plan(as_of, row_filter)
        return scan(self._client, plan, columns, row_filter, batch_rows)

    def _slices(
        self, time: InstantTime | None, row_filter: RowFilter | None
    ) -> tuple[FileSlice, ...]:
        expression = to_expression(row_filter, self.schema)
        if expression is None:
            return self.view.latest_slices(None, time)
        skipper = DataSkipper(self._client.config, self._lister, self.schema, expression)
        partitions: Sequence[PartitionPath]
        partitions = self._pruner.keep(self._lister.list_partitions(), expression)
        if time is None:
            partitions = skipper.partitions(partitions)
        view = self._view_of(skipper.narrowed(self._lister))
        slices: Sequence[FileSlice] = view.latest_slices(partitions, time)
        if time is None:
            slices = skipper.indexed(slices)
        return skipper.slices(slices)
