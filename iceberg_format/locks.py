"""A sql catalog's lock: a lease in its database.

One row for each table, changed by conditional updates only, so that the database lets one of
several writers through::

    hudi_table_locks(name, owner, beat, lease_s)

Its holder counts ``beat`` up. Clocks are not compared: who waits takes over a row that it has
itself seen unchanged for a full lease. A row without an owner is free. The other catalogs lock
nothing for longer than a commit, and offer none; a folder needs none beside that of the store.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from hudi_core.spi import (
    HeldLock,
    InProcessLock,
    LockProvider,
    MetaClientView,
    Renewal,
    StorageError,
)
from iceberg_format.external import ExternalCatalog
from iceberg_format.table import IcebergTable

if TYPE_CHECKING:
    from sqlalchemy import Engine

LEASE_S: Final = 60
_RENEWALS: Final = 10
_MEMORY: Final = (None, "", ":memory:")

_MAKE: Final = (
    "CREATE TABLE IF NOT EXISTS hudi_table_locks (name VARCHAR(512) PRIMARY KEY, "
    "owner VARCHAR(64) NOT NULL, beat BIGINT NOT NULL, lease_s BIGINT NOT NULL)"
)
_READ: Final = "SELECT owner, beat, lease_s FROM hudi_table_locks WHERE name = :name"
_ADD: Final = "INSERT INTO hudi_table_locks (name, owner, beat, lease_s) VALUES (:name, '', 0, 0)"
_TAKE: Final = (
    "UPDATE hudi_table_locks SET owner = :mine, beat = beat + 1, lease_s = :lease "
    "WHERE name = :name AND owner = :owner AND beat = :beat"
)
_BEAT: Final = "UPDATE hudi_table_locks SET beat = beat + 1 WHERE name = :name AND owner = :mine"
_FREE: Final = (
    "UPDATE hudi_table_locks SET owner = '', beat = beat + 1 WHERE name = :name AND owner = :mine"
)


def catalog_lock(meta_client: MetaClientView) -> LockProvider | None:
    """Return a catalog's lock; ``None`` without a lasting one."""
    if not any(key.startswith("catalog.") for key in meta_client.format_options):
        return None  # asked of tables, too, whose metadata is yet to be brought in order
    catalog = IcebergTable.open(meta_client).catalog
    if not isinstance(catalog, ExternalCatalog):
        return None
    engine = getattr(catalog.catalog, "engine", None)  # only sql catalogs have one
    return None if engine is None else SqlLease(engine, ".".join(catalog.identifier))


@dataclass(frozen=True, slots=True)
class _Row:
    owner: str
    beat: int
    lease_s: int


class _Hold(NamedTuple):
    owner: str
    renewal: Renewal


class SqlLease(HeldLock["_Hold"]):
    """Excludes all who lock a table through one database."""

    first_pause_s = 0.02

    def __init__(self, engine: Engine, name: str, lease_s: int = LEASE_S) -> None:
        super().__init__(InProcessLock(f"/{engine.url.render_as_string()}/{name}"))
        self._engine, self._name, self.lease_s = engine, name, lease_s
        self._is_made = False
        self._watched: tuple[_Row, float] | None = None

    @property
    def excludes_processes(self) -> bool:
        """Whether other processes see the database, unlike one in memory."""
        url = self._engine.url
        return not (url.get_backend_name() == "sqlite" and url.database in _MEMORY)

    def _give_back(self, held: _Hold) -> None:
        held.renewal.stop()
        # one that cannot be given back runs out
        with contextlib.suppress(StorageError):
            self._update(_FREE, mine=held.owner)

    def _left(self, held: _Hold) -> float:
        return held.renewal.left()

    def _take(self) -> _Hold | None:
        """Take the lock if it is free now."""
        row = self._row()
        if row.owner and not self._is_left(row):
            self._owner = f"the writer {row.owner}, for {row.lease_s} s after it is last seen"
            return None
        owner, started = uuid.uuid4().hex, time.monotonic()
        taken = self._update(_TAKE, mine=owner, lease=self.lease_s, owner=row.owner, beat=row.beat)
        if not taken:
            return None
        self._watched = None
        renewal = Renewal(self.lease_s, self.lease_s / _RENEWALS, lambda: self.beat(owner))
        renewal.start(started)
        return _Hold(owner, renewal)

    def _is_left(self, row: _Row) -> bool:
        """Whether a row has been seen unchanged for its lease."""
        now = time.monotonic()
        if self._watched is None or self._watched[0] != row:
            self._watched = row, now
        return now - self._watched[1] > row.lease_s

    def _row(self) -> _Row:
        found = self._ask(_READ)
        if found is None:
            with contextlib.suppress(StorageError):  # another writer may be adding it
                self._update(_ADD)
            found = self._ask(_READ)
        if found is None:
            raise _failed("it keeps no row of the lock")
        return found

    def _ask(self, statement: str) -> _Row | None:
        from sqlalchemy import text  # noqa: PLC0415 - comes with pyiceberg's sql catalogs only
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        try:
            with self._engine.begin() as connection:
                if not self._is_made:
                    connection.execute(text(_MAKE))
                row = connection.execute(text(statement), {"name": self._name}).one_or_none()
        except SQLAlchemyError as error:
            raise _failed(str(error)) from error
        self._is_made = True
        return None if row is None else _Row(str(row[0]), int(row[1]), int(row[2]))

    def _update(self, statement: str, **values: object) -> bool:
        from sqlalchemy import text  # noqa: PLC0415
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        try:
            with self._engine.begin() as connection:
                done = connection.execute(text(statement), {"name": self._name, **values})
        except SQLAlchemyError as error:
            raise _failed(str(error)) from error
        return done.rowcount == 1

    def beat(self, owner: str) -> bool:
        """Renew the lease; ``False`` when another writer has taken it over."""
        return self._update(_BEAT, mine=owner)


def _failed(why: str) -> StorageError:
    return StorageError(
        f"The database of the Iceberg catalog does not answer for the table's lock: {why}",
        "Nothing was written. Try again once it answers, or name another lock in "
        "hoodie.write.lock.provider.",
    )
