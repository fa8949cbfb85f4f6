"""Assigns rows to small files first, then new file groups.

Groups of the target size.

The plan is made on the driver from counts alone, so both engines size files alike. It follows Hudi:
inserts fill the files below the small-file limit up to the target size, by the average record size
of the last commit that is large enough; what is left goes to new groups of as many rows as
fill one file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

from hudi_core.actions.clustering import groups_under_clustering
from hudi_core.config.clustering import ClusteringConfig, UpdatesStrategy
from hudi_core.config.write import WriteConfig
from hudi_core.errors import PendingClusteringError, UnsupportedTableError
from hudi_core.model.buckets import Buckets, bucket_file_id, bucket_of_file
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, CommitMetadata
from hudi_core.model.files import (
    BaseFile,
    BasePath,
    FileGroupId,
    FileId,
    FileSlice,
    PartitionPath,
    derive_file_id,
)
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.table_handle import OpenTable

_LOOK_BACK: Final = 5
"""How many commits are read for the size of a record; none of a table's may be large enough."""

_TINY: Final = 1 << 20
"""Bytes of a file that is rewritten as fast as another one is begun."""
MANY_LOGS: Final = 20
"""Log files of a slice beyond which a write warns of them."""
WARNED_OF_LOGS: Final[set[str]] = set()
"""Tables of whose logs this process has warned."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupWrite:
    """The rows that one file group receives.

    ``base_file`` is ``None`` for a new group; ``candidate`` is its ordinal among the partition's
    candidates where incoming rows update it. ``updates`` counts stored rows that meet an incoming
    one. The group receives ``inserts`` new rows of the partition from the ordinal ``first_insert``
    on. ``appends``: the changes go into a log of the group's slice, where they can. In a split
    table it also has room for ``moved`` of the rows that others give up.
    """

    partition_path: PartitionPath
    file_id: FileId
    base_file: BaseFile | None
    candidate: int | None
    updates: int
    first_insert: int
    inserts: int
    appends: bool = False
    moved: int = 0

    @property
    def prev_commit(self) -> str:
        base = self.stored_base
        return NO_PREVIOUS_COMMIT if base is None else base.instant

    @property
    def stored_base(self) -> BaseFile | None:
        """The base file, unless the slice has logs alone."""
        return self.base_file if self.base_file and self.base_file.is_stored else None

    @property
    def weight(self) -> int:
        """Bytes this write is expected to cost, to spread tasks evenly."""
        stored = 0 if self.base_file is None or self.appends else self.base_file.size
        return stored + 100 * (self.updates + self.inserts + self.moved)


def warn_of_logs(groups: Iterable[GroupWrite], base_path: str) -> None:
    """Log once how many file groups have too many logs."""
    if base_path in WARNED_OF_LOGS:
        return
    counts = [len(one.base_file.logs) for one in groups if one.base_file is not None]
    many = [count for count in counts if count > MANY_LOGS]
    if many:
        WARNED_OF_LOGS.add(base_path)
        _log.warning(
            "%d of %d file groups that a write changes in %s have more than %d log files, up to "
            "%d, which every read merges; run `hudi compact %s`",
            *(len(many), len(counts), base_path, MANY_LOGS, max(many), base_path),
        )


def average_record_size(commits: Iterable[CommitMetadata], config: WriteConfig) -> int:
    """Return bytes per row, from the newest large enough commit.

    Only the five newest are asked; the configured estimate is used if none is large enough. Logs,
    which have other sizes, are left out.

    ``commits`` are newest first, and read only as far as needed.
    """
    for commit in islice(commits, _LOOK_BACK):
        stats = [stat for stat in commit.stats if not stat.log_files]
        size = sum(stat.total_write_bytes or 0 for stat in stats)
        rows = sum(stat.num_writes or 0 for stat in stats)
        if rows and size > config.record_size_threshold * config.small_file_limit:
            return max(1, -(-size // rows))
    return config.record_size_estimate


class FileSizing:
    """Assigns the rows of each partition to file groups.

    New file ids derive from ``instant``. ``record_size`` is called once, and only if there are new
    rows. ``closed`` groups take no new rows. ``appends``: stored rows are changed in logs; a small
    file is then filled where that writes no more than ``most_rewritten`` times the new rows.
    ``splits``: rows that take the place of stored ones go into other groups, none of which gives up
    rows itself.
    """

    def __init__(
        self,
        config: WriteConfig,
        instant: InstantTime,
        record_size: Callable[[], int],
        closed: Collection[FileGroupId] = (),
        *,
        appends: bool = False,
        most_rewritten: int | None = None,
        splits: bool = False,
    ) -> None:
        self._config = config
        self._closed = closed
        self._appends = appends
        self._most_rewritten = most_rewritten
        self._splits = splits
        self._instant = instant
        self._ask_record_size = record_size
        self._new_groups = 0

    @cached_property
    def _record_size(self) -> int:
        return self._ask_record_size()

    def assign(
        self,
        partition_path: PartitionPath,
        base_files: Sequence[BaseFile],
        located: Mapping[int, int],
        inserts: int,
    ) -> list[GroupWrite]:
        """Return the writes of one partition.

        ``base_files`` are the latest ones, in the order of the candidates; ``located`` counts
        stored rows that incoming rows meet, by candidate.
        """
        moved = sum(located.values()) if self._splits else 0
        giving = located.keys() if self._splits else ()
        share = self._fill_small_files(partition_path, base_files, inserts + moved, giving)
        writes = []
        placed = 0

        def group(file_id: FileId, file: BaseFile | None, added: int) -> GroupWrite:
            new = max(0, min(inserts - placed, added))
            return GroupWrite(
                partition_path,
                file_id,
                file,
                None,
                0,
                min(placed, inserts),
                new,
                moved=added - new,
            )

        for ordinal, base_file in enumerate(base_files):
            updates, added = located.get(ordinal, 0), share.get(ordinal, 0)
            if updates or added:
                writes.append(
                    replace(
                        group(base_file.name.file_id, base_file, added),
                        candidate=ordinal if updates else None,
                        updates=updates,
                        appends=self._appends and not added,
                    )
                )
                placed += added
        for added in self._new_group_sizes(inserts + moved - placed):
            writes.append(group(self._new_file_id(), None, added))
            placed += added
        return writes

    def _fill_small_files(
        self,
        path: PartitionPath,
        base_files: Sequence[BaseFile],
        inserts: int,
        giving: Collection[int],
    ) -> dict[int, int]:
        share: dict[int, int] = {}
        for ordinal, base_file in enumerate(base_files):
            if inserts <= 0:
                break
            if ordinal in giving or base_file.size >= self._config.small_file_limit:
                continue
            if FileGroupId(path, base_file.name.file_id) in self._closed:
                continue
            room = (self._config.max_file_size - base_file.size) // self._record_size
            if room > 0 and self._is_worth(base_file, min(room, inserts)):
                share[ordinal] = min(room, inserts)
                inserts -= share[ordinal]
        return share

    def _is_worth(self, base_file: BaseFile, added: int) -> bool:
        """Whether new rows are worth the rewrite of a small file."""
        if base_file.logs:
            return False
        most = self._most_rewritten
        return most is None or base_file.size <= max(_TINY, most * added * self._record_size)

    def _new_group_sizes(self, inserts: int) -> list[int]:
        if inserts <= 0:
            return []
        per_group = self._config.insert_split_size
        if self._config.insert_auto_split:
            per_group = self._config.max_file_size // self._record_size
        count = -(-inserts // max(1, per_group))
        even, extra = divmod(inserts, count)
        return [even + (number < extra) for number in range(count)]

    def _new_file_id(self) -> FileId:
        self._new_groups += 1
        return derive_file_id(self._instant, 0, self._new_groups - 1)


# --- new file groups by bucket -------------------------------------------------------------------

# Whatever the size of the bucket.


class BucketAssignment:
    """Assigns rows of each partition to their buckets' file groups.

    New file ids derive from ``instant``. ``appends``: rows of buckets that have a base file go into
    logs, new ones too.
    """

    def __init__(
        self, buckets: Buckets, instant: InstantTime, base_path: str, *, appends: bool = False
    ) -> None:
        self._buckets = buckets
        self._appends = appends
        self._instant = instant
        self._base_path = base_path

    def assign(
        self,
        partition_path: PartitionPath,
        base_files: Sequence[BaseFile],
        located: Mapping[int, int],
        inserts: Mapping[int, int],
    ) -> list[GroupWrite]:
        """Return the writes of one partition.

        ``base_files`` are the latest ones, in the order of the candidates; ``located`` counts
        stored rows that incoming rows meet, by candidate; ``inserts`` counts new rows by bucket,
        and these are in the order of their buckets.
        """
        ids = [file.name.file_id for file in base_files]
        groups = bucket_groups(ids, self._buckets, partition_path, self._base_path)
        candidates = {bucket: ids.index(file_id) for bucket, file_id in groups.items()}
        changed = {bucket for bucket, one in candidates.items() if located.get(one)}
        writes = []
        placed = 0
        for bucket in sorted(changed | inserts.keys()):
            candidate = candidates.get(bucket)
            updates = 0 if candidate is None else located.get(candidate, 0)
            added = inserts.get(bucket, 0)
            new_id = bucket_file_id(self._instant, partition_path, bucket)
            writes.append(
                GroupWrite(
                    partition_path,
                    groups.get(bucket, new_id),
                    None if candidate is None else base_files[candidate],
                    candidate if updates else None,
                    updates,
                    placed,
                    added,
                    appends=self._appends and candidate is not None,
                )
            )
            placed += added
        return writes


def bucket_groups(
    file_ids: Iterable[FileId], buckets: Buckets, partition_path: PartitionPath, base_path: str
) -> dict[int, FileId]:
    """Return the file groups of a partition's existing buckets."""
    groups: dict[int, FileId] = {}
    for file_id in file_ids:
        bucket = bucket_of_file(file_id)
        if bucket is None or bucket >= buckets.number:
            raise UnsupportedTableError(
                base_path,
                f"has file group {file_id} in partition {partition_path!r}, which is none of its "
                f"{buckets.number} buckets",
                "It was written with another index, or with other buckets. Give "
                "hoodie.bucket.index.num.buckets as the table was written with, or another "
                "hoodie.index.type.",
            )
        if bucket in groups:
            raise UnsupportedTableError(
                base_path,
                f"has two file groups for bucket {bucket} of partition {partition_path!r}: "
                f"{groups[bucket]} and {file_id}",
                "Roll back the later of the writes that made them.",
            )
        groups[bucket] = file_id
    return groups


def require_bucket_groups(slices: Iterable[FileSlice], buckets: Buckets, base_path: str) -> None:
    """Refuse a table with file groups that are no such buckets."""
    by_partition: dict[PartitionPath, list[FileId]] = {}
    for slice_ in slices:
        by_partition.setdefault(slice_.partition_path, []).append(slice_.file_id)
    for path, file_ids in by_partition.items():
        bucket_groups(file_ids, buckets, path, base_path)


# --- file groups under clustering, which writers leave alone --------------------------------------


@dataclass(frozen=True, slots=True)
class GroupsUnderClustering:
    """What pending clusterings are about to replace, for one write.

    With ``are_changed`` the write may change the groups all the same; the clustering is given up
    then.
    """

    base_path: BasePath
    groups: Mapping[FileGroupId, Instant] = field(default_factory=dict)
    are_changed: bool = False

    @classmethod
    def of(cls, table: OpenTable, timeline: TimelineView) -> GroupsUnderClustering:
        """Those of a table; reads the plans of pending clusterings."""
        client = table.client
        groups = groups_under_clustering(client, timeline)
        strategy = ClusteringConfig.updates.read(client.options)
        return cls(client.base_path, groups, strategy is UpdatesStrategy.ALLOW)

    def require_none_of(self, changed: Collection[FileGroupId]) -> None:
        """Refuse a write that changes one of the groups."""
        if self.are_changed:
            return
        for group in sorted(self.groups.keys() & set(changed)):  # guard rejects
            time = self.groups[group].requested_time
            raise PendingClusteringError(self.base_path, time, group.file_id, group.partition_path)
