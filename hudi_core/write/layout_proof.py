"""The layout of a table: proved before the first write, then kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hudi_core.config.stored_form import bucket_properties
from hudi_core.config.write import WriteConfig
from hudi_core.errors import OptionConflictError, UnsupportedTableError
from hudi_core.model.operation import Operation, Replaces
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import TableLock
from hudi_core.write.bucket_proof import require_same_buckets
from hudi_core.write.key_proof import form_to_keep, proven, require_same_form


@dataclass(frozen=True, slots=True)
class ProvenLayout:
    """A table whose layout is known.

    ``to_keep`` are the properties by which later writes know the layout; empty where they are
    stored already.
    """

    table: OpenTable
    to_keep: Mapping[str, str] = field(default_factory=dict)

    def keep(self, lock: TableLock) -> None:
        """Store the properties, as soon as a write uses the layout.

        ``OptionConflictError``: another writer has stored another layout first.
        """
        if not self.to_keep:
            return
        storage = self.table.client.storage
        with lock.held():
            present = read_properties(storage)
            for key, value in self.to_keep.items():
                if present.get(key, value) != value:
                    raise OptionConflictError(key, value, present[key])
            update_properties(storage, self.to_keep)


def proven_layout(
    table: OpenTable, config: WriteConfig, operation: Operation, schema: TableSchema
) -> ProvenLayout:
    """The layout that stored rows show: keys, partitions and buckets.

    A table that was made here, or written before, costs nothing. Of any other one the files are
    listed, and a few are read in part.

    ``schema`` is the table's before the write.
    """
    client = table.client
    buckets = {name: text for name, text in bucket_properties(client.config.buckets) if text}
    if buckets.keys() <= client.config.raw.keys():
        buckets = {}
    knows_keys = client.config.knows_its_keys
    if knows_keys:
        require_same_form(client.config, schema)
    # then no stored row will be left, but other writers go on making their keys
    replaces_all = operation.replaces is Replaces.TABLE
    if knows_keys and (replaces_all or not buckets):
        return ProvenLayout(table, buckets)
    slices = table.views().view().latest_slices()
    if not replaces_all:
        require_same_buckets(client, slices)
    if knows_keys:
        return ProvenLayout(table, buckets)
    try:
        found = proven(client, slices, schema, config)
    except UnsupportedTableError:
        if not replaces_all:
            raise
        return ProvenLayout(table, buckets)  # which is the way out
    proven_table = replace(table, client=replace(client, config=found))
    return ProvenLayout(proven_table, {**buckets, **form_to_keep(found, schema)})
