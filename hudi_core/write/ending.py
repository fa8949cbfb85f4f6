"""The end of a write: what it commits, or its rollback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from hudi_core.errors import CommitStateUnknownError, HudiError
from hudi_core.model.commit import (
    SCHEMA_KEY,
    CommitMetadata,
    ReplaceCommitMetadata,
    WriteOperation,
    WriteStatus,
)
from hudi_core.schema.table_schema import TableSchema
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
        return CommitMetadata(stats, extra_metadata=extra, operation_type=operation.value)
    return ReplaceCommitMetadata(
        stats,
        extra_metadata=extra,
        operation_type=operation.value,
        partition_to_replace_file_ids=replaced,
    )
