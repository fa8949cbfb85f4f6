"""Clean plans from a table's files and its last clean."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from hudi_core.actions.clean_plan import (
    NOTHING_NEEDED,
    Needed,
    PartitionFiles,
    Retention,
    clean_partition,
    make_clean_plan,
    partitions_to_clean,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CleanerPlan, CleanMetadata
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import FileGroupId, PartitionPath
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.timeline.serde import decode_clean
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView


class DoneClean(NamedTuple):
    """A completed clean and what it recorded."""

    instant: Instant
    metadata: CleanMetadata

    @property
    def earliest_retained(self) -> InstantTime | None:
        """The earliest write it retained; ``None`` under a policy that knows none."""
        since = self.metadata.earliest_commit_to_retain
        return parse_instant_time(since) if since else None


def last_clean(client: TableMetaClient, timeline: Timeline) -> DoneClean | None:
    """The last completed clean of a timeline."""
    last = timeline.completed().of_actions(Action.CLEAN).last
    if last is None:
        return None
    return DoneClean(last, decode_clean(client.active.read(last), client.active.path(last)))


def plan_clean(
    client: TableMetaClient,
    timeline: Timeline,
    lister: FileIndex,
    retention: Retention,
    last: DoneClean | None = None,
    *,
    replaced: Mapping[FileGroupId, Instant] = {},
    needed: Needed = NOTHING_NEEDED,
    savepoints: Collection[InstantTime] = (),
) -> CleanerPlan | None:
    """What a clean of a table deletes; ``None`` without anything to do.

    Only partitions that have been written to since the last clean are listed.

    Parameters
    ----------
    timeline
        The fenced timeline.
    lister
        The table's files.
    retention
        What the rules keep.
    last
        The last completed clean; without it every partition is listed.
    replaced
        File groups that completed writes took out of the table, and the first that did.
    needed
        What must stay in any case.
    savepoints
        The savepointed writes.
    """
    partitions = list(lister.list_partitions())
    before = last.metadata if last is not None else None
    touched = partitions_to_clean(timeline, retention, before, savepoints, client.read_commit)
    if touched is not None:
        partitions = [one for one in partitions if one in touched]
    view = FileSystemView(lister, timeline, replaced)
    listed = lister.list_files(partitions)
    found = {
        PartitionPath(partition): clean_partition(
            PartitionFiles(view.file_groups([partition]), listed[partition]),
            replaced,
            retention,
            needed,
        )
        for partition in partitions
    }
    return make_clean_plan(client.storage.root, retention, found, timeline, savepoints)
