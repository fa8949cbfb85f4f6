"""Output of `hudi metadata`, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudi_core.meta_client import TableMetaClient
    from hudi_core.metadata.records import RecordLocation
    from hudi_core.model.difference import Difference
    from hudi_core.model.files import FileStatus
    from hudi_core.services.metadata import MetadataStats


def stats_document(stats: MetadataStats) -> dict[str, Any]:
    """Return the numbers under RFC-15's names, and those of each partition."""
    sizes = stats.partitions.values()
    return {
        "partitionCount": stats.partition_count,
        "lastCompactionTimestamp": stats.last_compaction,
        "isInSync": stats.is_in_sync,
        "logFileCount": sum(one.log_files for one in sizes),
        "totalBaseFileSizeInBytes": sum(one.base_bytes for one in sizes),
        "totalLogFileSizeInBytes": sum(one.log_bytes for one in sizes),
        "baseFileCount": sum(one.base_files for one in sizes),
        "partitions": {
            name: {
                "baseFileCount": one.base_files,
                "logFileCount": one.log_files,
                "totalBaseFileSizeInBytes": one.base_bytes,
                "totalLogFileSizeInBytes": one.log_bytes,
            }
            for name, one in stats.partitions.items()
        },
    }


def files_document(files: Sequence[FileStatus]) -> list[dict[str, Any]]:
    """Return names and sizes, by name."""
    return [{"name": one.name, "size": one.size} for one in sorted(files, key=lambda one: one.name)]


def finding_document(finding: Difference) -> dict[str, Any]:
    """A difference between the metadata table and the files, as JSON."""
    return {
        "partition": finding.source,
        "subject": finding.subject,
        "expected": finding.expected,
        "listed": finding.found,
    }


def finding_line(finding: Difference) -> str:
    """The same in words."""
    stated = "does not know it" if finding.found is None else f"says {finding.found}"
    actual = "there is no such thing" if finding.expected is None else f"it is {finding.expected}"
    return f"{finding.source}: {finding.subject}: the metadata table {stated}, {actual}"


def locations_document(
    client: TableMetaClient, keys: Sequence[str], found: Mapping[str, Sequence[RecordLocation]]
) -> list[dict[str, Any]]:
    """Return the locations of keys, in the given order.

    A key that is nowhere has a location without values.
    """
    return [
        {
            "record_key": key,
            "partition": where.partition_name if where else None,
            "file_group": where.file_id if where else None,
            "instant": _instant(client, where.instant_ms) if where else None,
        }
        for key in keys
        for where in found.get(key, [None])
    ]


def _instant(client: TableMetaClient, millis: int | None) -> str | None:
    if millis is None:
        return None
    return client.config.zone.digits(datetime.fromtimestamp(millis / 1000, UTC))
