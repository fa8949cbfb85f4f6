"""First state of an Iceberg table: columns, partitions, files.

It is made with a new table, when a table that has rows is given the format, and when metadata is
rebuilt. Files that other writers made carry no field ids; their columns are identified by name then
(``schema.name-mapping.default``). A column that gets another name later keeps its former ones
there, for files that are as old.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PARTITION_FIELD_ID_START
from pyiceberg.table.metadata import TableMetadataV2, TableMetadataV3
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import MetadataLogEntry, Snapshot, SnapshotLogEntry, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder

from hudi_core.spi import (
    WATERMARK_KEY,
    CommitConflictError,
    CorruptMetadataError,
    FileSlice,
    FileSystemViewManager,
    ForeignCommitError,
    UnfinishedMoveError,
    UnsupportedTableError,
)
from hudi_core.spi.files import Positions, all_deleted_positions
from iceberg_format.catalog import KEPT_VERSIONS, MOVED_KEY, PREFIX, VERSION_KEY, TableState
from iceberg_format.commit import make_snapshot, new_snapshot_id
from iceberg_format.external import ExternalCatalog
from iceberg_format.files import without_scheme
from iceberg_format.foreign import require_hudi_lineage
from iceberg_format.lineage import FIRST, STATE_KEY, newest_of_hudi
from iceberg_format.manifest_files import SECOND, THIRD, Metadata
from iceberg_format.manifests import ManifestStore
from iceberg_format.options import VERSION
from iceberg_format.partition import added_specs, partition_specs
from iceberg_format.schema import NAMES_KEY, iceberg_schema, name_mapping
from iceberg_format.summary import change_summary
from iceberg_format.table import IcebergTable
from iceberg_format.writes import AddedFile, file_of, is_split, warn_of_old_lists


@dataclass(frozen=True, slots=True)
class _First:
    """What a table starts with.

    ``watermark`` is the completion time up to which all is complete. ``by_names``: columns of some
    file carry no field ids. ``dead`` are positions of deleted rows, by paths of data files.
    """

    files: Sequence[DataFile]
    watermark: str | None
    by_names: bool = False
    dead: Mapping[str, Positions] = field(default_factory=dict)


def check(table: IcebergTable) -> None:
    """Refuse a Hudi table that has no Iceberg table; nothing is changed."""
    _require_writer(table, _empty(table))
    table.catalog.check()


def rebuild(table: IcebergTable, view_manager: FileSystemViewManager) -> TableState:
    """Rebuild the Iceberg table as one new version.

    Whatever its catalog has.

    The table keeps its id, where that can be read; snapshots of before are not in it any more. A
    catalog that does not have the table yet takes it over from the folder as it is, where that
    holds all that the Hudi timeline does.

    When it raises, nothing has changed, and another table of the name in the catalog stays.
    """
    empty = _empty(table)
    seen = table.catalog.newest()
    try:
        before = table.catalog.load()
    except (CorruptMetadataError, UnfinishedMoveError, UnsupportedTableError):
        before = None
    if before is not None and _is_third(before, empty.location):
        empty = _third(empty, before.metadata)
    if before is not None and _is_of_others(before, empty.location):
        empty = _continued(before, empty)
    elif before is not None and before.metadata.location == empty.location:
        kept = {
            "table_uuid": before.metadata.table_uuid,
            "last_sequence_number": before.metadata.last_sequence_number,
        }
        empty = empty.model_copy(update=kept)
        if NAMES_KEY in before.metadata.properties:
            # files without ids that are as old know columns by their names of then
            empty.properties[NAMES_KEY] = before.metadata.properties[NAMES_KEY]
    moved = _from_folder(table) if before is None else None
    _require_writer(table, moved or empty)
    metadata = moved or _whole(table, empty, view_manager)
    try:
        return table.catalog.replace(metadata, seen)
    except CommitFailedException as error:
        raise CommitConflictError(
            f"Another writer changed the Iceberg table at {table.location} ({error})",
            "Nothing has changed; run it again.",
        ) from error


def _is_third(state: TableState, location: str) -> bool:
    """Whether a table of this folder stays in version 3.

    One that another writer has made it, after Hudi's snapshots, is.
    """
    is_same = without_scheme(state.metadata.location) == without_scheme(location)
    is_others = state.is_upgraded and newest_of_hudi(state.metadata) is not None
    return is_same and state.format_version == THIRD and not is_others


def _third(empty: Metadata, former: Metadata) -> Metadata:
    """A table in version 3; ids of rows go on."""
    given = former.next_row_id if isinstance(former, TableMetadataV3) else None
    values = empty.model_dump(by_alias=True) | {"format-version": THIRD, "next-row-id": given or 0}
    values["properties"] = {**empty.properties, VERSION_KEY: str(THIRD)}
    return TableMetadataV3.model_validate(values)


def _require_writer(table: IcebergTable, metadata: Metadata) -> None:
    """Refuse version 3 in catalogs whose client writes version 2 alone."""
    catalog = table.catalog
    if not isinstance(catalog, ExternalCatalog) or metadata.format_version == SECOND:
        return
    if catalog.kind != "rest":
        raise UnsupportedTableError(
            table.client.base_path,
            f"would be of version {THIRD} of the Iceberg format in a {catalog.kind} catalog, whose "
            f"client, pyiceberg, writes version {SECOND} alone",
            f"Ask for {PREFIX}{VERSION.name}={SECOND}, or keep the table in its folder or in a "
            "REST catalog.",
        )


def _is_of_others(state: TableState, location: str) -> bool:
    """Whether no Hudi writer has made anything of a table."""
    is_same = without_scheme(state.metadata.location) == without_scheme(location)
    is_foreign = newest_of_hudi(state.metadata) is None
    return is_same and is_foreign and bool(state.metadata.snapshots)


def _continued(state: TableState, empty: Metadata) -> Metadata:
    """A table of another writer, continued as Hudi's.

    It gets the columns, partitions and properties of a new one. Its snapshots stay, and none of
    them is an ancestor of what follows.
    """
    former = state.metadata
    if isinstance(empty, TableMetadataV3) and isinstance(former, TableMetadataV2):
        former = _third(former, former)
    wanted = empty.schema()
    number = max(one.schema_id for one in former.schemas) + 1
    schema = wanted.model_copy(update={"schema_id": number})
    specs, default_spec = added_specs(former.partition_specs, empty.partition_specs)
    fields = [field.field_id for spec in specs for field in spec.fields]
    values = {"metadata-file": state.location, "timestamp-ms": former.last_updated_ms}
    entry = MetadataLogEntry.model_validate(values)
    return former.model_copy(
        update={
            "location": empty.location,
            "last_updated_ms": max(empty.last_updated_ms, former.last_updated_ms),
            "last_column_id": max(empty.last_column_id, former.last_column_id),
            "schemas": [*former.schemas, schema],
            "current_schema_id": number,
            "partition_specs": specs,
            "default_spec_id": default_spec,
            "last_partition_id": max(fields, default=PARTITION_FIELD_ID_START - 1),
            "sort_orders": _with_unsorted(former.sort_orders),
            "default_sort_order_id": UNSORTED_SORT_ORDER.order_id,
            "properties": {**former.properties, **empty.properties},
            "metadata_log": [*former.metadata_log, entry],
        }
    )


def _with_unsorted(orders: Sequence[SortOrder]) -> list[SortOrder]:
    if any(one.order_id == UNSORTED_SORT_ORDER.order_id for one in orders):
        return [*orders]
    return [UNSORTED_SORT_ORDER, *orders]


def check_files(table: IcebergTable, view_manager: FileSystemViewManager) -> None:
    """Refuse tables with files that Iceberg cannot have.

    Nothing is changed.
    """
    _existing(table, _empty(table), view_manager)


def _from_folder(table: IcebergTable) -> Metadata | None:
    """Return the folder's state to continue, or ``None``."""
    if not isinstance(table.catalog, ExternalCatalog):
        return None
    try:
        state = table.catalog.former.last_state()
        if state is None or state.metadata.location != table.files.root:
            return None
        require_hudi_lineage(table, state)
    except (CorruptMetadataError, ForeignCommitError, UnsupportedTableError):
        return None
    lineage = state.lineage
    completed = (one for one in table.client.timeline().instants if one.is_completed)
    if not all(lineage.holds(one) for one in completed):
        return None
    properties = {**state.metadata.properties}
    properties.pop(MOVED_KEY, None)
    return state.metadata.model_copy(update={"properties": properties})


def _whole(table: IcebergTable, empty: Metadata, view_manager: FileSystemViewManager) -> Metadata:
    first = _existing(table, empty, view_manager)
    return _with_snapshot(table, empty, first)


def _empty(table: IcebergTable) -> Metadata:
    client = table.client
    schema = iceberg_schema(client.schema, 0, with_meta=client.config.populate_meta_fields)
    specs = partition_specs(client.config, schema)
    version = VERSION.read(client)
    more = {VERSION_KEY: str(version)} if version != SECOND else {}
    kind: type[Metadata] = TableMetadataV2 if version == SECOND else TableMetadataV3
    return kind.model_validate(
        {
            "format-version": version,
            **({} if version == SECOND else {"next-row-id": 0}),
            "location": table.files.root,
            "table-uuid": uuid.uuid4(),
            "last-updated-ms": int(time.time() * 1000),
            "last-column-id": client.schema.last_column_id,
            "schemas": [schema],
            "current-schema-id": schema.schema_id,
            "partition-specs": list(specs),
            "default-spec-id": specs[0].spec_id,
            "last-partition-id": PARTITION_FIELD_ID_START - 1 + len(specs[0].fields),
            "sort-orders": [UNSORTED_SORT_ORDER],
            "default-sort-order-id": UNSORTED_SORT_ORDER.order_id,
            "properties": {
                "write.metadata.path": table.files.uri(table.folder),
                "write.metadata.previous-versions-max": str(KEPT_VERSIONS),
                "write.metadata.delete-after-commit.enabled": "true",
                "commit.retry.num-retries": "0",
                # old file slices and snapshots are Hudi's to delete: engines that respect this
                # neither expire snapshots nor take files for orphans
                "gc.enabled": "false",
                "write.parquet.compression-codec": "zstd",
                **more,
            },
        }
    )


def _existing(
    table: IcebergTable, metadata: Metadata, view_manager: FileSystemViewManager
) -> _First:
    client = table.client
    completed = [one for one in client.timeline().instants if one.is_completed]
    if not completed:
        return _First((), None)
    slices = view_manager.view().latest_slices()
    columns = client.schema

    def describe(one: FileSlice) -> AddedFile:
        if one.base_file is None or (one.log_files and not is_split(table)):
            raise UnsupportedTableError(
                client.base_path,
                f"has log files in {one.partition_path or 'its folder'}",
                "Compact the table first; the Iceberg format has log files of tables of the mode "
                "split alone.",
            )
        status = one.base_file.status
        schema = metadata.schema()
        return file_of(
            table, metadata, one.base_file.path, status.size, schema=schema, columns=columns
        )

    files = list(client.run_map(describe, slices))
    warn_of_old_lists(table, files)
    watermark = max(one.effective_completion_time for one in completed)
    by_names = any(not one.has_ids for one in files)
    dead = all_deleted_positions(client, slices) if is_split(table) else {}
    return _First([one.file for one in files], watermark, by_names, dead)


def _with_snapshot(table: IcebergTable, metadata: Metadata, first: _First) -> Metadata:
    store = ManifestStore(table.files, table.folder, metadata)
    # not that of the first state of another time
    snapshot_id = new_snapshot_id(metadata, f"first {uuid.uuid4()}")
    files = store.rewrite(None, snapshot_id, first.files, frozenset(), dead=first.dead)
    operation, counts = change_summary((*first.files, *files.deletions), (), {})
    more = {WATERMARK_KEY: first.watermark} if first.watermark else {}
    snapshot = make_snapshot(
        store,
        None,
        files.manifests,
        snapshot_id=snapshot_id,
        summary=Summary(operation, **counts, **{STATE_KEY: FIRST}, **more),
        timestamp_ms=metadata.last_updated_ms,
        schema_id=metadata.current_schema_id,
    )
    more[NAMES_KEY] = name_mapping(
        metadata.properties.get(NAMES_KEY), metadata.schema(), takes_over=first.by_names
    )
    main = SnapshotRef.model_validate({"snapshot-id": snapshot_id, "type": "branch"})
    values = {"snapshot-id": snapshot_id, "timestamp-ms": snapshot.timestamp_ms}
    entry = SnapshotLogEntry.model_validate(values)
    return metadata.model_copy(
        update={
            "last_sequence_number": snapshot.sequence_number,
            **_next_row(metadata, snapshot),
            "snapshots": [*metadata.snapshots, snapshot],
            "snapshot_log": [*metadata.snapshot_log, entry],
            "current_snapshot_id": snapshot_id,
            "refs": {**metadata.refs, MAIN_BRANCH: main},
            "properties": {**metadata.properties, **more},
        }
    )


def _next_row(metadata: Metadata, snapshot: Snapshot) -> dict[str, int]:
    if not isinstance(metadata, TableMetadataV3):
        return {}
    return {"next_row_id": (metadata.next_row_id or 0) + (snapshot.added_rows or 0)}
