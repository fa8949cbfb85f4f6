"""Assigns rows to the file groups of their buckets.

Whatever the size of the bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hudi_core.errors import UnsupportedTableError
from hudi_core.model.buckets import Buckets, bucket_file_id, bucket_of_file
from hudi_core.model.files import BaseFile, FileId, FileSlice, PartitionPath
from hudi_core.model.instant_time import InstantTime
from hudi_core.write.planning import GroupWrite


class BucketAssignment:
    """Assigns rows of each partition to their buckets' file groups.

    New file ids derive from ``instant``.
    """

    def __init__(self, buckets: Buckets, instant: InstantTime, base_path: str) -> None:
        self._buckets = buckets
        self._instant = instant
        self._base_path = base_path

    def assign(
        self,
        partition_path: PartitionPath,
        base_files: Sequence[BaseFile],
        located: Mapping[int, int],
        inserts: Mapping[int, int],
    ) -> list[GroupWrite]:
        """Return the writes of one partition.

        ``base_files`` are the latest ones, in the order of the candidates; ``located`` counts
        stored rows that incoming rows meet, by candidate; ``inserts`` counts new rows by bucket,
        and these are in the order of their buckets.
        """
        ids = [file.name.file_id for file in base_files]
        groups = bucket_groups(ids, self._buckets, partition_path, self._base_path)
        candidates = {bucket: ids.index(file_id) for bucket, file_id in groups.items()}
        changed = {bucket for bucket, one in candidates.items() if located.get(one)}
        writes = []
        placed = 0
        for bucket in sorted(changed | inserts.keys()):
            candidate = candidates.get(bucket)
            updates = 0 if candidate is None else located.get(candidate, 0)
            added = inserts.get(bucket, 0)
            new_id = bucket_file_id(self._instant, partition_path, bucket)
            writes.append(
                GroupWrite(
                    partition_path,
                    groups.get(bucket, new_id),
                    None if candidate is None else base_files[candidate],
                    candidate if updates else None,
                    updates,
                    placed,
                    added,
                )
            )
            placed += added
        return writes


def bucket_groups(
    file_ids: Iterable[FileId], buckets: Buckets, partition_path: PartitionPath, base_path: str
) -> dict[int, FileId]:
    """Return the file groups of a partition's existing buckets."""
    groups: dict[int, FileId] = {}
    for file_id in file_ids:
        bucket = bucket_of_file(file_id)
        if bucket is None or bucket >= buckets.number:
            raise UnsupportedTableError(
                base_path,
                f"has file group {file_id} in partition {partition_path!r}, which is none of its "
                f"{buckets.number} buckets",
                "It was written with another index, or with other buckets. Give "
                "hoodie.bucket.index.num.buckets as the table was written with, or another "
                "hoodie.index.type.",
            )
        if bucket in groups:
            raise UnsupportedTableError(
                base_path,
                f"has two file groups for bucket {bucket} of partition {partition_path!r}: "
                f"{groups[bucket]} and {file_id}",
                "Roll back the later of the writes that made them.",
            )
        groups[bucket] = file_id
    return groups


def require_bucket_groups(slices: Iterable[FileSlice], buckets: Buckets, base_path: str) -> None:
    """Refuse a table with file groups that are no such buckets."""
    by_partition: dict[PartitionPath, list[FileId]] = {}
    for slice_ in slices:
        by_partition.setdefault(slice_.partition_path, []).append(slice_.file_id)
    for path, file_ids in by_partition.items():
        bucket_groups(file_ids, buckets, path, base_path)
