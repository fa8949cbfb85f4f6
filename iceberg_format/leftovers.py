"""Files of the Iceberg metadata that no state names any more."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from pyiceberg.manifest import ManifestContent
from pyiceberg.table.snapshots import Snapshot

from hudi_core.spi import HudiError, Storage
from iceberg_format.catalog import HINT
from iceberg_format.lineage import ancestors, is_of_hudi
from iceberg_format.manifest_files import Metadata
from iceberg_format.manifests import CACHE, ManifestStore
from iceberg_format.table import IcebergTable

_log = logging.getLogger(__name__)


def delete_unreached(table: IcebergTable, metadata: Metadata, expired: Sequence[Snapshot]) -> None:
    """Delete manifests, and files of deleted rows, that expired snapshots alone have.

    And their lists of manifests.

    Nothing that a commit on its way has made is touched: it builds on a snapshot that stays. What
    cannot be deleted now is an orphan, and no reason for the change to fail.
    """
    gone = {one.snapshot_id for one in expired}
    line = {one.snapshot_id for one in ancestors(metadata)}
    store = ManifestStore(table.files, table.folder, metadata)
    kept = [
        one
        for one in metadata.snapshots
        # those of a table that another writer began share nothing with Hudi's
        if one.snapshot_id not in gone and (is_of_hudi(one) or one.snapshot_id in line)
    ]
    try:
        reached, unreached = _named(store, kept), _named(store, expired)
        lists = {one.manifest_list for one in expired}
        table.client.run_map(
            table.client.storage.delete,
            [
                path
                for uri in sorted(lists | unreached - reached)
                if (path := table.files.path(uri)).startswith(f"{table.folder}/")
            ],
        )
    except HudiError:
        _log.warning("manifests of %s stay behind", table.location, exc_info=True)


def _named(store: ManifestStore, snapshots: Iterable[Snapshot]) -> set[str]:
    """URIs of the manifests and the files of deleted rows of snapshots."""
    manifests = {one.manifest_path: one for each in snapshots for one in store.manifests(each)}
    return manifests.keys() | {
        entry.data_file.file_path
        for one in manifests.values()
        if one.content is ManifestContent.DELETES
        for entry in CACHE.entries(store.files, one)
    }


def leftovers(table: IcebergTable) -> Iterator[str]:
    """Yield orphans of failed commits and expired snapshots.

    By their paths below the Hudi table.

    Reads the list of manifests of every snapshot that is kept, and manifests of deleted rows.
    """
    state = table.load()
    reached = {table.files.path(uri) for uri in _uris(table, state.metadata)}
    reached |= {table.files.path(state.location), f"{table.folder}/{HINT}"}
    storage: Storage = table.client.storage
    for status in storage.list(table.folder):
        if status.path not in reached:
            yield status.path


def _uris(table: IcebergTable, metadata: Metadata) -> Iterator[str]:
    for entry in metadata.metadata_log:
        yield entry.metadata_file
    for file in (*metadata.statistics, *metadata.partition_statistics):
        yield file.statistics_path
    store = ManifestStore(table.files, table.folder, metadata)
    yield from (one.manifest_list for one in metadata.snapshots)
    yield from _named(store, metadata.snapshots)
