"""Snapshots of the Iceberg table that no Hudi writer made."""

from __future__ import annotations

from pyiceberg.table.snapshots import Snapshot

from hudi_core.spi import ForeignCommitError, TakenIn, warn_of_foreign_commits
from iceberg_format.catalog import TableState
from iceberg_format.deletes import identity
from iceberg_format.lineage import ForeignSnapshots, newest_of_hudi, summary_of
from iceberg_format.manifests import ManifestStore
from iceberg_format.table import IcebergTable, version_of


def require_hudi_lineage(
    table: IcebergTable, state: TableState, taken: TakenIn | None = None
) -> None:
    """Refuse a lineage with a snapshot that no Hudi writer made.

    ``taken`` is what the coming change takes in. It is allowed only while all of that is still
    there, with all rows; anything else that came since is foreign as well.
    """
    foreign = state.foreign
    if foreign is None:
        return
    is_foreign = foreign.hudi is None or state.is_upgraded
    if taken is None or is_foreign or not _has_all(table, state, taken):
        raise _error(table, state, foreign)


def look_for_foreign(table: IcebergTable, state: TableState) -> None:
    """Warn once of snapshots that no Hudi writer made.

    A lineage without any snapshot of Hudi is an error: the table was replaced.
    """
    foreign = state.foreign
    if foreign is None:
        return
    if foreign.hudi is None:
        raise _error(table, state, foreign)
    warn_of_foreign_commits(
        _where(table), version_of(state.metadata), lambda: _error(table, state, foreign)
    )


def _has_all(table: IcebergTable, state: TableState, taken: TakenIn) -> bool:
    """Whether the files that are taken in are there, with all rows.

    With deleted rows that Hudi does not have, a change of before may bring back rows that another
    writer has deleted since.
    """
    current = state.metadata.current_snapshot()
    if current is None or not taken.files:
        return not taken.files
    store = ManifestStore(table.files, table.folder, state.metadata)
    hudi = newest_of_hudi(state.metadata)
    own = set() if hudi is None else {identity(file) for file in store.deletions(hudi)}
    if any(identity(file) not in own for file in store.deletions(current)):
        return False
    named = {table.files.data_path(file.file_path) for file in store.live(current)}
    return named.issuperset(taken.files)


def _error(table: IcebergTable, state: TableState, foreign: ForeignSnapshots) -> ForeignCommitError:
    hudi = foreign.hudi
    current = state.metadata.current_snapshot()
    made = [_named(one) for one in reversed(foreign.snapshots)]
    if state.is_upgraded:
        made.append(f"version {state.format_version} of the format")
    return ForeignCommitError(
        table.client.base_path,
        _where(table),
        made,
        version=version_of(state.metadata),
        hudi_version=None if hudi is None else str(hudi.snapshot_id),
        is_replaced=hudi is None,
        rows=0 if current is None else _rows(current),
        hudi_rows=None if hudi is None else _rows(hudi),
        can_take_in=table.client.files.is_plain,
    )


def _where(table: IcebergTable) -> str:
    return f"the Iceberg table at {table.location}"


def _named(snapshot: Snapshot) -> str:
    operation = snapshot.summary.operation.value if snapshot.summary else "unknown"
    engine = summary_of(snapshot).get("engine-name")
    return f"snapshot {snapshot.snapshot_id} ({operation}{f', by {engine}' if engine else ''})"


def _rows(snapshot: Snapshot) -> int | None:
    """Rows of a snapshot by its summary, if that says so."""
    counts = summary_of(snapshot)
    try:
        deleted = int(counts.get("total-position-deletes", "0"))
        by_value = int(counts.get("total-equality-deletes", "0"))
        return None if by_value else int(counts["total-records"]) - deleted
    except (KeyError, ValueError):
        return None
