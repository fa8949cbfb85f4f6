"""Step 2: telling the table's format of an instant that the Hudi timeline holds as completed.

RFC-93, "Commit Protocol". A writer that died between the two steps, or that the format answered
with an error, leaves an instant that step 1 holds and step 2 does not. The next writer publishes
it: the hooks can be called again, and a format that holds the instant already changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from hudi_core.errors import CommitStateUnknownError
from hudi_core.model.capability import Capability
from hudi_core.model.commit import (
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStatus,
)
from hudi_core.model.format import PARENT_KEY, FormatCommit
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.fenced import pending_publications
from hudi_core.timeline.serde import decode_clean, decode_rollback
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.open_table import OpenTable

_log = logging.getLogger(__name__)


def publish(
    table: OpenTable,
    metadata: CommitMetadata,
    completed: Instant,
    statuses: Sequence[WriteStatus] = (),
) -> FormatCommit:
    """Tell the format of a completed write; runs under the table's lock.

    Parameters
    ----------
    metadata
        The body of the completed instant.
    statuses
        What the write reported of its files; without them the format reads their footers.
    """
    client, host = table.client, table.host
    if metadata.operation_type == WriteOperation.ALTER_SCHEMA:
        return host.complete_schema_change(client, metadata, completed)
    if (
        isinstance(metadata, ReplaceCommitMetadata)
        and metadata.operation_type == WriteOperation.CLUSTER
    ):
        return host.complete_clustering(client, metadata, completed, statuses)
    return host.complete_write(client, metadata, completed, statuses)


def settled(table: OpenTable, timeline: Timeline) -> TimelineView:
    """Publish what the Hudi timeline holds and the format does not, in the order of completion;
    runs under the table's lock.

    Parameters
    ----------
    timeline
        The Hudi timeline, loaded since the lock is held.

    Returns
    -------
    TimelineView
        The timeline as the format sees it then.

    Raises
    ------
    CommitStateUnknownError
        An action is pending that this release has no way to publish again.
    PluginError
        The format refuses an instant; it stays pending.
    """
    seeing = table.seeing(timeline)
    seen = seeing.timeline()
    pending = pending_publications(seen)
    for instant in pending:
        if seeing.host.find_publication(seeing.client, instant) is None:
            _log.warning("%s is published again: its writer did not get that far", instant)
            _publish_again(seeing, instant)
    return seeing.timeline() if pending else seen


def building_on(table: OpenTable, timeline: Timeline, metadata: CommitMetadata) -> CommitMetadata:
    """Return a commit's metadata with the state of the format that it builds on; runs under the
    table's lock.

    Step 2 is compared and set on it, by whoever gets to it. A format without a step 2 has none.
    """
    seeing = table.seeing(timeline)
    receipt = seeing.host.initialize(seeing.client, create=False)
    if Capability.SINGLE_STEP in seeing.host.capabilities:
        return metadata
    extra = {**metadata.extra_metadata, PARENT_KEY: receipt.version}
    return replace(metadata, extra_metadata=extra)


def _publish_again(table: OpenTable, instant: Instant) -> None:
    client, host, active = table.client, table.host, table.client.active
    if instant.action in WRITE_ACTIONS:
        publish(table, client.read_commit(instant), instant)
    elif instant.action is Action.ROLLBACK:
        undone = decode_rollback(active.read(instant), active.path(instant))
        host.complete_rollback(client, undone, instant)
    elif instant.action is Action.CLEAN:
        cleaned = decode_clean(active.read(instant), active.path(instant))
        host.complete_clean(client, cleaned, instant)
    else:
        raise CommitStateUnknownError(
            f"The {instant.action.value} {instant.requested_time} is complete on the Hudi timeline "
            f"and missing in the {host.name} format",
            "Publish it with the engine that made it, then write again.",
            instant=instant.requested_time,
        )
