"""Tables of formats as DuckDB's own readers of them see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq

_SERVER = Path(__file__).with_name("duckdb_server.py")
_PACKAGES = Path(sys.prefix, "readers", "duckdb")


def read_iceberg(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a table that is known by its path."""
    return _rows(f"select * from iceberg_scan('{_quoted(path)}')")


def read_delta(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return _rows(f"select * from delta_scan('{_quoted(path)}')")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _rows(query: str) -> list[dict[str, Any]]:
    asking, answering = _server()
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "rows.parquet")
        print(json.dumps([query, str(found)]), file=asking, flush=True)
        told = json.loads(answering.readline())
        if told:
            raise AssertionError(f"DuckDB cannot answer {query}: {told}")
        rows: list[dict[str, Any]] = pq.read_table(found).to_pylist()
    return rows


@cache
def _server() -> tuple[IO[str], IO[str]]:
    """Start the process; it ends when its input does, with this one."""
    process = subprocess.Popen(
        [sys.executable, _SERVER],
        env={**os.environ, "PYTHONPATH": str(_PACKAGES)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    _KEPT.append(process)
    return process.stdin, process.stdout


_KEPT: list[subprocess.Popen[str]] = []
