"""Requests that the metadata table adds, for dry runs."""

from __future__ import annotations

from typing import Final

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.enabled import enabled_partitions
from hudi_core.metadata.groups import list_all_groups
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.table import StoredPartitions, metadata_client
from hudi_core.model.dry_run import StorageRequests

_TIMELINE_WRITES: Final = 3
"""The requested, inflight and completed file of a deltacommit."""
_READS: Final = 3
"""The metadata table's properties, and twice what says which indexes there are."""
_LISTS: Final = 3
"""The metadata table's timeline under each of the two locks, and its folders."""
_BOOTSTRAP_WRITES: Final = 2
"""The metadata table's own properties, and the table's that name its partitions."""


def metadata_requests(client: TableMetaClient, config: MetadataConfig) -> StorageRequests:
    """Return the requests that a write makes for the metadata table.

    At most one log file is put for each of its file groups; groups that no key falls into get none.
    Compaction, cleaning and archival, which come every few commits, are left out. A table that has
    no metadata table, or half of one, and gets one, is charged for building it empty.
    """
    stored = StoredPartitions.of(client.config)
    if not stored.is_there:
        if not config.enabled:
            return StorageRequests(0, 0, 0, 0)
        rebuilt = stored.building if stored.is_rebuilding else ()
        count = len(rebuilt or enabled_partitions(config, client.config))
        built = _BOOTSTRAP_WRITES + count * (1 + _TIMELINE_WRITES)
        return StorageRequests(_READS, built + count + _TIMELINE_WRITES, _LISTS + 2 * count, 0)
    partitions = stored.all
    metadata = metadata_client(client)
    definitions = read_definitions(client.storage, client.config)
    with_owners = [name for name in partitions if definitions.is_partitioned(name)]
    listed = list_all_groups(metadata, list(partitions), with_owners)
    groups = sum(len(groups) for found in listed.values() for groups in found.values())
    return StorageRequests(
        reads=_READS,
        writes=_TIMELINE_WRITES + groups,
        lists=_LISTS + len(partitions),
        deletes=0,
    )
