"""Metadata table partitions as Arrow tables, for people and tools."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_core.errors import CorruptMetadataError, UnsupportedTableError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.partitions.base import Reading
from hudi_core.metadata.partitions.registry import partition_of
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.protocols import TimelineView


def metadata_partition(client: TableMetaClient, timeline: TimelineView, partition: str) -> pa.Table:
    """A partition of the metadata table as Arrow.

    Its columns are those of its kind's ``arrow_schema``.
    """
    _require(client, partition, StoredPartitions.of(client.config).complete)
    try:
        snapshot = MetadataSnapshot.open(client, timeline)
        records = list(snapshot.scan(partition))
    except CorruptMetadataError:
        # it may have been dropped since the table was opened
        _require(client, partition, StoredPartitions.of(client.as_stored().config).complete)
        raise
    found = partition_of(partition)
    if found is None:
        raise UnsupportedTableError(
            client.base_path, f"keeps {partition}, whose records are not known", "Ask Apache Hudi."
        )
    return found.to_arrow(records, Reading(client, timeline, snapshot.root))


def _require(client: TableMetaClient, partition: str, known: Sequence[str]) -> None:
    if partition not in known:
        raise UnsupportedTableError(
            client.base_path,
            f"keeps no {partition!r} in its metadata table",
            f"It keeps {', '.join(known)}." if known else "It has no metadata table.",
        )
