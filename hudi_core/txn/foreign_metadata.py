"""Drops metadata tables that other engines made.

One of a table with storage paths lists the table's own folder, where none of the table's files
are: it is worth nothing, and without it the next writer makes a new one.
"""

from __future__ import annotations

from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import ForeignMetadataError
from hudi_core.metadata.table import METADATA_FOLDER
from hudi_core.storage.properties_file import update_properties
from hudi_core.txn.state import TableState


def without_foreign_metadata(state: TableState) -> TableState:
    """The state without such a metadata table.

    The caller holds the table's lock. Costs nothing where there is none: its writer loads the
    metadata table anyway.
    """
    if state.client.files.is_plain:
        return state
    try:
        _ = state.metadata
    except ForeignMetadataError:
        storage = state.client.storage
        named = (ManagedKeys.metadata_partitions.key, ManagedKeys.metadata_partitions_inflight.key)
        properties = update_properties(storage, dict.fromkeys(named))
        storage.delete_tree(METADATA_FOLDER)
        return state.with_properties(properties)
    return state
