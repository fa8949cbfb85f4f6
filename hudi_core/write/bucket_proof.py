"""Buckets of a table, proved by its stored keys.

Hudi stores neither the index of a table nor the number of its buckets: every job states them. A
wrong number sends rows to other file groups than those that hold their keys, and another index adds
file groups that no bucket is. The hash of each stored key says which numbers of buckets it can be
of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.footer import read_columns
from hudi_core.config.index_keys import IndexConfig
from hudi_core.config.kinds import IndexType
from hudi_core.errors import UnsupportedTableError
from hudi_core.index.bucket import key_hashes
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.buckets import bucket_of_file
from hudi_core.model.files import FileSlice
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.write.bucket_planning import require_bucket_groups

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
