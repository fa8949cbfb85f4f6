"""The present state of a table, and the instants that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, select

from hudi_core.spi import (
    Action,
    CommitConflictError,
    CorruptMetadataError,
    ForeignCommitError,
    Instant,
    InstantTime,
    Lineage,
    Publication,
    warn_of_foreign_commits,
)
from hudi_sql_format.database import Database
from hudi_sql_format.tables import INSTANTS, TABLES

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Head:
    """The present state.

    ``id`` is the table in the database. ``hudi_version`` is the last state that Hudi made; states
    before ``oldest_version`` cannot be read. ``watermark`` is the completion time up to which
    instants are complete; ``columns`` is an Avro schema with field ids; ``next_file`` is a number.
    """

    id: int
    version: int
    hudi_version: int
    oldest_version: int
    watermark: str | None
    columns: str
    next_file: int


@dataclass(frozen=True, slots=True)
class TableState:
    """A state, with its instants.

    ``operations`` gives the versions of the instants in ``lineage``, and of those that were taken
    out. ``revoked`` are instants that are never taken, by time and action.
    """

    head: Head
    lineage: Lineage
    versions: Mapping[Key, int] = field(default_factory=dict)
    revoked: frozenset[Key] = frozenset()

    def holds(self, instant: Instant) -> bool:
        """Whether an instant that step 1 has completed is complete here."""
        return key_of(instant) not in self.revoked and self.lineage.holds(instant)

    def names(self, instant: Instant) -> bool:
        """Whether an instant is recorded by name."""
        return self.lineage.names(instant)

    def publication(self, instant: Instant) -> Publication | None:
        """The publication of an instant; ``None`` where it is not complete."""
        if key_of(instant) in self.revoked:
            return None
        return self.lineage.publication(instant, str(self.head.version))

    def require_ours(self, database: Database) -> None:
        """Refuse to build on a state of another writer."""
        if self.is_foreign:
            raise self._foreign(database)

    def look_for_foreign(self, database: Database) -> None:
        """Warn once of a state of another writer; reads go on."""
        if self.is_foreign:
            where, version = _where(database), str(self.head.version)
            warn_of_foreign_commits(where, version, lambda: self._foreign(database))

    @property
    def is_foreign(self) -> bool:
        """Whether another writer made the state."""
        return self.head.version != self.head.hudi_version

    def _foreign(self, database: Database) -> ForeignCommitError:
        first, last = self.head.hudi_version + 1, self.head.version
        made = f"version {last}" if first >= last else f"versions {first} to {last}"
        return ForeignCommitError(
            database.base_path,
            _where(database),
            [made],
            version=str(last),
            hudi_version=str(self.head.hudi_version),
            can_take_in=False,
        )

    def require_expected(self, expected: str | None) -> None:
        """Refuse to change another state than the one that was decided on."""
        if expected not in (None, str(self.head.version)):
            raise CommitConflictError(
                f"The SQL metadata of the table is at version {self.head.version}, not {expected}",
                "Run it again.",
                version=self.head.version,
            )


def _where(database: Database) -> str:
    return f"the SQL metadata in {database.location}"


_HEAD: Final = select(
    TABLES.c.id,
    TABLES.c.version,
    TABLES.c.hudi_version,
    TABLES.c.oldest_version,
    TABLES.c.completed_watermark,
    TABLES.c.columns,
    TABLES.c.next_file,
)
_INSTANTS: Final = select(
    INSTANTS.c.instant,
    INSTANTS.c.action,
    INSTANTS.c.completion_time,
    INSTANTS.c.version,
    INSTANTS.c.is_revoked,
)


def find_head(connection: Connection, table: str) -> Head | None:
    """The present state of a table; ``None`` where it is unknown."""
    found = connection.execute(_HEAD.where(TABLES.c.name == table)).one_or_none()
    return None if found is None else Head(*found)


def require_head(connection: Connection, database: Database) -> Head:
    """The present state of a table."""
    found = find_head(connection, database.table)
    if found is None:
        raise CorruptMetadataError(
            database.location,
            f"the database does not know the table {database.table}",
            "Restore the database from a backup, or rebuild the metadata by `hudi table repair`. "
            "A table that was moved is known by its former folder.",
        )
    return found


def read_state(database: Database) -> TableState:
    """The present state of a table, with its instants."""
    with database.reading() as connection:
        head = require_head(connection, database)
        found = connection.execute(_INSTANTS.where(INSTANTS.c.table_id == head.id)).all()
    try:
        return _state(head, found)
    except (TypeError, ValueError) as error:
        raise CorruptMetadataError(database.location, f"an instant is damaged: {error}") from error


def _state(head: Head, rows: Sequence[Any]) -> TableState:
    held, versions, revoked = [], {}, set()
    for time, action, completed, version, is_revoked in rows:
        versions[time, action] = version
        if is_revoked:
            revoked.add((time, action))
            continue
        held.append(
            Publication(InstantTime(time), Action(action), str(version), InstantTime(completed))
        )
    mark = None if head.watermark is None else InstantTime(head.watermark)
    return TableState(head, Lineage.of(held, mark), versions, frozenset(revoked))


def key_of(instant: Instant) -> Key:
    """Requested time and the action as which an instant completes."""
    return instant.requested_time, str(instant.action.completed_action)


def row_of(table_id: int, key: Key) -> ColumnElement[bool]:
    """Condition for the row of an instant."""
    time, action = key
    return and_(
        INSTANTS.c.table_id == table_id, INSTANTS.c.instant == time, INSTANTS.c.action == action
    )
