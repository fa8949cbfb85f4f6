"""Going back, and what must not be deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from delta_format.commit import commit_properties, once, step, step_keys
from delta_format.log import (
    FENCE_STEP,
    OF_INSTANT_KEY,
    REVERT_STEP,
    REVOKED,
    SCHEMA_STEP,
    STEP_KEY,
    Head,
    completion_millis,
    open_log,
    revoked,
    watermark_at,
)
from delta_format.snapshot import Snapshot
from hudi_core.spi import (
    CleanerPlan,
    Instant,
    MetaClientView,
    TableServiceError,
)

_ARCHIVE: Final = "archive"


def take_back(meta_client: MetaClientView, target: Instant) -> None:
    """Take an instant out of the log before its files are deleted.

    One that the log does not hold is fenced off: a version is made that changes nothing, so that a
    request that is still travelling finds another parent than its own. Either way the instant can
    never be recorded again. One that is only to be fenced off, which its state tells, is left alone
    where the log holds it.

    Raises
    ------
    TableServiceError
        Later versions build on it.
    CommitConflictError, CommitStateUnknownError
        The log was changed in between, or the store failed.
    """
    head = open_log(meta_client)
    head.require_ours()
    if head.recorded(target) == REVOKED:
        return
    if not head.holds(target):
        step(meta_client, head, FENCE_STEP, target, revoked(target))
        return
    if not target.is_completed:
        return
    report = head.report(target)
    if report is None:
        raise TableServiceError(
            f"Instant {target.requested_time} is older than what the Delta log of {head.root} "
            "can go back to",
            "Restore the table from a backup, or delete the rows that are not wanted.",
            instant=target.requested_time,
        )
    version = int(report["version"])
    _refuse_built_upon(meta_client, head, version, target)
    base = _before(head, version, target)
    properties = commit_properties(step_keys(REVERT_STEP, target), revoked(target))
    once(meta_client, head, lambda head: head.table.restore(base, commit_properties=properties))


def _refuse_built_upon(
    meta_client: MetaClientView, head: Head, version: int, target: Instant
) -> None:
    if version == head.version:
        return
    then = Snapshot(open_log(meta_client, version)).paths()
    if then != Snapshot(head).paths():
        raise TableServiceError(
            f"Instant {target.requested_time} cannot be taken out of the Delta log of {head.root}: "
            "later versions build on it",
            "Roll the later instants back first, the newest at first.",
            instant=target.requested_time,
        )


def _before(head: Head, version: int, target: Instant) -> int:
    """Return the version before an instant and the step that its columns took."""
    for info in head.versions():
        if info["version"] == version - 1:
            is_step = (info.get(STEP_KEY), info.get(OF_INSTANT_KEY)) == (
                SCHEMA_STEP,
                target.requested_time,
            )
            return version - 2 if is_step else version - 1
    return version - 1


def refuse_live_files(meta_client: MetaClientView, plan: CleanerPlan) -> None:
    """Refuse a clean that would delete a file of the present state.

    Raises
    ------
    TableServiceError
        Names the file.
    """
    live = Snapshot(open_log(meta_client)).paths()
    wrong = next((path for path in _planned(meta_client, plan) if path in live), None)
    if wrong is not None:
        raise TableServiceError(
            f"The clean would delete {wrong}, which the Delta log of {meta_client.base_path} names",
            "Nothing was deleted. Remove the plan from the timeline; it was not made for this "
            "state of the table.",
            path=wrong,
        )


def _planned(meta_client: MetaClientView, plan: CleanerPlan) -> Iterator[str]:
    yield from plan.paths()
    gone = tuple(plan.partitions_to_be_deleted or ())
    if gone:
        present = Snapshot(open_log(meta_client)).files()
        yield from (file.path for file in present if file.partition_path in gone)


def forget(meta_client: MetaClientView, archived: Iterable[Instant]) -> None:
    """Set the watermark to the last of the instants that left the active timeline.

    Their transactions stay, which are some bytes each; should the log lose them, the watermark
    tells that they are complete.
    """
    millis = max((completion_millis(instant) for instant in archived), default=None)
    head = open_log(meta_client)
    if millis is None or (head.watermark is not None and millis <= head.watermark):
        return
    head.require_ours()
    step(meta_client, head, _ARCHIVE, None, watermark_at(millis))
