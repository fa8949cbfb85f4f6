"""Metadata table partitions that options enable, and their options."""

from __future__ import annotations

from collections.abc import Collection

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table import TableConfig
from hudi_core.metadata.index_definitions import IndexDefinitions
from hudi_core.metadata.partitions.base import MetadataPartition
from hudi_core.metadata.partitions.registry import PARTITIONS


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
