"""The table services that follow a commit."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.config.services import ServicesConfig
from hudi_core.services.archive import archive_if_due
from hudi_core.services.clean import clean_if_due
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock


@dataclass(frozen=True, slots=True)
class InlineServices:
    """Cleans and archives where it is due; a callback of a transaction."""

    config: ServicesConfig

    def __call__(self, state: TableState, lock: TableLock) -> TableState:
        """Run the services; returns the table after them."""
        if not self.config.enabled:
            return state
        return archive_if_due(clean_if_due(state, lock, self.config), lock, self.config)
