"""Indexes: which incoming rows are stored already, and in which file groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.config.extension_points import NamedIndex
from hudi_core.config.kinds import IndexType
from hudi_core.index.base import Index, SimpleIndex
from hudi_core.index.bloom import BloomIndex
from hudi_core.index.bucket import BucketIndex
from hudi_core.index.named import named_index
from hudi_core.model.buckets import Buckets

__all__ = ["Index", "index_of"]


_INDEXES: Final[Mapping[IndexType, type[BloomIndex] | type[SimpleIndex]]] = {
    IndexType.SIMPLE: SimpleIndex,
    IndexType.GLOBAL_SIMPLE: SimpleIndex,
    IndexType.BLOOM: BloomIndex,
    IndexType.GLOBAL_BLOOM: BloomIndex,
    # a table without buckets
    IndexType.BUCKET: SimpleIndex,
    # in the files that the metadata table names, and in all where it has no such index
    IndexType.RECORD_INDEX: SimpleIndex,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX: SimpleIndex,
    IndexType.RECORD_LEVEL_INDEX: SimpleIndex,
}


def index_of(kind: IndexType | NamedIndex, buckets: Buckets | None) -> Index:
    """Return the index that finds keys as an option says.

    A global index finds keys as its namesake does, only among more files. With ``buckets`` the
    table has a bucket index whatever the option says.
    """
    if buckets is not None:
        return BucketIndex(buckets)
    return _INDEXES[kind]() if isinstance(kind, IndexType) else named_index(kind.value)
