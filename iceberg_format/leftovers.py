"""Orphans in the folder of the Iceberg metadata."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.table.metadata import TableMetadataV2

from hudi_core.spi import Storage
from iceberg_format.catalog import HINT
from iceberg_format.manifests import ManifestStore
from iceberg_format.table import IcebergTable


def leftovers(table: IcebergTable) -> Iterator[str]:
    """Yield orphans of failed commits and expired snapshots.

    By their paths below the Hudi table.

    Reads the list of manifests of every snapshot that is kept.
    """
    state = table.load()
    reached = {table.files.path(uri) for uri in _uris(table, state.metadata)}
    reached |= {table.files.path(state.location), f"{table.folder}/{HINT}"}
    storage: Storage = table.client.storage
    for status in storage.list(table.folder):
        if status.path not in reached:
            yield status.path


def _uris(table: IcebergTable, metadata: TableMetadataV2) -> Iterator[str]:
    for entry in metadata.metadata_log:
        yield entry.metadata_file
    for file in (*metadata.statistics, *metadata.partition_statistics):
        yield file.statistics_path
    store = ManifestStore(table.files, table.folder, metadata)
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in store.manifests(snapshot):
            yield manifest.manifest_path
