"""Indexes: which incoming rows are stored already, and in which file groups."""

from __future__ import annotations

from hudi_core.config.kinds import IndexType
from hudi_core.index.base import Index
from hudi_core.index.bloom import BloomIndex
from hudi_core.index.bucket import BucketIndex
from hudi_core.index.simple import SimpleIndex
from hudi_core.model.buckets import Buckets

__all__ = ["Index", "index_of"]


def index_of(kind: IndexType, buckets: Buckets | None) -> Index:
    """Return the index that finds keys as an option says.

    Parameters
    ----------
    kind
        A global index finds keys as its namesake does; among more files, which is not its concern.
    buckets
        The table's buckets, which it then has whatever the option says.
    """
    if buckets is not None:
        return BucketIndex(buckets)
    if kind in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM):
        return BloomIndex()
    return SimpleIndex()
