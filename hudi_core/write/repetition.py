"""Results of writes that repeat an earlier one."""

from __future__ import annotations

from hudi_core.errors import InstantNotFoundError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import CommitMetadata, WriteOperation
from hudi_core.model.extra_metadata import Idempotency
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult, commit_result
from hudi_core.table_handle import OpenTable
from hudi_core.txn.carried_metadata import Done, done_writes, is_accounted, repeated


def repetition_of(
    table: OpenTable, timeline: TimelineView, idempotency: Idempotency | None
) -> Done | None:
    """The write that another one repeats; ``None`` for a new one.

    ``timeline`` is fenced by the format.
    """
    if idempotency is None or not is_accounted(table.client):
        return None
    return repeated(done_writes(table.client, timeline), idempotency)


def last_write(
    table: OpenTable, timeline: TimelineView, application: str
) -> tuple[Done, CommitMetadata] | None:
    """The last idempotent write of an application, and its commit.

    The commit is empty where it is gone.

    ``timeline`` is fenced by the format.
    """
    if not is_accounted(table.client):
        return None
    done = done_writes(table.client, timeline).get(application)
    return None if done is None else (done, _commit(table.client, done)[1])


def stored_result(table: OpenTable, done: Done, operation: WriteOperation) -> CommitResult:
    """The result of a write, from its commit.

    ``operation`` is that of the request, used where the commit itself is gone.
    """
    instant, metadata = _commit(table.client, done)
    published = table.host.find_publication(table.client, instant)
    version = instant.effective_completion_time if published is None else published.version
    operation = WriteOperation.__members__.get(metadata.operation_type or "", operation)
    return commit_result(instant, operation, metadata, FormatCommit(version), is_repetition=True)


def _commit(client: TableMetaClient, done: Done) -> tuple[Instant, CommitMetadata]:
    for instant in client.timeline().completed_writes():
        if instant.requested_time == done.instant:
            try:
                return instant, client.read_commit(instant)
            except InstantNotFoundError:
                break  # archived meanwhile
    for archived in client.archived.load(until=done.instant, bodies=True):
        found = archived.instant
        if found.requested_time == done.instant and found.action in WRITE_ACTIONS:
            return found, client.read_archived_commit(archived)
    return Instant(done.instant, Action.COMMIT, State.COMPLETED), CommitMetadata()
