"""The ranges of an expression's values in files and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from hudi_core.base_file.footer import read_columns
from hudi_core.errors import TableServiceError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import AskedIndex, IndexDefinitions, read_definitions
from hudi_core.metadata.key_index.key_records import DataFile
from hudi_core.metadata.keys import column_stats_key, id64, partition_name, partition_stats_key
from hudi_core.metadata.log.records import ColumnRange, MetadataRecord, PartitionChange, RecordType
from hudi_core.metadata.partition_types import EXPRESSION_INDEX, PARTITION_STATS
from hudi_core.metadata.partitions.base import Reading
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.ranges import RangePartition, stored_statistics
from hudi_core.metadata.partitions.work import Commit, Removal, Work
from hudi_core.metadata.statistics.bound_forms import BoundForm, bound_form, covers, outermost
from hudi_core.metadata.statistics.column_records import COUNTS, range_records, removed_ranges
from hudi_core.metadata.statistics.expression_functions import EXPR
from hudi_core.metadata.statistics.expressions import (
    COLUMN_STATS_TYPE,
    Bounds,
    Expression,
    expression_of,
    require_kept,
    why_not,
)
from hudi_core.metadata.table import has_value_types
from hudi_core.model.difference import Difference
from hudi_core.model.files import PartitionPath
from hudi_core.model.promoted_bounds import widest_bounds
from hudi_core.model.stats import ColumnStats
from hudi_core.schema.table_schema import TableSchema

# --- records of an expression index --------------------------------------------------------------


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
            # of a log, any value is taken to be there
            paths = [file.path for file, stats in known if stats.has_values and not file.is_log]
            compute = partial(_bounds_of_values, self.client.for_tasks, self.expression)
            read = dict(zip(paths, self.client.map_files(compute, paths), strict=True))
        for file, stats in known:
            yield file, self._range(file.name, stats, read.get(file.path))

    def of_log(self, name: str) -> ColumnRange:
        """The range of an unread log: any value, and null."""
        low, high = map(self.form.wrap, widest_bounds(self.expression.result))
        return ColumnRange(
            file_name=name,
            column_name=self.expression.column,
            min_value=low,
            max_value=high,
            value_count=1,
            null_count=1,
            total_size=0,
            total_uncompressed_size=0,
            value_type=self.form.value_type,
        )

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
        bounded = [one for one in parts if one.min_value is not None]
        low, high = outermost(bounded) if bounded else (None, None)
        sums: dict[str, Any] = {
            name: sum(getattr(one, name) or 0 for one in parts) for name in COUNTS
        }
        kind = self.form.value_type
        whole = replace(parts[0], min_value=low, max_value=high, value_type=kind, **sums)
        return partition_record(partition, self.expression.column, whole)

    def _in_form(self, one: ColumnRange) -> ColumnRange:
        if one.min_value is None or one.min_value.wrapper == self.form.wrapper:
            return one
        low, high = map(self.form.wrap, widest_bounds(self.expression.result))
        return replace(one, min_value=low, max_value=high)


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


# --- the index -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpressionIndex(RangePartition):
    """The ranges of an expression's values in files and partitions.

    A table has any number of them. As Hudi has it, it is of one column.
    """

    name: str = EXPRESSION_INDEX
    checks: ClassVar[frozenset[Check]] = frozenset({Check.EXPRESSION_INDEX})
    groups: ClassVar[int | str] = "expression_groups"
    is_of_column: ClassVar[bool] = True
    prefix: ClassVar[str] = EXPRESSION_INDEX

    def require_maintained(self, definitions: IndexDefinitions, base_path: str) -> None:
        require_kept(definitions, self.name, None, base_path)

    def is_defined(self, work: Work) -> bool:
        # one that is not known is not forgotten: others may rely on it
        return self.name not in work.definitions.raw or super().is_defined(work)

    # --- its definition ------------------------------------------------------------------------

    def defined(self, work: Work, asked: AskedIndex) -> IndexDefinitions:
        client, definitions = work.client, work.definitions
        if asked.column is None and len(definitions.columns(self.name)) == 1:
            return definitions
        field = None if asked.column is None else client.schema.field(asked.column)
        if field is None or asked.column is None or "." in asked.column:
            raise TableServiceError(
                f"The expression index {self.name} needs a column of the table, not "
                f"{asked.column!r}",
                f"The columns are: {', '.join(client.schema.arrow.names)}.",
            )
        kind = asked.kind or COLUMN_STATS_TYPE
        if kind != COLUMN_STATS_TYPE:
            raise TableServiceError(
                f"The expression index {self.name} cannot be of the type {kind}",
                f"Make it of the type {COLUMN_STATS_TYPE}.",
            )
        reason = why_not(asked.options.get(EXPR, ""), asked.options, field.type)
        if reason is not None:
            raise TableServiceError(
                f"There can be no expression index {self.name}: {reason}",
                "Name a function and its options, such as expr=date_format and format=yyyy-MM-dd.",
            )
        made = {
            "indexName": self.name,
            "indexType": kind,
            "indexFunction": asked.options[EXPR],
            "sourceFields": [asked.column],
            "indexOptions": dict(asked.options),
            "version": "V2" if has_value_types(client.config) else "V1",
        }
        return IndexDefinitions(definitions.path, {**definitions.raw, self.name: made})

    # --- its records ---------------------------------------------------------------------------

    def of_commit(self, commit: Commit) -> PartitionChange:
        schema = TableSchema.from_avro(commit.schema_text)
        column = commit.definitions.columns(self.name)[0]
        self._require_same_type(commit, schema, column)
        made = self._ranges(commit, schema)
        if made is None:
            return PartitionChange()
        found = list(
            made.of_files([(file, status.columns.get(column)) for status, file in commit.new])
        )
        return PartitionChange((*_of_files(found), *self._of_touched(commit, made, found)))

    def _require_same_type(self, commit: Commit, schema: TableSchema, column: str) -> None:
        old = None if commit.base is None else commit.base.field(column)
        new = schema.field(column)
        if new is None or column in commit.client.config.former_names:
            return
        if old is not None and not old.type.equals(new.type):
            raise UnsupportedTableError(
                commit.client.base_path,
                f"has the expression index {self.name} of {column}, whose type would change from "
                f"{old.type} to {new.type}",
                f"Drop the index with `hudi metadata drop PATH {self.name}` first, and add it "
                "again afterwards.",
            )
        require_kept(commit.definitions, self.name, new.type, commit.client.base_path)

    def _of_touched(
        self, commit: Commit, made: ExpressionRanges, found: Iterable[tuple[DataFile, ColumnRange]]
    ) -> Iterator[MetadataRecord]:
        """Yield the ranges of the partitions that get new files.

        They only widen, until the index is built again: so they hold for whatever state a rollback
        leads to, and no other file is asked.
        """
        new: dict[PartitionPath, list[ColumnRange]] = {}
        for file, one in found:
            new.setdefault(file.partition_path, []).append(one)
        stored = self._stored_partitions(commit, made.expression.column)
        if stored is None:
            return
        for partition, ranges in new.items():
            known = stored.get(partition_key(made.expression.column, partition))
            record = made.of_partition(partition, [*ranges, *([known] if known else [])])
            if record is not None:
                yield record

    def _stored_partitions(self, work: Work, column: str) -> dict[str, ColumnRange] | None:
        """The ranges of all partitions by key; ``None`` where none are kept.

        To Hudi, where one partition has a range, others without one have no values.
        """
        records = {}
        if self.name in work.stored.complete:
            records = work.snapshot.scan_many(self.name, [id64(column)])
        prefix = partition_prefix(column)
        found = {
            key: record.payload
            for key, record in records.items()
            if key.startswith(prefix) and isinstance(record.payload, ColumnRange)
        }
        is_new = not records and PARTITION_STATS in work.stored.all
        return found if found or is_new else None

    def of_removal(self, removal: Removal) -> PartitionChange:
        columns = removal.definitions.columns(self.name)
        return PartitionChange(
            tuple(record for one in removal.files for record in removed_ranges(*one, columns))
        )

    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        schema = table.client.schema_at(table.client.timeline())
        field = schema.field(table.definitions.columns(self.name)[0])
        kind = None if field is None else field.type
        require_kept(table.definitions, self.name, kind, table.client.base_path)
        made = self._ranges(table, schema)
        if made is None:
            return
        found = dict(made.of_files(made.of_footers(table.all)))
        yield from _of_files(found.items())
        if table.client.config.is_partitioned and self._has_partitions(table):
            by_partition: dict[PartitionPath, list[ColumnRange]] = {}
            for file in table.current:
                if file in found:
                    by_partition.setdefault(file.partition_path, []).append(found[file])
            for path, log in table.logs:
                by_partition.setdefault(path, []).append(made.of_log(log.name))
            for partition, ranges in by_partition.items():
                record = made.of_partition(partition, ranges)
                if record is not None:
                    yield record

    def _has_partitions(self, table: ListedTable) -> bool:
        return PARTITION_STATS in table.stored.all or bool(table.config.partition_stats)

    def _ranges(self, work: Work, schema: TableSchema) -> ExpressionRanges | None:
        found = self._expression(work, schema)
        if found is None:
            return None
        typed = work.definitions.has_bound_types(self.name, work.client.config)
        return ExpressionRanges.of(work.client, found, has_value_types=typed)

    def _expression(self, work: Work, schema: TableSchema) -> Expression | None:
        kinds = {field.name: field.type for field in schema.arrow}
        return expression_of(work.definitions, self.name, kinds)

    # --- for people and tools ------------------------------------------------------------------

    def types(self, reading: Reading) -> Mapping[str, pa.DataType]:
        client = reading.client
        definitions = read_definitions(client.storage, client.config)
        kinds = {field.name: field.type for field in client.schema_at(reading.timeline).arrow}
        columns = definitions.columns(self.name)
        found = expression_of(definitions, self.name, kinds) if len(columns) == 1 else None
        return {} if found is None else {found.column: found.result}

    def compare(self, comparison: RecordComparison) -> Iterator[Difference]:
        table = comparison.table
        made = self._ranges(table, table.client.schema_at(table.client.timeline()))
        if made is None:
            comparison.skipped[self.name] = "its expression is not computed here"
            return
        column = made.expression.column
        listed = {one.key: one.payload for one in comparison.snapshot.scan(self.name)}
        comparison.checked[self.name] = len(listed)
        exact: dict[str, ColumnRange] = {}
        statistics = dict(made.of_footers(table.current))
        if made.expression.reads_values:
            exact = {one.path: found for one, found in made.of_files([*statistics.items()])}
        by_partition: dict[str, list[ColumnRange]] = {}
        for file, stats in statistics.items():
            if stats is None or not stats.value_count:
                continue
            right = exact.get(file.path) or made.narrowest(file.name, stats)
            key = column_stats_key(column, file.partition_path, file.name)
            found = listed.get(key)
            subject = f"{made.expression.name}({column}) of {file.name}"
            if not isinstance(found, ColumnRange):
                yield Difference(self.name, subject, "a range", None)
            elif right is not None:
                if not covers_values(found, right):
                    yield Difference(self.name, subject, _stated(right), _stated(found))
                place = partition_key(column, file.partition_path)
                by_partition.setdefault(place, []).append(right)
        yield from self._compare_partitions(listed, column, by_partition)

    def _compare_partitions(
        self,
        listed: Mapping[str, object],
        column: str,
        by_partition: Mapping[str, list[ColumnRange]],
    ) -> Iterator[Difference]:
        prefix = partition_prefix(column)
        if not any(key.startswith(prefix) for key in listed):
            return
        for key, ranges in by_partition.items():
            found = listed.get(key)
            for right in ranges:
                if not isinstance(found, ColumnRange):
                    if right.min_value is not None:
                        subject = f"{column} of the partition of {right.file_name}"
                        yield Difference(self.name, subject, _stated(right), None)
                elif not covers_values(found, right):
                    subject = f"{column} of the partition {found.file_name}"
                    yield Difference(self.name, subject, _stated(right), _stated(found))


def covers_values(wide: ColumnRange, narrow: ColumnRange) -> bool:
    """Whether bounds hold for all values of another range."""
    return narrow.min_value is None or (wide.min_value is not None and covers(wide, narrow))


def _stated(one: ColumnRange) -> str:
    low, high = (None if each is None else each.value for each in (one.min_value, one.max_value))
    return f"{low!r} to {high!r}"


def _of_files(found: Iterable[tuple[DataFile, ColumnRange]]) -> Iterator[MetadataRecord]:
    for file, one in found:
        yield from range_records(file.partition_path, file.name, [one])
