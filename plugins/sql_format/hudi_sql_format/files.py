"""Data files in the database, and what an action changes about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from hudi_core.spi import (
    BaseFileName,
    CommitError,
    CommitMetadata,
    FileGroupId,
    FileId,
    FileSlice,
    FileStats,
    FileSystemViewManager,
    MetaClientView,
    PartitionPath,
    TableSchema,
    UnsafePathError,
    UnsupportedTableError,
    WriteStatus,
    touched_groups,
    written_files,
)
from hudi_core.spi.files import (
    Positions,
    all_deleted_positions,
    deleted_positions,
    field_id,
    leaves,
    read_footer,
    read_statistics,
)
from hudi_sql_format.bounds import bound_rows, columns_of
from hudi_sql_format.state import Head
from hudi_sql_format.tables import BOUNDS, DELETED, FILES, INSTANTS

_LOG: Final = re.compile(r"\.(?P<group>.+)_(?P<instant>\d+)\.log\.\d+(_.+)?")
"""The name of a log file, which is kept for Hudi's readers: what it deletes is in the database."""
_ROWS_AT_ONCE: Final = 10_000


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that the table gets.

    ``path`` is relative to the table; ``rows`` is ``None`` where it is not known. ``bounds`` are
    rows of its statistics. ``is_present``: it is in the new state.
    """

    path: str
    size: int
    rows: int | None
    bounds: Sequence[Mapping[str, Any]] = ()
    is_present: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """What an action does to the files of a table.

    ``dead`` are the positions of rows that it deletes, by paths of files.
    """

    files: tuple[NewFile, ...] = ()
    old_groups: frozenset[FileGroupId] = field(default_factory=frozenset)
    dead: Mapping[str, Positions] = field(default_factory=dict)


NOTHING: Final = Change()
"""The change of an action that concerns no file of the present state."""


def is_split(meta_client: MetaClientView) -> bool:
    """Whether rows of a table are deleted by their positions."""
    # tables whose log files have rows are none of this format
    return meta_client.config.table_type == "MERGE_ON_READ"


def change_of_write(
    meta_client: MetaClientView,
    metadata: CommitMetadata,
    statuses: Sequence[WriteStatus],
    views: FileSystemViewManager | None,
) -> Change:
    """What a write adds, removes and deletes.

    Statistics that ``statuses`` lack are read from the footers.
    """
    text = metadata.schema_json
    schema = _columns(meta_client, None if text is None else TableSchema.from_avro(text))
    known = {status.stat.path: status.columns for status in statuses if status.columns}
    files = []
    logged = set()
    for stat in written_files(metadata):
        path, size = str(stat.path), stat.file_size_in_bytes
        folder, group, _ = _name_of(path)
        if not size:
            raise CommitError(
                f"The commit does not record the size of {path}", "Undo this commit.", path=path
            )
        if _is_log(path):
            logged.add(FileGroupId(folder, group))
            files.append(NewFile(path, size, None, is_present=False))
            continue
        stats = known.get(path)
        if stats is None:
            stats = _sure(read_statistics(meta_client, path, schema), schema)
        files.append(NewFile(path, size, stat.num_writes, _bounds(stats, schema)))
    for stat in metadata.stats:
        # in no state; were it unknown, the file before it would seem to be the latest of its group
        path, size = str(stat.path), stat.file_size_in_bytes
        if stat.path and size and not stat.num_writes and not _is_log(path):
            _name_of(path)
            files.append(NewFile(path, size, 0, is_present=False))
    # a group that rows are deleted from keeps its file
    gone = frozenset(touched_groups(metadata) - logged)
    return Change(tuple(files), gone, deleted_positions(meta_client, metadata, views))


def dead_rows(meta_client: MetaClientView, slices: Sequence[FileSlice]) -> Mapping[str, Positions]:
    """Positions of all dead rows of present files, by paths."""
    return all_deleted_positions(meta_client, slices) if is_split(meta_client) else {}


def present_file(meta_client: MetaClientView, path: str, size: int) -> NewFile:
    """A file of the present state, as its footer describes it."""
    schema = _columns(meta_client)
    _name_of(path)
    footer = read_footer(meta_client, path, schema)
    return NewFile(path, size, footer.rows, _bounds(_sure(footer.columns, schema), schema))


def has_log_files(meta_client: MetaClientView, partition: str) -> UnsupportedTableError:
    """The error for a slice with log files."""
    return UnsupportedTableError(
        meta_client.base_path,
        f"has log files in {partition or 'its folder'}",
        "Compact the table first; the SQL format has no log files but those that delete rows by "
        "their positions, in tables of the mode split.",
    )


def apply(connection: Connection, head: Head, number: int, change: Change) -> None:
    """Make a change, as part of the state with a number."""
    if change.old_groups:
        groups = [
            {"in_path": group.partition_path, "in_group": group.file_id}
            for group in change.old_groups
        ]
        of_group = and_(
            FILES.c.table_id == head.id,
            FILES.c.partition_path == bindparam("in_path"),
            FILES.c.file_group == bindparam("in_group"),
            FILES.c.added.is_not(None),
            FILES.c.removed.is_(None),
        )
        connection.execute(update(FILES).where(of_group).values(removed=number), groups)
    add(connection, head.id, number, change.files, head.next_file)
    delete_rows(connection, head.id, number, change.dead)


def add(
    connection: Connection, table_id: int, number: int, files: Iterable[NewFile], first: int = 1
) -> None:
    """Put files into the database as part of a state."""
    rows, bounds = [], []
    for at, one in enumerate(files, first):
        folder, group, instant = _name_of(one.path)
        rows.append(
            {
                "table_id": table_id,
                "id": at,
                "partition_path": folder,
                "file_group": group,
                "name": one.path.rpartition("/")[2],
                "instant": instant,
                "size_in_bytes": one.size,
                "row_count": one.rows,
                "added": number if one.is_present else None,
                "removed": None if one.is_present else number,
            }
        )
        bounds += [{**each, "table_id": table_id, "file_id": at} for each in one.bounds]
    if rows:
        connection.execute(insert(FILES), rows)
    if bounds:
        connection.execute(insert(BOUNDS), bounds)


def delete_rows(
    connection: Connection, table_id: int, number: int, dead: Mapping[str, Positions]
) -> None:
    """Delete rows of present files, in a state with a number."""
    for path, positions in dead.items():
        file, added, removed = find(connection, table_id, path)
        if added is None or removed is not None:
            raise CommitError(
                f"The database does not name {path}, of which this commit deletes rows",
                "Another instant has taken the file out. Undo this commit.",
                path=path,
            )
        of_file = and_(DELETED.c.table_id == table_id, DELETED.c.file_id == file)
        known = connection.execute(select(DELETED.c.position).where(of_file)).scalars().all()
        new = np.setdiff1d(positions, np.asarray(known, np.int64)).tolist()
        row = {"table_id": table_id, "file_id": file, "deleted": number}
        for at in range(0, len(new), _ROWS_AT_ONCE):
            some = new[at : at + _ROWS_AT_ONCE]
            connection.execute(insert(DELETED), [row | {"position": one} for one in some])


def remove(connection: Connection, table_id: int, ids: Sequence[int]) -> None:
    """Take files out of the database, with their statistics and dead rows."""
    if not ids:
        return
    chosen = [{"in_id": one} for one in ids]
    each = (BOUNDS, BOUNDS.c.file_id), (DELETED, DELETED.c.file_id), (FILES, FILES.c.id)
    for table, number in each:
        of_file = and_(table.c.table_id == table_id, number == bindparam("in_id"))
        connection.execute(delete(table).where(of_file), chosen)


def forget_rolled_back(connection: Connection, table_id: int) -> None:
    """Take the files of revoked instants out of the database."""
    revoked = select(INSTANTS.c.instant).where(
        INSTANTS.c.table_id == table_id, INSTANTS.c.is_revoked
    )
    gone = select(FILES.c.id).where(
        FILES.c.table_id == table_id, FILES.c.added.is_(None), FILES.c.instant.in_(revoked)
    )
    remove(connection, table_id, connection.execute(gone).scalars().all())


def find(connection: Connection, table_id: int, path: str) -> tuple[int, int | None, int | None]:
    """Number of a file, and its first and last state.

    The number of an unknown one is zero."""
    folder, _, name = path.rpartition("/")
    parsed = _parsed(name)
    of_path = and_(
        FILES.c.table_id == table_id,
        FILES.c.partition_path == folder,
        FILES.c.file_group == (parsed[0] if parsed else ""),
        FILES.c.name == name,
    )
    found = connection.execute(
        select(FILES.c.id, FILES.c.added, FILES.c.removed).where(of_path)
    ).one_or_none()
    return (0, None, None) if found is None else (found[0], found[1], found[2])


def _columns(meta_client: MetaClientView, schema: TableSchema | None = None) -> pa.Schema:
    found = meta_client.schema if schema is None else schema
    return found.with_meta() if meta_client.config.populate_meta_fields else found.arrow


def _bounds(stats: FileStats, schema: pa.Schema) -> list[dict[str, Any]]:
    return bound_rows(stats, columns_of(schema), _ids(schema))


def _ids(schema: pa.Schema) -> dict[str, int]:
    return {path: number for path, one in leaves(schema) if (number := field_id(one)) is not None}


def _sure(stats: FileStats, schema: pa.Schema) -> FileStats:
    """What a footer has for sure.

    It does not say whether there is NaN."""
    floating = {path for path, one in leaves(schema) if pt.is_floating(one.type)}
    return {
        path: replace(one, min_value=None, max_value=None) if path in floating else one
        for path, one in stats.items()
    }


def _is_log(path: str) -> bool:
    return _LOG.fullmatch(path.rpartition("/")[2]) is not None


def _parsed(name: str) -> tuple[FileId, str] | None:
    """File group and instant of a name; ``None`` where it has none."""
    base, log = BaseFileName.parse(name), _LOG.fullmatch(name)
    if base is not None:
        return base.file_id, base.instant
    return None if log is None else (FileId(log["group"]), log["instant"])


def _name_of(path: str) -> tuple[PartitionPath, FileId, str]:
    """Folder, file group and instant of a data file."""
    folder, _, name = path.rpartition("/")
    parsed = _parsed(name)
    if parsed is None or ".." in folder.split("/") or path.startswith("/"):
        raise UnsafePathError(path, "it is no data file of its partition", "Undo this commit.")
    return PartitionPath(folder), *parsed
