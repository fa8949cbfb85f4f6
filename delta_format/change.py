"""What an action changes in the files that a Delta log names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from delta_format.schema import file_schema
from delta_format.stats import without_float_bounds
from delta_format.vectors import Vector
from hudi_core.spi import (
    BaseFileName,
    CommitError,
    CommitMetadata,
    FileGroupId,
    FileId,
    FileStats,
    FileSystemViewManager,
    MetaClientView,
    PartitionPath,
    TableSchema,
    TakenIn,
    UnsafePathError,
    WriteOperation,
    WriteStat,
    WriteStatus,
    outgoing_groups,
    touched_groups,
)
from hudi_core.spi.files import Positions, deleted_positions, read_statistics


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that a write made.

    ``path`` is relative to the table; ``columns`` are statistics by leaf path. ``rows`` are all in
    it, also those that ``vector`` takes out. ``spelling`` is that of a log which names it already.
    """

    path: str
    size: int
    rows: int
    columns: FileStats
    vector: Vector | None = None
    spelling: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What one action does to the files of a table.

    ``new_files`` without rows are left out. ``schema`` is ``None`` where the action does not change
    it. ``same_rows``: as in a clustering. ``taken`` are files of other writers, whose rows the new
    files have; the groups in ``replaced`` have to be there for that. ``dead`` are the positions of
    deleted rows, in files by their paths: all of a new file's, and those of others that come to the
    ones before.
    """

    new_files: tuple[NewFile, ...] = ()
    old_groups: frozenset[FileGroupId] = field(default_factory=frozenset)
    schema: pa.Schema | None = None
    same_rows: bool = False
    taken: TakenIn | None = None
    replaced: frozenset[FileGroupId] = field(default_factory=frozenset)
    dead: Mapping[str, Positions] = field(default_factory=dict)


NOTHING = Change()
"""The change of an action that concerns no file of the present state."""


_SAME_ROWS: Final = (WriteOperation.CLUSTER, WriteOperation.COMPACT)
"""Operations that write rows again."""


def change_of_write(
    meta_client: MetaClientView,
    metadata: CommitMetadata,
    statuses: Sequence[WriteStatus],
    views: FileSystemViewManager | None,
) -> Change:
    """The files that a write adds and removes, and rows it deletes.

    Statistics that ``statuses`` lack are read from the footers.
    """
    schema = _schema_of(meta_client, metadata)
    same_rows = metadata.operation_type in _SAME_ROWS
    dead = deleted_positions(meta_client, metadata, views)
    known = {status.stat.path: status.columns for status in statuses if status.columns}
    new_files = [
        _new_file(meta_client, partition, stat, known, schema)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if stat.path and stat.num_writes and not _is_log(stat)
    ]
    taken = TakenIn.of(metadata.extra_metadata, meta_client.config.table_format)
    logged = {
        FileGroupId(PartitionPath(partition), FileId(stat.file_id or ""))
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if _is_log(stat)
    }
    # a group that rows are deleted from keeps its file
    groups = frozenset(touched_groups(metadata) - logged)
    replaced = frozenset() if taken is None else outgoing_groups(metadata)
    return Change(tuple(new_files), groups, schema, same_rows, taken, replaced, dead)


def _is_log(stat: WriteStat) -> bool:
    return ".log." in str(stat.path).rpartition("/")[2]


def _schema_of(meta_client: MetaClientView, metadata: CommitMetadata) -> pa.Schema:
    text = metadata.schema_json
    return file_schema(meta_client, None if text is None else TableSchema.from_avro(text))


def _new_file(
    meta_client: MetaClientView,
    partition: str,
    stat: WriteStat,
    known: Mapping[str | None, FileStats],
    schema: pa.Schema,
) -> NewFile:
    path, size, rows = str(stat.path), stat.file_size_in_bytes, stat.num_writes
    folder, _, name = path.rpartition("/")
    if folder != partition or BaseFileName.parse(name) is None or ".." in folder.split("/"):
        raise UnsafePathError(path, "it is no base file of its partition", "Undo this commit.")
    if not size or not rows:
        raise CommitError(
            f"The commit does not record size and rows of {path}", "Undo this commit.", path=path
        )
    columns = known.get(path)
    if columns is None:
        columns = _from_footer(meta_client, path, schema)
    return NewFile(path, size, rows, columns)


def _from_footer(meta_client: MetaClientView, path: str, schema: pa.Schema) -> FileStats:
    return without_float_bounds(read_statistics(meta_client, path, schema), schema)
