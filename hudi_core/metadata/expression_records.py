"""Ranges of an expression's values as records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hudi_core.base_file.footer import read_columns
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.bound_forms import BoundForm, bound_form, bound_order
from hudi_core.metadata.expressions import Bounds, Expression
from hudi_core.metadata.key_records import DataFile
from hudi_core.metadata.keys import id64, partition_name, partition_stats_key
from hudi_core.metadata.records import ColumnRange, MetadataRecord, RecordType
from hudi_core.metadata.stored_statistics import stored_statistics
from hudi_core.model.files import PartitionPath
from hudi_core.model.promoted_bounds import widest_bounds
from hudi_core.model.stats import ColumnStats

_OF_PARTITIONS = "__partition_stat__"
"""The part of keys between the column and a partition of the table."""


@dataclass(frozen=True)
class ExpressionRanges:
    """What makes the ranges of an expression."""

    client: TableMetaClient
    expression: Expression
    form: BoundForm

    @classmethod
    def of(
        cls, client: TableMetaClient, expression: Expression, *, has_value_types: bool
    ) -> ExpressionRanges:
        """Those of a table."""
        form = bound_form(expression.result, has_value_types=has_value_types)
        assert form is not None  # noqa: S101 - values of functions have no other types
        return cls(client, expression, form)

    def of_files(
        self, files: Sequence[tuple[DataFile, ColumnStats | None]]
    ) -> Iterator[tuple[DataFile, ColumnRange]]:
        """Yield the ranges of files.

        None of one without rows, or without the column.
        """
        known = [(file, stats) for file, stats in files if stats is not None and stats.value_count]
        read: dict[str, Bounds | None] = {}
        if self.expression.reads_values:
            paths = [file.path for file, stats in known if stats.has_values]
            compute = partial(_bounds_of_values, self.client.for_tasks, self.expression)
            read = dict(zip(paths, self.client.map_files(compute, paths), strict=True))
        for file, stats in known:
            yield file, self._range(file.name, stats, read.get(file.path))

    def of_footers(self, files: Sequence[DataFile]) -> list[tuple[DataFile, ColumnStats | None]]:
        """The statistics of the column in files, by their footers."""
        column = self.expression.column
        read = partial(
            stored_statistics, self.client.for_tasks, wanted={column: self.expression.kind}
        )
        found = self.client.map_files(read, [file.path for file in files])
        return [(file, one.get(column)) for file, one in zip(files, found, strict=True)]

    def narrowest(self, name: str, stats: ColumnStats) -> ColumnRange | None:
        """A range that any right one covers; ``None`` where unknown.

        In whatever time zone it was made.
        """
        if not stats.has_values:
            return self._ranged(name, stats, None)
        bounds = self.expression.core(stats)
        return None if bounds is None else self._ranged(name, stats, bounds)

    def _range(self, name: str, stats: ColumnStats, read: Bounds | None) -> ColumnRange:
        if not stats.has_values:
            return self._ranged(name, stats, None)
        bounds = read
        low, high = stats.min_value, stats.max_value
        if not self.expression.reads_values and low is not None and high is not None:
            bounds = self.expression.bounds(low, high)
        # bounds that are missing mean to others that there is no value
        return self._ranged(name, stats, bounds or widest_bounds(self.expression.result))

    def _ranged(self, name: str, stats: ColumnStats, bounds: Bounds | None) -> ColumnRange:
        nulls = stats.null_count or 0
        low, high = (None, None) if bounds is None else map(self.form.wrap, bounds)
        return ColumnRange(
            file_name=name,
            column_name=self.expression.column,
            min_value=low,
            max_value=high,
            # as Hudi counts them here, where it leaves nulls out
            value_count=stats.value_count - nulls,
            null_count=nulls,
            total_size=stats.compressed_size,
            total_uncompressed_size=stats.uncompressed_size,
            value_type=self.form.value_type,
        )

    # --- of partitions -------------------------------------------------------------------------

    def of_partition(
        self, partition: PartitionPath, ranges: Iterable[ColumnRange]
    ) -> MetadataRecord | None:
        """The range of a partition, around some of its files and itself.

        ``None`` without any.
        """
        parts = [self._in_form(one) for one in ranges]
        if not parts:
            return None
        whole = parts[0]
        for one in parts[1:]:
            whole = self._around(whole, one)
        return partition_record(partition, self.expression.column, whole)

    def _in_form(self, one: ColumnRange) -> ColumnRange:
        if one.min_value is None or one.min_value.wrapper == self.form.wrapper:
            return one
        low, high = map(self.form.wrap, widest_bounds(self.expression.result))
        return replace(one, min_value=low, max_value=high)

    def _around(self, one: ColumnRange, other: ColumnRange) -> ColumnRange:
        bounded = [each for each in (one, other) if each.min_value is not None]
        low, high = one.min_value, one.max_value
        if bounded:
            order = bound_order(bounded[0])
            low = min((each.min_value for each in bounded if each.min_value), key=order)
            high = max((each.max_value for each in bounded if each.max_value), key=order)

        def both(name: str) -> int:
            return (getattr(one, name) or 0) + (getattr(other, name) or 0)

        return ColumnRange(
            one.file_name,
            one.column_name,
            low,
            high,
            both("value_count"),
            both("null_count"),
            both("total_size"),
            both("total_uncompressed_size"),
            value_type=self.form.value_type,
        )


def partition_record(partition: PartitionPath, column: str, whole: ColumnRange) -> MetadataRecord:
    """The record of a partition's range."""
    named = replace(whole, file_name=partition_name(partition), is_tight_bound=True)
    return MetadataRecord(partition_key(column, partition), RecordType.PARTITION_STATS, named)


def partition_prefix(column: str) -> str:
    """What the keys of ranges of partitions begin with."""
    return partition_stats_key(column, PartitionPath(_OF_PARTITIONS))


def partition_key(column: str, partition: PartitionPath) -> str:
    """The key of a partition's range."""
    return partition_prefix(column) + id64(partition_name(partition))


def _bounds_of_values(client: TableMetaClient, expression: Expression, path: str) -> Bounds | None:
    values = read_columns(client, path, [expression.column]).column(expression.column)
    if not values.type.equals(expression.kind):
        # from before the column got its type: bounds are those of any value
        return None
    return expression.bounds_of_values(values)
