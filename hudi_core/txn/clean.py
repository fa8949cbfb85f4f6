"""Cleans of a table, its metadata table and its format.

A clean only goes forward. Its plan is put on the timeline; the format stops naming the files; they
are deleted; the metadata table records that; the clean completes, and the format records it. One
that is cut short at any point is continued from its stored plan by the next clean, and stands in
the way of no write: nothing that a reader of a retained state needs is in a plan. Everything runs
under the table's lock.
"""

from __future__ import annotations

from hudi_core.actions.clean import (
    complete_clean,
    delete_cleaned,
    pending_cleans,
    request_clean,
    start_clean,
)
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.removal_changes import record_clean
from hudi_core.metadata.session import MetadataSession
from hudi_core.model.actions import CleanerPlan, CleanMetadata
from hudi_core.model.instant import Instant
from hudi_core.txn.publication import present_version, publish_with_retry
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock


def clean(
    state: TableState, lock: TableLock, plan: CleanerPlan
) -> tuple[TableState, Instant | None, CleanMetadata | None]:
    """Run a new clean; see :func:`continue_clean`."""
    client = state.client
    requested = client.clock.next_time(state.timeline)
    instant = request_clean(client, requested, plan)
    return continue_clean(state.with_instant(instant), lock, instant)


def continue_pending(state: TableState, lock: TableLock) -> TableState:
    """Finish the cleans that others began; returns the table after them."""
    for instant in pending_cleans(state.timeline):
        state, _, _ = continue_clean(state, lock, instant)
    return state


def continue_clean(
    state: TableState, lock: TableLock, instant: Instant
) -> tuple[TableState, Instant | None, CleanMetadata | None]:
    """Bring a clean whose plan is on the timeline to its end.

    Returns
    -------
    tuple
        The table after it, the completed clean, and its metadata. ``None`` for both when the plan
        is empty, left by a writer that died while it wrote it: the clean was dropped.

    Raises
    ------
    CorruptMetadataError
        The plan is damaged, or names what a clean may not delete. Nothing was deleted.
    TableServiceError
        The plan names a file that the format's current state, or a savepoint, needs. Nothing was
        deleted.
    CommitStateUnknownError
        The clean is complete on the Hudi timeline, and the format does not hold it yet.
    """
    client, host = state.client, state.table.host
    work = start_clean(client, instant)
    if work is None:
        return state.without(instant), None, None
    state = state.with_instant(work.instant)
    client = state.client
    if work.files or work.partitions:
        host.before_clean(client, work.plan, work.instant, present_version(state.table))
    lock.require_lease()
    metadata = delete_cleaned(client, work)
    if state.metadata is not None:
        session = MetadataSession(state.metadata, MetadataConfig.from_options(client.options))
        state = state.with_metadata(record_clean(session, work.instant.requested_time, metadata))
    lock.require_lease()
    client = state.client
    completion = client.clock.next_time(state.timeline)
    completed = complete_clean(client, work, completion, metadata)
    state = state.with_instant(completed)
    table, client = state.table, state.client
    publish_with_retry(
        table,
        completed,
        lambda: host.complete_clean(client, metadata, completed, present_version(table)),
    )
    return state, completed, metadata
