"""Merges files of an LSM history, and deletes unused ones.

Ten files of one level become one of the next, so that an instant is rewritten once per level and a
history of n archivals has about log(n) files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from hudi_core.actions.history import HistorySnapshot, HistoryWriter
from hudi_core.errors import CorruptMetadataError
from hudi_core.model.files import join_path
from hudi_core.timeline.lsm_history import (
    HistoryFile,
    HistoryFileName,
    manifest_number,
    manifest_path,
    read_manifest,
)

TOP_LEVEL: Final = 9
"""A level is one digit of a file's name; files of the last one are not merged."""
KEPT_VERSIONS: Final = 3
"""Manifests that stay for readers that have begun with them, besides those of one run."""


def compact(
    writer: HistoryWriter, snapshot: HistorySnapshot, batch_size: int, target_bytes: int
) -> HistorySnapshot:
    """Merge full levels; return the resulting version.

    A level is full with ``batch_size`` files.

    Each merge is a version of its own. A run that dies leaves at most an unreferenced file.

    ``batch_size`` is at least 2. Files that would together be larger than ``target_bytes`` are left
    as they are.
    """
    for level in range(TOP_LEVEL):
        while group := _group(snapshot.files, level, batch_size, target_bytes):
            name = HistoryFileName(
                min(file.name.first for file in group),
                max(file.name.last for file in group),
                level + 1,
            )
            parts = (writer.read(file, bodies=True) for file in group)
            merged = writer.put_file(snapshot, name, parts)
            left = [file for file in snapshot.files if file not in group]
            snapshot = writer.publish(snapshot, [*left, merged])
    return snapshot


def _group(
    files: Sequence[HistoryFile], level: int, batch_size: int, target_bytes: int
) -> Sequence[HistoryFile]:
    """Return adjacent oldest files of a level to merge.

    Empty for none.
    """
    candidates = sorted(file for file in files if file.name.level == level)
    if len(candidates) < batch_size:
        return ()
    group: list[HistoryFile] = []
    for file in candidates:
        if sum(one.size for one in group) + file.size > target_bytes:
            if len(group) > 1:
                break
            # too large to be merged with what comes after it
            group.clear()
            if file.size > target_bytes:
                continue
        group.append(file)
        if len(group) == batch_size:
            break
    return group if len(group) > 1 else ()


def prune(writer: HistoryWriter, snapshot: HistorySnapshot, published: int) -> None:
    """Delete old manifests, and history files without a manifest.

    Only after a version was published in the same hold of the lock: what an archiver that has lost
    its lock may just have written is then of no use to it, and may go.

    ``published`` is how many versions this run made: as many manifests stay in addition, so that
    readers keep the time of three archivals.
    """
    storage, folder = writer.storage, writer.folder
    names = [status.name for status in storage.list(folder)]
    versions = sorted(
        (number for name in names if (number := manifest_number(name)) is not None), reverse=True
    )
    kept = [number for number in versions if number <= snapshot.version]
    kept = kept[: KEPT_VERSIONS + max(published - 1, 0)]
    needed = set(snapshot.files)
    for number in kept:
        # no reader can use a damaged old manifest, so it needs no file
        with contextlib.suppress(CorruptMetadataError):
            needed.update(read_manifest(storage, folder, number))
    for number in versions:
        if number not in kept:
            storage.delete(manifest_path(folder, number))
    held = {file.name for file in needed}
    for name in names:
        parsed = HistoryFileName.parse(name)
        if parsed is not None and parsed not in held:
            storage.delete(join_path(folder, name))
