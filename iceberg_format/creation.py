"""First state of an Iceberg table: columns, partitions, files.

It is made with a new table, when a table that has rows is given the format, and when metadata is
rebuilt. Files that other writers made carry no field ids; their columns are identified by name then
(``schema.name-mapping.default``). A column that gets another name later keeps its former ones
there, for files that are as old.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PARTITION_FIELD_ID_START
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

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
from iceberg_format.catalog import KEPT_VERSIONS, MOVED_KEY, TableState
from iceberg_format.commit import make_snapshot, new_snapshot_id
from iceberg_format.external import ExternalCatalog
from iceberg_format.foreign import require_hudi_lineage
from iceberg_format.lineage import FIRST, STATE_KEY
from iceberg_format.manifests import ManifestStore
from iceberg_format.partition import partition_specs
from iceberg_format.schema import NAMES_KEY, iceberg_schema, name_mapping
from iceberg_format.summary import change_summary
from iceberg_format.table import IcebergTable
from iceberg_format.writes import AddedFile, file_of


@dataclass(frozen=True, slots=True)
class _First:
    """What a table starts with.

    Attributes
    ----------
    files
        The present files.
    watermark
        Completion time up to which all is complete.
    by_names
        Whether columns of a file carry no field ids.
    """

    files: Sequence[DataFile]
    watermark: str | None
    by_names: bool = False


def check(table: IcebergTable) -> None:
    """Refuse a Hudi table that has no Iceberg table; nothing is changed.

    Raises
    ------
    InvalidOptionError, UnsupportedTableError, SchemaError
        Names what is in the way.
    StorageError
        The catalog does not answer.
    """
    _empty(table)
    table.catalog.check()


def rebuild(table: IcebergTable, view_manager: FileSystemViewManager) -> TableState:
    """Rebuild the Iceberg table as one new version.

    Whatever its catalog has.

    The table keeps its id, where that can be read; snapshots of before are not in it any more. A
    catalog that does not have the table yet takes it over from the folder as it is, where that
    holds all that the Hudi timeline does.

    Raises
    ------
    UnsupportedTableError, SchemaError
        Iceberg cannot hold the table; nothing has changed.
    InvalidOptionError
        The catalog has another table of the name, which stays; nothing has changed.
    CommitConflictError
        Another writer was at work; nothing has changed.
    """
    empty = _empty(table)
    seen = table.catalog.newest()
    try:
        before = table.catalog.load()
    except (CorruptMetadataError, UnfinishedMoveError, UnsupportedTableError):
        before = None
    if before is not None and before.metadata.location == empty.location:
        kept = {
            "table_uuid": before.metadata.table_uuid,
            "last_sequence_number": before.metadata.last_sequence_number,
        }
        empty = empty.model_copy(update=kept)
        if NAMES_KEY in before.metadata.properties:
            # files without ids that are as old know columns by their names of then
            empty.properties[NAMES_KEY] = before.metadata.properties[NAMES_KEY]
    moved = _from_folder(table) if before is None else None
    metadata = moved or _whole(table, empty, view_manager)
    try:
        return table.catalog.replace(metadata, seen)
    except CommitFailedException as error:
        raise CommitConflictError(
            f"Another writer changed the Iceberg table at {table.location} ({error})",
            "Nothing has changed; run it again.",
        ) from error


def check_files(table: IcebergTable, view_manager: FileSystemViewManager) -> None:
    """Refuse tables with files that Iceberg cannot have.

    Nothing is changed.

    Raises
    ------
    UnsupportedTableError
        Iceberg cannot hold a file.
    """
    _existing(table, _empty(table), view_manager)


def _from_folder(table: IcebergTable) -> TableMetadataV2 | None:
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


def _whole(
    table: IcebergTable, empty: TableMetadataV2, view_manager: FileSystemViewManager
) -> TableMetadataV2:
    first = _existing(table, empty, view_manager)
    return _with_snapshot(table, empty, first)


def _empty(table: IcebergTable) -> TableMetadataV2:
    client = table.client
    schema = iceberg_schema(client.schema, 0, with_meta=client.config.populate_meta_fields)
    specs = partition_specs(client.config, schema)
    return TableMetadataV2.model_validate(
        {
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
            },
        }
    )


def _existing(
    table: IcebergTable, metadata: TableMetadataV2, view_manager: FileSystemViewManager
) -> _First:
    client = table.client
    completed = [one for one in client.timeline().instants if one.is_completed]
    if not completed:
        return _First((), None)
    slices = view_manager.view().latest_slices()
    columns = client.schema

    def describe(one: FileSlice) -> AddedFile:
        if one.base_file is None or one.log_files:
            raise UnsupportedTableError(
                client.base_path,
                f"has log files in {one.partition_path or 'its folder'}",
                "Compact the table first; the Iceberg format holds copy-on-write tables.",
            )
        status = one.base_file.status
        schema = metadata.schema()
        return file_of(
            table, metadata, one.base_file.path, status.size, schema=schema, columns=columns
        )

    files = list(client.run_map(describe, slices))
    watermark = max(one.effective_completion_time for one in completed)
    by_names = any(not one.has_ids for one in files)
    return _First([one.file for one in files], watermark, by_names)


def _with_snapshot(
    table: IcebergTable, metadata: TableMetadataV2, first: _First
) -> TableMetadataV2:
    store = ManifestStore(table.files, table.folder, metadata)
    # not that of the first state of another time
    snapshot_id = new_snapshot_id(metadata, f"first {uuid.uuid4()}")
    files = store.rewrite(None, snapshot_id, first.files, frozenset())
    operation, counts = change_summary(first.files, (), {})
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
    return metadata.model_copy(
        update={
            "last_sequence_number": snapshot.sequence_number,
            "snapshots": [snapshot],
            "current_snapshot_id": snapshot_id,
            "refs": {MAIN_BRANCH: main},
            "properties": {**metadata.properties, **more},
        }
    )
