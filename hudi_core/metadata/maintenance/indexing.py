"""Adds or drops one metadata table partition, as an `indexing`.

Order of an addition (a crash at any point leaves what the next indexing, or the next write, takes
away): plan, inflight, the partition marked as being built, its files, the mark replaced by its name
among the complete ones, completed metadata. A drop takes the name away first and the files after.
Everything runs under the table's lock from the first step to the last; other engines hold theirs
for the first and the last step alone, so their pending indexings are left to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import (
    CorruptMetadataError,
    HudiError,
    TableServiceError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import (
    NOTHING_ASKED,
    PATH_KEY,
    AskedIndex,
    put_definitions,
    read_definitions,
    without_index,
)
from hudi_core.metadata.log.completeness import BULK_INSERT, shards_stated
from hudi_core.metadata.log.file_bytes import (
    encode_base_file,
    encode_first_log_file,
    encode_partition_mark,
)
from hudi_core.metadata.log.records import MetadataRecord, PartitionChange
from hudi_core.metadata.log.shards import (
    ShardFile,
    WriteBases,
    base_name,
    by_shard,
    write_shards,
)
from hudi_core.metadata.log.undo import recover
from hudi_core.metadata.log.writer import (
    NewFile,
    begin_deltacommit,
    complete_deltacommit,
    log_stat,
)
from hudi_core.metadata.partition_types import shard_file_id
from hudi_core.metadata.partitions.base import GroupCountFacts, MetadataPartition
from hudi_core.metadata.partitions.listed import ListedTable
from hudi_core.metadata.partitions.names import BUILDABLE
from hudi_core.metadata.partitions.registry import enabled_partitions, partition_of, partitions_of
from hudi_core.metadata.partitions.work import Work
from hudi_core.metadata.state import MetadataState
from hudi_core.metadata.table import StoredPartitions, metadata_storage
from hudi_core.model.actions import IndexCommitMetadata, IndexPartitionInfo, IndexPlan
from hudi_core.model.commit import NO_PREVIOUS_COMMIT, WriteStat
from hudi_core.model.files import (
    PARTITION_METADATA_FILE,
    FileId,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.properties_file import update_properties
from hudi_core.storage.temp_folders import STAGE
from hudi_core.timeline.serde import decode_index_plan, encode
from hudi_core.timeline.timeline import Timeline

# --- the first building of partitions -------------------------------------------------------------
# Each partition is one commit of its own, and the table is listed once for all of them. Readers do
# not use a partition before the table's properties name it. Everything here runs under the table's
# lock.


@dataclass
class PartitionBuilder:
    """Builds partitions of a metadata table from one listing of the table.

    ``tables`` and the definitions of ``table`` include what was built so far. ``files`` are the
    paths put below the metadata table, but for its timeline.
    """

    tables: MetadataState
    table: ListedTable
    files: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, tables: MetadataState, config: MetadataConfig) -> PartitionBuilder:
        """The builder of a table, under options."""
        return cls(tables, ListedTable(tables.client, config, tables.definitions))

    @property
    def built(self) -> MetadataState:
        """The tables with what was built, and with its definitions."""
        return replace(self.tables, definitions=self.table.definitions)

    def build(self, partition: MetadataPartition, time: InstantTime) -> None:
        """Build one partition as the deltacommit of a time.

        It has no files yet.

        Readers do not use it before the table's properties name it.
        """
        keys = partition.keys(self.table)
        if keys is None:
            self.put(partition, time, list(partition.build(self.table)))
            return
        name = partition.name
        self.tables = begin_deltacommit(self.tables, time)
        metadata, times = self.tables.metadata, (time, self.tables.next_time())
        folder = join_path(PartitionPath(name), STAGE)
        at = f"{metadata.base_path.removeprefix(self.table.client.base_path)[1:]}/{folder}"
        partition.note_repeated(self.table, at)
        config = self.table.config
        groups = {
            owner: [
                shard_file_id(name, shard, owner)
                for shard in range(partition.group_count(GroupCountFacts(config, owner, rows)))
            ]
            for owner, rows in keys.rows.items()
        }
        spread = keys.change().spread({one: len(ids) for one, ids in groups.items()}, at)
        of_owners = {owner: (ids, ()) for owner, ids in groups.items()}
        write = WriteBases(name, spread, metadata.config, times)
        done = write_shards(metadata, write, of_owners)
        if spread.is_spread:
            metadata.storage.delete_tree(folder)
        if done.repeats:
            self.table.definitions = spread.noted(self.table.definitions)
        ids = [one for some in groups.values() for one in some]
        self._complete(partition, time, ids, done.files)

    def put(
        self, partition: MetadataPartition, time: InstantTime, records: Sequence[MetadataRecord]
    ) -> None:
        """Put the records of a partition, made of :attr:`table`.

        See :meth:`build`.
        """
        name = partition.name
        self.tables = begin_deltacommit(self.tables, time)
        config, now = self.tables.metadata.config, self.tables.next_time()
        count = partition.group_count(GroupCountFacts(self.table.config, None, len(records)))
        ids = [shard_file_id(name, shard) for shard in range(count)]
        files = []
        for shard, part in by_shard(PartitionChange(tuple(records)), count):
            data = encode_base_file(part, config, str(base_name(ids[shard], time, shard)), now)
            files.append(ShardFile(shard, ids[shard], len(data), part.new, 0, data))
        self._complete(partition, time, ids, files)

    def _complete(
        self,
        partition: MetadataPartition,
        time: InstantTime,
        ids: Sequence[FileId],
        made: Sequence[ShardFile],
    ) -> None:
        """Complete the deltacommit of a partition's first files.

        ``ids`` are those of all its file groups.
        """
        name = partition.name
        files = [NewFile(join_path(name, PARTITION_METADATA_FILE), encode_partition_mark(time))]
        held = {one.file_id for one in made}
        for file_id in ids:
            log = LogFileName(file_id, time, 1, "0-0-0")
            # a group without a base file is named by its log, so that its loss is noticed
            files.append(_first_log(name, log, is_named=file_id not in held))
        files += [_base_file(name, one, time) for one in made]
        self.files += [one.path for one in files]
        # no file group is there that it did not make
        stated = shards_stated({name: {}})
        self.tables = complete_deltacommit(self.tables, time, files, BULK_INSERT, stated)


def _base_file(partition: str, made: ShardFile, time: InstantTime) -> NewFile:
    path = join_path(partition, str(base_name(made.file_id, time, made.shard)))
    stat = WriteStat(
        file_id=made.file_id,
        path=path,
        prev_commit=NO_PREVIOUS_COMMIT,
        num_writes=made.new,
        num_inserts=made.new,
        total_write_bytes=made.size,
        file_size_in_bytes=made.size,
        partition_path=partition,
    )
    return NewFile(path, made.data, stat)


def _first_log(partition: str, name: LogFileName, *, is_named: bool) -> NewFile:
    path, data = join_path(partition, str(name)), encode_first_log_file(name.instant)
    stat = log_stat(name, partition, len(data), NO_PREVIOUS_COMMIT)
    return NewFile(path, data, stat if is_named else None)


# --- indexing -------------------------------------------------------------------------------------


_OURS: Final = "hudi.core.indexing"
"""Key of a plan's extra metadata: what is done, by a writer that holds the lock throughout."""
_BUILD, _DROP = "build", "drop"


def build_partition(
    tables: MetadataState,
    config: MetadataConfig,
    partition: str,
    asked: AskedIndex = NOTHING_ASKED,
) -> Indexing:
    """Add a partition to the metadata table, built from the table's files.

    Both tables are recovered, pending indexing included (:func:`recover_pending_indexing`). The
    partition must not be there yet, and the list of files must.
    """
    _require_none_pending(tables.data_timeline)
    stored = tables.partitions
    if not stored.is_there:
        raise TableServiceError(
            f"The table at {tables.client.base_path} has no metadata table to add {partition} to",
            "Run `hudi metadata create PATH` first.",
        )
    if partition in stored.complete:
        raise TableServiceError(
            f"The metadata table has the partition {partition} already",
            f"To rebuild it, run `hudi metadata drop PATH {partition}` first.",
        )
    kind = _known(partition)
    if kind.made_from is not None and kind.made_from not in stored.complete:
        raise TableServiceError(
            f"{partition} is made from {kind.made_from}, which the metadata table lacks",
            f"Run `hudi metadata index PATH {kind.made_from}` first.",
        )
    work = Work(tables.client, config, tables.definitions)
    defined = replace(tables, definitions=kind.defined(work, asked))
    storage = tables.client.storage
    with _made_good_on_failure(tables.client):
        indexing = _begin(defined, partition, _BUILD)
        update_properties(
            storage,
            {
                ManagedKeys.metadata_partitions_inflight.key: ",".join(
                    sorted({*stored.building, partition})
                )
            },
        )
        tables.metadata.storage.delete_tree(partition)
        builder = PartitionBuilder.of(indexing.tables, config)
        # not at a time before all others: what was committed to an earlier one of that name is no
        # part of it
        builder.build(kind, indexing.instant.requested_time)
        built = builder.built
        put_definitions(storage, built.definitions)
        properties = update_properties(
            storage,
            {
                ManagedKeys.metadata_partitions.key: ",".join(
                    sorted({*stored.complete, partition})
                ),
                ManagedKeys.metadata_partitions_inflight.key: ",".join(stored.building),
                PATH_KEY: built.definitions.path,
            },
        )
        return _complete(built.with_properties(properties), indexing.instant)


def build_missing_partitions(tables: MetadataState, config: MetadataConfig) -> MetadataState:
    """Add missing enabled partitions; returns the new tables."""
    stored = tables.partitions.all
    wanted = enabled_partitions(config, tables.client.config)
    for one in wanted:
        if one.name in stored:
            one.require_same_kind(Work(tables.client, config, tables.definitions))
    for one in wanted:
        if one.name not in tables.partitions.all:
            tables = build_partition(tables, config, one.name).tables
            continue
        asked = one.rebuild_options(Work(tables.client, config, tables.definitions))
        if asked is not config:
            tables = _rebuild(tables, asked, one.name)
    return tables


def _rebuild(tables: MetadataState, config: MetadataConfig, partition: str) -> MetadataState:
    """Rebuild a partition, and those that are made from it."""
    names = [partition, *(one.name for one in _made_from(tables, partition))]
    tables = drop_partition(tables, partition).tables
    for name in names:
        tables = build_partition(tables, config, name).tables
    return tables


def _made_from(tables: MetadataState, partition: str) -> list[MetadataPartition]:
    stored = partitions_of(tables.partitions.all)
    return [one for one in stored if one.made_from == partition]


def drop_partition(tables: MetadataState, partition: str, *, cascades: bool = False) -> Indexing:
    """Delete a partition of the metadata table, dependents first.

    Without ``cascades``, partitions whose lookups go through it are in the way.
    """
    _require_none_pending(tables.data_timeline)
    stored = tables.partitions
    if partition not in stored.all:
        raise TableServiceError(
            f"The metadata table has no partition {partition}",
            f"It has {', '.join(stored.complete) or 'none'}.",
        )
    kind = partition_of(partition)
    if kind is not None:
        kind.require_droppable()
    needing = [one.name for one in partitions_of(stored.all) if one.read_through == partition]
    if needing and not cascades:
        raise TableServiceError(
            f"Lookups by {', '.join(needing)} go through the {partition.replace('_', ' ')}",
            "Drop them first.",
        )
    for name in needing:
        tables = drop_partition(tables, name).tables
    for one in _made_from(tables, partition):
        # it would go stale
        tables = drop_partition(tables, one.name).tables
    with _made_good_on_failure(tables.client):
        indexing = _begin(tables, partition, _DROP)
        client = _drop(indexing.tables.client, partition)
        dropped = indexing.tables.with_properties(client.config.raw)
        definitions = read_definitions(client.storage, client.config)
        return _complete(replace(dropped, definitions=definitions), indexing.instant)


def was_dropped(client: TableMetaClient, partition: str) -> bool:
    """Whether the active timeline shows that a partition was dropped."""
    for instant in reversed(client.timeline().instants):
        if instant.action is Action.INDEXING and instant.is_completed:
            info = _own_plan(client, instant)
            if info is not None and info.metadata_partition_path == partition:
                return (info.extra_metadata or {}).get(_OURS) == _DROP
    return False


def recover_pending_indexing(client: TableMetaClient, *, is_lost: bool = False) -> bool:
    """Recover a dead indexing of ours; runs under the lock.

    An addition whose partition readers use by now is completed, any other is taken back; so is a
    drop, unless readers do without the partition by now: then its files go. Of what is about to be
    rebuilt nothing is completed: that such a partition was built is forgotten, and it is kept.

    The timeline is read since the lock is held. ``is_lost`` is whether the metadata table is about
    to be rebuilt. Returns whether there was one.
    """
    found = False
    for pending in client.timeline().pending():
        if pending.action is not Action.INDEXING:
            continue
        info = _own_plan(client, pending)
        if info is None:
            continue
        found = True
        partition = info.metadata_partition_path or ""
        is_drop = (info.extra_metadata or {}).get(_OURS) == _DROP
        if partition not in StoredPartitions.of(client.config).complete:
            client = _drop(client, partition)
        elif not (is_drop or is_lost):
            tables = MetadataState.load(client)
            if tables is not None:
                client = _complete(tables, pending).tables.client
                continue
        client.active.delete_pending(pending)
    return found


@contextmanager
def _made_good_on_failure(client: TableMetaClient) -> Iterator[None]:
    """Recovery of a failing indexing at once; see :func:`recover_pending_indexing`."""
    try:
        yield
    except BaseException as error:
        try:
            recover_pending_indexing(_afresh(client))
            tables = MetadataState.load(_afresh(client))
            if tables is not None:
                recover(tables)
        except HudiError as again:
            # what went wrong first is what the caller must hear of; the next writer repairs
            error.add_note(f"Undoing the indexing failed as well: {again}")
        raise


def _afresh(client: TableMetaClient) -> TableMetaClient:
    now = client.afresh.as_stored()
    return now.seeing(now.active.load())


def _require_none_pending(timeline: Timeline) -> None:
    pending = timeline.pending().of_actions(Action.INDEXING).first
    if pending is not None:
        raise TableServiceError(
            f"The {pending} is under way",
            "Let the engine that started it finish it, then try again.",
            instant=str(pending),
        )


@dataclass(frozen=True, slots=True)
class Indexing:
    """An indexing, and the tables with it."""

    tables: MetadataState
    instant: Instant


def _begin(tables: MetadataState, partition: str, what: str) -> Indexing:
    active = tables.client.active
    writes = tables.data_timeline.completed_writes()
    info = IndexPartitionInfo(
        metadata_partition_path=partition,
        index_upto_instant=writes[-1].requested_time if writes else None,
        extra_metadata={_OURS: what},
    )
    requested = Instant(tables.next_time(), Action.INDEXING, State.REQUESTED)
    active.create_requested(requested, encode(IndexPlan(index_partition_infos=(info,))))
    inflight = active.to_inflight(requested)
    timeline = tables.data_timeline.with_instant(inflight)
    return Indexing(tables.with_data_timeline(timeline), inflight)


def _complete(tables: MetadataState, instant: Instant) -> Indexing:
    client, timeline = tables.client, tables.data_timeline
    requested = instant.to(State.REQUESTED)
    where = f"{client.storage.root}/{client.active.path(requested)}"
    plan = decode_index_plan(client.active.read(requested), where)
    body = IndexCommitMetadata(index_partition_infos=plan.index_partition_infos)
    if instant.state is State.REQUESTED:
        instant = client.active.to_inflight(instant)
    completed = client.active.complete(instant, tables.next_time(), encode(body), timeline)
    return Indexing(tables.with_data_timeline(timeline.with_instant(completed)), completed)


def is_own_indexing(client: TableMetaClient, pending: Instant) -> bool:
    """Whether :func:`recover_pending_indexing` recovers a pending instant."""
    return pending.action is Action.INDEXING and _own_plan(client, pending) is not None


def _own_plan(client: TableMetaClient, pending: Instant) -> IndexPartitionInfo | None:
    """Partitions of a pending indexing; ``None`` when another engine began it."""
    requested = pending.to(State.REQUESTED)
    where = f"{client.storage.root}/{client.active.path(requested)}"
    data = client.active.read(requested)
    if not data:
        return None  # ours are put in one step, with their plan
    plan = decode_index_plan(data, where)
    infos = plan.index_partition_infos or ()
    if len(infos) != 1 or _OURS not in (infos[0].extra_metadata or {}):
        return None
    _checked(infos[0].metadata_partition_path or "", where)
    return infos[0]


def _checked(partition: str, where: str) -> None:
    """Refuse a plan for anything but a buildable partition.

    Regardless of the engine that wrote it.
    """
    kind = partition_of(partition)
    if kind is None or kind.is_required or not kind.has_safe_name:
        raise CorruptMetadataError(
            where,
            f"it is an indexing of {partition!r}",
            "Nothing was changed. Remove it if it is not from a writer you trust.",
        )


def _drop(client: TableMetaClient, partition: str) -> TableMetaClient:
    """Drop a partition: properties, definitions, then files.

    Returns the table with the properties that it has then.
    """
    stored = StoredPartitions.of(client.config)
    properties = update_properties(
        client.storage,
        {
            ManagedKeys.metadata_partitions.key: ",".join(
                one for one in stored.complete if one != partition
            ),
            ManagedKeys.metadata_partitions_inflight.key: ",".join(
                one for one in stored.building if one != partition
            ),
        },
    )
    definitions = read_definitions(client.storage, client.config)
    if partition in definitions.raw:
        put_definitions(client.storage, without_index(definitions, partition))
    metadata_storage(client).delete_tree(partition)
    return client.with_properties(properties)


def _known(partition: str) -> MetadataPartition:
    """The partition of a name, which can be added."""
    kind = partition_of(partition)
    if kind is None or kind.is_required:
        raise TableServiceError(
            f"The metadata table cannot have a partition {partition}",
            f"Name one of {', '.join(BUILDABLE)}; those of a name of yours with a column.",
        )
    _checked(partition, "The name")
    return kind
