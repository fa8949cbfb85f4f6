"""Which files a clustering rewrites together: Hudi's size-based plan.

Source: Hudi's ``SparkSizeBasedClusteringPlanStrategy`` and ``ClusteringPlanPartitionFilter``. The
small files of a partition are packed into groups, each of which one task rewrites. Pure functions
of file slices; the plan that goes onto the timeline is Hudi's too, so that either can run it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.config.clustering import (
    ClusteringConfig,
    ClusteringOrder,
    PartitionFilter,
    SliceOrder,
)
from hudi_core.model.actions import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ClusteringStrategy,
)
from hudi_core.model.files import BaseFile, FileGroupId, FileSlice, FileStatus, PartitionPath
from hudi_core.storage.location import stored_uri

EXECUTION_STRATEGY: Final = (
    "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
)
"""Hudi's name for what is done with a group: sort its rows, write files of the target size."""
_MIB: Final = 1 << 20
_HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """Files that are rewritten together.

    Each of ``files`` is the latest of its file group, and has the logs of its slice; ``outputs`` is
    how many files replace them; ``left_out`` are record keys of rows that are not taken over.
    """

    partition_path: PartitionPath
    files: tuple[BaseFile, ...]
    outputs: int
    left_out: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Bytes of the files, and of their logs."""
        return sum(file.total_size for file in self.files)

    @property
    def logs(self) -> tuple[FileStatus, ...]:
        """The log files that are merged."""
        return tuple(log for file in self.files for log in file.logs)


def chosen_partitions(
    partitions: Collection[PartitionPath], config: ClusteringConfig, hour: int
) -> list[PartitionPath]:
    """The partitions that a clustering looks at, sorted.

    ``hour`` is that of the day, 0 to 23, for the filter ``DAY_ROLLING``.
    """
    known = sorted(partitions)
    if config.partitions:
        known = [path for path in known if path in config.partitions]
    elif config.partition_regex is not None:
        matches = re.compile(config.partition_regex).fullmatch
        known = [path for path in known if matches(path)]
    match config.partition_filter:
        case PartitionFilter.NONE:
            return known
        case PartitionFilter.RECENT_DAYS:
            recent = known[::-1][max(config.skipped_partitions, 0) :]
            number = config.recent_partitions
            return sorted(recent[:number] if number > 0 else recent)
        case PartitionFilter.SELECTED_PARTITIONS:
            begin, end = config.begin_partition, config.end_partition
            return [
                path
                for path in known
                if (begin is None or path >= begin) and (end is None or path <= end)
            ]
        case PartitionFilter.DAY_ROLLING:
            return [path for number, path in enumerate(known) if number % _HOURS == hour]


def plan_groups(
    slices: Iterable[FileSlice],
    config: ClusteringConfig,
    busy: Collection[FileGroupId] = (),
    worn: Collection[str] = (),
) -> list[PlannedGroup]:
    """The groups of files to rewrite, partition by partition.

    ``slices`` are the latest of the chosen partitions; ``busy`` file groups, which another plan
    names, are left out. How large a file is its base file says, as in Hudi, whatever logs change.
    ``worn`` are paths of files that are worth it whatever their size is.
    """
    files: dict[PartitionPath, list[BaseFile]] = {}
    for one in slices:
        file = one.base_with_logs
        if file is None or one.group in busy:
            continue
        if file.size < config.small_file_limit or file.path in worn:
            files.setdefault(one.partition_path, []).append(file)
    groups = [
        group
        for path in sorted(files)
        for group in _packed(path, files[path], config)
        if len(group.files) > 1
        or group.outputs > 1
        or config.takes_single_files
        or group.files[0].path in worn
    ]
    return groups[: config.max_groups]


def _packed(
    path: PartitionPath, files: Sequence[BaseFile], config: ClusteringConfig
) -> Iterator[PlannedGroup]:
    """Yield the files of a partition in groups of limited size."""
    group: list[BaseFile] = []
    size = 0
    for file in sorted(files, key=_order(config)):
        if group and size + file.size > config.max_group_bytes:
            yield _group(path, group, size, config)
            group, size = [], 0
        group.append(file)
        size += file.size
    if group:
        yield _group(path, group, size, config)


def _order(config: ClusteringConfig) -> Callable[[BaseFile], tuple[tuple[int, str], ...]]:
    def value(file: BaseFile, by: SliceOrder) -> tuple[int, str]:
        return (-file.size, "") if by is SliceOrder.SIZE else (0, file.instant)

    def key(file: BaseFile) -> tuple[tuple[int, str], ...]:
        return (*(value(file, by) for by in config.slice_order), (0, file.path))

    return key


def _group(
    path: PartitionPath, files: Sequence[BaseFile], size: int, config: ClusteringConfig
) -> PlannedGroup:
    return PlannedGroup(path, tuple(files), max(1, -(-size // config.target_file_bytes)))


def stored_plan(
    groups: Sequence[PlannedGroup], root: str, config: ClusteringConfig
) -> ClusteringPlan:
    """The plan as the timeline keeps it.

    Paths in the plan are absolute, as in Hudi.
    """
    params = {}
    if config.sort_columns:
        params[ClusteringConfig.sort_columns.key] = ",".join(config.sort_columns)
    if config.layout is not ClusteringOrder.LINEAR:
        # Hudi keeps the columns alone; its own runs of the plan take the layout from their options
        params[ClusteringConfig.layout.key] = config.layout.value
    return ClusteringPlan(
        tuple(_stored_group(group, root) for group in groups),
        ClusteringStrategy(EXECUTION_STRATEGY, params),
        extra_metadata={},
        preserve_hoodie_metadata=True,
    )


def _stored_group(group: PlannedGroup, root: str) -> ClusteringGroup:
    read = group.size // _MIB
    written = sum(file.size for file in group.files) // _MIB
    return ClusteringGroup(
        tuple(
            ClusteringSlice(
                stored_uri(root, file.path),
                tuple(stored_uri(root, log.path) for log in file.logs),
                file.name.file_id,
                group.partition_path,
                "",
            )
            for file in group.files
        ),
        {
            "TOTAL_IO_READ_MB": float(read),
            "TOTAL_IO_WRITE_MB": float(written),
            "TOTAL_IO_MB": float(read + written),
            "TOTAL_LOG_FILES_SIZE": float(sum(log.size for log in group.logs)),
            "TOTAL_LOG_FILES": float(len(group.logs)),
        },
        group.outputs,
    )


def with_stored_order(plan: ClusteringPlan, config: ClusteringConfig) -> ClusteringConfig:
    """Options with the order of rows that a plan asks for."""
    params = {} if plan.strategy is None else dict(plan.strategy.strategy_params or {})
    found = replace(config, sort_columns=ClusteringConfig.sort_columns.read(params))
    if ClusteringConfig.layout.is_given(params):
        found = replace(found, layout=ClusteringConfig.layout.read(params))
    return found
