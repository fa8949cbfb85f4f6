"""Whether the table is still the one that was opened."""

from __future__ import annotations

from typing import Final

from hudi_core.config.stored_table import stored_config
from hudi_core.errors import CommitConflictError
from hudi_core.meta_client import TableMetaClient
from hudi_core.storage.properties_file import PROPERTIES_PATH

_FIXED: Final = (
    *("name", "table_type", "version", "table_format", "record_key_fields", "partition_fields"),
    *("partition_types", "keygen_type", "named_keygen", "ordering_fields", "merge_mode", "payload"),
    *("time_based", "named_merger", "delete_marker", "partial_update", "unavailable_value"),
    *("hive_style", "url_encode", "drop_partition_columns", "populate_meta_fields"),
    *("virtual_keys", "key_concatenator", "keeps_virtual_keys"),
)
"""What decides where a row goes and how it is stored."""


def require_same_table(opened: TableMetaClient, now: TableMetaClient) -> None:
    """Refuse a table other than the opened one; under the lock."""
    if now.config is opened.config:
        return
    where = f"{opened.base_path}/{PROPERTIES_PATH}"
    after, before = (stored_config(one.config.raw, where) for one in (now, opened))
    changed = [name for name in _FIXED if getattr(after, name) != getattr(before, name)]
    if changed:
        raise CommitConflictError(
            f"Another table has taken the place of the one at {opened.base_path} since it was "
            f"opened: its {', '.join(changed)} differ",
            "Open it again, and see whether the rows still belong there.",
        )
