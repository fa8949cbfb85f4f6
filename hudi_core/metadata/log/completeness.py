"""Whether all files of a metadata table partition are present.

A lost file takes its content with it, and no other file shows the loss; the same holds for a log
file that is cut off between two blocks. So instants state what must be there: the build of a
partition and each compaction all its files, see
:func:`~hudi_core.metadata.log.recorded.shards_stated`, and deltacommits since then what they wrote.
They are read as far as a partition's last statement, and of the deltacommits those alone of which a
file may be lacking.

In metadata tables of other engines nothing is stated. There the numbers of the file groups must
have no gap, and what the commits wrote must be there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Final

from hudi_core.errors import CorruptMetadataError
from hudi_core.metadata.damage import REBUILD
from hudi_core.metadata.log.groups import ListedGroup, in_shard_order
from hudi_core.metadata.log.recorded import CommitRecords, RecordedFiles, is_in_slice
from hudi_core.metadata.partition_types import FILES, RECORD_INDEX, SECONDARY_INDEX
from hudi_core.model.files import FileSlice, PartitionPath, join_path
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import SOLO_PREFIX, InstantTime

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
