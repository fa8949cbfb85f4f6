"""The ranges of columns, file by file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.index_definitions import IndexDefinitions, with_index
from hudi_core.metadata.key_index.key_records import DataFile
from hudi_core.metadata.log.records import ColumnRange, MetadataRecord, PartitionChange
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.range_changes import RangeChanges
from hudi_core.metadata.partitions.ranges import (
    BlockRanges,
    RangePartition,
    footer_ranges,
    indexable_columns,
    indexed_columns,
    log_ranges,
    ranges_of_partitions,
)
from hudi_core.metadata.partitions.work import Commit, Removal, Work, ranged_files
from hudi_core.metadata.statistics.bound_forms import (
    covers,
    has_values,
    in_form,
)
from hudi_core.metadata.statistics.column_records import (
    is_in_java_order,
    partition_record,
    range_records,
    removed_ranges,
)
from hudi_core.metadata.statistics.indexed_columns import META_INDEXED, IndexableColumns
from hudi_core.model.difference import Difference
from hudi_core.model.files import PartitionPath, join_path


@dataclass(frozen=True)
class ColumnStatsPartition(RangePartition):
    """Ranges, nulls and values of columns in every file."""

    name: str = COLUMN_STATS
    checks: ClassVar[frozenset[Check]] = frozenset({Check.COLUMN_STATS})
    option: ClassVar[str | None] = "column_stats"
    groups: ClassVar[int | str] = "column_stats_groups"

    def rebuild_options(self, work: Work) -> MetadataConfig:
        config, known = work.config, work.definitions.columns(self.name)
        if not config.chooses_columns or (
            config.stats_columns and {*config.stats_columns} <= {*known}
        ):
            return config
        client = work.client
        schema = client.schema_at(client.timeline())
        indexable = IndexableColumns.of(schema, client.config, work.definitions)
        if indexable.wanted(config, known).keys() <= {*known}:
            return config
        # files that are there may have values of a column that comes, and a range is of all
        return replace(config, stats_columns=(*indexable.asked(config), *known))

    def of_commit(self, commit: Commit) -> PartitionChange:
        ranges = commit.shared(RangeChanges)
        if set(ranges.columns) != set(ranges.known):
            commit.definitions = _listing(commit, ranges.columns)
        return PartitionChange(tuple(ranges.of_files()))

    def of_removal(self, removal: Removal) -> PartitionChange:
        config = removal.client.config
        # files that are older than a column's name have ranges under its former one, files from
        # before their table's keys were rewritten have some of the meta columns
        former = (
            *sorted(config.former_names),
            *(META_INDEXED if config.keys_differ_by_file else ()),
        )
        columns = list(dict.fromkeys((*removal.definitions.columns(self.name), *former)))
        return PartitionChange(
            tuple(record for one in removal.files for record in removed_ranges(*one, columns))
        )

    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        found = table.shared(footer_ranges)
        table.definitions = _listing(table, table.shared(indexed_columns))
        for file in table.all:
            ranges = found[file.path].values()
            yield from range_records(file.partition_path, file.name, ranges)

    def compare(self, comparison: RecordComparison) -> Iterator[Difference]:
        table = comparison.table
        known, forms = table.definitions.columns(self.name), table.shared(indexed_columns)
        schema = table.client.schema_at(table.client.timeline())
        for path in known:
            if path not in forms and schema.field(path) is not None:
                yield Difference(self.name, f"column {path}", None, "that it has ranges")
        yield from super().compare(comparison)
        if blocks := table.shared(log_ranges):
            yield from self._compare_logs(comparison, blocks)

    def _compare_logs(
        self, comparison: RecordComparison, blocks: Iterable[BlockRanges]
    ) -> Iterator[Difference]:
        """Look for ranges of logs that leave values out.

        A log without a range is read whatever is looked for.
        """
        listed, forms = self.listed(comparison), comparison.table.shared(indexed_columns)
        for block in blocks:
            # of values without bounds in a footer the writer may have known some
            ranges = (
                one
                for one in block.ranges.values()
                if one.min_value is not None or not has_values(one)
            )
            for right in range_records(block.partition_path, block.file_name, ranges):
                found = listed.get(right.key)
                stated, true = None if found is None else found.payload, right.payload
                if not isinstance(stated, ColumnRange) or not isinstance(true, ColumnRange):
                    continue
                form = forms[true.column_name or ""]
                if stated.min_value is not None:
                    stated = in_form(stated, form)
                hides_nulls = bool(true.null_count) and stated.null_count == 0
                holds = covers(stated, true) or is_in_java_order(stated, form.kind)
                if hides_nulls or not holds:
                    stated_now = None if found is None else self.describe(found)
                    yield Difference(
                        self.name, self.subject(right), self.describe(right), stated_now
                    )

    def misleads(
        self,
        listed: MetadataRecord | None,
        expected: MetadataRecord | None,
        comparison: RecordComparison,
    ) -> bool:
        if listed is not None and expected is None:
            # a column that is not indexed any more, or a log file, whose ranges its writer alone
            # knows
            found = listed.payload
            return not isinstance(found, ColumnRange) or (
                found.file_name not in comparison.file_names
            )
        return super().misleads(listed, expected, comparison)


def _listing(work: Work, columns: Iterable[str]) -> IndexDefinitions:
    """The definitions with the list of the columns that have ranges."""
    return with_index(
        work.definitions,
        work.client.config,
        COLUMN_STATS,
        tuple(columns),
        function=COLUMN_STATS,
        version="V2",
    )


# --- ranges of the table's partitions ------------------------------------------------------------


@dataclass(frozen=True)
class PartitionStats(RangePartition):
    """Ranges, nulls and values of columns in every partition of the table.

    A table without partitions has none, as in Hudi.
    """

    name: str = PARTITION_STATS
    checks: ClassVar[frozenset[Check]] = frozenset({Check.PARTITION_STATS})
    option: ClassVar[str | None] = "partition_stats"
    groups: ClassVar[int | str] = "partition_stats_groups"
    made_from: ClassVar[str | None] = COLUMN_STATS
    is_of_partitions: ClassVar[bool] = True
    is_wide: ClassVar[bool] = True

    def of_commit(self, commit: Commit) -> PartitionChange:
        if COLUMN_STATS not in commit.stored.all:
            return PartitionChange()
        return PartitionChange(tuple(commit.shared(RangeChanges).of_partitions()))

    def of_removal(self, removal: Removal) -> PartitionChange:
        removed = {join_path(*file) for file in removal.files}
        rebuilt = () if removal.is_of_past else (*removal.names, *removal.restored)
        touched = sorted({*rebuilt, *removal.dropped})
        left = [
            file
            for file in ranged_files(removal.current_slices(touched))
            if file.path not in removed and file.partition_path not in removal.dropped
        ]
        columns = indexable_columns(removal).among(removal.definitions.columns(COLUMN_STATS))
        wanted = dict.fromkeys(touched, columns)
        return PartitionChange(tuple(ranges_of_partitions(removal, wanted, left, {})))

    def build(self, table: ListedTable) -> Iterable[MetadataRecord]:
        found = table.shared(footer_ranges)
        by_partition: dict[PartitionPath, list[DataFile]] = {}
        for file in table.current:
            by_partition.setdefault(file.partition_path, []).append(file)
        of_logs: dict[PartitionPath, list[Mapping[str, ColumnRange]]] = {}
        for block in table.shared(log_ranges):
            by_partition.setdefault(block.partition_path, [])
            of_logs.setdefault(block.partition_path, []).append(block.ranges)
        for partition, files in by_partition.items():
            for column, form in table.shared(indexed_columns).items():
                ranges = [found[file.path].get(column) for file in files]
                ranges += [one.get(column) for one in of_logs.get(partition, ())]
                record = partition_record(partition, column, ranges, form)
                if present(record) is not None:
                    yield record

    def misleads(
        self,
        listed: MetadataRecord | None,
        expected: MetadataRecord | None,
        comparison: RecordComparison,
    ) -> bool:
        if listed is None and expected is not None:
            # readers leave a partition out that has no range: rightly, where it has no values
            return isinstance(expected.payload, ColumnRange) and has_values(expected.payload)
        if listed is not None and expected is None:
            return not isinstance(listed.payload, ColumnRange)  # it can only be too wide
        return super().misleads(listed, expected, comparison)
