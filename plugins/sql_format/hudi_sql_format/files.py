"""Data files in the database, and what an action changes about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt
from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from hudi_core.spi import (
    BaseFileName,
    CommitError,
    CommitMetadata,
    FileGroupId,
    FileStats,
    MetaClientView,
    TableSchema,
    UnsafePathError,
    UnsupportedTableError,
    WriteStatus,
    touched_groups,
    written_files,
)
from hudi_core.spi.files import field_id, leaves, read_footer, read_statistics
from hudi_sql_format.bounds import bound_rows, columns_of
from hudi_sql_format.state import Head
from hudi_sql_format.tables import BOUNDS, FILES, INSTANTS


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
    """What an action does to the files of a table."""

    files: tuple[NewFile, ...] = ()
    old_groups: frozenset[FileGroupId] = field(default_factory=frozenset)


NOTHING: Final = Change()
"""The change of an action that concerns no file of the present state."""


def change_of_write(
    meta_client: MetaClientView, metadata: CommitMetadata, statuses: Sequence[WriteStatus]
) -> Change:
    """The files that a write adds and removes.

    Statistics that ``statuses`` lack are read from the footers.
    """
    text = metadata.schema_json
    schema = _columns(meta_client, None if text is None else TableSchema.from_avro(text))
    known = {status.stat.path: status.columns for status in statuses if status.columns}
    files = []
    for stat in written_files(metadata):
        path, size = str(stat.path), stat.file_size_in_bytes
        _require_base_file(path)
        if not size:
            raise CommitError(
                f"The commit does not record the size of {path}", "Undo this commit.", path=path
            )
        stats = known.get(path)
        if stats is None:
            stats = _sure(read_statistics(meta_client, path, schema), schema)
        files.append(NewFile(path, size, stat.num_writes, _bounds(stats, schema)))
    for stat in metadata.stats:
        # in no state; were it unknown, the file before it would seem to be the latest of its group
        if stat.path and stat.file_size_in_bytes and not stat.num_writes:
            _require_base_file(str(stat.path))
            files.append(NewFile(str(stat.path), stat.file_size_in_bytes, 0, is_present=False))
    return Change(tuple(files), frozenset(touched_groups(metadata)))


def present_file(meta_client: MetaClientView, path: str, size: int) -> NewFile:
    """A file of the present state, as its footer describes it."""
    schema = _columns(meta_client)
    _require_base_file(path)
    footer = read_footer(meta_client, path, schema)
    return NewFile(path, size, footer.rows, _bounds(_sure(footer.columns, schema), schema))


def has_log_files(meta_client: MetaClientView, partition: str) -> UnsupportedTableError:
    """The error for a slice with log files."""
    return UnsupportedTableError(
        meta_client.base_path,
        f"has log files in {partition or 'its folder'}",
        "Compact the table first; the SQL format holds copy-on-write tables.",
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


def add(
    connection: Connection, table_id: int, number: int, files: Iterable[NewFile], first: int = 1
) -> None:
    """Put files into the database as part of a state."""
    rows, bounds = [], []
    for at, one in enumerate(files, first):
        folder, _, name = one.path.rpartition("/")
        parsed = _require_base_file(one.path)
        rows.append(
            {
                "table_id": table_id,
                "id": at,
                "partition_path": folder,
                "file_group": parsed.file_id,
                "name": name,
                "instant": parsed.instant,
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


def remove(connection: Connection, table_id: int, ids: Sequence[int]) -> None:
    """Take files out of the database, with their statistics."""
    if not ids:
        return
    chosen = [{"in_id": one} for one in ids]
    for table, number in ((BOUNDS, BOUNDS.c.file_id), (FILES, FILES.c.id)):
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
    parsed = BaseFileName.parse(name)
    of_path = and_(
        FILES.c.table_id == table_id,
        FILES.c.partition_path == folder,
        FILES.c.file_group == (parsed.file_id if parsed else ""),
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


def _require_base_file(path: str) -> BaseFileName:
    folder, _, name = path.rpartition("/")
    parsed = BaseFileName.parse(name)
    if parsed is None or ".." in folder.split("/") or path.startswith("/"):
        raise UnsafePathError(path, "it is no base file of its partition", "Undo this commit.")
    return parsed
