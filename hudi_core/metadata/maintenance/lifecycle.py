"""Makes the metadata table ready before a writer's instant begins."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import (
    CorruptMetadataError,
    HudiError,
    PathNotFoundError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import (
    PATH_KEY,
    IndexDefinitions,
    put_definitions,
    read_definitions,
)
from hudi_core.metadata.log.records import MetadataRecord
from hudi_core.metadata.log.undo import recover
from hudi_core.metadata.maintenance.compaction import require_no_backlog
from hudi_core.metadata.maintenance.indexing import PartitionBuilder, build_missing_partitions
from hudi_core.metadata.partitions.base import MetadataPartition
from hudi_core.metadata.partitions.listed import ListedTable, RecordComparison
from hudi_core.metadata.partitions.names import ALL_CHECKS
from hudi_core.metadata.partitions.registry import enabled_partitions, options_for, partitions_of
from hudi_core.metadata.partitions.work import Work
from hudi_core.metadata.snapshot import MetadataSnapshot
from hudi_core.metadata.state import MetadataState, require_maintained
from hudi_core.metadata.table import (
    BESIDE_FOLDER,
    BOOTSTRAP_PREFIX,
    METADATA_FOLDER,
    StoredPartitions,
    metadata_client,
    metadata_properties,
    metadata_storage,
)
from hudi_core.model.difference import Difference
from hudi_core.model.instant import Action, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.metering import Metric
from hudi_core.model.protocols import Storage
from hudi_core.storage.properties_file import PROPERTIES_PATH, update_properties, write_new
from hudi_core.timeline.timeline import Timeline

_log: Final = logging.getLogger(__name__)


def ensure_metadata_table(
    client: TableMetaClient, config: MetadataConfig, found: MetadataState | None = None
) -> TableMetaClient:
    """Recover the metadata table, and build its missing partitions.

    One whose rebuild died is rebuilt, with the partitions that it had: the one write that finds it
    pays for that, with a listing of the table and all footers, unless it was
    complete already and just not in its place. Runs under the
    table's lock, after the table itself was recovered. Where nothing is to be done it costs nothing
    but the state.

    The timeline is read since the lock is held. ``config`` decides whether a table without a
    metadata table gets one.
    """
    tables = found or MetadataState.load(client)
    if tables is None and config.enabled:
        if not StoredPartitions.of(client.config).is_rebuilding:
            return create_metadata_table(client, config)
        rebuilt = put_in_place(client)
        if rebuilt is None:
            rebuilt, gone = rebuild_metadata_table(client, config)
            for name in gone:
                _log.warning("the column of index %s is not recorded; the index is gone", name)
        tables = MetadataState.load(rebuilt)
    if tables is None:
        return client
    tables = recover(tables)
    require_no_backlog(config, tables.data_timeline, tables.timeline)
    if config.enabled:
        tables = build_missing_partitions(tables, config)
    return tables.client


def create_metadata_table(
    client: TableMetaClient,
    config: MetadataConfig,
    indexes: Sequence[MetadataPartition] = (),
) -> TableMetaClient:
    """Create a table's metadata table with all enabled partitions.

    Its partitions are built at times before every other. Readers go by the table's property, which
    changes last: what a dead writer left before is deleted, and rebuilt.

    The caller holds the lock and has read properties and timeline since. ``indexes`` are further
    partitions that users have named; each is defined already.
    """
    with client.meter.time(Metric.INITIALIZE):
        built, changes = _built(client, config, indexes)
        return built.with_properties(update_properties(client.storage, changes)).client


def new_metadata_table(client: TableMetaClient, config: MetadataConfig) -> dict[str, str]:
    """Create a new table's metadata table; return the properties that name it."""
    with client.meter.time(Metric.INITIALIZE):
        _, changes = _built(client, config, ())
    return {key: value for key, value in changes.items() if value is not None}


def rebuild_metadata_table(
    client: TableMetaClient, config: MetadataConfig
) -> tuple[TableMetaClient, tuple[str, ...]]:
    """Rebuild a table's metadata table, with the partitions that it had.

    Before anything of it goes, the table's properties name its partitions as under construction:
    readers, those of others too, list the folders until the new one is there. The next writer after
    a crash finds there what is to be made. What refuses comes before that, and changes nothing.

    The caller holds the lock and has read properties and timeline since. ``config`` gives the
    layout only, not which partitions there are. Returned with the table are the indexes that are
    lost, as their column is recorded nowhere.
    """
    plan = rebuild_plan(client, config)
    if not client.files.is_plain:
        ListedTable(client, plan.options, plan.definitions).require_committed()
    if plan.definitions != plan.stored:
        # at once: after a crash nothing else may record them
        put_definitions(client.storage, plan.definitions)
    client = announce_rebuild(client)
    return create_metadata_table(client, plan.options, plan.named), plan.gone


def require_rebuildable(client: TableMetaClient, config: MetadataConfig) -> None:
    """Refuse a table whose metadata table :func:`rebuild_metadata_table` would refuse."""
    rebuild_plan(client, config)


def _built(
    client: TableMetaClient, config: MetadataConfig, indexes: Sequence[MetadataPartition]
) -> tuple[MetadataState, dict[str, str | None]]:
    """Build a metadata table; return it and the changed properties.

    By these readers use it.
    """
    wanted = (*enabled_partitions(config, client.config), *indexes)
    before = read_definitions(client.storage, client.config)
    table = ListedTable(client, config, before)
    if not client.files.is_plain:
        # an engine that dropped the former one may have written where nothing is listed
        table.require_committed()
    discard_beside(client.storage)
    client.storage.delete_tree(METADATA_FOLDER)
    builder = new_builder(table, METADATA_FOLDER)
    for number, one in enumerate(wanted):
        builder.build(one, build_time(number))
    built = builder.built
    if built.definitions != before:
        put_definitions(client.storage, built.definitions)
    return built, properties_in_use([one.name for one in wanted], built.definitions)


# --- metadata tables built beside the one in use, and swapped in ----------------------------------
# Order of it: the new one, in a folder of its own, compared with the writes of the timeline and
# with the one in use; a seal, which names its files and the state of the table that it was made of;
# the table's properties name its partitions as under construction, and readers list the folders;
# the definitions of its indexes; the files of the former one deleted; the new ones copied to their
# place, for object stores know no renaming; the properties name the partitions as complete; the
# folder deleted. After a crash before the properties change the folder is ignored. After that the
# next writer completes the change if the table is what the seal says, and rebuilds from the files
# otherwise. All of it runs under the table's lock.


# --- the plan of a rebuilt metadata table, and its builder ----------------------------------------


class RebuildPlan(NamedTuple):
    """How a metadata table is rebuilt: definitions now and then, options, indexes."""

    stored: IndexDefinitions
    definitions: IndexDefinitions
    options: MetadataConfig
    named: list[MetadataPartition]
    gone: tuple[str, ...]


def rebuild_plan(client: TableMetaClient, config: MetadataConfig) -> RebuildPlan:
    """The plan to rebuild a metadata table with its partitions."""
    names = StoredPartitions.of(client.config).all
    stored = read_definitions(client.storage, client.config)
    work = Work(client, config, stored)
    for one in partitions_of(names):
        work.definitions = one.restored(work)
    definitions = work.definitions
    there = [one for one in partitions_of(names) if one.is_defined(work)]
    gone = tuple(one.name for one in partitions_of(names) if one not in there)
    kept = StoredPartitions(tuple(one for one in names if one not in gone))
    require_maintained(kept, definitions, client.base_path)
    options = options_for(config, names, definitions)
    enabled_partitions(options, client.config)
    named = [one for one in there if one.is_of_column]
    return RebuildPlan(stored, definitions, options, named, gone)


def new_builder(table: ListedTable, folder: str) -> PartitionBuilder:
    """The builder of a new metadata table; puts its properties."""
    client = table.client
    write_new(metadata_storage(client, folder), metadata_properties(client.config))
    metadata = metadata_client(replace(client, metadata=None), folder).seeing(Timeline.of(()))
    return PartitionBuilder(MetadataState(client.over(metadata), table.definitions), table)


def build_time(number: int) -> InstantTime:
    """The time at which the partition of a number is built."""
    return InstantTime(f"{BOOTSTRAP_PREFIX}{number:03d}")


def properties_in_use(
    partitions: Collection[str], definitions: IndexDefinitions
) -> dict[str, str | None]:
    """The table's properties by which readers use a metadata table."""
    return {
        ManagedKeys.metadata_partitions.key: ",".join(sorted(partitions)),
        ManagedKeys.metadata_partitions_inflight.key: None,
        PATH_KEY: definitions.path if definitions.raw else None,
    }


def announce_rebuild(client: TableMetaClient) -> TableMetaClient:
    """Have readers list the folders until the metadata table is rebuilt.

    Its partitions count as under construction: the next writer who finds them so rebuilds them.
    """
    properties = update_properties(
        client.storage,
        {
            ManagedKeys.metadata_partitions.key: None,
            ManagedKeys.metadata_partitions_inflight.key: ",".join(
                sorted(StoredPartitions.of(client.config).all)
            ),
        },
    )
    return client.with_properties(properties)


# --- tables beside the one in use -----------------------------------------------------------------


_SEAL: Final = "sealed.json"
_MAX_SEAL_BYTES: Final = 64 << 20


def _no_lease() -> None:
    """Nothing is asked by who has just taken the lock."""


@dataclass
class Rebuilt:
    """What a metadata table is rebuilt to.

    ``records`` counts per partition; ``differences`` is what the table in use says otherwise,
    ``unreadable`` why that could not be compared to its end (``None`` if it could). ``orphans`` are
    data files that bear the name of a write which does not name them, and are not listed; ``gone``
    are indexes whose column is recorded nowhere, and are left out.
    """

    records: dict[str, int] = field(default_factory=dict)
    files: int = 0
    differences: tuple[Difference, ...] = ()
    unreadable: str | None = None
    orphans: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def rebuild_beside(
    client: TableMetaClient, config: MetadataConfig, *, dry_run: bool = False
) -> Rebuilt:
    """Build a metadata table beside the one in use.

    It has the same partitions.

    The caller holds the lock and has read properties and timeline since. ``config`` gives the
    layout only, not which partitions there are; a ``dry_run`` reads and compares the same. When the
    listing is incomplete or a data file cannot be read, nothing is left beside.
    """
    plan = rebuild_plan(client, config)
    table = ListedTable(client, plan.options, plan.definitions, with_history=True)
    wanted = (*enabled_partitions(plan.options, client.config), *plan.named)
    storage = client.storage
    if dry_run:
        return _Comparing(table).rebuilt(wanted, None, plan.gone)
    discard_beside(storage)
    try:
        builder = new_builder(table, BESIDE_FOLDER)
        done = _Comparing(table).rebuilt(wanted, builder, plan.gone)
    except HudiError:
        discard_beside(storage)
        raise
    seal = _Seal(_state(client), tuple(done.records), _files(builder), table.definitions.raw)
    seal.put(_beside(client))
    return done


@dataclass
class _Comparing:
    """Compares what is built of a table with what is in use."""

    table: ListedTable
    differences: list[Difference] = field(default_factory=list)
    unreadable: str | None = None

    def rebuilt(
        self,
        wanted: Iterable[MetadataPartition],
        builder: PartitionBuilder | None,
        gone: tuple[str, ...],
    ) -> Rebuilt:
        """Make the partitions; put them where there is a builder."""
        table = self.table
        table.require_committed()
        comparison, counts = self._comparison(), dict[str, int]()
        for number, partition in enumerate(wanted):
            records = list(partition.build(table))
            counts[partition.name] = len(records)
            if comparison is not None and self.unreadable is None:
                self._compare(partition, comparison, records)
            if builder is None:
                continue
            if partition.is_key_index:
                builder.build(partition, build_time(number))
            else:
                builder.put(partition, build_time(number), records)
        count = sum(len(found) for held in (table.files, table.all_logs) for found in held.values())
        return Rebuilt(counts, count, tuple(self.differences), self.unreadable, table.orphans, gone)

    def _comparison(self) -> RecordComparison | None:
        client = self.table.client
        if not StoredPartitions.of(client.config).is_there:
            self.unreadable = "an earlier rebuild was not finished"
            return None
        try:
            snapshot = MetadataSnapshot.open(client, client.timeline())
        except CorruptMetadataError as error:
            self.unreadable = error.what
            return None
        return RecordComparison(self.table, snapshot, ALL_CHECKS, None)

    def _compare(
        self,
        partition: MetadataPartition,
        comparison: RecordComparison,
        records: list[MetadataRecord],
    ) -> None:
        if partition.name not in comparison.snapshot.partitions:
            return
        comparison.made[partition.name] = records
        try:
            self.differences += partition.compare(comparison)
        except CorruptMetadataError as error:
            self.unreadable = error.what
        finally:
            del comparison.made[partition.name]


# --- in its place -----------------------------------------------------------


def put_in_place(
    client: TableMetaClient, require_lease: Callable[[], None] = _no_lease
) -> TableMetaClient | None:
    """Put what was built beside in the place of the metadata table.

    The caller holds the lock and has read properties and timeline since. Returns ``None``, with
    nothing changed, where nothing that fits is there.
    """
    storage, stored = client.storage, StoredPartitions.of(client.config)
    seal = _Seal.read(_beside(client))
    if seal is None or seal.state != _state(client) or not {*seal.partitions} <= {*stored.all}:
        return None
    require_lease()
    if not stored.is_rebuilding:
        client = announce_rebuild(client)
    path = read_definitions(storage, client.config).path
    definitions = IndexDefinitions(path, seal.definitions)
    if definitions.raw:
        put_definitions(storage, definitions)
    storage.delete_tree(METADATA_FOLDER)
    copy = CopyToStorage(_beside(client), metadata_storage(client))
    # every copy is waited for before the next step
    list(client.run_map(copy, seal.files))
    require_lease()
    in_use = properties_in_use(seal.partitions, definitions)
    client = client.with_properties(update_properties(storage, in_use))
    discard_beside(storage)
    return client


def discard_beside(storage: Storage) -> None:
    """Delete what is left of a build beside; the seal first."""
    storage.delete(f"{BESIDE_FOLDER}/{_SEAL}")
    storage.delete_tree(BESIDE_FOLDER)


@dataclass(frozen=True, slots=True)
class CopyToStorage:
    """Copies a file to another place; a value for engines."""

    source: Storage
    target: Storage

    def __call__(self, path: str) -> None:
        """Copy one; what is there is replaced."""
        self.target.put(path, self.source.read(path))


def _beside(client: TableMetaClient) -> Storage:
    return metadata_storage(client, BESIDE_FOLDER)


def _files(builder: PartitionBuilder) -> tuple[str, ...]:
    """Paths of a new metadata table's files; a listing might lack some."""
    active = builder.tables.metadata.active
    states = (
        instant if state is State.COMPLETED else instant.to(state)
        for instant in builder.tables.timeline.instants
        for state in State
    )
    return (PROPERTIES_PATH, *map(active.path, states), *builder.files)


def _state(client: TableMetaClient) -> str:
    """Digest of what a metadata table is made of.

    Properties and instants of the table.

    Rollbacks of what was never complete change nothing that it lists.
    """
    instants = [
        [one.requested_time, one.action.value, one.completion_time]
        for one in client.timeline().completed()
        if one.action is not Action.ROLLBACK
    ]
    of = [client.config.version, client.config.timezone, instants]
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Seal:
    """The record of a metadata table that was built beside completely."""

    state: str
    partitions: tuple[str, ...]
    files: tuple[str, ...]
    definitions: Mapping[str, Mapping[str, Any]]

    def put(self, beside: Storage) -> None:
        """Put it, last of all."""
        stated = {
            "state": self.state,
            "partitions": self.partitions,
            "files": self.files,
            "definitions": self.definitions,
        }
        beside.put(_SEAL, json.dumps(stated).encode())

    @classmethod
    def read(cls, beside: Storage) -> _Seal | None:
        """Return it; ``None`` where there is none that was put by :meth:`put`."""
        try:
            stated = json.loads(beside.read(_SEAL, _MAX_SEAL_BYTES))
            definitions = stated["definitions"]
            texts: list[Collection[Any]] = [stated["partitions"], stated["files"]]
            state = str(stated["state"])
        except (PathNotFoundError, ValueError, RecursionError, KeyError, TypeError):
            return None
        is_whole = all(isinstance(one, list) for one in texts) and isinstance(definitions, dict)
        if not is_whole or not all(isinstance(one, dict) for one in definitions.values()):
            return None
        partitions, files = (tuple(map(str, some)) for some in texts)
        return cls(state, partitions, files, definitions)
