"""The end of a write: what it commits, or its rollback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from hudi_core.errors import CommitStateUnknownError, HudiError, InstantNotFoundError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import (
    MERGES_LOGS,
    SCHEMA_KEY,
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStatus,
)
from hudi_core.model.extra_metadata import Idempotency
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult, commit_result
from hudi_core.schema.table_schema import TableSchema
from hudi_core.table_handle import OpenTable
from hudi_core.txn.carried_metadata import Done, done_writes, is_accounted, repeated
from hudi_core.txn.transaction import Transaction


@contextmanager
def undone_on_failure(transaction: Transaction) -> Iterator[None]:
    """Roll back the write on failure, unless it may be complete."""
    try:
        yield
    except BaseException as error:
        if _may_be_complete(transaction, error):
            transaction.leave()
            raise  # undoing it would lose rows
        try:
            transaction.abort()
        except HudiError as undo:
            # what went wrong first is what the caller must hear of; the next writer repairs
            error.add_note(f"Undoing the write failed as well: {undo}")
        raise


def _may_be_complete(transaction: Transaction, error: BaseException) -> bool:
    """Whether an error leaves this write's outcome open.

    Of this write, not of one before it.
    """
    if not isinstance(error, CommitStateUnknownError):
        return False
    return error.facts.get("instant") in (None, transaction.instant.requested_time)


def commit_metadata(
    statuses: Sequence[WriteStatus],
    schema: TableSchema,
    table_name: str,
    operation: WriteOperation,
    replaced: Mapping[str, tuple[str, ...]] | None = None,
) -> CommitMetadata:
    """Return the body of the completed instant.

    ``replaced`` are the file ids that a replacing write takes out of the table, by partition path.
    """
    by_partition: dict[str, list[WriteStatus]] = {}
    for status in statuses:
        by_partition.setdefault(status.partition_path, []).append(status)
    stats = {
        path: tuple(status.stat for status in by_partition[path]) for path in sorted(by_partition)
    }
    extra = {SCHEMA_KEY: schema.to_avro(table_name)}
    if replaced is None:
        return CommitMetadata(
            stats,
            compacted=operation in MERGES_LOGS,
            extra_metadata=extra,
            operation_type=operation.value,
        )
    return ReplaceCommitMetadata(
        stats,
        extra_metadata=extra,
        operation_type=operation.value,
        partition_to_replace_file_ids=replaced,
    )


# --- results of writes that repeat an earlier one -------------------------------------------------


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
