"""One commit of the Iceberg table per instant, by compare-and-set, decided once.

A commit is a list of requirements and a list of updates, sent in one attempt: nothing is repeated
or rebased by the library. After *any* error the table is read again, and only what is found there
decides: the answer to a commit that took place may be lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot, Summary
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)

from hudi_core.spi import (
    WATERMARK_KEY,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptMetadataError,
    FileGroupId,
    FormatCommit,
    IncompleteCommitError,
    Instant,
    Raised,
    TakenIn,
    attempt,
)
from hudi_core.spi.files import Positions
from iceberg_format.catalog import RefusedByCatalogError, TableState
from iceberg_format.foreign import require_hudi_lineage
from iceberg_format.lineage import (
    is_taken_out,
    record_of,
    records_up_to,
    summary_of,
)
from iceberg_format.manifests import ManifestStore
from iceberg_format.schema import NAMES_KEY, known_schema, name_mapping
from iceberg_format.summary import change_summary
from iceberg_format.table import IcebergTable, version_of
from iceberg_format.updates import LAST_ADDED, add_schema, as_current, remove_snapshots, set_schema


@dataclass(frozen=True, slots=True)
class Change:
    """What an instant does to the table.

    ``keys`` are added to the counts in the snapshot's summary. ``gone`` are file groups whose live
    files are taken out; ``taken`` are paths of other writers' files, whose rows the ``added`` files
    have. ``schema`` is ``None`` where the columns stay, and its id does not matter. ``same_rows``:
    a replacement. ``by_names``: columns of an added file carry no field ids, and readers find them
    by their names. ``dead`` are positions of rows that are deleted of data files, by path.
    """

    keys: dict[str, str]
    added: Sequence[DataFile] = ()
    gone: frozenset[FileGroupId] = field(default_factory=frozenset)
    schema: Schema | None = None
    same_rows: bool = False
    taken: frozenset[str] = field(default_factory=frozenset)
    by_names: bool = False
    dead: Mapping[str, Positions] = field(default_factory=dict)


def publish(
    table: IcebergTable,
    instant: Instant,
    make: Callable[[TableState], tuple[TableUpdate, ...]],
    expected: str | None,
    taken: TakenIn | None = None,
) -> FormatCommit:
    """Make the current lineage hold an instant, if it does not yet.

    ``make`` is called only where the lineage does not hold the instant. ``expected`` is the state
    that the change was decided on, ``None`` for the one read here; ``taken`` is what the change
    takes in of snapshots that no Hudi writer made.

    :class:`CommitConflictError`: another writer was first, and nothing has changed.
    :class:`IncompleteCommitError`: the instant was taken out of the lineage, or the catalog refuses
    it. :class:`CommitStateUnknownError`: the commit may have taken place.
    """
    state = table.load()
    held = state.lineage.find(instant)
    if held is not None:
        return FormatCommit(held.version, table.location)
    require_hudi_lineage(table, state, taken)
    if is_taken_out(state.metadata, instant):
        raise IncompleteCommitError(
            f"Instant {instant.requested_time} was taken out of the Iceberg table at "
            f"{table.location}",
            "It is being rolled back, or was. Run the write again.",
            instant=instant.requested_time,
        )
    if expected not in (None, version_of(state.metadata)):
        raise _conflict(instant, f"it builds on {expected}, not {version_of(state.metadata)}")
    updates = make(state)
    outcome = attempt(lambda: table.commit(state, requirements(state.metadata), updates))
    now = attempt(table.load) if isinstance(outcome, Raised) else outcome
    if not isinstance(now, Raised):
        held = now.value.lineage.find(instant)
        if held is not None:
            return FormatCommit(held.version, table.location)
    if not isinstance(outcome, Raised):
        raise CorruptMetadataError(
            table.location, f"it took the commit of instant {instant.requested_time} without it"
        )
    if not isinstance(now, Raised) and isinstance(outcome.error, CommitFailedException):
        raise _conflict(instant, outcome.reason) from outcome.error
    if not isinstance(now, Raised) and isinstance(outcome.error, RefusedByCatalogError):
        raise IncompleteCommitError(
            f"The catalog of the Iceberg table at {table.location} refused instant "
            f"{instant.requested_time}: {outcome.error}",
            "It is taken back. Change what the catalog does not allow, there or in the write.",
            instant=instant.requested_time,
        ) from outcome.error
    raise CommitStateUnknownError(
        f"The Iceberg commit of instant {instant.requested_time} failed, and may take place yet "
        f"({outcome.reason})",
        "Nothing was deleted. The next writer finds out, and repeats or undoes it.",
        instant=instant.requested_time,
    ) from outcome.error


def change_once(
    table: IcebergTable,
    state: TableState,
    updates: tuple[TableUpdate, ...],
    is_done: Callable[[TableMetadata], bool],
    expected: str | None,
) -> None:
    """Commit a change without an instant, as :func:`publish` does."""
    if not updates:
        return
    if expected not in (None, version_of(state.metadata)):
        raise CommitConflictError(
            f"Another writer changed the Iceberg table at {table.location} (it went from state "
            f"{expected} to {version_of(state.metadata)})",
            "Nothing has changed; run it again.",
        )
    outcome = attempt(lambda: table.commit(state, requirements(state.metadata), updates))
    if not isinstance(outcome, Raised):
        return
    now = attempt(table.load)
    if not isinstance(now, Raised):
        if is_done(now.value.metadata):
            return
        if isinstance(outcome.error, CommitFailedException):
            raise CommitConflictError(
                f"Another writer changed the Iceberg table at {table.location} ({outcome.reason})",
                "Nothing has changed; run it again.",
            ) from outcome.error
    raise CommitStateUnknownError(
        f"A change of the Iceberg table at {table.location} failed, and may take place yet "
        f"({outcome.reason})",
        "Nothing was deleted; run it again.",
    ) from outcome.error


def requirements(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """Requirements of a change of this version."""
    current = metadata.current_snapshot_id
    return (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": current}),
    )


def change_updates(
    table: IcebergTable, state: TableState, change: Change, instant: Instant
) -> tuple[TableUpdate, ...]:
    """Return the updates that make a change as one snapshot."""
    with table.files.flushed_together() as files:
        store = ManifestStore(files, table.folder, state.metadata)
        return _changed(table, state, store, change, instant)


def _changed(
    table: IcebergTable, state: TableState, store: ManifestStore, change: Change, instant: Instant
) -> tuple[TableUpdate, ...]:
    metadata = state.metadata
    parent = metadata.current_snapshot()
    snapshot_id = new_snapshot_id(metadata, str(instant))
    files = store.rewrite(
        parent, snapshot_id, change.added, change.gone, taken=change.taken, dead=change.dead
    )
    if files.missing:
        # others may have come after those whose files are taken in
        require_hudi_lineage(table, state)
        raise _lacking(table, files.missing, instant)
    operation, counts = change_summary(
        (*change.added, *files.deletions),
        (*files.removed, *files.former),
        summary_of(parent) if parent else {},
        change.same_rows,
    )
    schema_updates, schema_id = _schema_updates(metadata, change.schema)
    mapping = _mapping_updates(metadata, change)
    snapshot = make_snapshot(
        store,
        parent,
        files.manifests,
        snapshot_id=snapshot_id,
        summary=Summary(operation, **counts, **change.keys),
        timestamp_ms=table.client.config.zone.epoch_millis(instant.effective_completion_time),
        schema_id=schema_id,
    )
    return (*schema_updates, *mapping, *as_current(snapshot))


def require_named_files(
    table: IcebergTable, gone: frozenset[FileGroupId], instant: Instant
) -> None:
    """Refuse to replace file groups without a live file.

    Nothing is changed.
    """
    metadata = table.load().metadata
    store = ManifestStore(table.files, table.folder, metadata)
    missing = store.missing(metadata.current_snapshot(), gone)
    if missing:
        raise _lacking(table, missing, instant)


def make_snapshot(
    store: ManifestStore,
    parent: Snapshot | None,
    manifests: Sequence[ManifestFile],
    *,
    snapshot_id: int,
    summary: Summary,
    timestamp_ms: int,
    schema_id: int,
) -> Snapshot:
    """Write the manifest list of a new snapshot; return the snapshot."""
    above = parent.snapshot_id if parent else None
    return Snapshot.model_validate(
        {
            "snapshot-id": snapshot_id,
            "parent-snapshot-id": above,
            "timestamp-ms": max(timestamp_ms, store.metadata.last_updated_ms),
            **store.write_list(manifests, snapshot_id, above),
            "summary": summary,
            "schema-id": schema_id,
        }
    )


def expiry(
    metadata: TableMetadata,
    expired: Sequence[Snapshot],
    up_to: str,
    archived: Iterable[Instant] = (),
) -> tuple[TableUpdate, ...]:
    """Return updates that expire snapshots and set the watermark.

    ``up_to`` is the completion time of the last write that is forgotten. Records of ``archived``
    instants go, also of those that completed later.
    """
    before = metadata.properties.get(WATERMARK_KEY, "")
    watermark = max(before, up_to)
    updates: list[TableUpdate] = []
    if watermark != before:  # guard has-watermark
        updates.append(SetPropertiesUpdate(updates={WATERMARK_KEY: watermark}))
    gone = {key for one in archived for key in record_of(one, "")} & metadata.properties.keys()
    records = sorted(gone.union(records_up_to(metadata, watermark)))
    if records:
        updates.append(RemovePropertiesUpdate(removals=records))
    if expired:
        updates.append(remove_snapshots(expired))
    return tuple(updates)


def new_snapshot_id(metadata: TableMetadata, what: str) -> int:
    """Return a snapshot id, the same for the same change.

    Of the same state.

    One that was left behind when a writer went back in the lineage keeps its id.
    """
    known = {one.snapshot_id for one in metadata.snapshots}
    text = f"{metadata.table_uuid} {metadata.current_snapshot_id} {what}"
    ids = (_id_of(text + " again" * number) for number in count())
    return next(one for one in ids if one not in known)


def _id_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1 or 1


def tagged(metadata: TableMetadata) -> frozenset[int]:
    """Return the ids of the snapshots that savepoints pin."""
    return frozenset(ref.snapshot_id for name, ref in metadata.refs.items() if name != MAIN_BRANCH)


def _schema_updates(
    metadata: TableMetadata, wanted: Schema | None
) -> tuple[tuple[TableUpdate, ...], int]:
    if wanted is None:
        return (), metadata.current_schema_id
    known = known_schema(metadata, wanted)
    if known is None:
        number = max(schema.schema_id for schema in metadata.schemas) + 1
        added = wanted.model_copy(update={"schema_id": number})
        return (add_schema(added), set_schema(LAST_ADDED)), number
    if known.schema_id == metadata.current_schema_id:
        return (), known.schema_id
    return (set_schema(known.schema_id),), known.schema_id


def _mapping_updates(metadata: TableMetadata, change: Change) -> tuple[TableUpdate, ...]:
    """Names by which readers find columns without field ids."""
    known = metadata.properties.get(NAMES_KEY)
    wanted = metadata.schema() if change.schema is None else change.schema
    mapping = name_mapping(known, wanted, takes_over=change.by_names)
    return () if mapping == known else (SetPropertiesUpdate(updates={NAMES_KEY: mapping}),)


def _lacking(
    table: IcebergTable, groups: frozenset[FileGroupId], instant: Instant
) -> CorruptMetadataError:
    named = ", ".join(f"{one.partition_path}/{one.file_id}" for one in sorted(groups))
    path = table.client.base_path
    return CorruptMetadataError(
        table.location,
        f"the Iceberg table has no file of {named}, which instant {instant.requested_time} "
        "replaces",
        f"`hudi table validate {path}` lists what differs. Where the timeline is right, `hudi "
        f"table repair {path}` rebuilds the Iceberg metadata from it; otherwise restore the "
        "damaged file of the timeline from a backup.",
    )


def _conflict(instant: Instant, reason: str) -> CommitConflictError:
    return CommitConflictError(
        f"Another writer changed the Iceberg table before instant {instant.requested_time} "
        f"({reason})",
        "The Iceberg table does not hold the instant; the next writer repeats or undoes it.",
        instant=instant.requested_time,
    )
