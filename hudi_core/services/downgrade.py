"""What becomes of a table that is brought to version 6.

Readers of version 6 take the instant in the name of a log for that of its base file, and know no
index definitions. So all logs are merged first, and the slices that had some are cleaned; the
metadata table goes, which writers of version 6 build anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.actions.compaction import pending_compactions
from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.services import ServicesConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table_parsers import NATIVE
from hudi_core.config.write import WriteConfig
from hudi_core.errors import TableServiceError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import read_definitions
from hudi_core.metadata.table import METADATA_FOLDER
from hudi_core.model.instant import COMPACTIONS, Action
from hudi_core.services.clean import clean_table
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.rollback import drop_unwritten
from hudi_core.txn.scheduled import is_run
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock

_KEPT: Final = frozenset({Action.CLEAN})
"""Pending actions that a writer of version 6 goes on with."""
_ALL_BUT_THE_LATEST: Final = {
    ServicesConfig.clean_policy.key: CleanPolicy.KEEP_LATEST_FILE_VERSIONS.value,
    ServicesConfig.file_versions_retained.key: "1",
}


def require_known_in_version_6(table: OpenTable) -> None:
    """Refuse a table that version 6 has no words for."""
    client, config = table.client, table.client.config
    reason = None
    if config.table_format != NATIVE:
        reason = f"has the format {config.table_format}"
    elif not client.files.is_plain or config.storage_move is not None:
        reason = "has files in other places than its folder"
    if reason is not None:
        raise UnsupportedTableError(
            client.base_path,
            f"{reason}, which version 6 does not know",
            "Convert it first, or leave it at version 8 or 9.",
        )


def require_nothing_pending(base_path: str, timeline: Timeline) -> None:
    """Refuse what a writer of version 6 would not go on with."""
    found = [one for one in timeline.pending() if one.action not in _KEPT]
    if found:
        times = ", ".join(map(str, found))
        raise TableServiceError(
            f"Actions of the table at {base_path} are pending ({times})",
            "Run them, or roll them back, first.",
            pending=[one.requested_time for one in found],
        )


def give_up_scheduled(table: OpenTable, lock: TableLock, config: WriteConfig) -> None:
    """Take compactions that nobody runs off the timeline.

    All logs are to be merged, and a compaction leaves the slices of such a plan out. Takes the lock
    itself.
    """
    with lock.held_by_service():
        state = TableState.load(table)
        for one in pending_compactions(state.timeline, COMPACTIONS):
            if one.is_scheduled and not is_run(state, one, config):
                drop_unwritten(state, one)


def clean_former_logs(table: OpenTable, lock: TableLock, options: Mapping[str, str]) -> None:
    """Delete past slices, where some have logs.

    Takes the lock itself.
    """
    if _has_logs(table):
        config = WriteConfig.from_options({**options, **_ALL_BUT_THE_LATEST})
        clean_table(table, lock, config)


def require_no_former_logs(table: OpenTable) -> None:
    """Refuse logs that the clean has left."""
    if _has_logs(table):
        raise TableServiceError(
            f"Past states of the table at {table.client.base_path} have log files, which readers "
            "of version 6 would take for later ones",
            "Delete the savepoints that keep them, and run it again.",
        )


def _has_logs(table: OpenTable) -> bool:
    return any(one.log_files for one in table.views().view().all_slices())


def drop_metadata_table(client: TableMetaClient) -> None:
    """Delete the metadata table and the definitions of its indexes."""
    storage, definitions = client.storage, read_definitions(client.storage, client.config).path
    keys = (ManagedKeys.metadata_partitions.key, ManagedKeys.metadata_partitions_inflight.key)
    if any(key in client.config.raw for key in keys):
        update_properties(storage, dict.fromkeys(keys))
    storage.delete_tree(METADATA_FOLDER)
    storage.delete(definitions)
