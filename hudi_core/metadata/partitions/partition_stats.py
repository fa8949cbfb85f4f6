"""The ranges of columns, partition by partition of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from hudi_core.metadata.bound_forms import has_values
from hudi_core.metadata.changes import PartitionChange
from hudi_core.metadata.column_records import partition_record
from hudi_core.metadata.key_records import DataFile
from hudi_core.metadata.merging import present
from hudi_core.metadata.partition_types import COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata.partitions.comparison import RecordComparison
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.range_changes import RangeChanges
from hudi_core.metadata.partitions.ranges import (
    RangePartition,
    footer_ranges,
    indexable_columns,
    indexed_columns,
    ranges_of_partitions,
)
from hudi_core.metadata.partitions.work import Commit, Removal
from hudi_core.metadata.records import ColumnRange, MetadataRecord
from hudi_core.model.files import PartitionPath, join_path


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
            for file in removal.current_files(touched)
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
        for partition, files in by_partition.items():
            for column, form in table.shared(indexed_columns).items():
                ranges = [found[file.path].get(column) for file in files]
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
