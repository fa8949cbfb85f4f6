"""Whether the files of a partition of the metadata table are all there.

A file that was lost takes what it said with it, and nothing in the other files tells. What its
deltacommit, or compaction, has recorded does. The records are read only where the names of the
files leave room for a doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD, naming_the_rebuild
from hudi_core.metadata.partition_types import FILES, GroupPlace, group_place, shard_number
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.files import (
    BaseFileName,
    FileId,
    FileSlice,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import SOLO_PREFIX
from hudi_core.timeline.timeline import Timeline

_MAX_KNOWN: Final = 1024
_known: dict[tuple[str, str, str], tuple[str, ...]] = {}


Groups = dict[PartitionPath | None, list[FileSlice]]


def in_shard_order(
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
    with naming_the_rebuild():
        for path in _missing(partition, slices, timeline, read_commit, root):
            raise CorruptMetadataError(f"{root}/{path}", "it is missing", REBUILD)
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


def _missing(
    partition: str,
    slices: Sequence[FileSlice],
    timeline: Timeline,
    read_commit: Callable[[Instant], CommitMetadata],
    root: str,
) -> Iterator[str]:
    times = {one.file_id: {log.name.instant for log in one.log_files} for one in slices}
    names = {one.file_id: {log.status.name for log in one.log_files} for one in slices}
    for one in slices:
        if one.base_file is not None:
            times[one.file_id].add(one.base_file.instant)
            names[one.file_id].add(one.base_file.status.name)
    starts = {one.file_id: one.base_instant if one.base_file else "" for one in slices}
    # how many file groups there are, the instants know that built the partition
    telling = {max(starts.values()), min(chain.from_iterable(times.values()), default="")}
    for write in timeline.completed_writes():
        done = write.effective_completion_time
        concerned = [file_id for file_id, start in starts.items() if start <= done]
        holding = [file_id for file_id in concerned if write.requested_time in times[file_id]]
        if write.requested_time.startswith(SOLO_PREFIX):
            # those of these times that built other partitions hold nothing of this one
            is_doubtful = partition != FILES or 0 < len(holding) < len(concerned)
        else:
            is_counting = partition != FILES and write.requested_time in telling
            is_doubtful = is_counting or len(holding) < len(concerned)
        if not is_doubtful:
            continue
        for path in _paths(root, write, read_commit):
            folder, _, name = path.rpartition("/")
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if folder != partition or parsed is None:
                continue
            start = starts.get(parsed.file_id)
            is_gone = start is None or (start <= done and name not in names[parsed.file_id])
            if is_gone:
                yield join_path(partition, name)


def _paths(
    root: str, write: Instant, read_commit: Callable[[Instant], CommitMetadata]
) -> tuple[str, ...]:
    """Return the files that a completed instant names; what it holds never changes."""
    key = root, write.requested_time, write.effective_completion_time
    if key not in _known:
        while len(_known) >= _MAX_KNOWN:
            _known.pop(next(iter(_known)), None)
        _known[key] = tuple(stat.path for stat in read_commit(write).stats if stat.path)
    return _known[key]
