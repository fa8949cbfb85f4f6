"""The plan of a rebuilt metadata table, and its builder."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import PATH_KEY, IndexDefinitions, read_definitions
from hudi_core.metadata.maintenance.initialize import PartitionBuilder
from hudi_core.metadata.partitions.base import MetadataPartition
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.partitions.registry import enabled_partitions, options_for, partitions_of
from hudi_core.metadata.partitions.work import Work
from hudi_core.metadata.state import MetadataState, require_maintained
from hudi_core.metadata.table import (
    BOOTSTRAP_PREFIX,
    StoredPartitions,
    metadata_client,
    metadata_properties,
    metadata_storage,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.properties_file import update_properties, write_new
from hudi_core.timeline.timeline import Timeline


class RebuildPlan(NamedTuple):
    """How a metadata table is rebuilt: definitions now and then, options, indexes."""

    stored: IndexDefinitions
    definitions: IndexDefinitions
    options: MetadataConfig
    named: list[MetadataPartition]
    gone: tuple[str, ...]


def rebuild_plan(client: TableMetaClient, config: MetadataConfig) -> RebuildPlan:
    """The plan to rebuild a metadata table with its partitions."""
    names = StoredPartitions.of(client.config).all
    stored = read_definitions(client.storage, client.config)
    work = Work(client, config, stored)
    for one in partitions_of(names):
        work.definitions = one.restored(work)
    definitions = work.definitions
    there = [one for one in partitions_of(names) if one.is_defined(work)]
    gone = tuple(one.name for one in partitions_of(names) if one not in there)
    kept = StoredPartitions(tuple(one for one in names if one not in gone))
    require_maintained(kept, definitions, client.base_path)
    options = options_for(config, names, definitions)
    enabled_partitions(options, client.config)
    named = [one for one in there if one.is_of_column]
    return RebuildPlan(stored, definitions, options, named, gone)


def new_builder(table: ListedTable, folder: str) -> PartitionBuilder:
    """The builder of a new metadata table; puts its properties."""
    client = table.client
    write_new(metadata_storage(client, folder), metadata_properties(client.config))
    metadata = metadata_client(replace(client, metadata=None), folder).seeing(Timeline.of(()))
    return PartitionBuilder(MetadataState(client.over(metadata), table.definitions), table)


def build_time(number: int) -> InstantTime:
    """The time at which the partition of a number is built."""
    return InstantTime(f"{BOOTSTRAP_PREFIX}{number:03d}")


def properties_in_use(
    partitions: Collection[str], definitions: IndexDefinitions
) -> dict[str, str | None]:
    """The table's properties by which readers use a metadata table."""
    return {
        ManagedKeys.metadata_partitions.key: ",".join(sorted(partitions)),
        ManagedKeys.metadata_partitions_inflight.key: None,
        PATH_KEY: definitions.path if definitions.raw else None,
    }


def announce_rebuild(client: TableMetaClient) -> TableMetaClient:
    """Have readers list the folders until the metadata table is rebuilt.

    Its partitions count as under construction: the next writer who finds them so rebuilds them.
    """
    properties = update_properties(
        client.storage,
        {
            ManagedKeys.metadata_partitions.key: None,
            ManagedKeys.metadata_partitions_inflight.key: ",".join(
                sorted(StoredPartitions.of(client.config).all)
            ),
        },
    )
    return client.with_properties(properties)
