"""Changes to the protocol that break it; the rig must catch every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from hudi_core.errors import CommitConflictError, HudiError
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import FileSlice
from hudi_core.model.instant import Instant, State
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.fenced import pending_publications
from hudi_core.plugin.several import JointTimelineFactory
from hudi_core.services import convert, create
from hudi_core.services.opening import open_table
from hudi_core.storage.properties_file import write_instead, write_new
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.clock import TimelineClock
from hudi_core.timeline.serde import encode
from hudi_core.txn import publication, transaction
from hudi_core.txn.recovery import recover as recovery
from hudi_core.txn.recovery import roll_forward, rollback
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.txn.transaction import Transaction

T = TypeVar("T")
Mutant = Callable[[], AbstractContextManager[None]]


@contextmanager
def changed(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Put other values in the place of attributes."""
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        yield


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


# --- what a write does in which order
def _format_first(self: Transaction, metadata: CommitMetadata, state: TableState) -> Instant:
    """Step 2 before step 1."""
    active = self.table.client.active
    completion = TimelineClock(active).next_time(state.timeline)
    done = replace(self.instant, state=State.COMPLETED, completion_time=completion)
    publication.publish_once(state.table, metadata, done)
    return active.complete(self.instant, completion, encode(metadata), state.timeline)


def _metadata_last() -> AbstractContextManager[None]:
    """The metadata table is told after the timeline."""
    record, complete = Transaction._record, Transaction._complete
    told: list[tuple[Any, ...]] = []

    def later(self: Transaction, *given: Any) -> TableState:
        told.append(given)
        state: TableState = given[-1]
        return state

    def complete_first(self: Transaction, *given: Any) -> Instant:
        completed = complete(self, *given)
        record(self, *told.pop())
        return completed

    return changed((Transaction, "_record", later), (Transaction, "_complete", complete_first))


def _believing(self: Transaction, metadata: CommitMetadata, state: TableState) -> Instant:
    """An error of the store means that nothing has happened."""
    active = self.table.client.active
    completion = TimelineClock(active).next_time(state.timeline)
    return active.complete(self.instant, completion, encode(metadata), state.timeline)


def _recorded_at_once(_: Any, instant: Instant, call: Callable[[], T], *__: Any) -> T:
    """An error of the format means that nothing has happened."""
    try:
        return call()
    except HudiError as error:
        raise CommitConflictError(f"{instant} is not recorded", "Run it again.") from error


# --- what recovery does
def _rolled_back_plainly(state: TableState) -> roll_forward.RolledForward:
    """What only step 1 holds is undone, without a word to the format."""
    seen = state.table.timeline()
    if not pending_publications(seen):
        return roll_forward.RolledForward(state, seen)
    for instant in pending_publications(seen):
        state, _ = rollback.roll_back(state, instant)
    state = state.reloaded()
    return roll_forward.RolledForward(state, state.table.timeline())


def _plain_rollback() -> AbstractContextManager[None]:
    return changed(
        (rollback, "_leave_format", _nothing),
        (recovery, "roll_forward_pending", _rolled_back_plainly),
        (transaction, "roll_forward_pending", _rolled_back_plainly),
    )


# --- what a creation does in which order
def _made_openly(new: create.NewTable, lock: TableLock) -> OpenTable:
    """The properties come first, and again at the end."""
    write_new(new.storage, new.client.config.raw)
    properties = create._made_ready(new)
    write_instead(new.storage, properties)
    return open_table(new.client.base_path, new.options)


# --- what a conversion of the type does first
def _nothing_to_merge(*_: Any, **__: Any) -> tuple[None, Sequence[FileSlice]]:
    """Logs stay as they are."""
    return None, ()


# --- of several formats
def _fence_of_the_first(self: JointTimelineFactory, meta_client: MetaClientView) -> TimelineView:
    """What the first format holds is complete."""
    name, factory = next(iter(self.factories.items()))
    return factory.active_timeline(self.client_of(meta_client, name))


MUTANTS: Final[Mapping[str | None, Mutant]] = {
    None: nullcontext,
    "no replay": partial(changed, (roll_forward, "_roll_forward", _nothing)),
    "plain rollback": _plain_rollback,
    "rollback without the format": partial(changed, (rollback, "_leave_format", _nothing)),
    "format before timeline": partial(changed, (Transaction, "_complete", _format_first)),
    "no look after an error": partial(changed, (Transaction, "_complete", _believing)),
    "no look at the format after an error": partial(
        changed, (roll_forward, "publish_with_retry", _recorded_at_once)
    ),
    "metadata table last": _metadata_last,
    "properties first": partial(changed, (create, "_make", _made_openly)),
    "fence of the first format": partial(
        changed, (JointTimelineFactory, "active_timeline", _fence_of_the_first)
    ),
    "type without a compaction": partial(changed, (convert, "new_plan", _nothing_to_merge)),
    "no mark of a creation": partial(changed, (create, "begin_creation", _nothing)),
}
