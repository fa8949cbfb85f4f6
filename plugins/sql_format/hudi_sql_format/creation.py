"""Making the metadata of a table, and opening it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, delete, insert, select, update

from hudi_core.spi import (
    CommitStateUnknownError,
    CorruptMetadataError,
    FileSystemViewManager,
    FormatCommit,
    MetaClientView,
    StorageError,
)
from hudi_core.spi.files import Positions
from hudi_sql_format.database import Database
from hudi_sql_format.files import (
    NewFile,
    add,
    dead_rows,
    delete_rows,
    has_log_files,
    is_split,
    present_file,
)
from hudi_sql_format.state import find_head, read_state
from hudi_sql_format.tables import BOUNDS, DELETED, FILES, INSTANTS, TABLES


def made(
    meta_client: MetaClientView, database: Database, view_manager: FileSystemViewManager
) -> FormatCommit:
    """Make the metadata of a table's present files.

    What is there gives way.

    A table whose log files have rows is refused. After :class:`CommitStateUnknownError` the
    metadata may be there.
    """
    completed = [one for one in meta_client.timeline().instants if one.is_completed]
    files = tuple(_files(meta_client, view_manager)) if completed else ()
    dead = _dead(meta_client, view_manager) if completed else {}
    mark = max((one.effective_completion_time for one in completed), default=None)
    columns = meta_client.schema.to_avro(meta_client.config.name)
    try:
        _make(database)
        with database.changing() as connection:
            table_id, number = _replace(connection, database.table, columns, mark, files)
            delete_rows(connection, table_id, number, dead)
    except (CorruptMetadataError, StorageError) as error:
        raise CommitStateUnknownError(
            f"The metadata in {database.location} may have been made or not: {error.what}",
            "Run it again.",
        ) from error
    return FormatCommit(str(number), database.location)


def opened(database: Database) -> FormatCommit:
    """The present state."""
    state = read_state(database)
    # a database of an earlier release lacks one
    database.add_tables()
    state.require_ours(database)
    return FormatCommit(str(state.head.version), database.location)


def check_files(meta_client: MetaClientView, view_manager: FileSystemViewManager) -> None:
    """Refuse a table with rows in logs, or a damaged file."""
    for _ in _files(meta_client, view_manager):
        pass
    _dead(meta_client, view_manager)


def _make(database: Database) -> None:
    try:
        database.make()
        with database.reading() as connection:
            find_head(connection, database.table)
            for one in (INSTANTS, FILES, BOUNDS, DELETED):
                connection.execute(select(one).limit(1))
    except CorruptMetadataError:
        if database.path is None:
            raise
        database.forget_file()
        database.make()


def _replace(
    connection: Connection, table: str, columns: str, mark: str | None, files: tuple[NewFile, ...]
) -> tuple[int, int]:
    """Replace what is known of the table by these files.

    Returns its number, and that of the state.
    """
    found = find_head(connection, table)
    values = {"completed_watermark": mark, "columns": columns, "next_file": 1 + len(files)}
    if found is None:
        numbers = {"version": 1, "hudi_version": 1, "oldest_version": 1}
        connection.execute(insert(TABLES), [{"name": table, **numbers, **values}])
        number = 1
    else:
        number = max(found.version, found.hudi_version) + 1
        numbers = {"version": number, "hudi_version": number, "oldest_version": number}
        connection.execute(
            update(TABLES).where(TABLES.c.id == found.id).values(**numbers, **values)
        )
        for one in (FILES, BOUNDS, DELETED):
            connection.execute(delete(one).where(one.c.table_id == found.id))
        # what was fenced off stays out, whatever else is forgotten
        gone = delete(INSTANTS).where(INSTANTS.c.table_id == found.id)
        connection.execute(gone.where(INSTANTS.c.is_revoked.is_(False)) if mark else gone)
    of_name = select(TABLES.c.id).where(TABLES.c.name == table)
    table_id = connection.execute(of_name).scalar_one()
    add(connection, table_id, number, files)
    return table_id, number


def _dead(
    meta_client: MetaClientView, view_manager: FileSystemViewManager
) -> Mapping[str, Positions]:
    return dead_rows(meta_client, view_manager.view().latest_slices())


def _files(meta_client: MetaClientView, view_manager: FileSystemViewManager) -> Iterator[NewFile]:
    """The present files, those of earlier slices, and logs."""
    view = view_manager.view()
    slices = view.latest_slices()
    present = []
    for one in slices:
        if one.base_file is None or (one.log_files and not is_split(meta_client)):
            raise has_log_files(meta_client, one.partition_path)
        present.append(one.base_file)
    described = meta_client.run_map(
        lambda file: present_file(meta_client, str(file.path), file.size), present
    )
    paths = {str(file.path) for file in present}
    for file in described:
        if file.rows:
            yield file
        else:
            yield NewFile(file.path, file.size, file.rows, is_present=False)
    for group in view.file_groups():
        for older in group.slices:
            base = older.base_file
            if base is not None and str(base.path) not in paths:
                yield NewFile(str(base.path), base.size, None, is_present=False)
            for log in older.log_files:
                yield NewFile(log.status.path, log.status.size, None, is_present=False)
