"""Deletions of savepoints.

The timeline decides, as it does when a savepoint is made: without its completed file a savepoint is
deleted. Only then does the format unpin the state. The pending files go last: by them the next
action finds a deletion whose process died, and finishes it. If the format forgot first, a savepoint
that a death leaves on the timeline would promise a state that the format may expire.
"""

from __future__ import annotations

import logging
from typing import Final

from hudi_core.errors import ForeignCommitError
from hudi_core.model.capability import Capability
from hudi_core.model.instant import Action, Instant, State
from hudi_core.txn.publication import present_version
from hudi_core.txn.state import TableState

_log: Final = logging.getLogger(__name__)


def delete_savepoint(state: TableState, saved: Instant) -> TableState:
    """Delete a completed savepoint; runs under the table's lock."""
    active, begun = state.client.active, saved.to(State.INFLIGHT)
    if state.client.storage.head(active.path(begun)) is None:
        active.to_inflight(begun)  # another engine made the savepoint without one
    active.delete(saved)  # guard timeline-first
    return _forgotten(state.without(saved).with_instant(begun), begun)


def without_begun_savepoints(state: TableState) -> TableState:
    """Finish deletions of savepoints, and drop savepoints that were never complete.

    Runs under the table's lock. On the timeline the two look alike, and neither keeps anything.
    While other writers' commits are in the format, which is not to be changed before they are taken
    in or discarded, or while the format is left out, they stay as they are.
    """
    if state.table.host.name != state.client.config.table_format:
        return state
    for begun in state.timeline.pending().of_actions(Action.SAVEPOINT):
        try:
            state = _forgotten(state, begun)
        except ForeignCommitError:
            _log.info("%s is left for later", begun, exc_info=True)
    return state


def _forgotten(state: TableState, begun: Instant) -> TableState:
    """Unpin the state in the format, and delete the pending files."""
    table, client = state.table, state.client
    if Capability.SAVEPOINT in table.host.capabilities:
        table.host.complete_delete_savepoint(client, begun, present_version(table))
    client.active.delete_pending(begun)
    return state.without(begun)
