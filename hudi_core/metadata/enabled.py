"""Which partitions of the metadata table options ask for, and which options ask for partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.errors import InvalidOptionError
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.partition_types import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)


def enabled_partitions(config: MetadataConfig, table: TableConfig) -> tuple[str, ...]:
    """Return the partitions that the options ask for, in the order in which they are built.

    A table without partitions has no ranges of partitions, as in Hudi.

    Raises
    ------
    InvalidOptionError
        They contradict each other, or ask for an index of keys that no file of the table holds.
    """
    if config.partitioned_record_index and config.record_index:
        raise InvalidOptionError(
            MetadataConfig.partitioned_record_index.key,
            "true",
            f"{MetadataConfig.record_index.key}=true asks for a record index of the whole table",
            "Give only one of them.",
        )
    asks_for_keys = config.partitioned_record_index or config.record_index
    if asks_for_keys and not table.populate_meta_fields:
        key = (
            MetadataConfig.record_index
            if config.record_index
            else MetadataConfig.partitioned_record_index
        )
        raise InvalidOptionError(
            key.key,
            "true",
            "a table without meta columns has no record keys in its files",
            "Leave that out.",
        )
    asked = {
        FILES: True,
        COLUMN_STATS: config.column_stats,
        BLOOM_FILTERS: config.bloom_filters,
        RECORD_INDEX: config.record_index or config.partitioned_record_index,
        PARTITION_STATS: config.partition_stats and table.is_partitioned,
    }
    return tuple(name for name, is_asked in asked.items() if is_asked)


def options_for(
    config: MetadataConfig, names: Sequence[str], definitions: IndexDefinitions
) -> MetadataConfig:
    """Return the options under which a new metadata table has these partitions.

    Parameters
    ----------
    config
        How partitions are laid out.
    names
        Partitions; secondary indexes among them are no matter of options.
    definitions
        Say whether a record index is kept by partitions.
    """
    by_partition = definitions.is_partitioned(RECORD_INDEX)
    return replace(
        config,
        enabled=FILES in names,
        column_stats=COLUMN_STATS in names,
        partition_stats=PARTITION_STATS in names,
        bloom_filters=BLOOM_FILTERS in names,
        record_index=RECORD_INDEX in names and not by_partition,
        partitioned_record_index=RECORD_INDEX in names and by_partition,
    )
