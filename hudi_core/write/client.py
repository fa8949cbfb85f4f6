"""The operations on rows: insert, bulk insert, upsert and delete, all through one path.

Stage the rows, locate them, plan which file group each goes to, write the groups, commit. Every
step between ``begin`` and ``commit`` is a pure function that the engine runs; what crosses is
frozen values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import CommitStateUnknownError
from hudi_core.model.commit import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStatus
from hudi_core.model.instant import Action
from hudi_core.model.result import CommitResult
from hudi_core.model.schema import TableSchema
from hudi_core.txn.open_table import OpenTable
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.transaction import Committed, Transaction, begin
from hudi_core.write.context import WriteContext
from hudi_core.write.input_schema import staged_schema
from hudi_core.write.steps import WriteSteps


@dataclass(slots=True)
class WriteClient:
    """Writes rows to one open table.

    Attributes
    ----------
    table, lock
        The table and its lock.
    engine
        Where the tasks run.
    config
        The write's options.
    """

    table: OpenTable
    lock: TableLock
    engine: Engine
    config: WriteConfig

    def write(self, data: Any, operation: WriteOperation) -> CommitResult:
        """Write the rows and commit.

        Raises
        ------
        SchemaError
            The rows do not fit the table; nothing is written.
        CommitConflictError, CommitStateUnknownError, LockError
            See :mod:`hudi_core.txn.transaction`.
        """
        started = time.monotonic()
        client = self.table.client
        schema = client.schema
        staged = staged_schema(self.engine.schema_of(data), schema, client.config, operation)
        transaction = begin(self.table, self.lock, self.config, Action.COMMIT)
        with _undone_on_failure(transaction):
            context = WriteContext(
                client.base_path,
                client.storage_options,
                client.config,
                schema,
                self.config,
                transaction.instant.requested_time,
            )
            view = self.table.views().view(transaction.began)
            steps = WriteSteps(
                self.engine, self.config, transaction, context, staged, operation, view
            )
            statuses = steps.run(data)
            metadata = commit_metadata(statuses, schema, client.config.name, operation)
            committed = transaction.commit(metadata, statuses)
        transaction.timings["total"] = time.monotonic() - started
        return commit_result(committed, operation, metadata, statuses, transaction.timings)


@contextmanager
def _undone_on_failure(transaction: Transaction) -> Iterator[None]:
    try:
        yield
    except CommitStateUnknownError:
        transaction.heartbeat.stop()
        raise  # the commit may have taken place: undoing it would lose rows
    except BaseException:
        transaction.abort()
        raise


def commit_metadata(
    statuses: Sequence[WriteStatus],
    schema: TableSchema,
    table_name: str,
    operation: WriteOperation,
) -> CommitMetadata:
    """Return the body of the completed instant."""
    by_partition: dict[str, list[WriteStatus]] = {}
    for status in statuses:
        by_partition.setdefault(status.partition_path, []).append(status)
    return CommitMetadata(
        partition_to_write_stats={
            path: tuple(status.stat for status in by_partition[path])
            for path in sorted(by_partition)
        },
        extra_metadata={SCHEMA_KEY: schema.to_avro(table_name)},
        operation_type=operation.value,
    )


def commit_result(
    committed: Committed,
    operation: WriteOperation,
    metadata: CommitMetadata,
    statuses: Sequence[WriteStatus],
    timings: dict[str, float],
) -> CommitResult:
    """Add up what a commit did."""
    stats = metadata.stats
    return CommitResult(
        instant=committed.instant,
        operation=operation,
        inserted=sum(stat.num_inserts or 0 for stat in stats),
        updated=sum(stat.num_update_writes or 0 for stat in stats),
        deleted=sum(stat.num_deletes or 0 for stat in stats),
        files=len(stats),
        bytes_written=sum(stat.total_write_bytes or 0 for stat in stats),
        timings=dict(timings),
        receipt=committed.receipt,
        metadata=metadata,
        statuses=tuple(statuses),
    )
