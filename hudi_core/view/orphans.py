"""Orphans: files in a table's folder that belong to nothing.

Other engines began and left them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_core.model.files import BaseFile, BaseFileName
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import Storage, TimelineView
from hudi_core.storage.federated import FederatedStorage
from hudi_core.view.file_system import FileSystemView, ReadCommit

_DATA: Final = (".parquet", ".orc")
_HIDDEN: Final = (".", "_")
"""How the names of folders begin that hold no rows: metadata of Hudi, of formats, of engines."""


def foreign_data_files(storage: Storage) -> Iterator[str]:
    """Yield data files without a Hudi name, in order; one listing.

    Files that have one are distinguished by the timeline; see :mod:`hudi_core.view.orphans`.
    """
    for status in storage.list("", recursive=True):
        if _is_data(status.path) and BaseFileName.parse(status.name) is None:
            yield status.path
    if isinstance(storage, FederatedStorage):
        # no reader looks for them where they lie, whatever their names
        yield from filter(_is_data, storage.strays())


def _is_data(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith(_DATA) and not any(folder.startswith(_HIDDEN) for folder in folders)


# --- base files that the write in their name does not record -------------------------------------


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
