"""A folder into which files arrive, and ingestions of it, for tests."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_core as hudi
from hudi_core.ingestion import IngestResult

START = 1_700_000_000
HUDI = (sys.executable, "-c", "from hudi_core.cli import main; main()")
KEYED = {"hoodie.datasource.write.recordkey.field": "id"}


class Landing:
    """A folder into which files arrive, at times that the test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def json(self, name: str, rows: Sequence[dict[str, Any]], seconds: float = 0) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return self._at(path, seconds)

    def parquet(self, name: str, rows: pa.Table, seconds: float = 0) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return self._at(path, seconds)

    def text(self, name: str, text: str, seconds: float = 0) -> Path:
        path = self.folder / name
        path.write_text(text)
        return self._at(path, seconds)

    def _at(self, path: Path, seconds: float) -> Path:
        os.utime(path, (START + seconds, START + seconds))
        return path


def run(path: str, landing: Landing, **more: Any) -> IngestResult:
    options = {**KEYED, **more.pop("options", {})}
    return hudi.ingest(path, landing.folder, options=options, **more)


def rows_of(path: str, *columns: str) -> list[dict[str, Any]]:
    found = hudi.Table.open(path).to_arrow(list(columns) or None)
    names = [one for one in found.column_names if not one.startswith("_hoodie")]
    rows: list[dict[str, Any]] = found.select(names).sort_by("id").to_pylist()
    return rows
