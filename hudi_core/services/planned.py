"""Services whose plans any process runs.

One process puts them on the timeline. Clusterings and compactions: what they have in common, from
the plan to the commit.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Generic, TypeVar

from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine, TaskContext
from hudi_core.errors import CommitConflictError, ConcurrentWriterError, InstantNotFoundError
from hudi_core.model.commit import WriteOperation, WriteStatus
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import parse_instant_time
from hudi_core.model.result import CommitResult
from hudi_core.rows.context import WriteContext
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.progress import Progress, no_progress
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.begin import Request, begin, schedule
from hudi_core.txn.markers import LocalAttempts
from hudi_core.txn.recovery.rollback import drop_unwritten
from hudi_core.txn.scheduled import is_run
from hudi_core.txn.schema_step import SchemaStep
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.table_service import locked_for_service
from hudi_core.txn.transaction import Transaction
from hudi_core.write.ending import commit_metadata, undone_on_failure
from hudi_core.write.input_schema import unchanged
from hudi_core.write.key_changes import key_tracking

_STAGE: Final = 2
"""Number of the step in file names: that of any write's writing."""
_log = logging.getLogger(__name__)
Item = TypeVar("Item")
Answer = TypeVar("Answer")
Done = TypeVar("Done")
Written = tuple[Sequence[WriteStatus], Mapping[str, tuple[str, ...]] | None]
"""The files that were written, and by partition the file groups whose place they take."""


class StalePlanError(CommitConflictError):
    """A plan whose files another write has replaced."""


class NothingToDoError(Exception):
    """There is no file to rewrite."""


class _Counted(Generic[Item, Answer]):
    """A task's function that reports how many tasks are done."""

    def __init__(
        self, function: Callable[[TaskContext, Item], Answer], progress: Progress, total: int
    ) -> None:
        self._function, self._progress, self._total = function, progress, total
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, task: TaskContext, item: Item) -> Answer:
        found = self._function(task, item)
        with self._lock:
            self._done += 1
            self._progress(self._done, self._total)
        return found


@dataclass(slots=True)
class PlannedService(ABC, Generic[Done]):
    """Schedules and runs plans of one kind on one table.

    ``table`` is the present one after each call. ``progress`` counts tasks, and is called only
    where they run in this process.
    """

    table: OpenTable
    lock: TableLock
    engine: Engine
    config: WriteConfig
    progress: Progress = no_progress

    action: ClassVar[Action]
    operation: ClassVar[WriteOperation]

    @abstractmethod
    def require(self, table: OpenTable) -> None:
        """Refuse a table on which the service cannot run."""

    @abstractmethod
    def run_scheduled(self, wanted: Instant) -> Done:
        """Run one plan that is scheduled.

        ``StalePlanError``: another write changed one of its files, and it was given up.
        """

    # --- plans -----------------------------------------------------------------------------------

    def put_plan(self, plan: Callable[[OpenTable], Request | None]) -> Instant:
        """Put a plan on the timeline."""
        try:
            return schedule(self.table, self.lock, self.write_config, self.action, plan)
        finally:
            self.table = self.table.afresh

    def run(self, instant: str | None = None) -> list[Done]:
        """Run what is scheduled, oldest first.

        Where another write changed a file of a plan since, that plan is given up, and those after
        it are not run. A damaged plan, or one that names anything but files of the table, changes
        nothing. What another process runs is left to it.
        """
        self.table = self.table.as_stored().afresh
        self.table.client.require_writable()
        if any(one.action is self.action for one in self._pending()):
            with locked_for_service(self.table, self.lock, self.config):
                pass  # plans of those that died are scheduled again
        if instant is not None:
            wanted = self.scheduled().find(parse_instant_time(instant))
            if wanted is None:
                raise self.not_scheduled(instant)
            return [self.run_scheduled(wanted)]
        done = []
        for one in self.scheduled():
            try:
                done.append(self.run_scheduled(one))
            except (InstantNotFoundError, ConcurrentWriterError):
                continue  # another process runs it, or gave it up
        return done

    def run_all(self) -> list[Done]:
        """Run what is scheduled; what is out of date is given up."""
        done: list[Done] = []
        for one in self.scheduled():
            try:
                done += self.run(one.requested_time)
            except StalePlanError as stale:
                _log.warning("%s", stale)
            except (InstantNotFoundError, ConcurrentWriterError):
                continue  # another process runs it, or gave it up
        return done

    def scheduled(self) -> Timeline:
        """The plans that nobody has begun to run."""
        return self._pending().where(lambda one: one.action is self.action and one.is_scheduled)

    def taken(self, table: OpenTable, wanted: Instant) -> Instant:
        """A plan about to be run; runs under the lock."""
        found = table.client.timeline().find(wanted.requested_time, self.action)
        if found is None or not found.is_scheduled:
            raise self.not_scheduled(wanted.requested_time)
        if is_run(TableState(table), found, self.config):
            # its engine has given a sign of life and put no inflight file yet
            raise ConcurrentWriterError(table.client.base_path, found.requested_time)
        return found

    def give_up(self, instant: Instant) -> None:
        """Take a scheduled plan off the timeline."""
        with self.lock.held():
            state = TableState.load(self.table)
            found = state.timeline.find(instant.requested_time, self.action)
            if found is not None and found.is_scheduled:
                drop_unwritten(state, found)

    def not_scheduled(self, instant: str) -> InstantNotFoundError:
        """The error of a plan that is not there."""
        return InstantNotFoundError(
            instant, f"the scheduled {self.action.value}s of {self.table.client.base_path}"
        )

    def _pending(self) -> Timeline:
        return self.table.client.timeline().pending()

    # --- runs ------------------------------------------------------------------------------------

    def execute(
        self,
        plan: Callable[[OpenTable], Request | None],
        rewrite: Callable[[WriteContext], Written],
    ) -> tuple[str, CommitResult]:
        """Begin, rewrite files and commit; returns when it was requested, too."""
        started = time.monotonic()
        steps: list[SchemaStep] = []

        def check(table: OpenTable) -> Request | None:
            self.require(table)
            steps.append(unchanged(table))
            return plan(table)

        transaction = begin(
            self.table.on(self.engine),
            self.lock,
            self.write_config,
            self.action,
            self.operation,
            plan=check,
        )
        self.table = transaction.table.afresh
        with undone_on_failure(transaction), _given_up_on_conflict(transaction):
            transaction.schema_step = steps[0]
            transaction.after_commit = InlineServices(self.config.services)
            begun = time.monotonic()
            statuses, replaced = rewrite(self._context(transaction, steps[0]))
            transaction.timings["write"] = time.monotonic() - begun
            name = transaction.table.client.config.name
            metadata = commit_metadata(statuses, steps[0].new, name, self.operation, replaced)
            committed = transaction.commit(metadata, statuses)
        transaction.timings["total"] = time.monotonic() - started
        statuses = [replace(status, changed_keys=None) for status in statuses]
        result = committed.result(self.operation, transaction.timings, statuses)
        return transaction.instant.requested_time, result

    def map_tasks(
        self,
        tasks: Sequence[Item],
        function: Callable[[TaskContext, Item], Answer],
        weights: Sequence[int],
    ) -> list[Answer]:
        """Run a function of every task; progress counts them."""
        if self.engine.shares_memory:
            function = _Counted(function, self.progress, len(tasks))
        return self.engine.map_tasks(tasks, function, _STAGE, weights)

    def _context(self, transaction: Transaction, step: SchemaStep) -> WriteContext:
        client = transaction.table.client
        context = WriteContext(
            client.base_path,
            client.storage_options,
            client.config,
            step.new,
            self.config,
            transaction.instant.requested_time,
            tracked=key_tracking(client, step.new, self.engine.shares_memory),
        )
        if not self.engine.shares_memory:
            return context
        transaction.attempts = LocalAttempts(transaction.heartbeat)
        return replace(context, attempts=transaction.attempts)

    @property
    def write_config(self) -> WriteConfig:
        """Options of a write that is no repetition of another."""
        return replace(self.config, extras=self.config.extras.without_idempotency())


@contextmanager
def _given_up_on_conflict(transaction: Transaction) -> Iterator[None]:
    """Let a plan that another write contradicts go with its run."""
    try:
        yield
    except CommitConflictError:
        transaction.scheduled = None
        raise
