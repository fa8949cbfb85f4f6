"""Connections to the database, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from hudi_core.spi import (
    CorruptMetadataError,
    InvalidOptionError,
    MetaClientView,
    StorageError,
    UnsupportedTableError,
)
from hudi_core.spi.files import require_no_links
from hudi_sql_format.options import NAME, PASSWORD, TABLE, URL_OPTION
from hudi_sql_format.tables import METADATA

FOLDER: Final = ".hoodie/sql"
FILE: Final = f"{FOLDER}/table.db"
_WAIT_SECONDS: Final = 30
_GONE: Final = ("unable to open", "no such table", "no such column", "malformed", "not a database")
"""What SQLite says of a file that is not there, or that is no database of this format."""
_TAKEN_AT_ONCE: Final = 2


class Database:
    """The database of one table."""

    def __init__(self, meta_client: MetaClientView) -> None:
        self.base_path = meta_client.base_path
        url = URL_OPTION.read(meta_client)
        self.table = TABLE.read(meta_client) or meta_client.base_path
        self._has_tables = False
        self.path = None if url is not None else f"{meta_client.base_path}/{FILE}"
        if url is None:
            self.location = str(self.path)
            _require_local(meta_client)
            self._engine = _sqlite(str(self.path))
        else:
            self.location = url.set(drivername="postgresql").render_as_string(hide_password=True)
            password = PASSWORD.read(meta_client)
            given = {} if password is None else {"password": password}
            self._engine = create_engine(url, pool_pre_ping=True, connect_args=given)
        self._readers = (
            self._engine
            if url is None
            else self._engine.execution_options(isolation_level="REPEATABLE READ")
        )

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the database."""
        with self._explained():
            self._require_file()
            with self._readers.connect() as connection, connection.begin():
                yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A connection whose changes happen together, or not at all; see :meth:`reading`."""
        with self._explained():
            self._require_file()
            with self._engine.begin() as connection:
                yield connection

    def make(self) -> None:
        """Make the database's tables where there are none."""
        if self.path is not None:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            require_no_links(self.base_path, [FILE])
            sqlite3.connect(self.path).close()
        self._has_tables = False
        self.add_tables()

    def add_tables(self) -> None:
        """Make the tables that are missing; looks for them once."""
        if self._has_tables:
            return
        for last in range(1, _TAKEN_AT_ONCE + 1):
            try:
                with self._explained():
                    METADATA.create_all(self._engine)
            except (StorageError, CorruptMetadataError) as error:
                # two writers may make the tables at once
                if last == _TAKEN_AT_ONCE or not isinstance(error.__cause__, IntegrityError):
                    raise
        self._has_tables = True

    def forget_file(self) -> None:
        """Delete an SQLite file; no effect on a server's database."""
        if self.path is not None:
            for name in (self.path, f"{self.path}-journal"):
                if os.path.lexists(name):
                    os.unlink(name)

    def _require_file(self) -> None:
        if self.path is None:
            return
        if not os.path.isfile(self.path):
            raise CorruptMetadataError(
                self.path,
                "the database with the table's metadata is gone",
                "Restore it from a backup, or rebuild it by `hudi table repair`.",
            )
        require_no_links(self.base_path, [FILE])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise self._error(error) from error

    def _error(self, error: SQLAlchemyError) -> CorruptMetadataError | StorageError:
        cause = error.orig if isinstance(error, DBAPIError) else error
        text = " ".join(str(cause).split())
        is_damaged = (
            isinstance(error, DBAPIError) and not isinstance(error, OperationalError)
            if self.path is None
            else any(word in text for word in _GONE)
        )
        if is_damaged:
            return CorruptMetadataError(
                self.location,
                f"the database cannot be read: {text}",
                "Restore it from a backup, or rebuild it by `hudi table repair`.",
            )
        return StorageError(
            f"The database {self.location} does not answer: {text}",
            "Try again once it does.",
            location=self.location,
        )


def require_place(meta_client: MetaClientView) -> None:
    """Refuse a place where no database can be; nothing is changed."""
    database = Database(meta_client)
    try:
        given = meta_client.config.raw.get(f"hoodie.table.format.{NAME}.location")
        asked = meta_client.format_options.get("location")
        if asked is not None and asked not in (database.location, given):
            raise InvalidOptionError(
                f"hoodie.table.format.{NAME}.location",
                asked,
                f"the metadata is at {database.location}",
                "Leave it out.",
            )
        if database.path is None:
            with database.reading():
                pass
    finally:
        database.close()


def _require_local(meta_client: MetaClientView) -> None:
    if not meta_client.base_path.startswith("/"):
        raise UnsupportedTableError(
            meta_client.base_path,
            "is in an object store, which cannot hold an SQLite file",
            f"Name a PostgreSQL database by the option hoodie.table.format.{NAME}.url.",
        )


def _sqlite(path: str) -> Engine:
    def connect() -> sqlite3.Connection:
        # nothing is made here: a file that is gone is an error
        uri = f"file:{quote(path)}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        # anybody may have written the file: its text must not name functions to be called
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    # a connection costs 0.1 ms, and one that is kept would keep the file open
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection, *_: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine
