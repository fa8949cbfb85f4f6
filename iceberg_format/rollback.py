"""Going back in the lineage before files are deleted: rollback and restore.

The state that is gone back to becomes a new snapshot with the same files: the id of the current
snapshot then differs from every one that a request on its way may have been built on, and such a
request fails its compare-and-set.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import TableUpdate

from hudi_core.spi import INSTANT_KEY, WATERMARK_KEY, Instant, TableServiceError
from iceberg_format.catalog import TableState
from iceberg_format.commit import (
    change_once,
    make_snapshot,
    new_snapshot_id,
    tagged,
)
from iceberg_format.foreign import require_hudi_lineage
from iceberg_format.leftovers import delete_unreached
from iceberg_format.lineage import (
    STATE_KEY,
    ancestors,
    completed_up_to,
    is_of_hudi,
    is_taken_out,
    kept_line,
    snapshot_of,
    summary_of,
    taken_out,
)
from iceberg_format.manifests import ManifestStore
from iceberg_format.summary import change_summary
from iceberg_format.table import IcebergTable
from iceberg_format.updates import as_current, remove_snapshots, set_schema


def take_out(table: IcebergTable, instant: Instant, expected: str | None) -> None:
    """Remove an instant from the lineage, or fence it off.

    Where it is not in it, only a new state is made.

    Either way the lineage does not take it any more. One that is only to be fenced off, which its
    state shows, is left alone where the lineage holds it.
    """
    state = table.load()
    metadata = state.metadata
    require_hudi_lineage(table, state)
    is_held = state.lineage.holds(instant)
    if is_taken_out(metadata, instant) or (is_held and not instant.is_completed):
        return
    target = snapshot_of(metadata, instant)
    current = metadata.current_snapshot()
    if target is None:
        if is_held:
            raise _refused(instant, "the state before it has been expired")
        go_back(table, state, current, (), taken_out(instant), expected=expected)
        return
    later = list(takewhile(lambda one: one.snapshot_id != target.snapshot_id, ancestors(metadata)))
    if any(INSTANT_KEY in summary_of(one) for one in later):
        raise _refused(instant, "later instants build on it")
    dropped = [*later, target]
    if tagged(metadata) & {one.snapshot_id for one in dropped}:
        raise _refused(instant, "a savepoint pins it")
    line = kept_line(metadata)
    before = next(iter(line[line.index(target) + 1 :]), None)
    if before is None or target.parent_snapshot_id is None:
        raise _refused(instant, "the state before it has been expired")
    go_back(table, state, before, dropped, taken_out(instant), expected=expected)


def go_back(
    table: IcebergTable,
    state: TableState,
    to: Snapshot | None,
    dropped: Sequence[Snapshot],
    why: str,
    *,
    expected: str | None,
) -> None:
    """Make a snapshot like an older one; expire those between.

    With its files and columns. Those of others that were taken in between go, too.
    """
    to = require_kept(table, to)
    metadata = state.metadata
    between = takewhile(lambda one: one.snapshot_id != to.snapshot_id, ancestors(metadata))
    dropped = [*dropped, *(one for one in between if not is_of_hudi(one))]
    store = ManifestStore(table.files, table.folder, metadata)
    _, counts = change_summary((), (), summary_of(to))
    schema_id = to.schema_id if to.schema_id is not None else metadata.current_schema_id
    snapshot = make_snapshot(
        store,
        to,
        store.manifests(to),
        snapshot_id=new_snapshot_id(metadata, why),
        summary=Summary(Operation.REPLACE, **counts, **_state(metadata, to, why)),
        timestamp_ms=metadata.last_updated_ms,
        schema_id=schema_id,
    )
    updates: list[TableUpdate] = [*as_current(snapshot)]
    if schema_id != metadata.current_schema_id:
        updates.insert(0, set_schema(schema_id))
    if dropped:
        updates.append(remove_snapshots(dropped))
    change_once(
        table,
        state,
        tuple(updates),
        lambda now: now.current_snapshot_id == snapshot.snapshot_id,
        expected,
    )
    delete_unreached(table, metadata, dropped)


def require_kept(table: IcebergTable, to: Snapshot | None) -> Snapshot:
    """The snapshot to go back to; refuses where none is left."""
    if to is None:
        raise TableServiceError(
            f"The Iceberg table at {table.location} has no state to go back to",
            "Its snapshots have been expired or damaged; restore its metadata from a backup.",
        )
    return to


def _state(metadata: TableMetadata, to: Snapshot, why: str) -> dict[str, str]:
    up_to = completed_up_to(metadata, to)
    return {STATE_KEY: why} | ({WATERMARK_KEY: up_to} if up_to else {})


def _refused(instant: Instant, why: str) -> TableServiceError:
    return TableServiceError(
        f"Instant {instant.requested_time} cannot be taken out of the Iceberg table: {why}",
        "Roll the later instants back first, or restore to a savepoint.",
        instant=instant.requested_time,
    )
