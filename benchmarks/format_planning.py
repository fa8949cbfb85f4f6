"""Planning a read: all files of a table with the ranges of one column, by each format."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from metadata_table import CLOCK, ManyFiles
from metadata_timing import Timing, measure

import hudi_core as hudi
from delta_format.handles import forget_handles
from delta_format.reports import forget_reports
from hudi_core.services.opening import open_table
from iceberg_format import kept_files
from iceberg_format.catalog import RECENT
from iceberg_format.manifests import EntryCache

PLANNING = "planning"
SQL = "sql"
OTHERS = ("iceberg", "delta")
IN_PARTITION = 1000


def measure_planning(folder: Path, files: int, repeats: int) -> list[Timing]:
    """Measure opening a table, listing its files and reading the ranges of one column.

    The tables have the same data files.
    """
    first = ManyFiles(folder / "native", max(1, files // IN_PARTITION), files, every_column=True)
    first.make()
    calls: dict[str, Callable[[], int]] = {}
    for name in (SQL, *OTHERS):
        path = folder / name
        shutil.copytree(first.path, path, copy_function=_linked)
        hudi.Table.open(str(path)).convert(name)
        calls[f"{name}: plan"] = lambda path=path: plan(path)  # type: ignore[misc]
    return measure(PLANNING, calls, repeats)


def plan(path: Path) -> int:
    """Count the files whose ranges are known."""
    RECENT.forget()
    kept_files.forget_files()
    forget_handles()
    forget_reports()
    # as a process does that comes new to the table
    with patch.object(kept_files, "CACHE", EntryCache()):
        table = open_table(str(path), {})
        lister = table.host.get_metadata_factory().create(table.client)
        files = lister.list_columns(lister.list_partitions())
        ranges = lister.file_ranges(files, CLOCK, pa.int64())
    assert ranges is not None
    return len(ranges) - int(ranges.minimum.null_count)


def _linked(source: str, target: str) -> str:
    """Link what is never changed, copy the rest."""
    if source.endswith(".parquet"):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))
