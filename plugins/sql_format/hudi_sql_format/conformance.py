"""The conformance suite of the format: ``hudi conformance run sql``.

Rows are read by plain SQL and pyarrow, without the plugin.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hudi_conformance.formats import TwoStepFormat, TwoStepFormatSuite
from sqlalchemy.engine.default import DefaultDialect

Query = Callable[[Path, str], list[tuple[Any, ...]]]
FILES = """
    SELECT f.id, f.partition_path, f.name FROM hudi_files f JOIN hudi_tables t ON f.table_id = t.id
    WHERE t.name = '{path}' AND f.added <= t.version
    AND (f.removed IS NULL OR f.removed > t.version)
"""
DEAD = """
    SELECT d.file_id, d.position FROM hudi_deleted_rows d JOIN hudi_tables t ON d.table_id = t.id
    WHERE t.name = '{path}' AND d.deleted <= t.version
"""
COLUMNS = "SELECT columns FROM hudi_tables WHERE name = '{path}'"
INTRUSION = "UPDATE hudi_tables SET version = version + 1 WHERE name = '{path}'"


def database_of(path: Path) -> Path:
    """The database of a table that names none."""
    return path / ".hoodie" / "sql" / "table.db"


def ask_sqlite(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a statement finds in the database of a table."""
    with closing(sqlite3.connect(f"file:{database_of(path)}?mode=rw", uri=True)) as connection:
        found = connection.execute(query.format(path=path)).fetchall()
        connection.commit()
        return found


def rows_of(path: Path, ask: Query = ask_sqlite) -> Iterable[Mapping[str, Any]]:
    """The live rows of a table.

    Columns are found by their ids.
    """
    [[text]] = ask(path, COLUMNS)
    now = {one["field-id"]: one["name"] for one in json.loads(text)["fields"]}
    dead = {*ask(path, DEAD)}
    for file, folder, name in ask(path, FILES):
        table = pq.ParquetFile(path / folder / name).read()
        kept = {
            field.name: now[number]
            for field in table.schema
            if (number := int((field.metadata or {}).get(b"PARQUET:field_id", 0))) in now
        }
        rows = table.select(list(kept)).rename_columns(list(kept.values())).to_pylist()
        yield from (row for at, row in enumerate(rows) if (file, at) not in dead)


class SqlSuite(TwoStepFormatSuite):
    """Tables whose metadata is in an SQLite file, read by sqlite3."""

    format = TwoStepFormat(
        "sql",
        read=rows_of,
        lose=lambda path: database_of(path).unlink(),
        intrude=lambda path: ask_sqlite(path, INTRUSION),
        commits=(DefaultDialect, "do_commit", sqlite3.OperationalError("database is locked")),
    )
