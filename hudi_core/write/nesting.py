"""Keeps partitions from nesting, checking only written ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError
from hudi_core.model.client import RunMap, SliceView
from hudi_core.model.files import PARTITION_METADATA_FILE, BaseFileName, PartitionPath, join_path
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.partition_path import require_not_nested


@dataclass(frozen=True, slots=True)
class _IsPartition:
    """Checks whether a folder is a partition; a value for engines."""

    storage: Storage

    def __call__(self, folder: PartitionPath) -> bool:
        return self.storage.head(join_path(folder, PARTITION_METADATA_FILE)) is not None


@dataclass(frozen=True, slots=True)
class _PartitionBelow:
    """Looks for a partition below a folder; a value, as :class:`_IsPartition` is."""

    storage: Storage

    def __call__(self, folder: PartitionPath) -> PartitionPath | None:
        for status in self.storage.list(folder, recursive=True):
            found, _, name = status.path.rpartition("/")
            marks = name == PARTITION_METADATA_FILE or BaseFileName.parse(name) is not None
            if marks and found != folder:
                return PartitionPath(found)
        return None


def can_nest(config: TableConfig) -> bool:
    """Return whether a partition of a table may lie within another one.

    Only values with slashes can make that, and those are written as folders where they are not
    escaped and there is one partition field, or hive style. Paths made of timestamps all have
    as many folders.
    """
    if config.time_based is not None or config.url_encode or not config.partition_fields:
        return False
    return config.hive_style or len(config.partition_fields) == 1


def require_unnested_partition(
    storage: Storage, config: TableConfig, new: PartitionPath, instant: InstantTime
) -> None:
    """Refuse a new partition that lies within another, or around one.

    Before its folder is marked as a partition: from then on listings do not look into it.

    For one task; only :func:`require_unnested_partitions` sees what other tasks make meanwhile.
    Cost: one request for each folder above, and one listing.

    ``new`` is a folder without partition metadata yet; metadata of partitions that ``instant`` made
    itself is removed when it is refused.
    """
    is_partition = _IsPartition(storage)
    found = [path for path in _above(new, config) if is_partition(path)]
    below = _PartitionBelow(storage)(new)
    found += [below] if below is not None else []
    try:
        require_not_nested([new, *found])
    except PartitionValueError:
        unmark_partitions(storage, found, instant)
        raise


def require_unnested_partitions(
    storage: Storage,
    config: TableConfig,
    run_map: RunMap,
    view: SliceView,
    written: Collection[PartitionPath],
) -> None:
    """Refuse writes to nested partitions.

    To those that lie within others, or have others within.

    Cost: one request for each folder above the partitions, and one listing of each partition that
    holds no committed files yet; other partitions of the table are not looked at. In hive style
    most values have no slash, and their partitions are left to the tasks that make them.

    ``view`` is the files that the write builds on.
    """
    above = sorted({outer for path in written for outer in _above(path, config)})
    are_partitions = run_map(_IsPartition(storage), above)
    outer = [path for path, is_one in zip(above, are_partitions, strict=True) if is_one]
    asked = [path for path in written if _above(path, config)] if config.hive_style else [*written]
    known = {group.id.partition_path for group in view.file_groups(asked)} if asked else set()
    new = [path for path in asked if path not in known]
    inner = [found for found in run_map(_PartitionBelow(storage), new) if found is not None]
    require_not_nested([*written, *outer, *inner])


def unmark_partitions(
    storage: Storage, written: Collection[PartitionPath], instant: InstantTime
) -> None:
    """Remove the metadata of the partitions that a write made.

    A rollback leaves it, as it does no harm elsewhere; above another partition it would hide it.
    """
    line = f"commitTime={instant}".encode()
    for folder in written:
        path = join_path(folder, PARTITION_METADATA_FILE)
        if storage.head(path) is not None and line in storage.read(path).splitlines():
            storage.delete(path)


def _above(path: PartitionPath, config: TableConfig) -> list[PartitionPath]:
    """The folders above a partition that may be partitions.

    In hive style those below which all fields have a value.
    """
    parts, first = path.split("/"), 1
    if config.hive_style:
        last = f"{config.partition_fields[-1]}="
        first = next((n for n, part in enumerate(parts, 1) if part.startswith(last)), len(parts))
    return [PartitionPath("/".join(parts[:depth])) for depth in range(first, len(parts))]
