"""The layout of a table with the bucket index.

How many buckets a partition has, and of which key fields.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Final

from hudi_core.model.files import FileId, PartitionPath
from hudi_core.model.instant_time import InstantTime

_BUCKET: Final = re.compile(r"[0-9]{8}")
_NAMESPACE: Final = uuid.UUID("6a1f0c0e-62e5-5f0b-8a4e-0d4d0f8c4b11")


@dataclass(frozen=True, slots=True)
class Buckets:
    """Number of buckets per partition, and the fields they are hashed from.

    Every bucket has at most one file group.

    Attributes
    ----------
    number
        Buckets of a partition.
    fields
        The record key fields whose values choose the bucket; not empty.
    """

    number: int
    fields: tuple[str, ...]


def bucket_of_file(file_id: FileId) -> int | None:
    """Return the bucket in a file group's id; ``None`` without one.

    The bucket is the first eight digits of the id.

    Source: Hudi's ``BucketIdentifier.bucketIdFromFileId``.
    """
    match = _BUCKET.match(file_id)
    return int(match[0]) if match else None


def bucket_file_id(instant: InstantTime, partition_path: PartitionPath, bucket: int) -> FileId:
    """Return the id of a bucket's new file group.

    Derived, not drawn, so that a task that is run again makes the same file group; and of the
    instant, so that a bucket whose group was replaced gets another one.
    """
    derived = str(uuid.uuid5(_NAMESPACE, f"{instant}/{bucket}/{partition_path}"))
    return FileId(f"{bucket:08d}{derived[8:]}-0")
