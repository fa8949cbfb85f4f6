"""What the metadata table says of a partition's files, compared with the storage; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hudi_core.model.files import BaseFileName, FileStatus, LogFileName, PartitionPath
from hudi_core.model.protocols import TimelineView


@dataclass(frozen=True, slots=True)
class Difference:
    """One file about which metadata table and storage disagree.

    Attributes
    ----------
    partition_path, file_name
        The file.
    listed_size, stored_size
        Bytes, as the metadata table has it and as it is; ``None`` where there is no such file.
    """

    partition_path: PartitionPath
    file_name: str
    listed_size: int | None
    stored_size: int | None

    def __str__(self) -> str:
        where = f"{self.file_name} of partition {self.partition_path!r}"
        if self.stored_size is None:
            return f"{where} is listed and not stored"
        if self.listed_size is None:
            return f"{where} is stored and not listed"
        return f"{where} has {self.stored_size} bytes and is listed with {self.listed_size}"


def compare_files(
    partition: PartitionPath,
    listed: Sequence[FileStatus],
    stored: Sequence[FileStatus],
    timeline: TimelineView,
) -> Iterator[Difference]:
    """Yield the differences of one partition, by name.

    Parameters
    ----------
    partition
        Its path.
    listed, stored
        Its files, as the metadata table has them and as the storage has them.
    timeline
        Tells committed files, which alone have to be listed. A file that the metadata table has of
        a later instant is no difference.
    """
    sizes = {file.name: file.size for file in listed if _counts(file.name, timeline)}
    found = {file.name: file.size for file in stored if _counts(file.name, timeline)}
    for name in sorted(sizes.keys() | found.keys()):
        if sizes.get(name) != found.get(name):
            yield Difference(partition, name, sizes.get(name), found.get(name))


def _counts(name: str, timeline: TimelineView) -> bool:
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    return parsed is not None and timeline.is_committed(parsed.instant)
