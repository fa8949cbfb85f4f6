"""All kinds of partitions of the metadata table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.partitions.base import MetadataPartition
from hudi_core.metadata.partitions.bloom_filters import BloomFilters
from hudi_core.metadata.partitions.column_stats import ColumnStatsPartition, PartitionStats
from hudi_core.metadata.partitions.expression_index import ExpressionIndex
from hudi_core.metadata.partitions.files import Files
from hudi_core.metadata.partitions.record_index import RecordIndexPartition
from hudi_core.metadata.partitions.secondary_index import SecondaryIndex

PARTITIONS: Final[tuple[MetadataPartition, ...]] = (
    Files(),
    ColumnStatsPartition(),
    BloomFilters(),
    RecordIndexPartition(),
    PartitionStats(),
    SecondaryIndex(),
    ExpressionIndex(),
)
"""In the order in which they are built."""


@lru_cache(maxsize=256)
def partition_of(name: str) -> MetadataPartition | None:
    """The partition of a name.

    ``None`` where it is of no known kind. Cached: 0.05 instead of 1.2 us.
    """
    return next(filter(None, [one.named(name) for one in PARTITIONS]), None)


def partitions_of(names: Iterable[str]) -> list[MetadataPartition]:
    """The partitions of some names.

    Names of no known kind are left out.
    """
    return [found for name in names if (found := partition_of(name)) is not None]


# --- partitions that options enable, and their options -------------------------------------------


def enabled_partitions(config: MetadataConfig, table: TableConfig) -> list[MetadataPartition]:
    """Partitions that options ask for, in the order of building."""
    for one in PARTITIONS:
        one.require_possible(config, table)
    return [
        one
        for one in PARTITIONS
        if one.is_enabled(config) and (table.is_partitioned or not one.is_of_partitions)
    ]


def options_for(
    config: MetadataConfig, names: Collection[str], definitions: IndexDefinitions
) -> MetadataConfig:
    """The options under which a new metadata table has some partitions."""
    for one in PARTITIONS:
        config = one.with_option(config, definitions if one.name in names else None)
    return config
