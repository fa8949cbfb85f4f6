"""Operator's actions on the metadata table.

Create, delete, bring up to date, add and drop partitions, look into; rebuild it from all files,
compared before use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from typing import Final

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine
from hudi_core.errors import CorruptMetadataError, TableServiceError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import AskedIndex, discard_damaged
from hudi_core.metadata.keys import partition_path
from hudi_core.metadata.lister import MetadataLister
from hudi_core.metadata.log.records import RecordLocation
from hudi_core.metadata.log.visible_instants import require_current
from hudi_core.metadata.maintenance import indexing
from hudi_core.metadata.maintenance.lifecycle import (
    CopyToStorage,
    Rebuilt,
    discard_beside,
    ensure_metadata_table,
    put_in_place,
    rebuild_beside,
)
from hudi_core.metadata.maintenance.services import run_services
from hudi_core.metadata.partition_types import RECORD_INDEX
from hudi_core.metadata.partitions.registry import enabled_partitions
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import (
    METADATA_FOLDER,
    StoredPartitions,
    is_readable,
    metadata_client,
    metadata_storage,
    require_readable,
)
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import BaseFileName, FileStatus, LogFileName, PartitionPath
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.convert import require_recoverable
from hudi_core.services.mending.lost_completions import lost_completions
from hudi_core.services.mending.repair import refuse_other_writers
from hudi_core.services.opening import open_table
from hudi_core.services.progress import Progress, counted, no_progress
from hudi_core.storage.properties_file import recover as recover_properties
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.recovery.recover import recover
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock, table_lock
from hudi_core.view.storage_lister import StorageLister

_BACKUP: Final = ".hoodie/.metadata_"
"""What a backup's folder begins with; its time follows, as in Hudi."""


@dataclass(frozen=True, slots=True)
class MetadataOperator:
    """Changes one table's metadata table, under the table's lock."""

    table: OpenTable
    lock: TableLock
    config: WriteConfig
    engine: Engine | None = None

    def create(self) -> tuple[str, ...]:
        """Make the metadata table and return its partitions."""
        client = self.table.client
        client.require_writable()
        with self.lock.held_by_service():
            state = TableState.load(self.table.on(chosen_engine(self.engine)))
            if StoredPartitions.of(state.client.config).is_there:
                raise TableServiceError(
                    f"The table at {client.base_path} has a metadata table already",
                    "Run `hudi metadata delete PATH` before it is rebuilt.",
                )
            state = recover(state, self.config)
            options = replace(self._options, enabled=True)
            client = ensure_metadata_table(state.client, options, state.metadata)
            return StoredPartitions.of(client.config).complete

    def delete(self, *, backup: bool = False) -> str | None:
        """Delete the metadata table; from then on the table's folders are listed.

        Readers and writers let go of it first. Whatever is left of one that was not made to its
        end, or not deleted to its end, goes too.

        Returns the backup folder, below the table; ``None`` without one. Refused where the table's
        files lie below storage paths.
        """
        client = self.table.client
        if not client.files.is_plain:
            raise TableServiceError(
                f"Only the metadata table of {client.base_path} lists the table's files, as these "
                "lie below storage paths",
                f"`hudi table repair --metadata {client.base_path}` rebuilds it.",
            )
        _require_remains(client)
        with self.lock.held_by_service():
            has_files = _require_remains(client)
            update_properties(
                client.storage,
                {
                    ManagedKeys.metadata_partitions.key: None,
                    ManagedKeys.metadata_partitions_inflight.key: None,
                },
            )
            kept = None
            if backup and has_files:
                kept = f"{_BACKUP}{client.clock.next_time()}"
                copy = CopyToStorage(metadata_storage(client), metadata_storage(client, kept))
                files = [one.path for one in copy.source.list("", recursive=True)]
                list(client.run_map(copy, files))
            discard_damaged(client.storage, client.config, copy_to=kept)
            client.storage.delete_tree(METADATA_FOLDER)
            discard_beside(client.storage)
            return kept

    def bring_to_date(self) -> tuple[str, ...]:
        """Recover dead writers' work, build enabled partitions, compact and clean.

        What the table's instants did, the metadata table has since they completed.
        """
        with self._locked() as found:
            options = replace(self._options, enabled=True)
            tables = _present(ensure_metadata_table(found.client, options, found))
            folder = f"{tables.metadata.storage.root}/{tables.metadata.active.folder}"
            require_current(tables.data_timeline, tables.timeline, folder)
            run_services(tables, self._options)
            return tables.partitions.complete

    def index(
        self,
        partition: str,
        column: str | None = None,
        kind: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Instant:
        """Add a partition; see :func:`hudi_core.metadata.maintenance.indexing.build_partition`."""
        asked = AskedIndex(column, kind, dict(options or {}))
        with self._locked() as tables:
            return indexing.build_partition(tables, self._options, partition, asked).instant

    def drop(self, partition: str, *, cascades: bool = False) -> Instant:
        """Drop a partition; see :func:`hudi_core.metadata.maintenance.indexing.drop_partition`."""
        with self._locked() as tables:
            return indexing.drop_partition(tables, partition, cascades=cascades).instant

    @property
    def _options(self) -> MetadataConfig:
        return MetadataConfig.from_options(self.table.client.options)

    @contextmanager
    def _locked(self) -> Iterator[MetadataState]:
        """Hold the lock; yield both tables after recovery of dead writers."""
        self.table.client.require_writable()
        with self.lock.held_by_service():
            state = TableState.load(self.table.on(chosen_engine(self.engine)))
            if not StoredPartitions.of(state.client.config).is_there:
                raise _missing(state.client)
            state = recover(state, self.config)
            options = replace(self._options, enabled=False)
            yield _present(ensure_metadata_table(state.client, options, state.metadata))


def _present(client: TableMetaClient) -> MetadataState:
    tables = MetadataState.load(client)
    if tables is None:
        raise _missing(client)
    return tables


def _require_remains(client: TableMetaClient) -> bool:
    """Whether there are files; refuse where nothing of one is left."""
    has_files = any(True for _ in client.storage.list(METADATA_FOLDER, recursive=True))
    if not has_files and not StoredPartitions.of(client.as_stored().config).all:
        raise _missing(client)
    return has_files


def _missing(client: TableMetaClient) -> TableServiceError:
    where = f"{client.base_path}/{METADATA_FOLDER}"
    return TableServiceError(
        f"There is no metadata table at {where}", "Run `hudi metadata create PATH` first."
    )


# --- looking ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionSize:
    """Present files of a metadata table partition; sizes in bytes."""

    base_files: int
    log_files: int
    base_bytes: int
    log_bytes: int


@dataclass(frozen=True, slots=True)
class MetadataStats:
    """Output of `hudi metadata stats`.

    ``partition_count`` is of the table itself, ``partitions`` of the metadata table;
    ``last_compaction`` is a requested time.
    """

    partition_count: int
    last_compaction: InstantTime | None
    is_in_sync: bool
    partitions: Mapping[str, PartitionSize]

    @property
    def total(self) -> PartitionSize:
        """What its partitions have together."""
        sizes = [astuple(one) for one in self.partitions.values()]
        return PartitionSize(*map(sum, zip((0,) * 4, *sizes, strict=True)))


def metadata_stats(client: TableMetaClient) -> MetadataStats:
    """Return how large a table's metadata table is."""
    require_metadata(client)
    timeline = client.timeline()
    metadata = metadata_client(client)
    own = metadata.timeline()
    compactions = own.completed().of_actions(Action.COMMIT).last
    try:
        require_current(timeline, own, metadata.base_path)
        is_in_sync = True
    except CorruptMetadataError:
        is_in_sync = False
        # what it has of the other writes can be counted all the same
        timeline = timeline.where(lambda one: own.is_committed(one.requested_time))
    snapshot = MetadataSnapshot.open(client, timeline)
    sizes = {name: _size(snapshot, name) for name in snapshot.partitions}
    count = len(MetadataLister(client.seeing(timeline)).list_partitions())
    return MetadataStats(
        count, compactions.requested_time if compactions else None, is_in_sync, sizes
    )


def _size(snapshot: MetadataSnapshot, partition: str) -> PartitionSize:
    slices = [group.slice for group in snapshot.groups(partition)]
    bases = [one.base_file.size for one in slices if one.base_file is not None]
    logs = [log.status.size for one in slices for log in one.log_files]
    return PartitionSize(len(bases), len(logs), sum(bases), sum(logs))


def require_metadata(client: TableMetaClient) -> None:
    """Refuse a table without a metadata table that is read."""
    require_readable(client)
    if not has_metadata(client):
        raise _missing(client)


def has_metadata(client: TableMetaClient) -> bool:
    """Whether a table has a metadata table this release reads.

    Tables before version 8 have one of another form.
    """
    return is_readable(client.config) and StoredPartitions.of(client.config).is_there


@dataclass(frozen=True, slots=True)
class Listing:
    """Who lists a table's files, and whether that is its metadata table."""

    lister: FileIndex
    is_metadata: bool


def lister_of(client: TableMetaClient) -> Listing:
    """Return the metadata table where the table has one, else its folders."""
    if has_metadata(client):
        return Listing(MetadataLister(client), True)
    return Listing(StorageLister.of(client), False)


def list_files(client: TableMetaClient, partition: str) -> tuple[Sequence[FileStatus], bool]:
    """Return a partition's files, and whether the metadata table listed them."""
    listing = lister_of(client)
    path = PartitionPath(partition.strip("/"))
    if path not in listing.lister.list_partitions():
        raise TableServiceError(
            f"The table at {client.base_path} has no partition {path!r}",
            "`hudi metadata list-partitions PATH` shows those there are.",
        )
    found = listing.lister.list_files([path])[path]
    data = [one for one in found if BaseFileName.parse(one.name) or LogFileName.parse(one.name)]
    return data, listing.is_metadata


def look_up_keys(
    client: TableMetaClient, keys: Sequence[str], partition: str | None = None
) -> dict[str, list[RecordLocation]]:
    """Return record locations by the record index, without unknown keys.

    ``partition`` limits the search to one partition of the table. Where the index is kept by
    partitions and none is named, all are searched, and a key may be in several.
    """
    if RECORD_INDEX not in StoredPartitions.of(client.config).complete:
        raise TableServiceError(
            f"The table at {client.base_path} has no record index",
            f"Run `hudi metadata index PATH {RECORD_INDEX}` first.",
        )
    snapshot = MetadataSnapshot.open(client)
    wanted = None if partition is None else PartitionPath(partition.strip("/"))
    found: dict[str, list[RecordLocation]] = {}
    for owner in snapshot.groups_by_owner(RECORD_INDEX):
        if owner is None:
            records = snapshot.lookup(RECORD_INDEX, keys)
        elif wanted in (None, owner):
            records = snapshot.lookup_owned(owner, keys)
        else:
            continue
        for key, record in records.items():
            where = record.payload
            if isinstance(where, RecordLocation) and wanted in (
                None,
                partition_path(where.partition_name),
            ):
                found.setdefault(key, []).append(where)
    return found


# --- repair ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MetadataRepair:
    """A rebuild of a metadata table that was made, or is planned.

    ``rebuilt`` is ``None`` where an earlier repair had built the partitions, and died before they
    were in place.
    """

    path: str
    partitions: tuple[str, ...]
    rebuilt: Rebuilt | None

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier repair had built the partitions."""
        return self.rebuilt is None


def repair_metadata_table(
    path: str,
    options: Mapping[str, str],
    engine: Engine,
    *,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> MetadataRepair:
    """Rebuild a table's metadata table, with its partitions, from all files.

    The one in use stays until the new one is complete and lists every file that the writes of the
    timeline name. The timeline and the format's metadata stay as they are. What dead writers left
    pending is left to the next write; their files are not listed. A repair that died once the new
    one was complete is finished by the next write, or by the next repair.

    With ``dry_run`` all is read and compared the same, without a lock and without writing.
    ``progress`` starts anew in each step, for files or folders. Where folders do not show a file
    that a write names, or a data file cannot be read, the one in use stays. A commit whose
    completed file is lost is refused, as its files would not be listed.
    """

    def opened() -> OpenTable:
        return counted(open_table(path, options).on(engine), progress)

    before = open_table(path, options)
    require_recoverable(before.client)
    _require_metadata(before)
    if dry_run:
        return _rebuilt(opened(), dry_run=True)
    config = WriteConfig.from_options(options)
    lock = table_lock(before, config)
    with lock.held_by_service():
        recover_properties(before.client.storage)
        table = opened()
        require_recoverable(table.client)
        _require_metadata(table)
        refuse_other_writers(table, config)
        table = opened()
        client = table.client.seeing(table.client.timeline())
        if StoredPartitions.of(client.config).is_rebuilding:
            done = put_in_place(client, lock.require_lease)
            if done is not None:
                return MetadataRepair(path, StoredPartitions.of(done.config).complete, None)
        repair = _rebuilt(table, dry_run=False)
        put_in_place(client.as_stored(), lock.require_lease)
        return repair


def _rebuilt(table: OpenTable, *, dry_run: bool) -> MetadataRepair:
    _require_metadata(table)
    client = table.client
    timeline = client.timeline()
    for lost in lost_completions(table, timeline):
        raise table.lost(lost.instant, lost.evidence)
    config = MetadataConfig.from_options(client.options)
    client = _with_partitions(client.seeing(timeline), config, dry_run=dry_run)
    rebuilt = rebuild_beside(client, config, dry_run=dry_run)
    return MetadataRepair(client.base_path, tuple(sorted(rebuilt.records)), rebuilt)


def _with_partitions(
    client: TableMetaClient, config: MetadataConfig, *, dry_run: bool
) -> TableMetaClient:
    """The table with partitions to rebuild, where another engine dropped all.

    They are those of a new table under the options.
    """
    if StoredPartitions.of(client.config).all:
        return client
    names = ",".join(sorted(one.name for one in enabled_partitions(config, client.config)))
    announced = {ManagedKeys.metadata_partitions_inflight.key: names}
    if dry_run:
        return client.with_properties({**client.config.raw, **announced})
    return client.with_properties(update_properties(client.storage, announced))


def _require_metadata(table: OpenTable) -> None:
    client = table.client
    require_readable(client)
    if client.files.is_plain and not StoredPartitions.of(client.config).all:
        raise TableServiceError(
            f"The table at {client.base_path} has no metadata table in {METADATA_FOLDER}",
            "Run `hudi metadata create PATH` to make one.",
        )
