"""Comparison of a metadata table with its table's files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hudi_core.actions.clean import files_being_cleaned
from hudi_core.config.kinds import TableType
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.partitions.names import Check
from hudi_core.metadata.partitions.work import Removal
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.files import PartitionPath


@dataclass(eq=False)
class RecordComparison:
    """One comparison, and what it came to.

    What completes while the comparison runs is left out of ``table``. ``paths`` limits the
    partitions whose files are compared, ``None`` for all. ``checked`` has the number of records by
    partition of the metadata table, ``skipped`` the reasons; ``made`` caches records that were made
    of the table.
    """

    table: ListedTable
    snapshot: MetadataSnapshot
    checks: Collection[Check]
    paths: Collection[PartitionPath] | None
    checked: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    made: dict[str, Sequence[MetadataRecord]] = field(default_factory=dict)

    @cached_property
    def file_names(self) -> frozenset[str]:
        """Names of all files that the table has, of any instant."""
        listed = self.table.lister.list_files(self.table.lister.list_partitions())
        return frozenset(file.name for files in listed.values() for file in files)

    @cached_property
    def being_cleaned(self) -> Removal:
        """The files of pending cleans; their records may outlive them."""
        table = self.table
        names = files_being_cleaned(table.client)
        return Removal(table.client, table.config, table.definitions, names, (), is_of_past=True)

    def is_partitioned(self, index: str) -> bool:
        """Whether an index keeps the keys of each table partition apart."""
        return self.table.definitions.is_partitioned(index)

    def skips_logged_keys(self, partition: str) -> bool:
        """Whether keys may be in log files, which only merging readers read.

        An index of keys is not compared then.
        """
        if self.table.client.config.table_type is TableType.MERGE_ON_READ:
            self.skipped[partition] = "keys in log files of the table are not read"
            return True
        return False
