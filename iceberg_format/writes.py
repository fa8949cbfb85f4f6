"""Changes of the Iceberg table from a write's Hudi metadata."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from hudi_core.spi import (
    TAKES_IN_KEY,
    CommitMetadata,
    Completion,
    TableSchema,
    TakenIn,
    WriteOperation,
    WriteStat,
    WriteStatus,
    instant_keys,
    outgoing_groups,
)
from hudi_core.spi.files import deleted_positions
from iceberg_format.commit import Change
from iceberg_format.lineage import xtable_key
from iceberg_format.schema import iceberg_schema, schema_left
from iceberg_format.stats import data_file, read_footer
from iceberg_format.table import IcebergTable

_log: Final = logging.getLogger(__name__)
_SAME_ROWS: Final = (WriteOperation.CLUSTER, WriteOperation.COMPACT)
"""Operations that write rows again."""


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file as manifests have it.

    ``has_ids``: its columns carry field ids; readers find those of other files by their names.
    ``old_lists`` are columns with lists of two levels.
    """

    file: DataFile
    has_ids: bool = True
    old_lists: tuple[str, ...] = ()


def warn_of_old_lists(table: IcebergTable, files: Sequence[AddedFile]) -> None:
    """Log that readers fail on published files of other engines."""
    old = [one for one in files if one.old_lists]
    if old:
        columns = sorted({name for one in old for name in one.old_lists})
        path = table.client.base_path
        _log.warning(
            "%d data file%s of %s, which another engine wrote, hold%s lists of two levels in the "
            "columns %s: Iceberg's specification wants three, and its readers in Java fail on "
            "them. `hudi table repair %s` rewrites such files.",
            *(len(old), "s" * (len(old) > 1), path, "s" * (len(old) == 1)),
            *(", ".join(columns), path),
        )


def change_of_write(
    table: IcebergTable,
    metadata: TableMetadata,
    completion: Completion,
    commit: CommitMetadata,
) -> Change:
    """The files and rows that a write adds and removes.

    Statistics that the completion lacks are read from the footers.
    """
    instant, statuses = completion.instant, completion.write_statuses
    columns = schema_left(table.client, commit)
    schema = iceberg_schema(columns, 0, with_meta=table.client.config.populate_meta_fields)
    described = {status.stat.path: status for status in statuses}
    written = [
        _added(table, metadata, stat, described.get(stat.path), schema=schema, columns=columns)
        for stat in commit.stats
        if stat.path and not is_log(stat)
    ]
    warn_of_old_lists(table, written)
    keys = {**instant_keys(instant, commit.operation_type), **xtable_key(instant)}
    taken = taken_by(table, commit)
    if taken is not None:
        keys[TAKES_IN_KEY] = taken.version
    return Change(
        keys=keys,
        added=[one.file for one in written],
        gone=outgoing_groups(commit),
        schema=schema,
        same_rows=commit.operation_type in _SAME_ROWS,
        taken=frozenset(() if taken is None else taken.files),
        by_names=any(not one.has_ids for one in written),
        dead=deleted_positions(table.client, commit, completion.view_manager),
    )


def is_log(stat: WriteStat) -> bool:
    """Whether a write stat is of a log file."""
    name = (stat.path or "").rpartition("/")[2]
    return name.startswith(".") and ".log." in name


def is_split(table: IcebergTable) -> bool:
    """Whether commits delete rows of data files by their positions."""
    config = table.client.config
    return config.table_type == "MERGE_ON_READ" and config.merge_on_read_mode == "split"


def taken_by(table: IcebergTable, commit: CommitMetadata) -> TakenIn | None:
    """What a write takes in of snapshots that no Hudi writer made."""
    return TakenIn.of(commit.extra_metadata, table.client.config.table_format)


def file_of(
    table: IcebergTable,
    metadata: TableMetadata,
    path: str,
    size: int,
    *,
    schema: Schema,
    columns: TableSchema,
) -> AddedFile:
    """Return a stored file as manifests have it; its footer is read."""
    uri = table.files.data_uri(path)
    stored = read_footer(table.client.data, path, size, columns)
    file = data_file(
        uri,
        size,
        stored.rows,
        stored.columns,
        schema=schema,
        metadata=metadata,
        paths=columns.field_ids(),
        counts_nan=False,
    )
    return AddedFile(file, stored.has_ids, stored.old_lists)


def _added(
    table: IcebergTable,
    metadata: TableMetadata,
    stat: WriteStat,
    status: WriteStatus | None,
    *,
    schema: Schema,
    columns: TableSchema,
) -> AddedFile:
    path, size = stat.path or "", stat.file_size_in_bytes or 0
    if status is None or not status.columns:
        return file_of(table, metadata, path, size, schema=schema, columns=columns)
    uri = table.files.data_uri(path)
    rows = stat.num_writes or 0
    file = data_file(
        uri,
        size,
        rows,
        status.columns,
        schema=schema,
        metadata=metadata,
        paths=columns.field_ids(),
    )
    return AddedFile(file)
