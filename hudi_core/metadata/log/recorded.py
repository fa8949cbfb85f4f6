"""What completed instants of the metadata table say of its files.

It is asked where a file may have been lost or cut off; see
:mod:`hudi_core.metadata.log.completeness`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

from hudi_core.metadata.damage import with_rebuild_hint
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata
from hudi_core.model.files import BaseFileName, FileId, LogFileName, join_path
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime, has_suffix
from hudi_core.timeline.timeline import Timeline

_MAX_KNOWN: Final = 1024
BULK_INSERT: Final = "BULK_INSERT_PREPPED"
"""Operation of the deltacommits that build a partition."""
SHARDS: Final = "hudi.core.shards"
"""Key of the extra metadata of builds and compactions, see :func:`shards_stated`."""

WATCHED: Final = "hudi.core.watches-keys"
"""Key of the extra metadata of every deltacommit whose writer notes where keys get repeated; see
:mod:`hudi_core.metadata.key_index.unique_keys`."""

Shards = Mapping[str, Mapping[str, int]]
"""By partition of the metadata table: names of files, and their bytes."""


def shards_stated(files: Shards) -> Mapping[str, str]:
    """Extra metadata of an instant that states which file groups exist.

    ``files`` are those that the instant did not write; with those that it wrote they are all that
    the partition has.
    """
    return {SHARDS: json.dumps(files, sort_keys=True)}


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """What one completed instant says.

    ``sizes`` has the files that it wrote and those that it states. ``stated`` are partitions of
    which these are all files; ``builds`` are those whose first files it wrote. ``is_bare_build``:
    it built a partition that has no file group yet. ``watches_keys``: its writer notes where keys
    get repeated.
    """

    sizes: Mapping[str, int]
    stated: frozenset[str]
    builds: frozenset[str]
    is_bare_build: bool
    watches_keys: bool

    @classmethod
    def of(cls, write: Instant, body: CommitMetadata) -> RecordedFiles:
        """What the metadata of an instant says."""
        shards = _decoded(body.extra_metadata.get(SHARDS))
        sizes = {stat.path: stat.file_size_in_bytes or 0 for stat in body.stats if stat.path}
        for partition, files in shards.items():
            sizes |= {join_path(partition, name): size for name, size in files.items()}
        return cls(
            sizes,
            frozenset(shards),
            frozenset(
                stat.partition_path or ""
                for stat in body.stats
                if write.action is Action.DELTACOMMIT and stat.prev_commit == NO_PREVIOUS_COMMIT
            ),
            is_bare_build=body.operation_type == BULK_INSERT and not body.stats,
            watches_keys=WATCHED in body.extra_metadata,
        )

    def files(self, partition: str) -> Iterator[tuple[str, FileId, int]]:
        """Yield name, file group and bytes of the files of a partition."""
        for path, size in self.sizes.items():
            folder, _, name = path.rpartition("/")
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if folder == partition and parsed is not None:
                yield name, parsed.file_id, size


_known: dict[tuple[str, str, str], RecordedFiles] = {}
"""What this process has read. Spares each small commit two reads, three with a record index and ten
after its compactions, and with it 10 of 44 ms of the processor (30 commits of two rows)."""
_lock: Final = Lock()


@dataclass(frozen=True, slots=True)
class CommitRecords:
    """Recorded files of a metadata table's completed instants, read on demand."""

    root: str
    timeline: Timeline
    counts: Callable[[InstantTime], bool]
    read_commit: Callable[[Instant], CommitMetadata]

    def newest_first(self) -> list[Instant]:
        """Completed writes, the newest first.

        The time of each is where the slices of its files begin or end.

        A compaction has what was completed when it was requested, however late it completes.
        """
        return sorted(self.timeline.completed_writes(), key=position, reverse=True)

    def read(self, write: Instant) -> RecordedFiles:
        """What a completed instant says; that never changes."""
        key = self.root, write.requested_time, write.effective_completion_time
        found = _known.get(key)
        if found is not None:
            return found
        with with_rebuild_hint():
            found = RecordedFiles.of(write, self.read_commit(write))
        with _lock:
            while len(_known) >= _MAX_KNOWN:
                del _known[next(iter(_known))]
            _known[key] = found
        return found


def position(write: Instant) -> InstantTime:
    """Time from which later compactions find the files of a write."""
    if write.action is Action.COMMIT or write.completion_time is None:
        return write.requested_time
    return write.completion_time


def is_in_slice(write: Instant, start: str) -> bool:
    """Whether a write's files are in the slice that a compaction made."""
    # before version 8, a compaction merged all that was requested before it
    time = write.requested_time if has_suffix(start) else position(write)
    return start <= time


def _decoded(text: str | None) -> dict[str, dict[str, int]]:
    """What :func:`shards_stated` made; nothing of what anybody else may have put there."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        partition: {name: size for name, size in files.items() if isinstance(size, int)}
        for partition, files in found.items()
        if isinstance(files, dict)
    }
