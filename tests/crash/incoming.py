"""Rows that come to a table by an ingestion, and by a stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

import hudi_core as hudi
from hudi_core.streaming import StreamBatch, write_batch
from tests.crash.rows import Held, as_table
from tests.crash.tables import OPTIONS

_INSERTED: Final = {**OPTIONS, "hoodie.datasource.write.operation": "insert"}
"""Rows that are written twice are there twice."""
_BATCH: Final = StreamBatch("crashing", 3)
_MODIFIED_S: Final = 1_700_000_000
"""When the files of each folder were written: each run is to find the same."""


def ingest_files(path: str, rows: Held) -> None:
    """Ingest a folder of a file for each row; they come with one commit."""
    source = Path(f"{path}-source")
    source.mkdir(exist_ok=True)
    for key, row in rows.items():
        file = source / f"{key}.parquet"
        if not file.exists():
            begun = source / f".{key}"
            pq.write_table(as_table({key: row}), begun)
            os.utime(begun, (_MODIFIED_S, _MODIFIED_S))
            begun.rename(file)
    hudi.ingest(path, source, options=_INSERTED)


def write_stream_batch(path: str, rows: Held) -> None:
    """Write a batch as the sink of a stream does, which tries again by itself."""
    quickly = {"hoodie.datasource.write.streaming.retry.interval.ms": "1"}
    write_batch(lambda: as_table(rows), path, {**_INSERTED, **quickly}, _BATCH)
