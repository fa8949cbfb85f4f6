"""Upgrades of tables to version 8 or 9, and downgrades to 8.

At each step the table is whole in the one version or in the other, so that a run that died is
simply run again:

==============================================  ==================================================
after                                           the table is
==============================================  ==================================================
1 timeline and archive copied to the new place  of the former version; no reader uses the copies
2 metadata table given up                       of the former version; readers list its folders
3 properties changed                            of the new version, without a metadata table
4 former timeline and archive deleted           the same
5 pending writes rolled back                    the same
6 metadata table rebuilt                        done
==============================================  ==================================================

Steps 1 and 4 are those of version 6, whose timeline has another layout. What they copy and delete
is known by a file that is there from before step 1 to the end. Step 3 is one change of one file.
Hudi's own upgrade moves the timeline's files instead, and leaves a table that no version reads
where it dies.

Who still writes as version 6 is not kept out by step 3: such a writer must have ended before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from hudi_core.actions.archive import FILE_BODY_BYTES
from hudi_core.actions.deletion import DeleteFile
from hudi_core.actions.history import HistoryWriter
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table_keys import WRITABLE_VERSIONS
from hudi_core.config.write import WriteConfig
from hudi_core.errors import ConcurrentWriterError
from hudi_core.meta_client import META_FOLDER, TableMetaClient
from hudi_core.metadata.build_plan import announce_rebuild
from hudi_core.metadata.index_definitions import in_version, put_definitions, read_definitions
from hudi_core.metadata.lifecycle import rebuild_metadata_table
from hudi_core.metadata.table import METADATA_FOLDER, StoredPartitions
from hudi_core.model.instant import parse_file_name_v1
from hudi_core.services.progress import CountedMap, Progress, no_progress
from hudi_core.services.upgrade_plan import (
    MARK,
    Upgrade,
    UpgradeWork,
    open_for_upgrade,
    plan_work,
)
from hudi_core.storage.properties_file import recover as recover_properties
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.active import LAYOUT_1
from hudi_core.timeline.archive_log import archive_files
from hudi_core.timeline.archive_rows import history_rows
from hudi_core.timeline.lsm_history import HistoryFileName, HistoryRow
from hudi_core.timeline.relayout import CopyToLayout
from hudi_core.txn.recovery import is_writing, recover
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.storage_move import moved_on
from hudi_core.txn.table_lock import TableLock, table_lock

_log: Final = logging.getLogger(__name__)
_MARKED: Final = b"An upgrade of this table is under way: `hudi table upgrade` ends it.\n"


def upgrade_table(
    path: str, options: Mapping[str, str], to: int, progress: Progress = no_progress
) -> Upgrade:
    """Bring a table to another version.

    Run again, it goes on where it died.

    ``to`` is 8 or 9. Partition fields with their types in ``options`` say what a table of version 6
    does not store of its CUSTOM key generator. ``progress`` counts timeline files copied.

    Refused, with nothing changed, are interrupted upgrades of another program
    (``TableServiceError``) and instants made in another time zone than the one declared
    (``TimelineError``). After ``CorruptMetadataError`` the table has its former version.
    """
    config = WriteConfig.from_options(options)
    lock = table_lock(open_for_upgrade(path, options), config)
    with lock.held_by_service():
        recover_properties(open_for_upgrade(path, options).client.storage)
        table = moved_on(open_for_upgrade(path, options))
        if table.client.config.version in WRITABLE_VERSIONS:
            _forget_former_timeline(table.client, lock)
        work = plan_work(table, options, to)
        if work.plan.before != to:
            _require_no_writers(table, config)
            if work.made.active.folder != table.client.active.folder:
                _copy_timeline(table.client, work, progress)
            else:
                recover(TableState.load(table), config)
            _change_version(table.client, work, lock)
        if work.plan.is_needed:
            _finish(path, options, config, lock)
    return work.plan


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
    # copies of a run that died, perhaps of instants that have gone since
    storage.delete_tree(active.folder)
    # the newest first: stored in another order than they were made, the files will not be taken
    # for originals, whose dates show the zone of their writers
    copy = CountedMap(client.run_map, progress)
    copy(CopyToLayout(client.active, active), work.files[::-1])
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
    if StoredPartitions.of(client.config).all:
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
    left = [one.path for one in storage.list(META_FOLDER) if parse_file_name_v1(one.name)]
    left += archive_files(storage, f"{META_FOLDER}/{client.config.archive_folder}")
    lock.require_lease()
    list(client.run_map(DeleteFile(storage), left))


def _finish(path: str, options: Mapping[str, str], config: WriteConfig, lock: TableLock) -> None:
    """Make the rest good once the table has its version."""
    table = open_for_upgrade(path, options)
    _forget_former_timeline(table.client, lock)
    state = recover(TableState.load(table), config)
    lock.require_lease()
    if StoredPartitions.of(state.client.config).is_rebuilding:
        layout = MetadataConfig.from_options(state.client.options)
        for name in rebuild_metadata_table(state.client, layout)[1]:
            _log.warning("the column of index %s is not recorded; the index is gone", name)
    table.client.storage.delete(MARK)
