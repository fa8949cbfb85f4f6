"""The state on which a table service that is asked for runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_core.config.write import WriteConfig
from hudi_core.metadata.maintenance.lifecycle import ensure_metadata_table
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.client import HeldMetadata
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.recover import recover
from hudi_core.txn.same_table import require_same_table
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock


@contextmanager
def locked_for_service(
    table: OpenTable, lock: TableLock, config: WriteConfig, *, over_foreign: bool = False
) -> Iterator[TableState]:
    """Hold a table's lock for a service, after recovery.

    A rebuild of the metadata table that died is finished where nothing else lists the files.
    ``over_foreign``: commits of other writers to the format may be there.
    """
    table.as_stored().client.require_writable()  # what is refused leaves no lock behind
    with lock.held_by_service() as hold:
        state = TableState.load(table, held=HeldMetadata())
        require_same_table(table.client, state.client)
        state.client.require_writable()
        state = recover(state, config)
        client = state.client
        if not client.files.is_plain and StoredPartitions.of(client.config).is_rebuilding:
            state = state.with_client(
                ensure_metadata_table(client, config.metadata, state.metadata)
            )
        if not over_foreign:
            state.table.host.open(state.client)
        yield state
        hold.is_done = True


def planned_for_service(table: OpenTable) -> TableState:
    """Present state of a table, without lock, to plan a service on."""
    now = table.as_stored()
    now.client.require_writable()
    return TableState(now).with_timeline(Timeline.of(now.timeline().instants))
