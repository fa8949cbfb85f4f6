"""Upgrades of tables, and downgrades: versions 6, 8 and 9.

At each step the table is whole in the one version or in the other, so that a run that died is
simply run again:

==============================================  ==================================================
after                                           the table is
==============================================  ==================================================
1 logs merged, timeline and archive copied      of the former version; no reader uses the copies
2 metadata table given up                       of the former version; readers list its folders
3 properties changed                            of the new version, without a metadata table
4 former timeline and archive deleted           the same
5 pending writes rolled back                    the same
6 metadata table rebuilt                        done
==============================================  ==================================================

Steps 1 and 4 are those from and to version 6, whose timeline has another layout. What they copy and
delete is known by a file that is there from before the first copy to the end; what becomes of logs
is in :mod:`hudi_core.services.upgrade_logs`. To version 6, step 5 comes before the first, and there
is no metadata table in the end, see :mod:`hudi_core.services.downgrade`. Step 3 is one change of
one file. Hudi's own upgrade moves the timeline's files instead, and leaves a table that no version
reads where it dies.

Who still writes as version 6 is not kept out by step 3: such a writer must have ended before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_core.actions.archive import FILE_BODY_BYTES
from hudi_core.actions.deletion import delete_together
from hudi_core.actions.history import HistoryWriter
from hudi_core.config.key_generators import typed_fields
from hudi_core.config.kinds import KeyGeneratorType, TableType
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.properties import CHECKSUM_KEY
from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.table_keys import WRITABLE_VERSIONS, TableKeys
from hudi_core.config.versions import TARGETS, properties_in
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import (
    ConcurrentWriterError,
    InvalidOptionError,
    TableServiceError,
    UnsupportedTableError,
)
from hudi_core.meta_client import META_FOLDER, TableMetaClient
from hudi_core.metadata.index_definitions import in_version, put_definitions, read_definitions
from hudi_core.metadata.maintenance.lifecycle import (
    announce_rebuild,
    rebuild_metadata_table,
    require_rebuildable,
)
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions
from hudi_core.model.files import FileSlice
from hudi_core.model.instant import Instant, parse_file_name_v1
from hudi_core.services.convert import require_recoverable
from hudi_core.services.downgrade import (
    clean_former_logs,
    drop_metadata_table,
    give_up_scheduled,
    require_known_in_version_6,
    require_no_former_logs,
    require_nothing_pending,
)
from hudi_core.services.opening import open_table
from hudi_core.services.progress import CountedMap, Progress, no_progress
from hudi_core.services.upgrade_logs import (
    GivenUp,
    merge_all,
    merged_in_version_6,
    slices_to_merge,
)
from hudi_core.storage.properties_file import recover as recover_properties
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.active import LAYOUT_1, LAYOUT_2
from hudi_core.timeline.archived import archive_file, archive_files, archive_log, history_rows
from hudi_core.timeline.clock import require_same_zone
from hudi_core.timeline.lsm_history import HistoryFileName, HistoryRow, read_history
from hudi_core.timeline.relayout import CopyToLayout, MovedFile, moved_back, moved_files
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.recover import is_writing, recover, require_known_actions
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.storage_move import moved_on
from hudi_core.txn.table_lock import TableLock, table_lock
from hudi_core.write.key_proof import form_to_keep, proven

MARK: Final = f"{META_FOLDER}/.upgrade"
"""There from before the first file of another layout until the last one of the former is gone."""
CHANGED_OPTIONS: Final = frozenset((*TableKeys.version.names, *TableKeys.partition_path.names))
"""Options that may contradict the table before its version changes, or after it."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A change of a table's version that is planned, or was made.

    ``before`` and ``after`` are equal where only the end of an earlier run is left to do.
    ``properties`` has the values before and after by name, ``None`` where there is none, without
    those that name the metadata table's partitions: in the end it has the same. ``renamed`` has
    paths before and after, in the order of the instants.

    ``archives`` are files of the former archive, whose instants move to the history. Of ``pending``
    instants, writes are rolled back, as their writers are dead; cleans, rollbacks and restores go
    on, and compactions of version 6 are given up, as all logs are merged. ``partitions`` are those
    of the metadata table, which is rebuilt. ``slices`` are file slices whose logs are merged into
    base files.
    """

    path: str
    before: int
    after: int
    properties: Mapping[str, tuple[str | None, str | None]]
    renamed: tuple[tuple[str, str], ...] = ()
    archives: tuple[str, ...] = ()
    pending: tuple[Instant, ...] = ()
    partitions: tuple[str, ...] = ()
    is_resumed: bool = False
    slices: tuple[FileSlice, ...] = ()

    @property
    def logs(self) -> int:
        """How many log files are merged."""
        return sum(len(one.log_files) for one in self.slices)

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.before != self.after or self.is_resumed


@dataclass(frozen=True, slots=True)
class UpgradeWork:
    """A plan, and what carrying it out needs.

    ``made`` is the client of the table as it will be; ``files`` are timeline files in both layouts,
    empty where the layout stays. ``given_up`` are pending compactions of version 6.
    """

    plan: Upgrade
    made: TableMetaClient
    files: tuple[MovedFile, ...] = ()
    given_up: GivenUp = field(default_factory=GivenUp)


def open_for_upgrade(path: str, options: Mapping[str, str]) -> OpenTable:
    """Open a table whose version is about to change.

    Options that name its version, or the types of its partition fields, say what it will be.
    """
    return open_table(path, {key: options[key] for key in options.keys() - CHANGED_OPTIONS})


def plan_upgrade(path: str, options: Mapping[str, str], to: int) -> Upgrade:
    """Plan of a change of version.

    Nothing is written, and no lock is taken. What the change would refuse is refused, but for
    writers who come meanwhile.
    """
    return plan_work(open_for_upgrade(path, options), options, to).plan


def plan_work(table: OpenTable, options: Mapping[str, str], to: int) -> UpgradeWork:
    """Plan a change of version, and refuse what cannot be done.

    ``table`` is one of :func:`open_for_upgrade`.
    """
    client = table.client
    config = client.config
    _require_target(to)
    is_marked = client.storage.head(MARK) is not None
    is_rebuilding = StoredPartitions.of(config).is_rebuilding
    plan = Upgrade(
        client.base_path,
        config.version,
        to,
        {},
        partitions=StoredPartitions.of(config).all if is_rebuilding else (),
        is_resumed=is_marked or is_rebuilding,
    )
    if config.version == to:
        return UpgradeWork(plan, client)
    if config.version in WRITABLE_VERSIONS:
        require_recoverable(client)
    properties = properties_in(_with_types(client, options), to, client.base_path)
    made = client.with_properties(properties)
    if to in WRITABLE_VERSIONS:
        require_recoverable(made)
        require_rebuildable(made, MetadataConfig.from_options(client.options))
    else:
        require_known_in_version_6(table)
    require_same_zone(client.active, config.zone)
    timeline = _without_archived(client, client.timeline())
    require_known_actions(client.seeing(timeline))
    if to in WRITABLE_VERSIONS:
        properties |= _key_encoding(table, made, options)
    made = client.with_properties(properties)
    plan = replace(
        plan,
        properties=_changes(config.raw, made.config.raw),
        pending=timeline.pending().instants,
        partitions=StoredPartitions.of(config).all,
        slices=slices_to_merge(table, made),
    )
    if config.layout_version == made.config.layout_version:
        return UpgradeWork(plan, made)
    _require_no_other_upgrade(client, made, is_marked=is_marked)
    goes_up = config.layout_version == LAYOUT_1
    moved = moved_files(client.active, config.zone) if goes_up else moved_back(client.active)
    given_up = GivenUp.of(timeline, plan.slices) if goes_up else GivenUp()
    files = tuple(
        one
        for one in moved
        if timeline.find(one.before.requested_time, one.before.action) is not None
        and not given_up.is_of(one.before)
    )
    archive = client.archived.folder
    return UpgradeWork(
        replace(
            plan,
            renamed=tuple(
                (client.active.path(one.before), made.active.path(one.after)) for one in files
            ),
            archives=tuple(
                archive_files(client.storage, archive)
                if goes_up
                else sorted(one.path for one in client.storage.list(archive))
            ),
        ),
        made,
        files,
        given_up,
    )


def _require_target(to: int) -> None:
    """Refuse versions that no upgrade is for."""
    if to not in TARGETS:
        raise InvalidOptionError(
            "to", to, "a table is brought to version 6, 8 or 9", "Name one of these."
        )


def _without_archived(client: TableMetaClient, timeline: Timeline) -> Timeline:
    """A timeline without what looks pending and is archived.

    An archival of layout 1 that died has deleted the completed file before the others.
    """
    if client.config.layout_version != LAYOUT_1 or not timeline.pending().instants:
        return timeline
    for one in client.archived.load():
        found = timeline.find(one.instant.requested_time, one.instant.action)
        if one.instant.is_completed and found is not None and not found.is_completed:
            timeline = timeline.without(found)
    return timeline


def _changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, tuple[str | None, str | None]]:
    return {
        key: (before.get(key), after.get(key))
        for key in sorted({*before, *after} - {CHECKSUM_KEY})
        if before.get(key) != after.get(key)
    }


def _with_types(client: TableMetaClient, options: Mapping[str, str]) -> dict[str, str]:
    """The properties, with types of partition fields.

    Version 6 does not store them.
    """
    config = client.config
    properties = dict(config.raw)
    if config.keygen_type is not KeyGeneratorType.CUSTOM or all(config.partition_types):
        return properties
    given = TableKeys.partition_path.read(options)
    names, types = typed_fields(given)
    if names != config.partition_fields or not all(types):
        key = TableKeys.partition_path.key
        raise UnsupportedTableError(
            client.base_path,
            "does not say what its partition fields are, as its version does not store it",
            f"Set {key} to them with their types, such as "
            f"{','.join(f'{name}:SIMPLE' for name in config.partition_fields)}.",
        )
    properties[TableKeys.partition_path.aliases[0]] = ",".join(given)
    return properties


def _key_encoding(
    table: OpenTable, made: TableMetaClient, options: Mapping[str, str]
) -> dict[str, str]:
    """The property of the spelling of keys of one field.

    There are several ways. Version 9 knows one way unless the property says otherwise; of earlier
    versions the stored keys show it. Hudi refuses such tables, unless an option says that the way
    was always the same.
    """
    client, key = table.client, ManagedKeys.complex_encoding.key
    if not client.config.may_name_one_key or key in client.config.raw:
        return {}
    if client.config.version not in (6, 8):
        return {key: "FIELD_PREFIXED"}
    slices = table.views().view().latest_slices()
    # distinguished as in version 8, the files read where they are
    config = replace(made.config, version=8, layout_version=client.config.layout_version)
    schema = client.schema
    found = proven(
        replace(client, config=config), slices, schema, WriteConfig.from_options(options)
    )
    return {key: form_to_keep(found, schema)[key]}


def _require_no_other_upgrade(
    client: TableMetaClient, made: TableMetaClient, *, is_marked: bool
) -> None:
    """Refuse a table that another program's upgrade has left half done.

    That moves files, so that neither layout has all of them.
    """
    if is_marked or not made.active.load().instants:
        return
    raise TableServiceError(
        f"The timeline of the table at {client.base_path} lies in two places, "
        f"{client.active.folder} and {made.active.folder}: another program's upgrade was "
        "interrupted",
        "Finish that upgrade with the program that began it, such as Apache Hudi.",
        base_path=client.base_path,
    )


# --- the steps ------------------------------------------------------------------------------------

_log: Final = logging.getLogger(__name__)
_MARKED: Final = b"An upgrade of this table is under way: `hudi table upgrade` ends it.\n"


def upgrade_table(
    path: str,
    options: Mapping[str, str],
    to: int,
    engine: Engine,
    progress: Progress = no_progress,
) -> Upgrade:
    """Bring a table to another version.

    Run again, it goes on where it died.

    ``to`` is 6, 8 or 9. Partition fields with their types in ``options`` say what a table of
    version 6 does not store of its CUSTOM key generator. ``progress`` counts timeline files copied,
    and file slices whose logs are merged.

    Refused, with nothing changed, are interrupted upgrades of another program
    (``TableServiceError``) and instants made in another time zone than the one declared
    (``TimelineError``). After ``CorruptMetadataError`` the table has its former version.
    """
    config = WriteConfig.from_options(options)
    before = open_for_upgrade(path, options)
    _require_target(to)
    lock = table_lock(before, config)
    merged = _slices_to_merge_first(before, options, to)
    goes_down = to not in WRITABLE_VERSIONS and before.client.config.version != to
    if goes_down:
        plan_work(before, options, to)  # what it refuses, before anything changes
        give_up_scheduled(before, lock, config)
    if merged:
        merge_all(before, lock, options, engine, progress)
    if goes_down:
        clean_former_logs(open_for_upgrade(path, options), lock, options)
    with lock.held_by_service():
        recover_properties(before.client.storage)
        table = moved_on(open_for_upgrade(path, options))
        if table.client.config.version in WRITABLE_VERSIONS:
            _forget_former_timeline(table.client, lock)
        work = plan_work(table, options, to)
        if work.plan.before != to and goes_down:
            _require_no_writers(table, config)
            _require_no_late_logs(work)
            pending = work.plan.pending
            recover(TableState.load(table), config)
            table = open_for_upgrade(path, options)
            require_nothing_pending(table.client.base_path, table.client.timeline())
            require_no_former_logs(table)
            work = plan_work(table, options, to)
            work = replace(work, plan=replace(work.plan, pending=pending))
            _copy_timeline(table.client, work, progress)
            _change_version(table.client, work, lock)
        elif work.plan.before != to:
            _require_no_writers(table, config)
            if work.made.active.folder != table.client.active.folder:
                slices = work.plan.slices
                with merged_in_version_6(table, slices, config, engine, progress) as compaction:
                    work.given_up.delete_files(table.client)
                    _copy_timeline(table.client, work, progress)
                    work.given_up.put(table.client, work.made)
                    if compaction is not None:
                        compaction.put(work.made)
                    _change_version(table.client, work, lock)
            else:
                _require_no_late_logs(work)
                recover(TableState.load(table), config)
                _change_version(table.client, work, lock)
        if work.plan.is_needed:
            _finish(path, options, config, lock)
    return replace(work.plan, slices=merged or work.plan.slices)


def _slices_to_merge_first(
    table: OpenTable, options: Mapping[str, str], to: int
) -> tuple[FileSlice, ...]:
    """Slices whose rows the other version merges otherwise; none of version 6."""
    config = table.client.config
    if config.table_type is not TableType.MERGE_ON_READ or config.version not in WRITABLE_VERSIONS:
        return ()
    return plan_work(table, options, to).plan.slices


def _require_no_late_logs(work: UpgradeWork) -> None:
    """Refuse logs that were written after the others were merged."""
    for late in (log for one in work.plan.slices for log in one.log_files):
        raise ConcurrentWriterError(work.plan.path, late.name.instant)


def _require_no_writers(table: OpenTable, config: WriteConfig) -> None:
    """Refuse a table with live writers.

    They would complete in the former version.
    """
    for pending in table.client.timeline().pending().where(is_at_work):
        if is_writing(table, pending, config):
            raise ConcurrentWriterError(table.client.base_path, pending.requested_time)


def _copy_timeline(client: TableMetaClient, work: UpgradeWork, progress: Progress) -> None:
    """Copy timeline and archive into the layout of the new version."""
    storage, active = client.storage, work.made.active
    storage.put(MARK, _MARKED)
    if active.layout_version == LAYOUT_2:
        # copies of a run that died, perhaps of instants that have gone since
        storage.delete_tree(active.folder)
    # the newest first: stored in another order than they were made, the files will not be taken
    # for originals, whose dates show the zone of their writers
    copy = CountedMap(client.run_map, progress)
    copy(CopyToLayout(client.active, active), work.files[::-1])
    if active.layout_version == LAYOUT_1:
        _put_archive(client, work.made.archived.folder)
        return
    on_timeline = {
        (one.after.requested_time, one.after.action.value)
        for one in work.files
        if one.after.is_completed
    }
    writer = HistoryWriter(storage, work.made.archived.folder)
    _put_history(writer, history_rows(storage, client.archived.folder, on_timeline))


def _put_history(writer: HistoryWriter, rows: Iterable[HistoryRow]) -> None:
    """Store a history's first version, in files of a bounded size."""
    snapshot = empty = writer.open()
    for together in _batches(rows):
        together.sort(key=lambda row: (row.instant_time or "", row.action or ""))
        times = [row.instant_time or "" for row in together]
        name = HistoryFileName(times[0], times[-1], level=0)
        file = writer.put_file(snapshot, name, [together])
        snapshot = replace(snapshot, files=(*snapshot.files, file))
    if snapshot.files:
        writer.publish(empty, snapshot.files)


def _put_archive(client: TableMetaClient, folder: str) -> None:
    """Store a history as an archive, in files of a bounded size."""
    storage, history = client.storage, client.archived.folder
    rows = read_history(storage, history, None, None, bodies=True)
    rows.sort(key=lambda row: (row.instant_time or "", row.action or ""))
    for number, together in enumerate(_batches(rows), 1):
        content = archive_log(together, f"{storage.root}/{history}")
        storage.put_if_absent(f"{folder}/{archive_file(number)}", content)


def _batches(rows: Iterable[HistoryRow]) -> Iterator[list[HistoryRow]]:
    batch: list[HistoryRow] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row.metadata or b"") + len(row.plan or b"")
        if size >= FILE_BODY_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _change_version(client: TableMetaClient, work: UpgradeWork, lock: TableLock) -> None:
    """Give the metadata table up, and store the new properties."""
    storage = client.storage
    lock.require_lease()
    client = client.as_stored()
    if work.made.config.layout_version == LAYOUT_1:
        drop_metadata_table(client)
    elif StoredPartitions.of(client.config).all:
        client = announce_rebuild(client)
        definitions = read_definitions(storage, client.config)
        made = in_version(definitions, work.made.config)
        if made != definitions:
            put_definitions(storage, made)
    if client.config.layout_version == LAYOUT_1:
        # no reader of the new version meets one of another layout
        storage.delete_tree(METADATA_FOLDER)
    lock.require_lease()  # in a store that took minutes, and another run begins with other copies
    update_properties(storage, {key: after for key, (_, after) in work.plan.properties.items()})


def _forget_former_timeline(client: TableMetaClient, lock: TableLock) -> None:
    """Delete the files of which the timeline is a copy by now."""
    storage = client.storage
    if storage.head(MARK) is None:
        return
    if client.config.layout_version == LAYOUT_1:
        storage.delete_tree(f"{META_FOLDER}/{ManagedKeys.timeline_path.default}")
        return
    left = [one.path for one in storage.list(META_FOLDER) if parse_file_name_v1(one.name)]
    left += archive_files(storage, f"{META_FOLDER}/{client.config.archive_folder}")
    lock.require_lease()
    delete_together(storage, client.run_map, left)


def _finish(path: str, options: Mapping[str, str], config: WriteConfig, lock: TableLock) -> None:
    """Make the rest good once the table has its version."""
    table = open_for_upgrade(path, options)
    _forget_former_timeline(table.client, lock)
    if table.client.config.version not in WRITABLE_VERSIONS:
        table.client.storage.delete(MARK)
        return
    state = recover(TableState.load(table), config)
    lock.require_lease()
    if StoredPartitions.of(state.client.config).is_rebuilding:
        layout = MetadataConfig.from_options(state.client.options)
        for name in rebuild_metadata_table(state.client, layout)[1]:
            _log.warning("the column of index %s is not recorded; the index is gone", name)
    table.client.storage.delete(MARK)
