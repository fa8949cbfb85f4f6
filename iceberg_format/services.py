"""Clean, archive, savepoint and restore in the Iceberg table's terms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)

from hudi_core.spi import (
    COMPLETION_TIME_KEY,
    INSTANT_KEY,
    WRITE_ACTIONS,
    Action,
    CleanerPlan,
    FormatCommit,
    Instant,
    RestorePlan,
    State,
    TableServiceError,
    TakenIn,
    parse_instant_time,
)
from iceberg_format.catalog import TableState
from iceberg_format.commit import change_once, expiry, publish, tagged
from iceberg_format.foreign import require_hudi_lineage
from iceberg_format.leftovers import delete_unreached
from iceberg_format.lineage import (
    ancestors,
    completed_up_to,
    foreign_behind,
    is_of_hudi,
    kept_line,
    newest_completion,
    record_of,
    snapshot_of,
    summary_of,
)
from iceberg_format.manifests import ManifestStore
from iceberg_format.rollback import go_back, require_kept
from iceberg_format.table import IcebergTable, version_of
from iceberg_format.updates import remove_tag, set_tag

_TAG: Final = "savepoint-"
_NOTHING: Final = TakenIn("", ())
"""What an action takes in of snapshots of others that stay what they are."""
_WRITES: Final = (Action.COMMIT, Action.REPLACECOMMIT, Action.DELTACOMMIT)


def record(
    table: IcebergTable, instant: Instant, expected: str | None, *, over_foreign: bool = False
) -> FormatCommit:
    """Record an instant that changes no file, as a property.

    ``over_foreign``: snapshots of others may be there, and stay what they are. A write that failed
    beside them is rolled back, and files that they do not name are cleaned.
    """

    def updates(state: TableState) -> tuple[TableUpdate, ...]:
        value = record_of(instant, version_of(state.metadata))
        return (SetPropertiesUpdate(updates=value),)

    return publish(table, instant, updates, expected, _NOTHING if over_foreign else None)


def stop_naming(table: IcebergTable, plan: CleanerPlan, expected: str | None) -> None:
    """Expire snapshots with files that a clean will delete.

    And all before them. Snapshots of others may be there, and stay.
    """
    state = table.load()
    metadata = state.metadata
    require_hudi_lineage(table, state, _NOTHING)
    doomed = frozenset(table.files.data_uri(path) for path in plan.paths())
    if not doomed:
        return
    store = ManifestStore(table.files, table.folder, metadata)

    def is_naming(snapshot: Snapshot) -> bool:
        return any(file.file_path in doomed for file in store.live(snapshot))

    pinned = tagged(metadata)
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id in pinned and is_naming(snapshot):
            raise _names(snapshot, "a savepoint pins a state that names")
    lineage = kept_line(metadata)
    first = next((number for number, one in enumerate(lineage) if is_naming(one)), None)
    of_others = takewhile(lambda one: not is_of_hudi(one), ancestors(metadata))
    naming = lineage[0] if first == 0 else next(filter(is_naming, of_others), None)
    if naming is not None:
        raise _names(naming, "the current state of the table names")
    if first is None:
        return
    _expire(
        table, state, [*lineage[first:], *foreign_behind(metadata, lineage[first - 1])], expected
    )


def forget(table: IcebergTable, archived: Sequence[Instant], expected: str | None) -> None:
    """Expire snapshots of archived writes, except current and pinned ones.

    Cleans may be archived before older writes: those keep their states, and no watermark covers
    them, as a write that is covered cannot be taken out any more.
    """
    state = table.load()
    metadata = state.metadata
    if not archived:
        return
    done = (one.effective_completion_time for one in archived if one.action in WRITE_ACTIONS)
    last = max(done, default="")
    lineage = kept_line(metadata)
    first = next(
        (
            number
            for number, snapshot in enumerate(lineage)
            if number and last and newest_completion(snapshot) <= last
        ),
        len(lineage),
    )
    pinned = tagged(metadata)
    oldest = [*lineage[first:], *foreign_behind(metadata, lineage[first - 1])] if lineage else []
    expired = {one.snapshot_id: one for one in oldest if one.snapshot_id not in pinned}

    def updates(now: TableMetadata) -> tuple[TableUpdate, ...]:
        left = [one for one in now.snapshots if one.snapshot_id in expired]
        return expiry(now, left, last, archived)

    change_once(table, state, updates(metadata), lambda now: not updates(now), expected)
    delete_unreached(table, metadata, [*expired.values()])


def tag(table: IcebergTable, instant: Instant, expected: str | None) -> FormatCommit:
    """Pin the snapshot of a savepoint's commit, and record the savepoint."""

    def updates(state: TableState) -> tuple[TableUpdate, ...]:
        found = _saved(table, state, instant)
        if found is None:
            raise TableServiceError(
                f"The Iceberg table at {table.location} does not keep the state of instant "
                f"{instant.requested_time} any more",
                "Save a later instant.",
            )
        value = record_of(instant, str(found.snapshot_id))
        return (
            set_tag(_tag_name(instant), found.snapshot_id),
            SetPropertiesUpdate(updates=value),
        )

    return publish(table, instant, updates, expected)


def untag(table: IcebergTable, instant: Instant, expected: str | None) -> FormatCommit:
    """Unpin the snapshot of a savepoint, and forget it.

    No effect where none is pinned.
    """
    state = table.load()
    name = _tag_name(instant)
    if name in state.metadata.refs:
        records = [key for key in record_of(instant, "") if key in state.metadata.properties]
        updates = (remove_tag(name), RemovePropertiesUpdate(removals=records))
        change_once(table, state, updates, lambda now: name not in now.refs, expected)
    return FormatCommit(version_of(state.metadata), table.location)


def restore(table: IcebergTable, plan: RestorePlan, expected: str | None) -> None:
    """Return to a savepoint's state in one change.

    No effect where that has happened.
    """
    state = table.load()
    to, dropped = _way_back(table, state, plan)
    if dropped:
        go_back(table, state, to, dropped, "restored", expected=expected)


def require_restorable(table: IcebergTable, plan: RestorePlan) -> None:
    """Refuse a restore as :func:`restore` would; changes nothing."""
    to, dropped = _way_back(table, table.load(), plan)
    if dropped:
        require_kept(table, to)


def _way_back(
    table: IcebergTable, state: TableState, plan: RestorePlan
) -> tuple[Snapshot | None, Sequence[Snapshot]]:
    """The snapshot of a restore, and those it takes out."""
    metadata = state.metadata
    require_hudi_lineage(table, state)
    undone = {one.commit_time for one in plan.instants_to_rollback}
    lineage = kept_line(metadata)
    dropped = list(takewhile(lambda one: _instant_of(one) in {"", *undone}, lineage))
    while dropped and _is_equal_to(dropped[-1], lineage[len(dropped) :]):
        dropped.pop()
    to = lineage[len(dropped)] if len(dropped) < len(lineage) else None
    if to is not None:
        _require_state_between(table, state, to, undone)
    if tagged(metadata) & {one.snapshot_id for one in dropped}:
        raise TableServiceError(
            "A later savepoint pins a state that the restore would take out",
            "Delete that savepoint first.",
        )
    return to, dropped


def _expire(
    table: IcebergTable, state: TableState, oldest: Sequence[Snapshot], expected: str | None
) -> None:
    """Expire the oldest snapshots of a lineage, except pinned ones."""
    pinned = tagged(state.metadata)
    expired = [one for one in oldest if one.snapshot_id not in pinned]
    up_to = max(summary_of(one).get(COMPLETION_TIME_KEY, "") for one in oldest)
    gone = {one.snapshot_id for one in expired}
    change_once(
        table,
        state,
        expiry(state.metadata, expired, up_to),
        lambda now: not gone & {one.snapshot_id for one in now.snapshots},
        expected,
    )
    delete_unreached(table, state.metadata, expired)


def _names(snapshot: Snapshot, who: str) -> TableServiceError:
    return TableServiceError(
        f"The clean would delete a file that {who} (snapshot {snapshot.snapshot_id})",
        "Nothing was deleted. Compare the plan of the clean with the table's timeline.",
        snapshot_id=snapshot.snapshot_id,
    )


def _saved(table: IcebergTable, state: TableState, savepoint: Instant) -> Snapshot | None:
    """The snapshot of a savepoint's commit, or one that repeats its state."""
    time = parse_instant_time(savepoint.requested_time)
    found = (snapshot_of(state.metadata, Instant(time, one, State.COMPLETED)) for one in _WRITES)
    named = next((one for one in found if one is not None), None)
    if named is not None:
        return named
    writes = table.client.timeline().completed_writes()
    for snapshot in kept_line(state.metadata):
        up_to = "" if _instant_of(snapshot) else newest_completion(snapshot)
        held = [one for one in writes if one.effective_completion_time <= up_to]
        last = max(held, key=lambda one: one.effective_completion_time, default=None)
        if last is not None and last.requested_time == time:
            return snapshot
    return None


def _is_equal_to(snapshot: Snapshot, older: Sequence[Snapshot]) -> bool:
    """Whether a snapshot only repeats the next older one, after a rollback."""
    is_nameless = not _instant_of(snapshot)
    return is_nameless and (not older or snapshot.parent_snapshot_id == older[0].snapshot_id)


def _require_state_between(
    table: IcebergTable, state: TableState, to: Snapshot, undone: Collection[str]
) -> None:
    """Refuse a state with other writes than those that stay.

    A conversion or a repair leaves one state for all commits before it. What the table does not
    hold may have come later.
    """
    up_to = completed_up_to(state.metadata, to)
    for one in filter(state.lineage.holds, table.client.timeline().completed_writes()):
        if (one.effective_completion_time > up_to) != (one.requested_time in undone):
            raise TableServiceError(
                f"The Iceberg table at {table.location} does not keep the state before "
                f"{min(undone)} any more",
                "Restore to a savepoint, or to a later instant.",
            )


def _instant_of(snapshot: Snapshot) -> str:
    return summary_of(snapshot).get(INSTANT_KEY, "")


def _tag_name(instant: Instant) -> str:
    return f"{_TAG}{instant.requested_time}"
