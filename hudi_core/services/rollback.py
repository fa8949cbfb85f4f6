"""The rollback that an operator asks for."""

from __future__ import annotations

from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError, InstantNotFoundError, TableServiceError
from hudi_core.model.instant import WRITE_ACTIONS, Instant
from hudi_core.model.instant_time import parse_instant_time
from hudi_core.txn import rollback
from hudi_core.txn.open_table import OpenTable
from hudi_core.txn.recovery import is_writing, refuse_unknown_actions
from hudi_core.txn.table_lock import TableLock


def roll_back_instant(
    table: OpenTable, lock: TableLock, config: WriteConfig, instant: str
) -> Instant:
    """Undo the last completed write, or a pending write whose writer is gone.

    Parameters
    ----------
    instant
        Requested time of the write.

    Returns
    -------
    Instant
        The completed rollback.

    Raises
    ------
    InstantNotFoundError
        No write of that time is on the active timeline.
    TableServiceError
        Later writes build on it.
    ConcurrentWriterError
        Its writer, or another one, is alive.
    """
    client = table.client
    time = parse_instant_time(instant)
    with lock.held():
        client.require_writable()
        refuse_unknown_actions(table)
        timeline = client.timeline()
        target = timeline.find(time)
        if target is None or target.action not in WRITE_ACTIONS:
            raise InstantNotFoundError(instant, f"the active timeline of {client.base_path}")
        for pending in timeline.pending():
            if pending.action in WRITE_ACTIONS and is_writing(table, pending, config):
                raise ConcurrentWriterError(client.base_path, pending.requested_time)
        if target.is_completed:
            later = [
                found.requested_time
                for found in timeline.completed_writes()
                if found.effective_completion_time > target.effective_completion_time
            ]
            if later:
                raise TableServiceError(
                    f"Instant {instant} cannot be rolled back: {', '.join(later)} came after it",
                    "Roll the later instants back first, the newest at first.",
                    instant=instant,
                    later=later,
                )
        return rollback.roll_back(table, target)
