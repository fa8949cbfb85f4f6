"""A clean of any Hudi table: its instants and file deletion.

Order (a crash at any point leaves a clean that the next attempt finishes): plan, inflight, files
deleted, completed metadata. What must happen in between, such as telling the table's format or its
metadata table, is the caller's, who holds the table's lock. Which files to delete is planned in
:mod:`hudi_core.actions.clean_plan`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.actions.stored_paths import is_data_path, relative_path
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    BaseFileName,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.location import parse_location
from hudi_core.timeline.serde import decode_cleaner_plan, encode
from hudi_core.timeline.timeline import Timeline

_TOGETHER: Final = 1000
"""Files that stores delete by one request."""
_UNTOUCHED = "Nothing was deleted. Remove the plan if it is not from a writer you trust."


@dataclass(frozen=True, slots=True)
class CleanWork:
    """A clean under way, its plan checked.

    ``instant`` is inflight once the clean is begun; ``files`` are names by partition;
    ``partitions`` are gone once their files are.
    """

    instant: Instant
    plan: CleanerPlan
    files: Mapping[PartitionPath, Sequence[str]]
    partitions: Sequence[PartitionPath] = ()


def pending_cleans(timeline: Timeline) -> tuple[Instant, ...]:
    """Return the cleans that an earlier writer began, oldest first."""
    return timeline.pending().of_actions(Action.CLEAN).instants


def files_being_cleaned(client: TableMetaClient) -> dict[PartitionPath, tuple[str, ...]]:
    """Names of the files that pending cleans delete, by partition.

    Each may be there still, or gone already.
    """
    return files_of_cleans(client, pending_cleans(client.timeline()))


def files_of_cleans(
    client: TableMetaClient, cleans: Iterable[Instant]
) -> dict[PartitionPath, tuple[str, ...]]:
    """Files that the plans of cleans delete, by partition."""
    names: dict[PartitionPath, tuple[str, ...]] = {}
    for one in cleans:
        path = client.active.path(one.to(State.REQUESTED))
        body = client.active.read(one.to(State.REQUESTED))
        if body:
            for partition, found in _files(client, decode_cleaner_plan(body, path), path).items():
                names[partition] = (*names.get(partition, ()), *found)
    return names


def request_clean(client: TableMetaClient, requested: InstantTime, plan: CleanerPlan) -> Instant:
    """Put the plan of a new clean on the timeline.

    The time is from the table's clock.

    A plan that names what a clean may not delete is refused before anything is written.
    """
    instant = Instant(requested, Action.CLEAN, State.REQUESTED)
    _files(client, plan, client.active.path(instant))
    return client.active.create_requested(instant, encode(plan))


def start_clean(
    client: TableMetaClient,
    instant: Instant,
    check: Callable[[CleanWork], None] = lambda _: None,
    plan: CleanerPlan | None = None,
) -> CleanWork | None:
    """Begin a requested clean, or continue one that is inflight.

    ``check`` may refuse the plan, before anything is done by it. ``plan`` is given by who has just
    put it on the timeline; others read it. Returns ``None`` when the plan is
    empty, left by a writer that crashed while it wrote: the clean was dropped, and had deleted
    nothing.

    Nothing was deleted where the plan is damaged, or names anything but data files of the table,
    each in its partition. Files outside the table that a bootstrap took over are refused.
    """
    active = client.active
    requested = instant.to(State.REQUESTED)
    where = f"{client.storage.root}/{active.path(requested)}"
    if plan is None:
        body = active.read(requested)
        if not body:
            active.delete_pending(instant)
            return None
        plan = decode_cleaner_plan(body, where)
    files = _files(client, plan, where)
    partitions = [_partition(path, where) for path in plan.partitions_to_be_deleted or ()]
    work = CleanWork(instant, plan, files, partitions)
    check(work)
    if instant.state is State.REQUESTED:
        work = replace(work, instant=active.to_inflight(instant))
    return work


def delete_cleaned(client: TableMetaClient, work: CleanWork) -> CleanMetadata:
    """Delete the files of a clean; missing ones count as deleted.

    Of a partition that is dropped only the mark goes, and only if no data file is left: a writer
    may have begun to fill it again.
    """
    begin = time.monotonic()
    paths = [
        join_path(partition, name) for partition in work.files for name in work.files[partition]
    ]
    batches = [paths[first : first + _TOGETHER] for first in range(0, len(paths), _TOGETHER)]
    list(client.run_map(client.data.discard, batches))
    list(client.run_map(_DropPartition(client.data), work.partitions))
    earliest = work.plan.earliest_instant_to_retain
    return CleanMetadata(
        start_clean_time=work.instant.requested_time,
        time_taken_in_millis=round((time.monotonic() - begin) * 1000),
        total_files_deleted=len(paths),
        earliest_commit_to_retain=earliest.timestamp if earliest else "",
        last_completed_commit_timestamp=work.plan.last_completed_commit_timestamp,
        partition_metadata={
            partition: CleanPartitionMetadata(
                partition,
                work.plan.policy,
                delete_path_patterns=tuple(work.files.get(partition, ())),
                success_delete_files=tuple(work.files.get(partition, ())),
                is_partition_deleted=partition in work.partitions,
            )
            for partition in sorted({*work.files, *work.partitions})
        },
        bootstrap_partition_metadata={},
        extra_metadata=work.plan.extra_metadata,
    )


def complete_clean(
    client: TableMetaClient, work: CleanWork, completion: InstantTime, metadata: CleanMetadata
) -> Instant:
    """Put the completed clean; the time is from the table's clock.

    ``client`` has the timeline as it is under this hold of the lock, or it is listed.
    """
    active = client.active
    return active.complete(work.instant, completion, encode(metadata), client.timeline())


def run_clean(
    client: TableMetaClient, instant: Instant, next_time: Callable[[], InstantTime]
) -> Instant | None:
    """Begin a requested clean or continue an inflight one, and complete it.

    For a table whose format does not record cleans.

    ``next_time`` gives the completion, from the table's clock. Returns ``None`` when the clean was
    dropped, see :func:`start_clean`.
    """
    work = start_clean(client, instant)
    if work is None:
        return None
    body = delete_cleaned(client, work)
    return complete_clean(client, work, next_time(), body)


@dataclass(frozen=True, slots=True)
class _DropPartition:
    """Deletes a partition's mark unless it holds data; a value."""

    storage: Storage

    def __call__(self, partition: PartitionPath) -> bool:
        if any(_is_data_file(file.name) for file in self.storage.list(partition)):
            return False
        return self.storage.delete(join_path(partition, PARTITION_METADATA_FILE))


def _files(
    client: TableMetaClient, plan: CleanerPlan, where: str
) -> dict[PartitionPath, tuple[str, ...]]:
    """Return the file names a plan deletes, each checked.

    A plan on disk may have been written by anybody who can write the table's folder, and other
    writers spell the same place in other ways (``file:/t/x``, ``s3a://bucket/t/x``).
    """
    root = parse_location(client.storage.root)
    found: dict[PartitionPath, list[str]] = {}
    for path, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        names = found.setdefault(_partition(path, where), [])
        for info in infos:
            if info.is_bootstrap_base_file:
                raise TableServiceError(
                    f"{where} deletes the bootstrapped file {info.file_path!r}",
                    "Finish this clean with Apache Hudi.",
                    path=where,
                )
            relative = relative_path(root, info.file_path or "")
            names.append(_checked(relative, path, info.file_path, where))
    # how plans of version 1 name files
    for path, plain in (plan.files_to_be_deleted_per_partition or {}).items():
        names = found.setdefault(_partition(path, where), [])
        names += [_checked(join_path(path, name), path, name, where) for name in plain]
    return {partition: tuple(dict.fromkeys(names)) for partition, names in sorted(found.items())}


def _checked(relative: str, partition: str, spelled: str | None, where: str) -> str:
    # the partition was checked, so what lies right in it is inside the table too
    folder, _, name = relative.rpartition("/")
    if folder != partition or not _is_data_file(name):
        raise CorruptMetadataError(
            where,
            f"the clean plan names {spelled!r}, which is no data file of partition {partition!r}",
            _UNTOUCHED,
        )
    return name


def _partition(path: str, where: str) -> PartitionPath:
    if path and not is_data_path(path):
        raise CorruptMetadataError(
            where, f"the clean plan names the partition {path!r} outside the table", _UNTOUCHED
        )
    return PartitionPath(path)


def _is_data_file(name: str) -> bool:
    return BaseFileName.parse(name) is not None or LogFileName.parse(name) is not None
