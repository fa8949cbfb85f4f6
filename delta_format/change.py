"""What an action changes in the files that a Delta log names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from delta_format.schema import file_schema
from delta_format.stats import without_float_bounds
from hudi_core.spi import (
    BaseFileName,
    CommitError,
    CommitMetadata,
    FileGroupId,
    FileStats,
    MetaClientView,
    TableSchema,
    TakenIn,
    UnsafePathError,
    WriteStat,
    WriteStatus,
    outgoing_groups,
    touched_groups,
)
from hudi_core.spi.files import read_statistics


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that a write made.

    ``path`` is relative to the table; ``columns`` are statistics by leaf path.
    """

    path: str
    size: int
    rows: int
    columns: FileStats


@dataclass(frozen=True, slots=True)
class Change:
    """What one action does to the files of a table.

    ``new_files`` without rows are left out. ``schema`` is ``None`` where the action does not change
    it. ``same_rows``: as in a clustering. ``taken`` are files of other writers, whose rows the new
    files have; the groups in ``replaced`` have to be there for that.
    """

    new_files: tuple[NewFile, ...] = ()
    old_groups: frozenset[FileGroupId] = field(default_factory=frozenset)
    schema: pa.Schema | None = None
    same_rows: bool = False
    taken: TakenIn | None = None
    replaced: frozenset[FileGroupId] = field(default_factory=frozenset)


NOTHING = Change()
"""The change of an action that concerns no file of the present state."""


def change_of_write(
    meta_client: MetaClientView,
    metadata: CommitMetadata,
    statuses: Sequence[WriteStatus],
    *,
    same_rows: bool = False,
) -> Change:
    """The files that a write adds and removes.

    Statistics that ``statuses`` lack are read from the footers.
    """
    schema = _schema_of(meta_client, metadata)
    known = {status.stat.path: status.columns for status in statuses if status.columns}
    new_files = [
        _new_file(meta_client, partition, stat, known, schema)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if stat.path and stat.num_writes
    ]
    taken = TakenIn.of(metadata.extra_metadata, meta_client.config.table_format)
    groups = frozenset(touched_groups(metadata))
    replaced = frozenset() if taken is None else outgoing_groups(metadata)
    return Change(tuple(new_files), groups, schema, same_rows, taken, replaced)


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
