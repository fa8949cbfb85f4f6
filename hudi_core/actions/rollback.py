"""The mechanics of undoing one instant of any Hudi table.

Order (a crash at any point leaves a state the next attempt continues): plan, inflight, files
deleted, rollback completed, and only then the undone instant's own timeline files. Readers see
nothing of it: the instant was invisible before, or was made so first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from hudi_core.actions.stored_paths import is_data_path, relative_path
from hudi_core.errors import CorruptMetadataError
from hudi_core.model.actions import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from hudi_core.model.files import (
    BaseFileName,
    FileStatus,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.location import parse_location


def files_of_instant(
    listing: Mapping[PartitionPath, Sequence[FileStatus]], target: InstantTime
) -> dict[PartitionPath, list[str]]:
    """Return the names of the data files that an instant wrote, by partition, from a listing."""
    found: dict[PartitionPath, list[str]] = {}
    for partition, files in listing.items():
        names = sorted(file.name for file in files if written_by(file.name) == target)
        if names:
            found[partition] = names
    return found


def written_by(name: str) -> InstantTime | None:
    """Return the instant that a data file's name carries; ``None`` for other files."""
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    return parsed.instant if parsed else None


def make_plan(
    root: str, target: Instant, files: Mapping[PartitionPath, Iterable[str]]
) -> RollbackPlan:
    """Return the plan that deletes ``files``, one request per file group, with absolute paths as in
    Hudi."""
    requests = []
    for partition in sorted(files):
        groups: dict[str, list[str]] = {}
        for name in sorted(files[partition]):
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            groups.setdefault(parsed.file_id if parsed else "", []).append(name)
        requests += [
            RollbackRequest(
                partition,
                file_id or None,
                target.requested_time,
                tuple(f"{root}/{join_path(partition, name)}" for name in names),
            )
            for file_id, names in groups.items()
        ]
    info = InstantInfo(target.requested_time, target.action.value)
    return RollbackPlan(info, tuple(requests))


def relative_files(
    plan: RollbackPlan, root: str, target: InstantTime, where: str
) -> list[tuple[str, str]]:
    """Return (partition path, path relative to the root) of every file a stored plan deletes.

    A plan on disk may have been written by anybody who can write the table's folder: only data
    files of the instant that is rolled back, inside the table, are accepted. Other writers spell
    the same place in other ways (``file:/t/x``, ``s3a://bucket/t/x``).

    Parameters
    ----------
    where
        Path of the plan, for the error.

    Raises
    ------
    CorruptMetadataError
        The plan names any other file.
    """
    accepted = []
    place = parse_location(root)
    for request in plan.rollback_requests:
        for path in request.files_to_be_deleted:
            relative = relative_path(place, path)
            if not is_data_path(relative) or written_by(relative.rpartition("/")[2]) != target:
                raise CorruptMetadataError(
                    where,
                    f"the rollback plan names {path!r}, which instant {target} did not write",
                    "Nothing was deleted. Remove the plan if it is not from a writer you trust.",
                )
            accepted.append((request.partition_path, relative))
    return accepted


def delete_files(
    storage: Storage, files: Iterable[tuple[str, str]], target: Instant, started: InstantTime
) -> RollbackMetadata:
    """Delete the files; one that is gone already counts as deleted.

    Returns
    -------
    RollbackMetadata
        The body of the completed rollback.
    """
    begin = time.monotonic()
    deleted: dict[str, list[str]] = {}
    for partition, path in files:
        storage.delete(path)
        deleted.setdefault(partition, []).append(f"{storage.root}/{path}")
    info = InstantInfo(target.requested_time, target.action.value)
    return RollbackMetadata(
        start_rollback_time=started,
        time_taken_in_millis=round((time.monotonic() - begin) * 1000),
        total_files_deleted=sum(len(paths) for paths in deleted.values()),
        commits_rollback=(target.requested_time,),
        partition_metadata={
            partition: RollbackPartitionMetadata(partition, tuple(paths))
            for partition, paths in deleted.items()
        },
        instants_rollback=(info,),
    )
