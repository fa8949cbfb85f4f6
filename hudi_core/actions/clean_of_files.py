"""Clean plans from a table's files and its last clean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
from hudi_core.model.files import FileGroupId
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
    replaced: Callable[[], Mapping[FileGroupId, Instant]] = dict,
    needed: Callable[[], Needed] = lambda: NOTHING_NEEDED,
    savepoints: Collection[InstantTime] = (),
    empty_after: int | None = None,
) -> CleanerPlan | None:
    """What a clean of a table deletes; ``None`` without anything to do.

    Only partitions in which something was updated or replaced since the last clean are listed.

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
        Reads the file groups that completed writes took out of the table, and the first that did;
        not called where no partition is listed.
    needed
        Reads what must stay in any case; likewise.
    savepoints
        The savepointed writes.
    empty_after
        Writes since the earliest that the last clean retained after which there is a plan that
        deletes nothing, too; so is there where every partition was listed. ``None`` for never.
    """
    before = last.metadata if last is not None else None
    touched = partitions_to_clean(timeline, retention, before, savepoints, client.read_commit)
    partitions = sorted(lister.list_partitions() if touched is None else touched)
    found = {}
    if partitions:
        gone, kept = replaced(), needed()
        listed = lister.list_files(partitions)
        view = FileSystemView(lister, timeline, gone, listed=listed)
        for partition in partitions:
            files = PartitionFiles(view.file_groups([partition]), listed.get(partition, ()))
            found[partition] = clean_partition(files, gone, retention, kept)
    or_empty = empty_after is not None and _moves_on(timeline, retention, last, empty_after)
    return make_clean_plan(
        client.storage.root, retention, found, timeline, savepoints, or_empty=or_empty
    )


def _moves_on(timeline: Timeline, retention: Retention, last: DoneClean | None, after: int) -> bool:
    """Whether an empty clean spares the next ones many writes."""
    earliest = retention.earliest
    if earliest is None:
        return False
    since = last.earliest_retained if last is not None else None
    if since is None:
        return True
    passed = [
        one
        for one in timeline.completed_writes()
        if since <= one.requested_time < earliest.requested_time
    ]
    return len(passed) >= after
