"""Tables of the database; one database may hold many Hudi tables.

A state of a Hudi table is a number, its *version*. A file is in the states from ``added`` on, up to
the one before ``removed``.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

METADATA: Final = MetaData()

TABLES: Final = Table(
    "hudi_tables",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    # the table's folder, or the name that it was given
    Column("name", Text, nullable=False, unique=True),
    Column("version", BigInteger, nullable=False),
    # the last version that Hudi made: another writer raises `version` alone
    Column("hudi_version", BigInteger, nullable=False),
    # states before it cannot be read any more: some of their files are deleted
    Column("oldest_version", BigInteger, nullable=False),
    # instants that completed up to here are complete, whether or not they are known by name
    Column("completed_watermark", Text),
    Column("columns", Text, nullable=False),
    Column("next_file", BigInteger, nullable=False),
)
"""One row for each Hudi table: its present state. Every change raises ``version`` by one."""

INSTANTS: Final = Table(
    "hudi_instants",
    METADATA,
    Column("table_id", Integer, primary_key=True),
    Column("instant", Text, primary_key=True),
    Column("action", Text, primary_key=True),
    Column("operation", Text),
    Column("completion_time", Text),
    Column("version", BigInteger, nullable=False),
    # taken out of the table, or never to be taken
    Column("is_revoked", Boolean, nullable=False),
    # those of before, where the instant changed them
    Column("former_columns", Text),
    sqlite_with_rowid=False,
)
"""The instants that made the table what it is, and those that it will never take."""

FILES: Final = Table(
    "hudi_files",
    METADATA,
    Column("table_id", Integer, primary_key=True),
    Column("partition_path", Text, primary_key=True),
    Column("file_group", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("id", BigInteger, nullable=False),
    Column("instant", Text, nullable=False),
    Column("size_in_bytes", BigInteger, nullable=False),
    Column("row_count", BigInteger),
    # null: the file is in no state, and is kept for readers of Hudi's timeline, or to be deleted
    Column("added", BigInteger),
    Column("removed", BigInteger),
    sqlite_with_rowid=False,
)
"""Data files, until a clean deletes them."""

BOUNDS: Final = Table(
    "hudi_bounds",
    METADATA,
    Column("table_id", Integer, primary_key=True),
    # columns by field id, which survives a change of names
    Column("field_id", Integer, primary_key=True),
    Column("file_id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("low_number", BigInteger),
    Column("high_number", BigInteger),
    Column("low_real", Double),
    Column("high_real", Double),
    Column("low_bytes", LargeBinary),
    Column("high_bytes", LargeBinary),
    Column("null_count", BigInteger),
    Column("value_count", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Statistics of columns, those of one column beside each other.

``number``: integers, booleans, days, and microseconds; ``real``: floating-point numbers without
NaN; ``bytes``: UTF-8 strings, bytes, and decimals as text.
"""

DELETED: Final = Table(
    "hudi_deleted_rows",
    METADATA,
    Column("table_id", Integer, primary_key=True),
    Column("file_id", BigInteger, primary_key=True, autoincrement=False),
    # from 0, in the order of the file
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("deleted", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Rows of data files that are dead, in the states from ``deleted`` on; until the file is deleted.

A row does not come back but where a state is gone back behind.
"""

BY_ID: Final = Index("hudi_files_by_id", FILES.c.table_id, FILES.c.id, unique=True)
"""Files by their numbers."""
BY_FILE: Final = Index("hudi_bounds_by_file", BOUNDS.c.table_id, BOUNDS.c.file_id)
"""Statistics of single files, for those that are deleted."""
BY_STATE: Final = Index("hudi_deleted_rows_by_state", DELETED.c.table_id, DELETED.c.deleted)
"""Dead rows by the state that deleted them, to go back behind it."""
