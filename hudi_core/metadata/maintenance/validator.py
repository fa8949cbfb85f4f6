"""Compares metadata table and files, partition by partition.

What it should say is taken from the files as they are: folders are listed, footers and key columns
read. What readers can live with is no difference: ranges of a partition that are wider than its
rows, and bounds in the type that a column had when they were made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import DataFileError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.partition_types import COLUMN_STATS, FILES
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.names import ALL_CHECKS, Check
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.model.difference import Difference
from hudi_core.model.files import PartitionPath


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What a validation found.

    ``checked`` has the number of records by partition of the metadata table, ``skipped`` the
    reasons; ``unreadable`` are partitions that could not be compared as files of the table are
    damaged.
    """

    findings: tuple[Difference, ...]
    checked: Mapping[str, int]
    skipped: Mapping[str, str]
    unreadable: Mapping[str, str]

    @property
    def is_valid(self) -> bool:
        """Whether nothing was found, and everything could be read."""
        return not self.findings and not self.unreadable


def validate(
    client: TableMetaClient,
    checks: Collection[Check] = ALL_CHECKS,
    partitions: Collection[PartitionPath] | None = None,
) -> ValidationReport:
    """Compare a table's metadata table with its files.

    What completes while it runs is left out. ``partitions`` limits the files only: indexes are
    compared as a whole. Ranges and indexes of keys are compared with the rows in logs as well.
    """
    timeline = client.timeline()
    client = client.seeing(timeline)
    snapshot = MetadataSnapshot.open(client, timeline)
    definitions = read_definitions(client.storage, client.config)
    config = MetadataConfig.from_options({})
    config = replace(config, stats_columns=definitions.columns(COLUMN_STATS))
    table = ListedTable(client, config, definitions)
    comparison = RecordComparison(table, snapshot, checks, partitions)
    found: list[Difference] = []
    unreadable: dict[str, str] = {}
    for name in dict.fromkeys((FILES, *snapshot.partitions)):
        partition = partition_of(name)
        if partition is None:
            comparison.skipped[name] = "what it should hold is not known here"
            continue
        if partition.checks.isdisjoint(checks):
            continue
        try:
            found += partition.compare(comparison)
        except DataFileError as error:
            unreadable[name] = str(error)
    return ValidationReport(tuple(found), comparison.checked, comparison.skipped, unreadable)
