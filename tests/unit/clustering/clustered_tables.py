"""Tables to cluster, and what is in them and on their timelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])


OPTIONS = {
    "hoodie.fs.fsync": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
}


def rows(*ids: str, n: int = 0) -> pa.Table:
    """Rows whose keys begin with their partition."""
    return pa.table(
        {
            "id": ids,
            "part": [one[0] for one in ids],
            "n": [n + len(ids) - place for place in range(len(ids))],
        },
        SCHEMA,
    )


def made(path: Path, options: dict[str, str] | None = None, **named: Any) -> hudi.Table:
    """A table of three files in partition ``a``, and two in ``b``."""
    named = {"partition_by": "part"} | named
    table = hudi.Table.create(
        str(path), SCHEMA, record_key="id", options={**OPTIONS, **(options or {})}, **named
    )
    table.insert(rows("a1", "a2", "b1"))
    table.insert(rows("a3", "a4", "b2"))
    table.insert(rows("a5", "a6"))
    return table


def held(table: hudi.Table) -> list[dict[str, Any]]:
    """All rows but for the names of their files."""
    found = hudi.Table.open(table.path).to_arrow().drop_columns("_hoodie_file_name")
    listed: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return listed


def files(table: hudi.Table) -> list[str]:
    slices = hudi.Table.open(table.path).file_slices()
    return [one.base_file.path for one in slices if one.base_file is not None]


def on_timeline(table: hudi.Table, action: str) -> list[str]:
    folder = Path(table.path) / ".hoodie/timeline"
    return sorted(one.name for one in folder.glob(f"*.{action}*"))


def on_disk(table: hudi.Table) -> set[str]:
    return {str(one.relative_to(table.path)) for one in Path(table.path).rglob("[!.]*.parquet")}


# --- the command line -----------------------------------------------------------------------------


def run(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found
