"""The rollback of one instant of any Hudi table.

Planned, run, and found again after a crash.

Order: plan, inflight, the target's completed file, data files, completed rollback, and only then
the target's own timeline files. A crash at any point leaves a rollback that :func:`unfinished`
finds and :func:`run` continues. Readers see nothing of it: the target was invisible before, or is
made so first. Everything runs under the table's lock; what the owner of a table does in between,
such as telling the table's format, are :class:`RollbackHooks`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_core.actions.deletion import delete_together
from hudi_core.actions.stored_paths import is_data_path, relative_path
from hudi_core.errors import CorruptMetadataError, InvalidInstantTimeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.actions import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from hudi_core.model.commit import ReplaceCommitMetadata
from hudi_core.model.files import (
    BaseFileName,
    FileStatus,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.storage.location import parse_location, stored_uri
from hudi_core.timeline.serde import decode_rollback, decode_rollback_plan, encode
from hudi_core.timeline.timeline import Timeline, instant_key


@dataclass(frozen=True, slots=True)
class Rollback:
    """A rollback that has not come to its end.

    ``instant`` is as far as the rollback has come: of a completed one, timeline files of the target
    are left. ``target`` is as the timeline has it; ``None`` where the plan names no instant.
    """

    instant: Instant
    target: Instant | None
    body: RollbackPlan | RollbackMetadata


class RollbackHooks:
    """Steps of a table's owner within a rollback; here they do nothing."""

    def before_delete(self, client: TableMetaClient, target: Instant) -> None:
        """Before the target is hidden and its files go.

        Raises where they must stay.
        """

    def after_delete(
        self,
        client: TableMetaClient,
        metadata: RollbackMetadata,  # noqa: ARG002 - what a hook needs
    ) -> TableMetaClient:
        """Before the rollback completes; returns the table after it."""
        return client

    def after_complete(
        self, client: TableMetaClient, rollback: Instant, metadata: RollbackMetadata
    ) -> None:
        """Once the rollback is complete.

        For a second time where a writer died since.
        """

    def before_tidy(self, client: TableMetaClient, target: Instant) -> None:
        """Before the target's own timeline files go."""


NO_HOOKS: Final = RollbackHooks()


def begin(
    client: TableMetaClient,
    target: Instant,
    files: Mapping[PartitionPath, Iterable[str]],
    requested: InstantTime,
) -> Rollback:
    """Put the plan of a rollback on the timeline; nothing is deleted.

    ``files`` are names by partition; none in one that only gets file groups back. ``requested`` is
    from the table's clock.
    """
    plan = make_plan(client.storage.root, target, files)
    instant = Instant(requested, Action.ROLLBACK, State.REQUESTED)
    return Rollback(client.active.create_requested(instant, encode(plan)), target, plan)


def planned(client: TableMetaClient) -> tuple[Rollback, ...]:
    """The pending rollbacks of a table, oldest first."""
    active, timeline = client.active, client.timeline()
    found = []
    for instant in timeline.pending().of_actions(Action.ROLLBACK):
        requested = instant.to(State.REQUESTED)
        where = active.path(requested)
        plan = decode_rollback_plan(active.read(requested), where)
        named, target = plan.instant_to_rollback, None
        if named is not None:
            when, action = instant_named(named, where)
            target = timeline.find(when, action) or Instant(when, action, State.INFLIGHT)
        found.append(Rollback(instant, target, plan))
    return tuple(found)


def instant_named(info: InstantInfo, where: str) -> tuple[InstantTime, Action]:
    """Time and action of an instant that a stored plan names."""
    try:
        return parse_instant_time(info.commit_time), Action(info.action)
    except (InvalidInstantTimeError, ValueError) as error:
        raise CorruptMetadataError(
            where,
            f"the plan names {info.commit_time!r} ({info.action!r}), which is no instant",
            "Nothing was deleted. Remove the plan if it is not from a writer you trust.",
        ) from error


def unfinished(client: TableMetaClient) -> tuple[Rollback, ...]:
    """The rollbacks that were begun and not completed.

    First the pending ones. Then completed ones with files of their target on the timeline: not all
    were removed, or its completed file landed after the rollback.
    """
    active, timeline = client.active, client.timeline()
    pending = {one.requested_time: one for one in timeline.pending()}
    if not pending:
        return ()
    found: dict[InstantTime, Rollback] = {}
    for instant in timeline.completed().of_actions(Action.ROLLBACK):
        if instant.requested_time > min(pending):
            metadata = decode_rollback(active.read(instant), active.path(instant))
            for when in pending.keys() & set(metadata.commits_rollback):
                found[when] = Rollback(instant, pending[when], metadata)
    return (*planned(client), *(found[when] for when in sorted(found)))


def run(
    client: TableMetaClient,
    rollback: Rollback,
    next_time: Callable[[Timeline], InstantTime],
    hooks: RollbackHooks = NO_HOOKS,
) -> tuple[TableMetaClient, Instant | None]:
    """Bring a rollback to its end, however far it has come.

    ``rollback`` is from :func:`begin` or :func:`unfinished`, and the timeline of ``client`` is
    loaded. ``next_time`` gives a time of the table's clock after all of a timeline. The instant
    returned is ``None`` where the plan names none, so that it was dropped. A plan that names files
    the target did not write deletes nothing.
    """
    target, instant, body, active = rollback.target, rollback.instant, rollback.body, client.active
    if target is None:
        return drop(client, rollback), None
    if isinstance(body, RollbackPlan):
        where = active.path(instant.to(State.REQUESTED))
        root = client.storage.root
        files = relative_files(body, root, target.requested_time, where)
        if instant.state is State.REQUESTED:
            instant = active.to_inflight(instant)
            client = client.seeing(client.timeline().with_instant(instant))
        hooks.before_delete(client, target)  # undo leave
        if target.is_completed:
            # from here on no reader counts it
            active.delete(target)  # undo hide
            hidden = client.timeline().without(target).with_instant(target.to(State.INFLIGHT))
            client = client.seeing(hidden)
        touched = [one.partition_path for one in body.rollback_requests]
        # step undo
        body = delete_files(client, files, target, instant.requested_time, touched)  # undo delete
        client = hooks.after_delete(client, body)
        timeline = client.timeline()
        # undo complete
        instant = active.complete(instant, next_time(timeline), encode(body), timeline)
        client = client.seeing(timeline.with_instant(instant))
    hooks.after_complete(client, instant, body)  # undo record
    hooks.before_tidy(client, target)
    return remove_from_timeline(client, target), instant  # undo tidy


def drop(client: TableMetaClient, rollback: Rollback) -> TableMetaClient:
    """Give up a rollback that has deleted nothing.

    Returns the table without it.
    """
    client.active.delete_pending(rollback.instant)
    return client.seeing(client.timeline().without(rollback.instant))


def remove_from_timeline(client: TableMetaClient, target: Instant) -> TableMetaClient:
    """Delete the timeline files of an undone instant.

    Returns the table without it.

    A completed file may have landed after the rollback, from a writer that was taken for dead. What
    is completed under another name than it was requested as goes under that name.
    """
    active, listing = client.active, client.active.scan()
    for late in listing.late:
        if late.requested_time == target.requested_time:
            active.delete(late)
    own = [one for one in listing.files if instant_key(one) == instant_key(target)]
    for action in {target.action, *(one.action for one in own if not one.is_completed)}:
        active.delete_pending(replace(target, action=action))
    return client.seeing(client.timeline().without(target))


def files_of_instant(
    listing: Mapping[PartitionPath, Sequence[FileStatus]], target: InstantTime
) -> dict[PartitionPath, list[str]]:
    """Return an instant's data file names by partition, from a listing."""
    found: dict[PartitionPath, list[str]] = {}
    for partition, files in listing.items():
        names = sorted(file.name for file in files if written_by(file.name) == target)
        if names:
            found[partition] = names
    return found


def partitions_replaced_by(client: TableMetaClient, target: Instant) -> set[PartitionPath]:
    """Partitions of the file groups that a completed write replaced."""
    if not target.is_completed:
        return set()
    metadata = client.read_commit(target)
    if not isinstance(metadata, ReplaceCommitMetadata):
        return set()
    return {PartitionPath(one) for one in metadata.partition_to_replace_file_ids}


def written_by(name: str) -> InstantTime | None:
    """Return the instant in a data file's name, or ``None``."""
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    return parsed.instant if parsed else None


def make_plan(
    root: str, target: Instant, files: Mapping[PartitionPath, Iterable[str]]
) -> RollbackPlan:
    """Return the plan that deletes ``files``, one request per group.

    With absolute paths, as in Hudi.
    """
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
                tuple(stored_uri(root, join_path(partition, name)) for name in names),
            )
            for file_id, names in groups.items()
        ]
        if not groups:
            requests.append(RollbackRequest(partition, None, target.requested_time, ()))
    info = InstantInfo(target.requested_time, target.action.value)
    return RollbackPlan(info, tuple(requests))


def relative_files(
    plan: RollbackPlan, root: str, target: InstantTime, where: str
) -> list[tuple[str, str]]:
    """Return partition and relative path of files a plan deletes.

    A plan on disk may have been written by anybody who can write the table's folder: only data
    files of the instant that is rolled back, inside the table, are accepted. Other writers spell
    the same place in other ways (``file:/t/x``, ``s3a://bucket/t/x``).
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
    client: TableMetaClient,
    files: Sequence[tuple[str, str]],
    target: Instant,
    started: InstantTime,
    touched: Iterable[str],
) -> RollbackMetadata:
    """Delete the files; one that is gone already counts as deleted.

    ``touched`` are the partitions whose rows change, those without files to delete too.
    """
    begin = time.monotonic()
    deleted: dict[str, list[str]] = {partition: [] for partition in touched}
    delete_together(client.data, client.map_requests, [path for _, path in files])
    for partition, path in files:
        deleted.setdefault(partition, []).append(stored_uri(client.data.root, path))
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
