"""Compares a partition's files in metadata table and storage; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudi_core.metadata.partition_types import FILES
from hudi_core.model.difference import Difference
from hudi_core.model.files import BaseFileName, FileStatus, LogFileName, PartitionPath
from hudi_core.model.protocols import TimelineView


def compare_files(
    partition: PartitionPath,
    listed: Sequence[FileStatus],
    stored: Sequence[FileStatus],
    timeline: TimelineView,
) -> Iterator[Difference]:
    """Yield the differences of one partition, by name.

    ``listed`` is what the metadata table has, ``stored`` what the storage has. Only committed files
    have to be listed; a listed file of an instant later than ``timeline`` is no difference.
    """
    sizes = {file.name: file.size for file in listed if _counts(file.name, timeline)}
    found = {file.name: file.size for file in stored if _counts(file.name, timeline)}
    for name in sorted(sizes.keys() | found.keys()):
        if sizes.get(name) != found.get(name):
            subject = f"{name} of partition {partition!r}"
            yield Difference(FILES, subject, _bytes(found.get(name)), _bytes(sizes.get(name)))


def _counts(name: str, timeline: TimelineView) -> bool:
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    return parsed is not None and timeline.is_committed(parsed.instant)


def _bytes(size: int | None) -> str | None:
    return None if size is None else f"{size} bytes"
