"""Whether all files of a metadata table partition are present.

A lost file takes its content with it, and no other file shows the loss; the same holds for a log
file that is cut off between two blocks. So instants state what must be there: the build of a
partition and each compaction all its files, see :func:`shards_stated`, and deltacommits since then
what they wrote. They are read as far as a partition's last statement, and of the deltacommits those
alone of which a file may be lacking.

In metadata tables of other engines nothing is stated. There the numbers of the file groups must
have no gap, and what the commits wrote must be there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import Final

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.log.groups import ListedGroup, in_shard_order
from hudi_core.metadata.partition_types import FILES, RECORD_INDEX, SECONDARY_INDEX
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata
from hudi_core.model.files import (
    BaseFileName,
    FileId,
    FileSlice,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import SOLO_PREFIX, InstantTime, has_suffix
from hudi_core.timeline.timeline import Timeline

# --- what completed instants of the metadata table say of its files -------------------------------
# It is asked where a file may have been lost or cut off.


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


# --- completeness of a partition ------------------------------------------------------------------


_ONE_BLOCK_BYTES: Final = 256 * 1024
"""Log files of no more than so many bytes have one block, but where keys are deleted."""


def require_complete_slices(
    partition: str,
    slices: Sequence[FileSlice],
    records: CommitRecords,
    may_be_empty: Callable[[], bool],
) -> dict[PartitionPath | None, list[FileSlice]]:
    """Slices of a partition by owner, once all files are there.

    ``slices`` has the latest of each file group that has files; ``may_be_empty`` is called to learn
    whether it is a record index that is kept by partitions.
    """
    path = f"{records.root}/{partition}"
    if not slices and not may_be_empty():
        raise CorruptMetadataError(path, "it has no files", REBUILD)
    groups = in_shard_order(map(ListedGroup.of, slices), path)
    require_complete(partition, [*chain.from_iterable(groups.values())], records)
    found = {one.file_id: one for one in slices}
    return {owner: [found[one.file_id] for one in own] for owner, own in groups.items()}


def require_complete(
    partition: str,
    groups: Collection[ListedGroup],
    records: CommitRecords,
    *,
    groups_only: bool = False,
) -> None:
    """Refuse a partition that lacks a file.

    No file groups are right for a record index kept by partitions as long as the table never held a
    row; after that, to take it for empty would bring every row back in a second time. Writers need
    ``groups_only``: with too few file groups, keys would get into wrong ones.
    """
    if not groups_only and _is_built_in_part(partition, groups, records):
        raise CorruptMetadataError(
            f"{records.root}/{partition}", "the instant that built it is not complete", REBUILD
        )
    held = {group.file_id: group for group in groups}
    for write, recorded in _recorded(partition, groups, records, groups_only):
        for name, file_id, size in recorded.files(partition):
            if file_id not in held:
                reason = f"its file group {file_id} is missing"
                raise CorruptMetadataError(f"{records.root}/{partition}", reason, REBUILD)
            if groups_only:
                continue
            group, file = held[file_id], held[file_id].files.get(name)
            if is_in_slice(write, group.start) and (file is None or file.size < size):
                claimed = f"it has {file.size if file else 0} bytes, and {size} were written"
                raise CorruptMetadataError(
                    f"{records.root}/{join_path(partition, name)}",
                    claimed if file else "it is missing",
                    REBUILD,
                )


def _recorded(
    partition: str, groups: Collection[ListedGroup], records: CommitRecords, groups_only: bool
) -> Iterator[tuple[Instant, RecordedFiles]]:
    """Yield recorded files with the write that recorded them."""
    is_committed = records.timeline.is_committed
    times = {time for group in groups for time in group.instants if is_committed(time)}
    first = min(times, default="")
    divided = frozenset() if groups_only else _maybe_divided(partition, groups)
    for write in records.newest_first():
        time = write.requested_time
        is_compaction = write.action is Action.COMMIT
        # of one file group the listing shows whether it is there
        states = (is_compaction or time == first) and partition != FILES
        # who built another partition holds nothing of this one
        is_other = time.startswith(SOLO_PREFIX) and first.startswith(SOLO_PREFIX) and time != first
        lacks = not (groups_only or is_other) and _lacks(groups, write)
        if groups and not (states or lacks or time in divided):
            continue
        if not is_compaction and not records.counts(time):
            continue  # it was never complete, or it is undone
        recorded = records.read(write)
        yield write, recorded
        if partition in recorded.stated or (not groups and recorded.is_bare_build):
            return
        if time == first and (is_compaction or partition in recorded.builds):
            return  # what was before is merged, or had the same name and is no part of it


def _lacks(groups: Collection[ListedGroup], write: Instant) -> bool:
    time = write.requested_time
    return any(is_in_slice(write, group.start) and time not in group.instants for group in groups)


def _is_built_in_part(
    partition: str, groups: Collection[ListedGroup], records: CommitRecords
) -> bool:
    """Whether a file group has only files added after it was built."""
    if partition == FILES:
        return any(not group.start for group in groups)
    if any(group.place.owner is not None for group in groups):
        return False  # those of a partition of the table begin when that does
    pending = records.timeline.pending()
    return any(one.requested_time.startswith(SOLO_PREFIX) for one in pending) and any(
        not group.start and not any(time.startswith(SOLO_PREFIX) for time in group.instants)
        for group in groups
    )


def _maybe_divided(partition: str, groups: Collection[ListedGroup]) -> frozenset[InstantTime]:
    """The instants of log files that may have several blocks.

    Cut off between two of them, such a file looks whole.
    """
    has_deletes = partition == RECORD_INDEX or partition.startswith(SECONDARY_INDEX)
    return frozenset(
        file.instant
        for group in groups
        for file in group.files.values()
        if file.is_log and (has_deletes or file.size > _ONE_BLOCK_BYTES)
    )
