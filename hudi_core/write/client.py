"""The operations on rows: insert, bulk insert, upsert and delete, all through one path.

Stage the rows, locate them, plan which file group each goes to, write the groups, commit. Every
step between ``begin`` and ``commit`` is a pure function that the engine runs; what crosses is
frozen values.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import CommitStateUnknownError
from hudi_core.model.client import SliceView
from hudi_core.model.commit import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStatus
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.model.instant import Action
from hudi_core.model.result import CommitResult
from hudi_core.model.schema import IS_DELETED, TableSchema
from hudi_core.storage.partition_path import refuse_nested
from hudi_core.txn.open_table import OpenTable
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.transaction import Committed, Transaction, begin
from hudi_core.write.bulk_insert import bulk_insert_rows
from hudi_core.write.context import WriteContext
from hudi_core.write.input_schema import staged_schema
from hudi_core.write.merge_handle import GroupTask, write_group
from hudi_core.write.planning import FileSizing, GroupWrite, average_record_size
from hudi_core.write.staging import StagedPart, partition_rows, stage_rows
from hudi_core.write.tagging import Tagged, tag_partition, tag_tasks

_STAGE, _TAG, _WRITE = 0, 1, 2


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
            steps = _Steps(self, transaction, context, staged, operation, view)
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


@dataclass(slots=True)
class _Steps:
    owner: WriteClient
    transaction: Transaction
    context: WriteContext
    staged: TableSchema
    operation: WriteOperation
    view: SliceView

    def run(self, data: Any) -> list[WriteStatus]:
        engine, context = self.owner.engine, self.context
        if self.operation is WriteOperation.BULK_INSERT and not self._combines_inserts:
            with self._timed("write"):
                function = partial(bulk_insert_rows, context=context, staged=self.staged)
                statuses = engine.map_input(data, function, _STAGE)
            self._refuse_nested({PartitionPath(status.partition_path) for status in statuses})
            return statuses
        with self._timed("stage"):
            stage = partial(
                stage_rows, context=context, schema=self.staged, in_memory=engine.shares_memory
            )
            parts = engine.map_input(data, stage, _STAGE)
        rows = partition_rows(parts)
        self._refuse_nested(rows)
        base_files = self._latest_base_files(list(rows))
        with self._timed("tag"):
            tagged = self._tag(parts, base_files, list(rows))
        groups = self._plan(rows, base_files, tagged)
        with self._timed("write"):
            return self._write_groups(groups, parts, tagged)

    @property
    def _combines_inserts(self) -> bool:
        inserts = self.operation in (WriteOperation.INSERT, WriteOperation.BULK_INSERT)
        return inserts and self.owner.config.combine_before_insert

    def _refuse_nested(self, written: Iterable[PartitionPath]) -> None:
        """Refuse partitions within partitions, which only values with slashes can make."""
        config = self.context.table
        has_levels = len(config.partition_fields) == 1 and not config.hive_style
        if has_levels and not config.url_encode and self.operation is not WriteOperation.DELETE:
            refuse_nested([*self.view.partitions(), *written])

    def _latest_base_files(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, tuple[BaseFile, ...]]:
        """Return the latest base file of every file group of the partitions, by file id.

        None for a bulk insert, which looks nothing up and makes new groups only.
        """
        if self.operation is WriteOperation.BULK_INSERT:
            return {}
        found: dict[PartitionPath, list[BaseFile]] = {}
        for slice_ in self.view.latest_slices(partitions):
            if slice_.base_file is not None:
                found.setdefault(slice_.partition_path, []).append(slice_.base_file)
        return {
            path: tuple(sorted(files, key=lambda file: file.name.file_id))
            for path, files in found.items()
        }

    def _tag(
        self,
        parts: Sequence[StagedPart],
        base_files: dict[PartitionPath, tuple[BaseFile, ...]],
        partitions: Sequence[PartitionPath],
    ) -> dict[PartitionPath, Tagged]:
        looks_up = self.operation in (WriteOperation.UPSERT, WriteOperation.DELETE)
        combine = looks_up and (
            self.owner.config.combine_before_delete
            if self.operation is WriteOperation.DELETE
            else self.owner.config.combine_before_upsert
        )
        combine |= self._combines_inserts
        has_deletes = IS_DELETED in self.staged.arrow.names
        if not (looks_up or combine or has_deletes):
            return {}
        tasks = tag_tasks(parts, base_files if looks_up else {}, partitions, combine)
        function = partial(
            tag_partition,
            context=self.context,
            schema=self.staged,
            in_memory=self.owner.engine.shares_memory,
        )
        weights = [sum(file.size for file in task.base_files) for task in tasks]
        results = self.owner.engine.map_tasks(tasks, function, _TAG, weights)
        return {result.partition_path: result for result in results}

    def _plan(
        self,
        rows: dict[PartitionPath, int],
        base_files: dict[PartitionPath, tuple[BaseFile, ...]],
        tagged: dict[PartitionPath, Tagged],
    ) -> list[GroupWrite]:
        client = self.owner.table.client
        newest_first = reversed(self.transaction.began.completed_writes())
        size = average_record_size(
            (client.read_commit(instant) for instant in newest_first), self.owner.config
        )
        sizing = FileSizing(self.owner.config, self.context.instant, size)
        groups = []
        for path, count in rows.items():
            found = tagged.get(path)
            located = found.located if found else {}
            inserts = found.inserts if found else count
            if self.operation is WriteOperation.DELETE:
                inserts = 0
            groups += sizing.assign(path, base_files.get(path, ()), located, inserts)
        return groups

    def _write_groups(
        self,
        groups: Sequence[GroupWrite],
        parts: Sequence[StagedPart],
        tagged: dict[PartitionPath, Tagged],
    ) -> list[WriteStatus]:
        tasks = [
            GroupTask(
                group,
                tuple(part for part in parts if group.partition_path in part.batch_numbers),
                tagged.get(group.partition_path),
                self.operation,
            )
            for group in groups
        ]
        function = partial(write_group, context=self.context, staged_schema=self.staged)
        weights = [group.weight for group in groups]
        written = self.owner.engine.map_tasks(tasks, function, _WRITE, weights)
        return [status for status in written if status is not None]

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.transaction.timings[step] = time.monotonic() - started


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
