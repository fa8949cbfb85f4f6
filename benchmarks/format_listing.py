"""Listing a table's files from the metadata of its format, beside the format's own library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from deltalake import DeltaTable
from metadata_table import ManyFiles
from metadata_timing import Timing, measure
from pyiceberg.table import StaticTable

import hudi_core as hudi
from hudi_core.services.opening import open_table
from iceberg_format import kept_files
from iceberg_format.catalog import RECENT
from iceberg_format.manifests import EntryCache

LISTING = "listing"


def measure_listing(folder: Path, files: int, repeats: int) -> list[Timing]:
    """Measure opening a table and listing all of its files with their sizes."""
    found = []
    for name, library in (("iceberg", _by_pyiceberg), ("delta", _by_deltalake)):
        many = ManyFiles(folder / name, 2, files, every_column=True)
        many.make()
        hudi.Table.open(str(many.path)).convert(name)
        calls: dict[str, Callable[[], int]] = {
            f"{name}: ours": lambda path=many.path: _by_adapter(path),  # type: ignore[misc]
            f"{name}: library": lambda path=many.path, call=library: call(path),  # type: ignore[misc]
        }
        found += measure(LISTING, calls, repeats)
    return found


def _by_adapter(path: Path) -> int:
    table = open_table(str(path), {})
    lister = table.host.get_metadata_factory().create(table.client)
    # as a process does that comes new to the table
    RECENT.forget()
    kept_files.forget_files()
    with patch.object(kept_files, "CACHE", EntryCache()):
        listed = lister.list_files(lister.list_partitions())
    return sum(len(some) for some in listed.values())


def _by_pyiceberg(path: Path) -> int:
    newest = max(
        (path / "metadata").glob("v*.metadata.json"),
        key=lambda one: int(one.name.split(".")[0][1:]),
    )
    table = StaticTable.from_metadata(str(newest))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return sum(
        len(manifest.fetch_manifest_entry(table.io)) for manifest in snapshot.manifests(table.io)
    )


def _by_deltalake(path: Path) -> int:
    added: int = pa.table(DeltaTable(str(path)).get_add_actions()).num_rows
    return added
