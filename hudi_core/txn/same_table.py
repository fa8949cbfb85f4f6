"""Whether the table is still the one that was opened."""

from __future__ import annotations

import contextlib
from typing import Final

from hudi_core.config.properties import MAX_BYTES, parse_properties
from hudi_core.config.stored_table import stored_config
from hudi_core.errors import CommitConflictError, CorruptMetadataError, PathNotFoundError
from hudi_core.storage.properties_file import PROPERTIES_PATH, read_properties
from hudi_core.table_handle import OpenTable

_FIXED: Final = (
    *("name", "table_type", "version", "table_format", "record_key_fields", "partition_fields"),
    *("partition_types", "keygen_type", "time_based", "ordering_fields", "merge_mode", "payload"),
    *("delete_marker", "partial_update", "unavailable_value", "hive_style", "url_encode"),
    *("drop_partition_columns", "populate_meta_fields"),
)
"""What decides where a row goes and how it is stored."""


def require_same_table(table: OpenTable) -> None:
    """Refuse a table that is not the one that was opened; runs under the table's lock.

    Raises
    ------
    NotATableError, CommitConflictError
        It was dropped, or another one has taken its place.
    """
    client = table.client
    where = f"{client.base_path}/{PROPERTIES_PATH}"
    with contextlib.suppress(CorruptMetadataError, PathNotFoundError):
        data = client.storage.read(PROPERTIES_PATH, MAX_BYTES)
        if parse_properties(data, where) == client.config.raw:
            return
    stored = read_properties(client.storage)  # from the backup, if need be
    now, then = (stored_config(dict(one), where) for one in (stored, client.config.raw))
    changed = [name for name in _FIXED if getattr(now, name) != getattr(then, name)]
    if changed:
        raise CommitConflictError(
            f"Another table has taken the place of the one at {client.base_path} since it was "
            f"opened: its {', '.join(changed)} differ",
            "Open it again, and see whether the rows still belong there.",
        )
