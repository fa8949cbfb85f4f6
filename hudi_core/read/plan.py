"""A query's plan: exact files, and which rows count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from hudi_core.config.table import TableConfig
from hudi_core.file_slice.blocks import CommittedInstants
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import FileGroupId, FileId, FileSlice, FileStatus, PartitionPath
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.read.filters import Filter
from hudi_core.read.predicate import And, Comparison, OneOf
from hudi_core.schema.table_schema import COMMIT_TIME, TableSchema


class SeenInstants(CommittedInstants, Protocol):
    """What a read asks of a timeline."""

    @property
    def instants(self) -> Sequence[Instant]:
        """All of them."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """One file slice to read.

    ``path`` is logical and relative to the base path, ``uri`` physical: an absolute local path, or
    a URI. ``partition_values`` are strings of the partition path by partition field (for the
    timestamp generator the formatted one, not the column's value); empty for tables without
    partitions, and where the path does not decode. ``instant`` is a requested time. ``logs`` are
    the log files of the slice in their order, of whose blocks those count that were written
    ``until`` then; ``has_base`` is false where there is nothing else, and ``path`` then that of the
    first.
    """

    path: str
    uri: str
    base_size: int
    partition_path: PartitionPath
    file_id: FileId
    partition_values: Mapping[str, str | None]
    instant: InstantTime
    logs: tuple[FileStatus, ...] = ()
    until: InstantTime | None = None
    has_base: bool = True

    @property
    def size(self) -> int:
        """Bytes of all files of the slice."""
        return self.base_size + sum(log.size for log in self.logs)

    @property
    def paths(self) -> tuple[str, ...]:
        """All files of the slice."""
        base = (self.path,) if self.has_base else ()
        return (*base, *(log.path for log in self.logs))


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The plan that Spark and Arrow readers execute.

    ``files`` are exactly the files to read, in the order of partition path and file id. ``schema``
    has the meta columns first; a file may lack columns (they are null) or hold narrower types. Only
    rows whose ``_hoodie_commit_time`` is in ``commit_times`` count; ``None``: all rows. Of logs
    only what instants wrote that are committed on ``timeline`` is read; without it none is.
    """

    files: tuple[PlannedSlice, ...]
    schema: pa.Schema
    commit_times: frozenset[InstantTime] | None = None
    timeline: SeenInstants | None = None
    skips_merge: bool = False

    @property
    def uris(self) -> tuple[str, ...]:
        """Where the files physically are."""
        return tuple(file.uri for file in self.files)

    @property
    def total_size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def row_condition(self) -> Filter | None:
        """:attr:`commit_times` as a filter by the meta column."""
        if self.commit_times is None:
            return None
        times = pa.array(sorted(self.commit_times), pa.string())
        is_one = OneOf(COMMIT_TIME, times)
        if not self.commit_times:
            return Filter.of(is_one)
        # the bounds let a reader skip row groups by their statistics, which it cannot do for a set
        first = Comparison(COMMIT_TIME, ">=", times[0])
        last = Comparison(COMMIT_TIME, "<=", times[-1])
        return Filter.of(And((first, last, is_one)))


class Sized(Protocol):
    """Part of a scan, which one task reads."""

    @property
    def size(self) -> int:
        """Bytes to read, about."""
        ...


Part = TypeVar("Part", bound=Sized)
_Read_contra = TypeVar("_Read_contra", bound=Sized, contravariant=True)


class Scan(Protocol[_Read_contra]):
    """Reads parts, here or in tasks; a frozen value."""

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of the batches."""
        ...

    def read(self, parts: Sequence[_Read_contra], /) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some parts, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class ScanPlan(Generic[Part]):
    """A scan with the parts it is to read."""

    scan: Scan[Part]
    parts: tuple[Part, ...]

    def to_arrow(self) -> pa.RecordBatchReader:
        """Return the rows; nothing is read before the reader is."""
        batches = self.scan.read(self.parts)
        return pa.RecordBatchReader.from_batches(self.scan.output_schema, batches)


def read_schema(client: TableMetaClient, timeline: TimelineView) -> pa.Schema:
    """Return the latest columns, meta columns first."""
    return columns_read(client.config, client.schema_at(timeline))


def columns_read(config: TableConfig, schema: TableSchema) -> pa.Schema:
    """The columns that readers see, meta columns first if present."""
    return schema.with_meta() if config.populate_meta_fields else schema.arrow


def planned_file(
    client: TableMetaClient,
    group: FileGroupId,
    *,
    path: str,
    size: int,
    instant: InstantTime,
    partition_values: Mapping[str, str | None],
) -> PlannedSlice:
    """Return one file of a plan with its physical place."""
    uri = client.files.uri(path)
    return PlannedSlice(
        path,
        uri,
        size,
        group.partition_path,
        group.file_id,
        partition_values,
        instant,
    )


def planned_slice(
    client: TableMetaClient,
    found: FileSlice,
    partition_values: Mapping[str, str | None],
    until: InstantTime | None = None,
) -> PlannedSlice:
    """Return a slice of a plan with its logs."""
    logs = tuple(log.status for log in found.log_files)
    base = found.base_file
    planned = planned_file(
        client,
        found.group,
        path=logs[0].path if base is None else base.path,
        size=0 if base is None else base.size,
        instant=found.base_instant,
        partition_values=partition_values,
    )
    return replace(planned, logs=logs, until=until, has_base=base is not None)


def stored_file(client: TableMetaClient, path: str) -> FileStatus | None:
    """A data file as its store has it; ``None`` if gone."""
    return client.data.head(path)
