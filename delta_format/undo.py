"""Going back, and what must not be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import pyarrow as pa

from delta_format.actions import new_adds, remove_action
from delta_format.change import NOTHING, Change
from delta_format.commit import Record, record, step
from delta_format.declarations import declared, next_declaration
from delta_format.footers import rows_of
from delta_format.foreign import require_ours
from delta_format.log import (
    FENCE_STEP,
    OF_INSTANT_KEY,
    REVERT_STEP,
    REVOKED,
    SCHEMA_STEP,
    STEP_KEY,
    UNSAVE_STEP,
    WRITES,
    Head,
    completion_millis,
    is_ours,
    open_log,
    revoked,
)
from delta_format.log_actions import LogAction, transaction
from delta_format.snapshot import Snapshot
from delta_format.vectors import forget_vectors, require_vectors
from hudi_core.spi import (
    ACTION_KEY,
    COMPLETION_TIME_KEY,
    INSTANT_KEY,
    Action,
    CleanerPlan,
    CorruptMetadataError,
    FileGroupId,
    FileSystemViewManager,
    FormatCommit,
    Instant,
    InstantInfo,
    InstantTime,
    MetaClientView,
    RestorePlan,
    State,
    TableServiceError,
    parse_instant_time,
)

_RESTORE: Final = "RESTORE"
_SAVEPOINTS: Final = "hudi.savepoints"
"""Transaction that a log has once it had a savepoint: only then are its reports looked through."""


def take_back(meta_client: MetaClientView, target: Instant, expected: str | None) -> None:
    """Take an instant out of the log before its files are deleted.

    One that the log does not hold is fenced off: a version is made that changes nothing, so that a
    request that is still travelling finds another parent than its own. Either way the instant can
    never be recorded again. One that is only to be fenced off, which its state shows, is left alone
    where the log holds it.
    """
    head, zone = open_log(meta_client), meta_client.config.zone
    require_ours(meta_client, head)
    if head.recorded(target) == REVOKED:
        forget_vectors(meta_client, target)
        return
    if not head.holds(target):
        head.require_parent(expected, target)
        step(meta_client, head, FENCE_STEP, [revoked(target, zone)], of=target)
        forget_vectors(meta_client, target)
        return
    if not target.is_completed:
        return
    head.require_parent(expected, target)
    report = head.report(target)
    if report is None:
        raise TableServiceError(
            f"Instant {target.requested_time} is older than what the Delta log of {head.root} "
            "can go back to",
            "Restore the table from a backup, or delete the rows that are not wanted.",
            instant=target.requested_time,
        )
    version = int(report["version"])
    _require_not_built_upon(meta_client, head, version, target)
    base = _before(head, version, target)
    actions = [revoked(target, zone), *_back_to(meta_client, head, base)]
    step(meta_client, head, REVERT_STEP, actions, of=target, operation=_RESTORE)
    forget_vectors(meta_client, target)


def restore(meta_client: MetaClientView, plan: RestorePlan, expected: str | None) -> None:
    """Return to the state of a restore's commit, in one version.

    That is the version before its instants where the log does not name the commit. No effect where
    that has happened. The instants can never be recorded again.

    :class:`TableServiceError`: the log has been cleaned of that version, or instants in between are
    to stay.
    """
    head, zone = open_log(meta_client), meta_client.config.zone
    require_ours(meta_client, head)
    held = _held(head, plan)
    if not held:
        return
    head.require_parent(expected)
    base = _base(head, held, plan.savepoint_to_restore_timestamp)
    actions = [
        *(revoked(one, zone) for one in held.values()),
        *_back_to(meta_client, head, base),
    ]
    step(meta_client, head, REVERT_STEP, actions, of=[*held.values()], operation=_RESTORE)
    for one in held.values():
        forget_vectors(meta_client, one)


def require_restorable(meta_client: MetaClientView, plan: RestorePlan) -> None:
    """Refuse a restore as :func:`restore` would; changes nothing."""
    head = open_log(meta_client)
    require_ours(meta_client, head)
    held = _held(head, plan)
    if held:
        open_log(meta_client, _base(head, held, plan.savepoint_to_restore_timestamp))


def _held(head: Head, plan: RestorePlan) -> dict[str, Instant]:
    """The instants of a restore that the log has, by their times."""
    undone = (_instant_of(one) for one in plan.instants_to_rollback)
    return {one.requested_time: one for one in undone if head.holds(one)}


def _base(head: Head, held: dict[str, Instant], commit: str | None) -> int:
    """The version that a restore to a commit returns to."""
    oldest: tuple[int, Instant] | None = None
    seen: set[str] = set()
    taken: set[str] = set()
    for info in head.versions():
        time = info.get(INSTANT_KEY)
        if info.get(STEP_KEY) == REVERT_STEP:
            taken.update(str(info.get(OF_INSTANT_KEY)).split(","))
        elif time in taken:
            continue
        elif time in held and info.get(ACTION_KEY) == held[time].action.completed_action.value:
            oldest = int(info["version"]), held[time]
            seen.add(time)
        elif info.get(ACTION_KEY) in WRITES and seen != held.keys():
            raise _forgotten(head, f"{time}, which is to stay, came in between")
        if seen == held.keys():
            break
    if oldest is None or seen != held.keys():
        raise _forgotten(head, "the log has been cleaned of their versions")
    base = _version_of(head, commit)
    return _before(head, *oldest) if base is None else base


def save(meta_client: MetaClientView, savepoint: Instant, expected: str | None) -> FormatCommit:
    """Record a savepoint, and that there are any.

    Files are kept by Hudi's cleans, which alone delete them.

    A log that was made or rebuilt of later commits has no version of that state, which is an error.
    """
    _require_state(meta_client, savepoint.requested_time)
    mark = transaction(_SAVEPOINTS, 1, completion_millis(savepoint))
    return record(meta_client, Record(savepoint, parent=expected), NOTHING, [mark])


def unsave(meta_client: MetaClientView, savepoint: Instant, expected: str | None) -> FormatCommit:
    """Take a savepoint out of the log."""
    head = open_log(meta_client)
    if head.holds(savepoint):
        require_ours(meta_client, head)
        head.require_parent(expected, savepoint)
        step(
            meta_client,
            head,
            UNSAVE_STEP,
            [revoked(savepoint, meta_client.config.zone)],
            of=savepoint,
        )
        head = open_log(meta_client)
    return FormatCommit(str(head.version), head.root)


def _require_state(meta_client: MetaClientView, commit: InstantTime) -> None:
    """Refuse a commit to whose state :func:`restore` could not go back."""
    head = open_log(meta_client)
    if _version_of(head, commit) is not None:
        return
    # made of this state, or rebuilt: then each later write has a version of its own
    own = {info.get(INSTANT_KEY) for info in head.versions() if info.get(ACTION_KEY) in WRITES}
    for write in meta_client.timeline().completed_writes():
        if write.requested_time > commit and write.requested_time not in own:
            raise TableServiceError(
                f"The Delta log of {head.root} does not keep the state of instant {commit}",
                "Save a later instant.",
                instant=commit,
            )


def _version_of(head: Head, commit: str | None) -> int | None:
    """The version of a write.

    Between it and the instants of a restore there may be others, which are archived.
    """
    for info in head.versions():
        if info.get(INSTANT_KEY) == commit and info.get(ACTION_KEY) in WRITES:
            return int(info["version"])
    return None


def _instant_of(info: InstantInfo) -> Instant:
    time = parse_instant_time(info.commit_time)
    return Instant(time, Action(info.action).completed_action, State.COMPLETED, time)


def _forgotten(head: Head, why: str) -> TableServiceError:
    return TableServiceError(
        f"The Delta log of {head.root} cannot go back behind the instants of the restore: {why}",
        "Nothing was deleted. Restore to a later commit.",
    )


def _back_to(meta_client: MetaClientView, head: Head, version: int) -> list[LogAction]:
    """What brings the files and the columns of an earlier version back."""
    base = open_log(meta_client, version)
    with base.reading():
        known = declared(base.table)
        schema = pa.schema(base.table.schema().to_arrow())
    then = {file.identity: file for file in Snapshot(base).files()}
    now = {file.identity: file for file in Snapshot(head).files()}
    paths = [one.path for identity, one in then.items() if identity not in now]
    back = Change(Snapshot(base).described(paths), schema=schema)
    require_vectors(meta_client, (one.vector for one in back.new_files))
    return [
        *next_declaration(head, known),
        *(remove_action(file) for identity, file in now.items() if identity not in then),
        *new_adds(meta_client, back, known.partition_by),
    ]


def _require_not_built_upon(
    meta_client: MetaClientView, head: Head, version: int, target: Instant
) -> None:
    if version == head.version:
        return
    then, now = (
        {file.identity for file in Snapshot(one).files()}
        for one in (open_log(meta_client, version), head)
    )
    if then != now:
        raise TableServiceError(
            f"Instant {target.requested_time} cannot be taken out of the Delta log of {head.root}: "
            "later versions build on it",
            "Roll the later instants back first, the newest at first.",
            instant=target.requested_time,
        )


def _before(head: Head, version: int, target: Instant) -> int:
    """Return the version of ours before an instant, and its schema change.

    Versions of others in between are those that the instant has taken in.
    """
    of_target = (SCHEMA_STEP, target.requested_time)
    for info in head.versions():
        is_step = (info.get(STEP_KEY), info.get(OF_INSTANT_KEY)) == of_target
        if info["version"] < version and is_ours(info) and not is_step:
            return int(info["version"])
    return version - 1


def require_no_live_files(meta_client: MetaClientView, plan: CleanerPlan) -> None:
    """Refuse a clean that deletes a present or saved file."""
    head = open_log(meta_client)
    kept = frozenset(Snapshot(head).paths()).union(*_saved(meta_client, head))
    wrong = next((path for path in _planned(meta_client, plan) if path in kept), None)
    if wrong is not None:
        raise TableServiceError(
            f"The clean would delete {wrong}, which the Delta log of {meta_client.base_path} names "
            "now or in a savepoint",
            "Nothing was deleted. Remove the plan from the timeline; it was not made for this "
            "state of the table.",
            path=wrong,
        )


def _saved(meta_client: MetaClientView, head: Head) -> Iterator[Collection[str]]:
    """Paths of the files of each saved state of the log."""
    with head.reading():
        if head.table.transaction_version(_SAVEPOINTS) is None:
            return
    saved = set()
    for info in head.versions():
        time, action = info.get(INSTANT_KEY), info.get(ACTION_KEY)
        if action == Action.SAVEPOINT.value:
            done = parse_instant_time(info[COMPLETION_TIME_KEY])
            one = Instant(parse_instant_time(str(time)), Action.SAVEPOINT, State.COMPLETED, done)
            if head.holds(one):
                saved.add(time)
        elif action in WRITES and time in saved:
            yield Snapshot(open_log(meta_client, int(info["version"]))).paths()


def require_named_files(
    meta_client: MetaClientView,
    view_manager: FileSystemViewManager,
    gone: frozenset[FileGroupId],
    instant: Instant,
) -> None:
    """Refuse to replace file groups that the log does not name.

    A file without rows is never named; with rows, those of its group would come back by the write,
    though the log took them out.
    """
    missing = gone - Snapshot(open_log(meta_client)).of_groups(gone).keys()
    if not missing:
        return
    partitions = sorted({group.partition_path for group in missing})
    for one in view_manager.view().latest_slices(partitions):
        if one.group in missing and one.base_file is not None:
            path, base_path = one.base_file.path, meta_client.base_path
            if rows_of(meta_client, path):
                raise CorruptMetadataError(
                    base_path,
                    f"its Delta log does not name {path}, which instant {instant.requested_time} "
                    "replaces",
                    f"`hudi table validate {base_path}` lists what differs. Where the timeline is "
                    f"right, `hudi table repair {base_path}` rebuilds the log from it; otherwise "
                    "restore the damaged file of the timeline from a backup.",
                )


def _planned(meta_client: MetaClientView, plan: CleanerPlan) -> Iterator[str]:
    yield from plan.paths()
    gone = tuple(plan.partitions_to_be_deleted or ())
    if gone:
        present = Snapshot(open_log(meta_client)).files()
        yield from (file.path for file in present if file.partition_path in gone)
