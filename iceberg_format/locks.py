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
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_core.spi import InProcessLock, LockProvider, MetaClientView, StorageError
from iceberg_format.external import ExternalCatalog
from iceberg_format.table import IcebergTable

if TYPE_CHECKING:
    from sqlalchemy import Engine

LEASE_S: Final = 60
_RENEWALS: Final = 10
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0
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


class SqlLease:
    """Excludes all who lock a table through one database."""

    def __init__(self, engine: Engine, name: str, lease_s: int = LEASE_S) -> None:
        self._engine, self._name, self.lease_s = engine, name, lease_s
        # threads are served without asking the database
        self._threads = InProcessLock(f"/{engine.url.render_as_string()}/{name}")
        self._is_made = False
        self._watched: tuple[_Row, float] | None = None
        self._renewal: _Renewal | None = None
        self._owner: str | None = None

    def try_lock(self, timeout_s: float) -> bool:
        """Take the lock within ``timeout_s`` seconds, else return ``False``.

        ``False`` as well if this lock is held already.
        """
        deadline = time.monotonic() + max(timeout_s, 0.0)
        if not self._threads.try_lock(timeout_s):
            self._owner = self._threads.owner()
            return False
        try:
            self._renewal = self._wait(deadline)
        finally:
            if self._renewal is None:
                self._threads.unlock()
        return self._renewal is not None

    def unlock(self) -> None:
        """Release the lock, if the calling thread holds it."""
        if not self._threads.is_held:
            return
        renewal, self._renewal = self._renewal, None
        try:
            if renewal is not None:
                renewal.end()
                # one that cannot be given back runs out
                with contextlib.suppress(StorageError):
                    self._update(_FREE, mine=renewal.owner)
        finally:
            self._threads.unlock()

    def lease_left(self) -> float:
        """Return the seconds the lease lasts; 0 when not held."""
        renewal = self._renewal
        return max(0.0, renewal.ends - time.monotonic()) if renewal is not None else 0.0

    def owner(self) -> str | None:
        """Who held the lock when it was last waited for."""
        return self._owner

    @property
    def excludes_processes(self) -> bool:
        """Whether other processes see the database, unlike one in memory."""
        url = self._engine.url
        return not (url.get_backend_name() == "sqlite" and url.database in _MEMORY)

    def _wait(self, deadline: float) -> _Renewal | None:
        pause = _FIRST_PAUSE_S
        while True:
            renewal = self._take()
            left = deadline - time.monotonic()
            if renewal is not None or left <= 0:
                return renewal
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _take(self) -> _Renewal | None:
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
        return _Renewal(self, owner, started)

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


class _Renewal:
    """A held lock, renewed by its own thread."""

    def __init__(self, lock: SqlLease, owner: str, started: float) -> None:
        self._lock, self.owner = lock, owner
        self._lease_s = lock.lease_s
        self.ends = started + self._lease_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="catalog-lock", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop renewing."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._lease_s / _RENEWALS):
            started = time.monotonic()
            try:
                if not self._lock.beat(self.owner):
                    self.ends = 0.0
                    return
            except StorageError:
                continue  # the lease is long enough for a few of these
            self.ends = started + self._lease_s


def _failed(why: str) -> StorageError:
    return StorageError(
        f"The database of the Iceberg catalog does not answer for the table's lock: {why}",
        "Nothing was written. Try again once it answers, or name another lock in "
        "hoodie.write.lock.provider.",
    )
