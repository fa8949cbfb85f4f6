"""What readers see of record keys that are virtual (RFC-21).

``_hoodie_record_key`` reads null, whatever a file holds. To compare rows their keys are made.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.config.read import ReadConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.meta_client import TableMetaClient
from hudi_core.read.plan import PlannedSlice
from hudi_core.schema.table_schema import RECORD_KEY

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VirtualKeys:
    """Record keys of a scan that files may lack.

    ``are_hidden``: users read null; not so for a table that stores keys again, whose older files
    lack them.
    """

    made: FileKeys
    are_hidden: bool

    def hidden_in(self, rows: pa.Table) -> pa.Table:
        """Rows as users see them."""
        if not self.are_hidden or RECORD_KEY not in rows.column_names:
            return rows
        place = rows.schema.get_field_index(RECORD_KEY)
        field = rows.schema.field(place)
        return rows.set_column(place, field, pa.nulls(rows.num_rows, field.type))

    def added_to(self, rows: pa.Table, field: pa.Field, path: str, makes: bool) -> pa.Table:
        """Rows with the column of the key.

        Without ``makes`` the column is null.
        """
        made = self.made.made(rows, path) if makes else pa.nulls(rows.num_rows, field.type)
        return rows.append_column(field, made)


def hides_keys(client: TableMetaClient) -> bool:
    """Whether users of a table read null for the record key."""
    if client.config.makes_keys:
        return True
    return ReadConfig.ignores_stored_keys.read(client.options)


def virtual_keys(
    client: TableMetaClient, schema: pa.Schema, files: Sequence[PlannedSlice]
) -> VirtualKeys | None:
    """How a scan makes record keys; ``None`` where it reads them.

    Of ``files`` those that hold keys which are ignored are warned of. A table that ignores stored
    keys and has no columns to make others from is refused.
    """
    is_hidden = hides_keys(client)
    if RECORD_KEY not in schema.names or not (is_hidden or client.config.keys_differ_by_file):
        return None
    warn_of_ignored_keys(client, files)
    return VirtualKeys(FileKeys.made_by(client), is_hidden)


def warn_of_ignored_keys(client: TableMetaClient, files: Sequence[PlannedSlice]) -> None:
    """Warn once of files with stored keys that are ignored."""
    config = client.config
    since = ManagedKeys.virtual_since.read(config.raw)
    if not config.virtual_keys or config.keeps_virtual_keys or since is None:
        return
    older = sum(file.instant < since for file in files)
    if older:
        _log.warning(
            "%d files of %s hold %s from before keys were virtual: it is ignored; "
            "`hudi table rewrite-keys` writes them again without it",
            older,
            client.base_path,
            RECORD_KEY,
        )
