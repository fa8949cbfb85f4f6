"""Fences and rolls back a write that step 1 has completed.

Step 2 must not take it any more.

Its files cannot just be deleted: the request of its writer may be on its way, or its writer asleep,
and would make the format name files that are gone. So the format's head is moved first, on which
such a request fails, and is never taken afterwards either; then the format is asked once more, for
the request may have landed just before. Only what is still absent then is rolled back, as any write
is: planned, recorded on the timeline and in the metadata table. A crash in between leaves a write
that is fenced off and is taken back by the next writer.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from hudi_core.errors import (
    HistoryExpiredError,
    HudiError,
    IncompleteCommitError,
    TableServiceError,
)
from hudi_core.model.format import Publication
from hudi_core.model.instant import Instant, State
from hudi_core.txn.publication import unknown
from hudi_core.txn.recovery import rollback
from hudi_core.txn.recovery.rollback_checks import require_can_be_fenced
from hudi_core.txn.state import TableState

_log = logging.getLogger(__name__)


def fence_and_rollback(state: TableState, target: Instant, why: str) -> Publication | None:
    """Undo a write that is pending publication; runs under the table's lock.

    ``target`` is completed on the Hudi timeline, and the format does not hold it. ``None`` once it
    is undone; otherwise how the format holds it after all.

    :class:`IncompleteCommitError`: it can neither be published nor undone, as others build on it;
    nothing has changed. :class:`CommitStateUnknownError`: it could not be fenced off and may still
    be published; nothing was deleted.
    """
    state = state.reloaded()
    table, client, host = state.table, state.client, state.table.host
    try:
        require_can_be_fenced(state, target)
    except (HistoryExpiredError, TableServiceError) as kept:
        raise IncompleteCommitError(
            f"Instant {target.requested_time} is complete on the Hudi timeline, cannot be "
            f"published in the {host.name} format ({why}) and cannot be undone ({kept.what})",
            f"Nothing was deleted. `hudi table repair {client.base_path}` rebuilds the {host.name} "
            "metadata, with this instant in it.",
            instant=target.requested_time,
        ) from kept
    # step fence
    try:
        # whatever state the format is in by now: a request may just have landed
        host.before_rollback(client, replace(target, state=State.INFLIGHT))
        held = host.find_publication(client, target)
    except HudiError as error:
        raise unknown(table, target, error) from error
    if held is not None:
        return held
    _log.warning("%s is rolled back: it cannot be published, for %s", target, why)
    rollback.roll_back(state, target)
    return None
