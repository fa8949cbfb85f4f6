"""Begin of an action: its place on the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hudi_core.config.write import WriteConfig
from hudi_core.errors import (
    AlreadyExistsError,
    HudiError,
)
from hudi_core.metadata.maintenance.lifecycle import ensure_metadata_table
from hudi_core.metadata.state import MetadataState
from hudi_core.model.client import HeldMetadata
from hudi_core.model.commit import CommitMetadata, WriteOperation
from hudi_core.model.instant import Action, Instant, State
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.serde import encode
from hudi_core.txn.conflicts import chosen_strategy
from hudi_core.txn.creation import end_creation
from hudi_core.txn.heartbeat import Heartbeat
from hudi_core.txn.last_hold import LastHold
from hudi_core.txn.markers import Markers
from hudi_core.txn.publication import opened_version
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.recover import recover
from hudi_core.txn.same_table import require_same_table
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.transaction import Transaction, leave_heartbeat


@dataclass(frozen=True, slots=True)
class Request:
    """What an action puts on the timeline when it begins.

    ``requested`` and ``inflight`` are the bytes of these files. ``scheduled`` is the requested
    instant of an action that was scheduled before; ``requested`` is then what that instant holds.
    """

    requested: bytes = b""
    inflight: bytes = b""
    scheduled: Instant | None = None


def begin(
    table: OpenTable,
    lock: TableLock,
    config: WriteConfig,
    action: Action,
    operation: WriteOperation,
    *,
    requested_body: bytes = b"",
    plan: Callable[[OpenTable], Request | None] | None = None,
    known: LastHold | None = None,
) -> Transaction:
    """Put a new write on the timeline.

    ``plan`` runs on the table as it is after recovery, and refuses what cannot be written before
    anything of the write is there; what it returns is put on the timeline. Without it the write was
    planned on the table as it was opened. ``known`` is what this process left of the table before,
    and what this write is going to leave. ``action`` is ``commit``, ``replacecommit`` or
    ``clustering``. A table that was dropped or replaced since it was opened is refused.
    """
    table.client.require_writable()  # what is refused leaves no lock behind
    chosen_strategy(table.client)  # one that cannot be had is an error before the work is done
    with _given_up_unless_unlocked(table) as begun, lock.held() as hold:
        state, request, tables = _ready(table, config, plan, hold.heartbeats, known)
        if request is None:
            inflight_body = encode(CommitMetadata(operation_type=operation.value))
            request = Request(requested_body, inflight_body)
        table, client = state.table, state.client
        opened_version(table, config.extras.takes_in)
        began = table.timeline()
        requested = request.scheduled
        if requested is None:
            time_ = client.clock.next_time(state.timeline)
            requested = Instant(time_, action, State.REQUESTED)
        # the heart beats before the instant can be seen, so that no writer takes it for dead
        time_ = requested.requested_time
        if request.scheduled is not None:
            # who undid an earlier run may have died before the seal went that ended it
            Markers(client.storage, time_).delete_all()
        heartbeat = Heartbeat(client.scratch, time_, config.heartbeat_interval_ms)
        heartbeat.start()
        try:
            if request.scheduled is None:
                # step begin
                inflight = client.active.begin(requested, request.requested, request.inflight)
            else:
                inflight = client.active.to_inflight(requested, request.inflight)
        except AlreadyExistsError:
            heartbeat.stop()
            raise  # another writer's instant
        except BaseException as error:
            try:
                is_scheduled = request.scheduled is not None
                rollback.drop_unwritten(state, requested, is_scheduled=is_scheduled)
            except HudiError as undo:
                # what went wrong first is what the caller must hear of; the next writer repairs
                error.add_note(f"Undoing the write failed as well: {undo}")
                leave_heartbeat(heartbeat, requested)
            finally:
                heartbeat.stop()
            raise
        transaction = Transaction(
            table, lock, inflight, began, heartbeat, config.metadata, config.extras
        )
        if request.scheduled is not None:
            transaction.scheduled = request.requested
        transaction.known, transaction.tables = known, tables
        if began.instants == state.timeline.instants and not config.metadata.validate:
            transaction.files = state.files  # of no other state by the format either
        begun.append(transaction)
    return transaction


def schedule(
    table: OpenTable,
    lock: TableLock,
    config: WriteConfig,
    action: Action,
    plan: Callable[[OpenTable], Request | None],
) -> Instant:
    """Put an action's plan on the timeline, for anybody to run."""
    table.client.require_writable()
    with lock.held() as hold:
        state, request, _ = _ready(table, config, plan, hold.heartbeats)
        time_ = state.client.clock.next_time(state.timeline)
        body = b"" if request is None else request.requested
        return state.client.active.create_requested(Instant(time_, action, State.REQUESTED), body)


def _ready(
    table: OpenTable,
    config: WriteConfig,
    plan: Callable[[OpenTable], Request | None] | None,
    heartbeats: Sequence[str] | None,
    known: LastHold | None = None,
) -> tuple[TableState, Request | None, MetadataState | None]:
    """The table, request and metadata table of a new action."""
    held = HeldMetadata() if known is None else known.held(table.client)
    state = TableState.load(table, held=held)
    if plan is None:
        require_same_table(table.client, state.client)
    state.client.require_writable()
    state = recover(state, config, heartbeats)
    if known is not None:
        state = known.seen_in(state)
    tables = state.metadata
    if tables is not None:
        state = state.with_metadata(tables)
    request = None if plan is None else plan(state.table)
    state = state.with_client(ensure_metadata_table(state.client, config.metadata, tables))
    if not state.timeline.instants:
        end_creation(state.client.storage)  # its creator may have died between the last two steps
    return state, request, tables


@contextmanager
def _given_up_unless_unlocked(table: OpenTable) -> Iterator[list[Transaction]]:
    """Roll back a just begun write if unlocking fails.

    The lock is not awaited: no other writer touches an instant whose heart beats, and nothing but
    the timeline knows of it yet.
    """
    begun: list[Transaction] = []
    try:
        yield begun
    except BaseException as error:
        for one in begun:
            try:
                if one.scheduled is None:
                    table.client.active.delete_pending(one.instant)
                else:
                    table.client.active.delete(one.instant)
            except HudiError as undo:
                error.add_note(
                    f"Instant {one.instant.requested_time} stays inflight until the next writer "
                    f"rolls it back: {undo}"
                )
                one.leave()
            finally:
                one.heartbeat.stop()
        raise
