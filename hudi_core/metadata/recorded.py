"""What completed instants of the metadata table say of its files.

It is asked where a file may have been lost or cut off; see :mod:`hudi_core.metadata.completeness`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata
from hudi_core.model.files import BaseFileName, FileId, LogFileName
from hudi_core.model.instant import Action, Instant

_MAX_KNOWN: Final = 1024
BULK_INSERT: Final = "BULK_INSERT_PREPPED"
"""Operation of the deltacommits that build a partition."""
OTHER_GROUPS: Final = "hudi.core.other-groups"
"""Key of a compaction's extra metadata: by partition the ids of the groups that it left alone."""


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """What a completed instant says.

    Attributes
    ----------
    sizes
        Bytes of the files that it wrote, by path.
    others
        File groups that it found and wrote nothing of, by partition.
    builds
        Partitions that it wrote the first files of.
    is_bare_build
        Whether it built a partition that has no file group yet.
    """

    sizes: Mapping[str, int]
    others: Mapping[str, Sequence[str]]
    builds: frozenset[str]
    is_bare_build: bool

    def files(self, partition: str) -> Iterator[tuple[str, FileId, int]]:
        """Yield name, file group and bytes of the files of a partition."""
        for path, size in self.sizes.items():
            folder, _, name = path.rpartition("/")
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if folder == partition and parsed is not None:
                yield name, parsed.file_id, size


_known: dict[tuple[str, str, str], RecordedFiles] = {}
_lock: Final = Lock()


def other_groups(paths: Iterable[str], touched: Collection[str]) -> str:
    """Extra metadata of a compaction: file groups that it does not touch.

    Parameters
    ----------
    paths
        The files of the partitions that it works on.
    touched
        Ids of the file groups that it compacts.
    """
    found: dict[str, set[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        parsed = BaseFileName.parse(name) or LogFileName.parse(name)
        if parsed is not None:
            left = {parsed.file_id} - set(touched)
            found.setdefault(folder, set()).update(left)
    return json.dumps({folder: sorted(ids) for folder, ids in sorted(found.items())})


def recorded_files(
    root: str, write: Instant, read_commit: Callable[[Instant], CommitMetadata]
) -> RecordedFiles:
    """Files and builds of a completed instant; they never change."""
    key = root, write.requested_time, write.effective_completion_time
    found = _known.get(key)
    if found is not None:
        return found
    body = read_commit(write)
    found = RecordedFiles(
        {stat.path: stat.file_size_in_bytes or 0 for stat in body.stats if stat.path},
        _decoded(body.extra_metadata.get(OTHER_GROUPS)),
        frozenset(
            stat.partition_path or ""
            for stat in body.stats
            if write.action is Action.DELTACOMMIT and stat.prev_commit == NO_PREVIOUS_COMMIT
        ),
        is_bare_build=body.operation_type == BULK_INSERT and not body.stats,
    )
    with _lock:
        while len(_known) >= _MAX_KNOWN:
            del _known[next(iter(_known))]
        _known[key] = found
    return found


def _decoded(text: str | None) -> dict[str, list[str]]:
    """File groups from extra metadata that :func:`other_groups` made."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        partition: [str(one) for one in ids]
        for partition, ids in found.items()
        if isinstance(ids, list)
    }
