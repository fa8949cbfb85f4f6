"""Rows of a table as the readers of its format find them, which are not ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from tests.foreign import by_hudi_rs


def judged(path: Path, table_format: str) -> list[dict[str, Any]]:
    """All rows by hudi-rs, pyiceberg or deltalake."""
    if table_format == "native":
        return by_hudi_rs(path)
    rows: list[dict[str, Any]]
    if table_format == "delta":
        rows = DeltaTable(path).to_pyarrow_table().to_pylist()
        return rows
    files = (path / "metadata").glob("*.metadata.json")
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    rows = StaticTable.from_metadata(str(newest)).scan().to_arrow().to_pylist()
    return rows
