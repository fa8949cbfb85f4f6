"""Whether the files of a partition of the metadata table are all there.

A file that was lost takes what it said with it, and nothing in the other files tells; nor does a
log file that is cut off between two blocks. What its deltacommit, or compaction, has recorded does.
The records are read only where the names of the files leave room for a doubt.

How many file groups there are decides where every key is. The deltacommit that builds a partition
names them all; a compaction names those that it finds nothing to do for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, with_rebuild_hint
from hudi_core.metadata.groups import ListedGroup
from hudi_core.metadata.partition_types import (
    FILES,
    RECORD_INDEX,
    SECONDARY_INDEX,
    GroupPlace,
    group_place,
    shard_number,
)
from hudi_core.metadata.recorded import recorded_files
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import (
    FileId,
    FileSlice,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import SOLO_PREFIX, InstantTime
from hudi_core.timeline.timeline import Timeline

_ONE_BLOCK_BYTES: Final = 256 * 1024
"""Log files of no more than so many bytes have one block, but where keys are deleted."""


Groups = dict[PartitionPath | None, list[FileSlice]]


def require_complete_shards(
    partition: str,
    slices: Sequence[FileSlice],
    timeline: Timeline,
    read_commit: Callable[[Instant], CommitMetadata],
    root: str,
) -> Groups:
    """Return the slices of a partition, one for each of its file groups, in their order.

    Parameters
    ----------
    partition
        Name of the partition.
    slices
        The latest of each file group that has files.
    timeline
        The metadata table's.
    read_commit
        Reads one of its completed instants.
    root
        Path of the metadata table, for errors.

    Returns
    -------
    dict
        The slices by their owner, see :class:`~hudi_core.metadata.partition_types.GroupPlace`.

    Raises
    ------
    CorruptMetadataError
        A file is missing; it is named.
    """
    groups = _by_owner(partition, slices, f"{root}/{partition}")
    if _lost_its_beginning(partition, slices, timeline):
        raise CorruptMetadataError(
            f"{root}/{partition}", "the instant that built it is not complete", REBUILD
        )
    with with_rebuild_hint():
        for path, reason in _damage(partition, slices, timeline, read_commit, root):
            raise CorruptMetadataError(f"{root}/{path}", reason, REBUILD)
    return groups


def _by_owner(partition: str, slices: Sequence[FileSlice], path: str) -> Groups:
    if not slices:
        raise CorruptMetadataError(path, "it has no files", REBUILD)
    groups: Groups = {}
    for one in sorted(slices, key=lambda one: shard_number(one.file_id) or 0):
        place = _place(partition, one.file_id)
        own = groups.setdefault(place.owner, [])
        if place.shard != len(own):
            whose = "" if place.owner is None else f" of partition {place.owner!r}"
            raise CorruptMetadataError(
                path, f"its file group {len(own)}{whose} is missing", REBUILD
            )
        own.append(one)
    if None in groups and len(groups) > 1:
        raise CorruptMetadataError(
            path, "some of its file groups are of one partition, and some of all", REBUILD
        )
    return groups


def _place(partition: str, file_id: FileId) -> GroupPlace:
    # other writers' ids may begin otherwise
    return group_place(partition, file_id) or GroupPlace(None, shard_number(file_id) or 0)


def _lost_its_beginning(partition: str, slices: Sequence[FileSlice], timeline: Timeline) -> bool:
    """Return whether a file group has nothing but what was added after it was built."""
    if partition == FILES:
        return slices[0].base_file is None
    if any(_place(partition, one.file_id).owner is not None for one in slices):
        return False  # those of a partition of the table begin when that does
    is_building = any(one.requested_time.startswith(SOLO_PREFIX) for one in timeline.pending())
    return is_building and any(
        one.base_file is None
        and not any(log.name.instant.startswith(SOLO_PREFIX) for log in one.log_files)
        for one in slices
    )


def _damage(
    partition: str,
    slices: Sequence[FileSlice],
    timeline: Timeline,
    read_commit: Callable[[Instant], CommitMetadata],
    root: str,
) -> Iterator[tuple[str, str]]:
    """Yield paths, and whether there is nothing or too little."""
    times = {one.file_id: {log.name.instant for log in one.log_files} for one in slices}
    sizes = {
        one.file_id: {log.status.name: log.status.size for log in one.log_files} for one in slices
    }
    for one in slices:
        if one.base_file is not None:
            times[one.file_id].add(one.base_file.instant)
            sizes[one.file_id][one.base_file.status.name] = one.base_file.size
    starts = {one.file_id: one.base_instant if one.base_file else "" for one in slices}
    divided = _maybe_divided(partition, slices)
    # how many file groups there are, the instants know that built the partition
    first = min(chain.from_iterable(times.values()), default="")
    telling = {max(starts.values()), first}
    is_told = False
    for write in _newest_first(timeline):
        done = write.effective_completion_time
        concerned = [file_id for file_id, start in starts.items() if start <= done]
        holding = [file_id for file_id in concerned if write.requested_time in times[file_id]]
        if write.requested_time.startswith(SOLO_PREFIX):
            # those of these times that built other partitions hold nothing of this one
            is_counting = partition != FILES and not is_told
            is_doubtful = is_counting or 0 < len(holding) < len(concerned)
        else:
            is_counting = partition != FILES and write.requested_time in telling
            is_doubtful = is_counting or len(holding) < len(concerned)
        if not is_doubtful and write.requested_time not in divided:
            continue
        recorded = recorded_files(root, write, read_commit)
        for name, file_id, size in recorded.files(partition):
            found = sizes.get(file_id, {}).get(name, -1)
            if starts.get(file_id, "") <= done and found < size:
                said = f"it has {found} bytes, and {size} were written"
                yield join_path(partition, name), said if found >= 0 else "it is missing"
        for other in recorded.others.get(partition, ()):
            if other not in starts:
                yield partition, f"its file group {other} is missing"
        if write.requested_time == first and partition in recorded.builds:
            return  # what was before had the same name and is no part of it
        is_told |= partition in recorded.others


def require_all_groups(
    partition: str,
    groups: Sequence[ListedGroup],
    timeline: Timeline,
    read_commit: Callable[[Instant], CommitMetadata],
    root: str,
) -> None:
    """Refuse to write to a partition that has lost a file group: keys would get into wrong ones.

    Parameters
    ----------
    groups
        The file groups of the partition that are there.
    partition, timeline, read_commit, root
        See :func:`require_complete_shards`.

    Raises
    ------
    CorruptMetadataError
        Names the file group.
    """
    times = {time for group in groups for time in group.instants if timeline.is_committed(time)}
    if partition == FILES or not times:
        return
    there = {group.file_id for group in groups}
    compactions = timeline.completed().of_actions(Action.COMMIT)
    merged = times.intersection(one.requested_time for one in compactions)
    telling = {min(times), max(merged, default="")}
    for write in _newest_first(timeline):
        if write.requested_time not in telling:
            continue
        with with_rebuild_hint():
            recorded = recorded_files(root, write, read_commit)
        found = {file_id for _, file_id, _ in recorded.files(partition)}
        lost = min(found.union(recorded.others.get(partition, ())) - there, default=None)
        if lost is not None:
            raise CorruptMetadataError(
                f"{root}/{partition}", f"its file group {lost} is missing", REBUILD
            )


def require_index_groups(
    partition: str,
    timeline: Timeline,
    counts: Callable[[InstantTime], bool],
    read_commit: Callable[[Instant], CommitMetadata],
    root: str,
) -> None:
    """Refuse a record index kept by partitions that has lost all of its file groups.

    It has none as long as the table never held a row; after that, to take it for empty would bring
    every row back in a second time.

    Parameters
    ----------
    counts
        Which instants count.
    partition, timeline, read_commit, root
        See :func:`require_complete_shards`.

    Raises
    ------
    CorruptMetadataError
        Names a file group.
    """
    for write in _newest_first(timeline):
        if not counts(write.requested_time):
            continue
        with with_rebuild_hint():
            recorded = recorded_files(root, write, read_commit)
        ids = {file_id for _, file_id, _ in recorded.files(partition)}
        lost = min(ids.union(recorded.others.get(partition, ())), default=None)
        if lost is not None:
            raise CorruptMetadataError(
                f"{root}/{partition}", f"its file group {lost} is missing", REBUILD
            )
        if recorded.is_bare_build:
            return  # what was before had the same name and is no part of it


def _newest_first(timeline: Timeline) -> list[Instant]:
    """Return the completed writes, the last one to complete first."""
    writes = timeline.completed_writes()
    return sorted(writes, key=lambda one: one.effective_completion_time, reverse=True)


def _maybe_divided(partition: str, slices: Sequence[FileSlice]) -> frozenset[str]:
    """Return the instants of log files that may have several blocks.

    Cut off between two of them, such a file looks whole.
    """
    has_deletes = partition == RECORD_INDEX or partition.startswith(SECONDARY_INDEX)
    return frozenset(
        log.name.instant
        for one in slices
        for log in one.log_files
        if has_deletes or log.status.size > _ONE_BLOCK_BYTES
    )
