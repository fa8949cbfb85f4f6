"""The operations on rows and partitions, all through one path.

Stage the rows, locate them, plan which file group each goes to, write the groups, commit. Every
step between ``begin`` and ``commit`` is a pure function that the engine runs; what crosses is
frozen values.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from hudi_core.config.schema import SchemaConfig
from hudi_core.config.support import require_no_logged_changes
from hudi_core.config.table import TableConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import CommitConflictError, PartitionValueError
from hudi_core.index.record_index import require_record_index
from hudi_core.model.actions import RequestedReplaceMetadata
from hudi_core.model.capability import Capability
from hudi_core.model.commit import (
    MOVES_ROWS,
    CommitMetadata,
)
from hudi_core.model.conflicts import completed_since
from hudi_core.model.extra_metadata import DELETED_ROWS_KEY
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import Action
from hudi_core.model.operation import DELETE_PARTITION, Operation
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult
from hudi_core.schema.absence import absences
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.data_files import FetchedFiles
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import encode
from hudi_core.txn.begin import Request, begin
from hudi_core.txn.carried_metadata import AlreadyDoneError
from hudi_core.txn.conflicts import with_new_rows
from hudi_core.txn.last_hold import LastHold
from hudi_core.txn.markers import LocalAttempts
from hudi_core.txn.schema_step import SchemaStep
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.transaction import AfterCommit, Transaction, no_services
from hudi_core.write.conditional.change_steps import ChangeSteps
from hudi_core.write.conditional.changes import Changes, Resolved
from hudi_core.write.ending import commit_metadata, repetition_of, stored_result, undone_on_failure
from hudi_core.write.input_schema import unchanged
from hudi_core.write.key_changes import key_tracking
from hudi_core.write.key_proof import proven_layout
from hudi_core.write.planning import GroupsUnderClustering
from hudi_core.write.preparing import Prepared, prepared_changes, prepared_rows
from hudi_core.write.replacing import (
    PartitionLike,
    partition_paths_of,
    partitions_of_rows,
    replaced_groups,
    replaced_slices,
    require_known,
    rows_of,
)
from hudi_core.write.steps import WriteSteps
from hudi_core.write.validation import Validation

_log = logging.getLogger(__name__)

Plan = TypeVar("Plan")
Guard = Callable[[OpenTable, TimelineView, CommitMetadata | None], None]
"""Raises where a write must not build on a table, or commit what it is about to."""


@dataclass(slots=True)
class WriteClient:
    """Writes rows to one open table.

    ``guard`` raises to refuse. It gets the table, its fenced timeline and what is about to be
    committed: first ``None``, under the lock before the write; then the commit; and where others
    commit meanwhile, the commit again, under the lock.

    ``is_new``: the table was made for the rows of this write. ``replaces`` are partitions that an
    overwrite of partitions replaces beside those of its rows. ``known`` is what this process left
    of the table.
    """

    table: OpenTable
    lock: TableLock
    engine: Engine
    config: WriteConfig
    after_commit: AfterCommit = no_services
    validation: Validation | None = None
    guard: Guard | None = None
    is_new: bool = False
    replaces: Sequence[PartitionLike] = ()
    known: LastHold | None = None

    def write(self, data: Any, operation: Operation) -> CommitResult:
        """Write the rows and commit; a repetition returns the first result.

        A ``SchemaError`` is raised before anything is written. What the errors of the commit leave
        is described at :mod:`hudi_core.txn.transaction`.
        """
        return self._once(operation, lambda: self._write(data, operation))

    def change(self, changes: Changes) -> CommitResult:
        """Change stored rows by conditions and commit.

        Which rows are changed follows from the state of the table that the write builds on: where
        another write changes one of their file groups before this one completes, this one fails.

        Several source rows that match one row, and an inserted row whose key the table has, are a
        ``SchemaError``; nothing is written then.
        """
        operation = changes.operation

        def change() -> CommitResult:
            resolved: list[Resolved] = []

            def prepare(table: OpenTable) -> Prepared:
                prepared, found = prepared_changes(table, self.config, self.validation, changes)
                resolved.append(found)
                if found.inserts and not found.are_new:
                    self.guard = NoRowsAdded(table.timeline())
                return prepared

            return self._run(operation, prepare, ChangeSteps, lambda: resolved[0])

        return self._once(operation, change)

    def _write(self, data: Any, operation: Operation) -> CommitResult:
        incoming, absent = self.engine.schema_of(data), absences(data)

        def prepare(table: OpenTable) -> Prepared:
            return prepared_rows(
                table,
                self.config,
                self.validation,
                incoming,
                operation,
                absent=absent,
                is_new=self.is_new,
            )

        return self._run(operation, prepare, WriteSteps, lambda: data)

    def _run(
        self,
        operation: Operation,
        prepare: Callable[[OpenTable], Prepared],
        steps_of: type[WriteSteps],
        data: Callable[[], Any],
    ) -> CommitResult:
        """Begin a write, do its steps, and commit.

        ``data`` is called once the write is prepared.
        """
        started = time.monotonic()
        self.require(operation)
        transaction, (context, staged, step, layout) = self._begun(operation, prepare)
        table, client = transaction.table, transaction.table.client
        with undone_on_failure(transaction):
            self._watch(transaction, step)
            if context.uses_record_index:
                require_record_index(client, context.write.index.index_type)
            tracked = key_tracking(client, context.schema, self.engine.shares_memory)
            began_at = transaction.instant.requested_time
            context = replace(context, instant=began_at, tracked=tracked)
            if self.engine.shares_memory:
                transaction.attempts = LocalAttempts(transaction.heartbeat)
                context = replace(context, attempts=transaction.attempts)
            if self.engine.tasks_here:
                context = replace(context, fetched=FetchedFiles())
            view = table.views().view(transaction.began, transaction.files)
            transaction.view = view
            layout.keep(self.lock)
            steps = steps_of(
                self.engine,
                context.write,
                transaction,
                context,
                staged,
                operation,
                view,
                GroupsUnderClustering.of(table, transaction.began),
            )
            if self.replaces:
                steps.replaces = self.paths_of(table, self.replaces, context.schema)
            statuses = steps.run(data())
            replaced = None
            if operation.is_replacing:
                replaced = replaced_groups(view, operation, steps.partitions)
            metadata = commit_metadata(
                statuses, context.schema, client.config.name, operation.recorded, replaced
            )
            committed = transaction.commit(metadata, statuses)
        transaction.timings["total"] = time.monotonic() - started
        _warn_of_columns(step, client.base_path, context.write)
        # the keys have served, and are as many as the rows
        statuses = [replace(status, changed_keys=None) for status in statuses]
        return committed.result(operation.recorded, transaction.timings, statuses)

    def delete_partitions(self, partitions: Iterable[PartitionLike]) -> CommitResult:
        """Replace all file groups of partitions; touches no data file.

        A partition that holds no rows is refused; nothing is written then.
        """
        named = list(partitions)

        def choose(table: OpenTable) -> Sequence[PartitionPath]:
            return self.paths_of(table, named, unchanged(table).new)

        return self._once(DELETE_PARTITION, lambda: self._delete_partitions(choose))

    def delete_chosen_partitions(
        self, choose: Callable[[OpenTable], Sequence[PartitionPath]]
    ) -> CommitResult:
        """Replace all file groups of partitions that a function chooses.

        It is called with the table that the write builds on, under the table's lock; what it raises
        ends the write before anything of it is there.
        """
        return self._once(DELETE_PARTITION, lambda: self._delete_partitions(choose))

    def _delete_partitions(
        self, choose: Callable[[OpenTable], Sequence[PartitionPath]]
    ) -> CommitResult:
        started = time.monotonic()
        operation = DELETE_PARTITION
        self.require(operation)

        def plan(table: OpenTable) -> tuple[SchemaStep, Sequence[PartitionPath]]:
            step = unchanged(table)
            if self.validation is not None:
                self.validation.require_runnable(table, step)
            paths = choose(table)
            view = table.views().view()
            require_known(view, paths)
            gone = {one.group for one in replaced_slices(view, operation, paths)}
            GroupsUnderClustering.of(table, table.timeline()).require_none_of(gone)
            return step, paths

        transaction, (step, paths) = self._begun(operation, plan)
        client = transaction.table.client
        with undone_on_failure(transaction):
            self._watch(transaction, step)
            transaction.attempts = LocalAttempts(transaction.heartbeat)  # no task writes a file
            view = transaction.table.views().view(transaction.began)
            replaced = replaced_groups(view, operation, paths)
            rows = rows_of(client, replaced_slices(view, operation, paths))
            metadata = commit_metadata(
                (), step.new, client.config.name, operation.recorded, replaced
            )
            count = {DELETED_ROWS_KEY: str(sum(rows.values()))}
            metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, **count})
            committed = transaction.commit(metadata, ())
        transaction.timings["total"] = time.monotonic() - started
        return committed.result(operation.recorded, transaction.timings)

    def _watch(self, transaction: Transaction, step: SchemaStep) -> None:
        """Give a write its columns and its validators."""
        transaction.schema_step = step
        guard, validation = self.guard, self.validation
        if guard is None and validation is None:
            return

        def check(table: OpenTable, seen: TimelineView, metadata: CommitMetadata) -> None:
            if guard is not None:
                guard(table, seen, metadata)
            if validation is not None:
                validation.require_valid(table, seen, metadata, step.new)

        transaction.check = check

    def _once(self, operation: Operation, do: Callable[[], CommitResult]) -> CommitResult:
        """Result of a write, or of the earlier one it repeats."""
        if self.config.extras.idempotency is None:
            return do()
        try:
            self._require_new_write(self.table)
            return do()
        except AlreadyDoneError as repetition:
            return stored_result(self.table, repetition.done, operation.recorded)

    def _require_new_write(self, table: OpenTable) -> None:
        """Raise ``AlreadyDoneError`` for a write that a table already has."""
        first = repetition_of(table, table.timeline(), self.config.extras.idempotency)
        if first is not None:
            raise AlreadyDoneError(first)

    def partitions_of(self, data: Any) -> list[PartitionPath]:
        """Return the partition paths of rows, distinct and in order."""
        schema = self.table.client.schema
        config = self._proven_config(self.table, schema)
        names = dict.fromkeys(name.split(".")[0] for name in config.partition_fields)
        data = self.engine.take(data)
        for one in absences(data):
            if one.path.partition(".")[0] in names:
                raise PartitionValueError(
                    f"{one.row} lacks the column {one.path!r}, by which its partition is found",
                    "Give it to every row, with None where there is no value.",
                    columns=[one.path],
                )
        needed = replace(schema, arrow=pa.schema([schema.arrow.field(name) for name in names]))
        function = partial(partitions_of_rows, config=config, schema=needed, how=self.config.schema)
        found = self.engine.map_input(data, function, 0)
        return sorted({path for paths in found for path in paths})

    def paths_of(
        self, table: OpenTable, partitions: Iterable[PartitionLike], schema: TableSchema
    ) -> list[PartitionPath]:
        """The paths of partitions; values are spelled as the stored rows show."""
        named = list(partitions)
        has_values = any(not isinstance(one, str) for one in named)
        config = self._proven_config(table, schema) if has_values else table.client.config
        return partition_paths_of(named, config, schema)

    def _proven_config(self, table: OpenTable, schema: TableSchema) -> TableConfig:
        operation = DELETE_PARTITION
        return proven_layout(table, self.config, operation, schema).table.client.config

    def require(self, operation: Operation) -> None:
        """Refuse what the table, or its format, cannot take."""
        client = self.table.client
        client.require_writable()
        require_no_logged_changes(client.config, client.base_path)
        if operation.is_replacing:
            self.table.host.require(Capability.REPLACE)

    def _begun(
        self, operation: Operation, plan: Callable[[OpenTable], Plan]
    ) -> tuple[Transaction, Plan]:
        """Return the write, begun on the timeline, and its plan."""
        planned: list[Plan] = []

        def check(table: OpenTable) -> Request | None:
            self._require_new_write(table)
            if self.guard is not None:
                self.guard(table, table.timeline(), None)
            planned.append(plan(table))
            return None

        is_replacing = operation.is_replacing
        transaction = begin(
            self.table.on(self.engine),
            self.lock,
            self.config,
            Action.REPLACECOMMIT if is_replacing else self.table.client.config.write_action,
            operation.recorded,
            requested_body=encode(RequestedReplaceMetadata()) if is_replacing else b"",
            plan=check,
            known=self.known,
        )
        transaction.after_commit = self.after_commit
        self.table = transaction.table.afresh
        return transaction, planned[0]


def _warn_of_columns(step: SchemaStep, base_path: str, config: WriteConfig) -> None:
    """Log which columns the rows of a write have added."""
    added = set(step.needs().get(Capability.ADD_COLUMN, ()))
    # columns of a column that is new itself go without saying
    names = sorted(path for path in added if path.rpartition(".")[0] not in added)
    if names:
        later = f"unless {SchemaConfig.fill_missing.key}=true, rows without it are refused now; "
        _log.warning(
            "the write added the column %s to %s for good; %sTable.alter(drop=...) takes it out",
            ", ".join(names),
            base_path,
            "" if config.schema.fill_missing else later,
        )


# --- merges that insert rows by no record key -----------------------------------------------------

# Two such merges may each find no match for one source row, and share no file group and no key;
# both would insert it.


@dataclass(frozen=True, slots=True)
class NoRowsAdded:
    """Refuses a commit where another write has added rows since it began.

    A :data:`~hudi_core.write.client.Guard`.

    ``began`` is the timeline that the merge builds on.
    """

    began: TimelineView

    def __call__(self, table: OpenTable, seen: TimelineView, _: CommitMetadata | None) -> None:
        for other in completed_since(self.began, seen):
            theirs = table.client.read_commit(other)
            if theirs.operation_type in MOVES_ROWS:
                continue
            if any(True for _ in with_new_rows(theirs)):
                raise CommitConflictError(
                    f"Instant {other.requested_time} added rows while this merge was under way, "
                    "which inserts rows that it does not match by their record key",
                    "Nothing of this merge is visible; run it again on the new state of the table.",
                    other=other.requested_time,
                    granularity="rows",
                )
