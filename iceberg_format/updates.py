"""Iceberg table updates of commits, by the REST catalog's names."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

LAST_ADDED = -1
"""Means the schema that the same commit adds."""


def add_schema(schema: Schema) -> TableUpdate:
    """Add a schema."""
    return AddSchemaUpdate.model_validate({"schema": schema})


def set_schema(schema_id: int) -> TableUpdate:
    """Make a schema the current one."""
    return SetCurrentSchemaUpdate.model_validate({"schema-id": schema_id})


def as_current(snapshot: Snapshot) -> tuple[TableUpdate, ...]:
    """Add a snapshot as the current one."""
    return (
        AddSnapshotUpdate(snapshot=snapshot),
        _set_ref(MAIN_BRANCH, "branch", snapshot.snapshot_id),
    )


def set_tag(name: str, snapshot_id: int) -> TableUpdate:
    """Name a snapshot, which keeps it."""
    return _set_ref(name, "tag", snapshot_id)


def remove_tag(name: str) -> TableUpdate:
    """Take the name of a snapshot away."""
    return RemoveSnapshotRefUpdate.model_validate({"ref-name": name})


def remove_snapshots(snapshots: Iterable[Snapshot]) -> TableUpdate:
    """Forget snapshots; no file is deleted by it."""
    ids = [one.snapshot_id for one in snapshots]
    return RemoveSnapshotsUpdate.model_validate({"snapshot-ids": ids})


def _set_ref(name: str, kind: str, snapshot_id: int) -> TableUpdate:
    return SetSnapshotRefUpdate.model_validate(
        {"ref-name": name, "type": kind, "snapshot-id": snapshot_id}
    )
