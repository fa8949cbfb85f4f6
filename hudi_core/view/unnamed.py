"""Base files that the write in their name does not record."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_core.model.files import BaseFile
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.view.file_system import FileSystemView
from hudi_core.view.replaced import ReadCommit


def unnamed_files(
    view: FileSystemView, timeline: TimelineView, read_commit: ReadCommit
) -> Iterator[tuple[BaseFile, Instant]]:
    """Yield base files that their write's metadata does not name.

    Who lists folders takes such a file for a part of the table. Files of archived writes are left
    out, as their commit metadata is not read any more; so are those that the view ignores, which
    are among its duplicates.
    """
    writes = {one.requested_time: one for one in timeline.completed_writes()}
    named: dict[Instant, set[str]] = {}
    for found in view.all_slices():
        file, instant = found.base_file, writes.get(found.base_instant)
        if file is None or instant is None:
            continue
        if instant not in named:
            named[instant] = {stat.path for stat in read_commit(instant).stats if stat.path}
        if file.path not in named[instant]:
            yield file, instant
