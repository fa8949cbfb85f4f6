"""The record index for readers: keys to file groups.

It leaves nothing out as long as it speaks of the very state that is read, and no two file groups
hold one key (:mod:`hudi_core.metadata.unique_keys`). Where either is in doubt, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.records import MetadataRecord, RecordLocation
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.unique_keys import group_of, has_unique_keys
from hudi_core.model.files import FileGroupId, PartitionPath
from hudi_core.model.protocols import TimelineView

MAX_KEYS: Final = 10_000
"""Of more, ranges of files and the files themselves are the cheaper way."""
_MAX_PARTITIONS: Final = 100
"""An index that is kept by partitions is asked for each."""


def groups_of_keys(
    client: TableMetaClient,
    snapshot: MetadataSnapshot,
    timeline: TimelineView,
    partitions: Sequence[PartitionPath],
    keys: Sequence[str],
) -> frozenset[FileGroupId] | None:
    """Return the file groups that hold some record keys.

    ``partitions`` are those where the rows can be; a key that is nowhere is in no group. ``None``
    where there is no index that can be relied on for this.
    """
    if RECORD_INDEX not in snapshot.partitions or len(keys) > MAX_KEYS:
        return None
    # read after the state: what comes to be repeated later is noted, too
    definitions = read_definitions(client.storage, client.config)
    is_known = has_unique_keys(definitions) and snapshot.watches_keys
    if not is_known or not snapshot.is_of(timeline, RECORD_INDEX):
        return None
    found: list[Mapping[str, MetadataRecord]] = []
    if definitions.is_partitioned(RECORD_INDEX):
        owners = snapshot.groups_by_owner(RECORD_INDEX)
        if len(partitions) > _MAX_PARTITIONS or any(path not in owners for path in partitions):
            return None
        found += [snapshot.lookup_owned(path, keys) for path in partitions]
    else:
        found.append(snapshot.lookup(RECORD_INDEX, keys))
    return frozenset(
        group_of(where)
        for records in found
        for record in records.values()
        if isinstance(where := record.payload, RecordLocation)
    )
