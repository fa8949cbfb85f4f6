"""The steps of a write on one engine; every one a pure function that the engine runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.model.client import SliceView
from hudi_core.model.commit import WriteOperation, WriteStatus
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.model.schema import IS_DELETED, TableSchema
from hudi_core.storage.partition_path import refuse_nested
from hudi_core.txn.transaction import Transaction
from hudi_core.write.bulk_insert import bulk_insert_rows
from hudi_core.write.context import WriteContext
from hudi_core.write.merge_handle import GroupTask, write_group
from hudi_core.write.planning import FileSizing, GroupWrite, average_record_size
from hudi_core.write.staging import StagedPart, partition_rows, stage_rows
from hudi_core.write.tagging import Tagged, tag_partition, tag_tasks

_STAGE, _TAG, _WRITE = 0, 1, 2


@dataclass(slots=True)
class WriteSteps:
    """The steps between ``begin`` and ``commit``: stage, locate, plan, write.

    Attributes
    ----------
    engine, config
        Where the tasks run; the write's options.
    transaction
        The write under way.
    context, staged
        What every task knows; the columns that are staged.
    operation
        What is done with the rows.
    """

    engine: Engine
    config: WriteConfig
    transaction: Transaction
    context: WriteContext
    staged: TableSchema
    operation: WriteOperation
    view: SliceView

    def run(self, data: Any) -> list[WriteStatus]:
        """Write the rows to data files that nobody sees yet; return what the handles report."""
        engine, context = self.engine, self.context
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
        return inserts and self.config.combine_before_insert

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
            self.config.combine_before_delete
            if self.operation is WriteOperation.DELETE
            else self.config.combine_before_upsert
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
            in_memory=self.engine.shares_memory,
        )
        weights = [sum(file.size for file in task.base_files) for task in tasks]
        results = self.engine.map_tasks(tasks, function, _TAG, weights)
        return {result.partition_path: result for result in results}

    def _plan(
        self,
        rows: dict[PartitionPath, int],
        base_files: dict[PartitionPath, tuple[BaseFile, ...]],
        tagged: dict[PartitionPath, Tagged],
    ) -> list[GroupWrite]:
        client = self.transaction.table.client
        newest_first = reversed(self.transaction.began.completed_writes())
        size = average_record_size(
            (client.read_commit(instant) for instant in newest_first), self.config
        )
        sizing = FileSizing(self.config, self.context.instant, size)
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
        written = self.engine.map_tasks(tasks, function, _WRITE, weights)
        return [status for status in written if status is not None]

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.transaction.timings[step] = time.monotonic() - started
