"""The layout of a table: proved before the first write, then kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.footer import read_columns
from hudi_core.config.index_keys import IndexConfig, bucket_properties
from hudi_core.config.kinds import IndexType
from hudi_core.config.write import WriteConfig
from hudi_core.errors import OptionConflictError, UnsupportedTableError
from hudi_core.index.bucket import key_hashes
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.buckets import bucket_of_file
from hudi_core.model.files import FileSlice
from hudi_core.model.operation import Operation, Replaces
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import TableLock
from hudi_core.write.key_proof import form_to_keep, proven, require_same_form
from hudi_core.write.planning import require_bucket_groups


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


# --- buckets by stored keys -----------------------------------------------------------------------

# Hudi stores neither the index of a table nor the number of its buckets: every job states them. A
# wrong number sends rows to other file groups than those that hold their keys, and another index
# adds file groups that no bucket is. The hash of each stored key says which numbers of buckets it
# can be of.


_OWN_SETTINGS: Final = ".hoodie/.bucket_index"
"""Where Hudi keeps numbers of buckets by partition, and those of consistent hashing."""
_ENOUGH: Final = 256
"""Keys; with a wrong number each is in its bucket by chance, at most every other."""
_OF_EACH: Final = 64
_MOST_BUCKETS: Final = 100_000
"""The id of a group begins with eight digits of its bucket; that of others does so by chance."""


def require_same_buckets(client: TableMetaClient, slices: Sequence[FileSlice]) -> None:
    """Refuse a write by other buckets than the table's.

    Refused are: another index than the table's buckets, another number of them, and a number of
    buckets per partition. ``slices`` are the latest ones.
    """
    own = next(iter(client.storage.list_folders(_OWN_SETTINGS)), None)
    if own is not None:
        raise UnsupportedTableError(
            client.base_path,
            f"keeps numbers of buckets of its own in {own}",
            "Write to it with Apache Hudi, or copy its rows into a new table.",
        )
    buckets = client.config.buckets
    if buckets is None:
        _require_no_buckets(client, slices)
        return
    require_bucket_groups(slices, buckets, client.base_path)
    fitting = fitting_number(client, slices, buckets.fields)
    if fitting % buckets.number:
        raise UnsupportedTableError(
            client.base_path,
            f"has no {buckets.number} buckets by {', '.join(buckets.fields)}: stored keys are in "
            "other file groups than their hashes say"
            + (f"; they fit {fitting} buckets" if fitting > _last_bucket(slices) else ""),
            f"Give {IndexConfig.bucket_number.key} and {IndexConfig.bucket_fields.key} as the "
            "table was written with.",
        )


def fitting_number(
    client: TableMetaClient, slices: Sequence[FileSlice], fields: tuple[str, ...]
) -> int:
    """The greatest number of buckets that stored keys fit.

    They fit each of its divisors too; 0 where they fit any number.
    """
    found = seen = 0
    for keys, bucket in _keys_of_buckets(client, slices):
        apart = np.abs(key_hashes(keys, fields).astype(np.int64) - bucket)
        found = math.gcd(found, *apart.tolist())
        seen += len(keys)
        if seen >= _ENOUGH:
            break
    return found


def _keys_of_buckets(
    client: TableMetaClient, slices: Sequence[FileSlice]
) -> Iterator[tuple[pa.StringArray, int]]:
    for one in slices:
        bucket = bucket_of_file(one.file_id)
        if one.base_file is None or bucket is None:
            continue
        rows = read_columns(client, one.base_file.path, [RECORD_KEY], _OF_EACH)
        yield rows.column(RECORD_KEY).combine_chunks().cast(pa.string()), bucket


def _require_no_buckets(client: TableMetaClient, slices: Sequence[FileSlice]) -> None:
    """Refuse to add groups of another index to a bucket table."""
    numbers = [bucket_of_file(one.file_id) for one in slices]
    if not numbers or any(one is None or one >= _MOST_BUCKETS for one in numbers):
        return
    config = client.config
    fitting = fitting_number(client, slices, config.record_key_fields)
    by_chance = 0 < fitting <= _last_bucket(slices)
    if by_chance and len(config.record_key_fields) == 1:
        return
    number = f", {fitting} of them as stored keys say" if fitting and not by_chance else ""
    raise UnsupportedTableError(
        client.base_path,
        f"has buckets{number}, and the write another index, whose file groups would belong to none",
        f"Set {IndexConfig.index_type.key}={IndexType.BUCKET.value} and "
        f"{IndexConfig.bucket_number.key} as the table was written with.",
    )


def _last_bucket(slices: Sequence[FileSlice]) -> int:
    return max((bucket_of_file(one.file_id) or 0 for one in slices), default=0)
