"""Early refusal of writes that change what a live writer changes.

Two writers of one file group cannot both commit. The second finds the markers of the first before
it writes data; the check at the commit stays what decides. Hudi's option
``hoodie.write.concurrency.early.conflict.detection.enable``.
"""

from __future__ import annotations

from collections.abc import Collection

from hudi_core.errors import CommitConflictError, InvalidInstantTimeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import BaseFileName, FileGroupId, LogFileName
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.storage.temp_folders import TEMP_FOLDER
from hudi_core.txn import heartbeat
from hudi_core.txn.markers import Marker, Markers


def require_no_early_conflicts(
    client: TableMetaClient,
    instant: InstantTime,
    groups: Collection[FileGroupId],
    interval_ms: int,
    misses: int,
) -> None:
    """Refuse to change file groups that a live writer is changing.

    When it raises, no data was written.
    """
    storage = client.scratch
    for folder in storage.list_folders(TEMP_FOLDER) if groups else ():
        try:
            other = parse_instant_time(folder.rpartition("/")[2])
        except InvalidInstantTimeError:
            continue  # rows that wait for a write
        if other == instant or not heartbeat.is_alive(storage, other, interval_ms, misses):
            continue
        shared = {_group(one) for one in Markers(storage, other).list()}.intersection(groups)
        for one in shared:
            raise CommitConflictError(
                f"Instant {other}, which is under way, changes file group {one.file_id} of "
                f"partition {one.partition_path!r} as well",
                "No data was written; run it again when the other write has ended.",
                other=other,
                granularity="file_group",
            )


def _group(marker: Marker) -> FileGroupId:
    name = BaseFileName.parse(marker.file_name) or LogFileName.parse(marker.file_name)
    assert name is not None  # noqa: S101 - markers of other names are refused as forged
    return FileGroupId(marker.partition_path, name.file_id)
