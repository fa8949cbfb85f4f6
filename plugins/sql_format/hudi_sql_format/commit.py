"""Records an instant in one transaction, by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, update

from hudi_core.spi import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptMetadataError,
    FormatCommit,
    IncompleteCommitError,
    Instant,
    StorageError,
)
from hudi_sql_format.database import Database
from hudi_sql_format.files import NOTHING, Change, apply, forget_rolled_back
from hudi_sql_format.state import Head, TableState, key_of, read_state, row_of
from hudi_sql_format.tables import INSTANTS, TABLES


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded of an instant.

    ``expected`` is the state it builds on, ``None`` for the one that is read; ``operation`` is
    ``None`` where the action has none. ``columns`` is an Avro schema, set where the instant changes
    it. ``is_undo``: files of instants that were taken out have been deleted.
    """

    instant: Instant
    expected: str | None
    operation: str | None = None
    change: Change = NOTHING
    columns: str | None = None
    is_undo: bool = False


def record(database: Database, what: Record) -> FormatCommit:
    """Record an instant, unless it is recorded.

    After :class:`CommitStateUnknownError` the instant may be recorded.
    """
    instant, state = what.instant, read_state(database)
    found = receipt_of(database, state, instant)
    if found is not None:
        return found
    if key_of(instant) in state.revoked:
        raise IncompleteCommitError(
            f"Instant {instant.requested_time} was taken out of the table in {database.location}",
            "It is being rolled back, or was. Run the write again.",
            instant=instant.requested_time,
        )
    state.require_ours(database)
    state.require_expected(what.expected)
    head, columns = state.head, what.columns
    is_changed = columns is not None and columns != head.columns
    row = {
        "table_id": head.id,
        "operation": what.operation,
        "completion_time": instant.effective_completion_time,
        "is_revoked": False,
        "former_columns": head.columns if is_changed else None,
        **names_of(instant),
    }
    files = len(what.change.files)
    values: dict[str, Any] = {"next_file": head.next_file + files} if files else {}
    if is_changed:
        values["columns"] = columns

    def fill(connection: Connection, number: int) -> None:
        apply(connection, head, number, what.change)
        if what.is_undo:
            forget_rolled_back(connection, head.id)
        connection.execute(insert(INSTANTS), [row | {"version": number}])

    try:
        number = step(database, head, fill, values)
    except (CommitConflictError, CommitStateUnknownError):
        done = receipt_of(database, read_state(database), instant)
        if done is None:
            raise
        return done
    return FormatCommit(str(number), database.location)


def step(
    database: Database,
    head: Head,
    fill: Callable[[Connection, int], object],
    values: Mapping[str, Any],
) -> int:
    """Make the next state, in one transaction.

    ``fill`` does the rest of the change, with the number of the new state, which is returned;
    ``values`` also change in the table's row. :class:`CommitConflictError`: nothing has changed;
    :class:`CommitStateUnknownError`: the state may be there.
    """
    number = head.version + 1
    # the row is locked by this: of two writers that come at once the second one finds no row
    compared = (
        update(TABLES)
        .where(
            TABLES.c.id == head.id,
            TABLES.c.version == head.version,
            TABLES.c.hudi_version == head.hudi_version,
        )
        .values(version=number, hudi_version=number, **values)
    )
    try:
        with database.changing() as connection:
            if connection.execute(compared).rowcount != 1:
                raise CommitConflictError(
                    f"The table in {database.location} is not at version {head.version} any more",
                    "Run the write again.",
                    version=head.version,
                )
            fill(connection, number)
    except (StorageError, CorruptMetadataError) as error:
        raise CommitStateUnknownError(
            f"Version {number} of the table in {database.location} may be there or not: "
            f"{error.what}",
            "Nothing was deleted. The next writer finds out what has happened.",
            version=number,
        ) from error
    return number


def receipt_of(database: Database, state: TableState, instant: Instant) -> FormatCommit | None:
    """The receipt of an instant that is recorded; ``None`` for another one."""
    found = state.publication(instant)
    return None if found is None else FormatCommit(found.version, database.location)


def revoke(connection: Connection, table_id: int, instant: Instant, number: int) -> None:
    """Have an instant never be taken again."""
    connection.execute(delete(INSTANTS).where(row_of(table_id, key_of(instant))))
    row = {"table_id": table_id, "version": number, "is_revoked": True, **names_of(instant)}
    connection.execute(insert(INSTANTS), [row])


def names_of(instant: Instant) -> dict[str, str]:
    """The columns that say which instant it is."""
    time, action = key_of(instant)
    return {"instant": time, "action": action}
