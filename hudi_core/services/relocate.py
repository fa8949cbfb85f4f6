"""Moving a table's data files to another storage layout.

Timeline, metadata table and plans name files by logical paths, which stay: the files alone move,
and the properties that say where they are. Order of it, under the table's lock: the properties
name the other layout as one that files are copied to; the claims of its storage paths; all files
that the metadata table names, and logs of changes, are copied, and the copies counted; a format
that names files by their places gets the new ones; the properties name the new layout as the
table's, in one change; the old metadata of the format, files and claims go. After a death before
that change the table is where it was, after it where it was to go, and readers know both places in
between, see :mod:`hudi_core.txn.storage_move`. The next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from hudi_core.actions.deletion import delete_together
from hudi_core.config.placement import STRATEGY_PREFIX, Placement, PlacementKeys, given_placement
from hudi_core.config.resolve import require_metadata_table
from hudi_core.config.storage_move import MOVE_PROPERTY, MovePhase, StorageMove
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import (
    ConcurrentWriterError,
    IncompleteListingError,
    InvalidOptionError,
    StoragePathTakenError,
    TableServiceError,
)
from hudi_core.meta_client import META_FOLDER, TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.metadata.maintenance.lifecycle import CopyToStorage, ensure_metadata_table
from hudi_core.metadata.table import (
    StoredPartitions,
    is_readable,
    take_over_metadata_table,
)
from hudi_core.model.capability import Capability
from hudi_core.model.files import BaseFileName, FileStatus, LogFileName
from hudi_core.model.protocols import Storage
from hudi_core.plugin.capability import table_needs
from hudi_core.services.convert import require_no_savepoints, require_recoverable
from hudi_core.services.opening import open_table
from hudi_core.services.placement import claim_storage, with_placement
from hudi_core.services.progress import CountedMap, Progress, no_progress
from hudi_core.services.stage_record import delete_expired_stages, stage_ids
from hudi_core.storage.claims import own_claim, release_claim
from hudi_core.storage.federated import FederatedStorage
from hudi_core.storage.layout import Place
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.clean import continue_pending
from hudi_core.txn.publication import is_two_step, present_version
from hudi_core.txn.recovery.recover import recover
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.storage_move import begin_step, moved_on, placed, take_step
from hudi_core.txn.table_lock import TableLock, table_lock
from hudi_core.view.storage_lister import StorageLister


@dataclass(frozen=True, slots=True)
class StorageConversion:
    """A move of data files that is planned, or was made.

    ``files`` and ``size`` (bytes) are what changes its place; ``copied`` leaves out files that were
    there already; ``deleted`` counts files at the old place, and copies that an earlier call has
    left. ``pending`` instants are recovered first where their writers are dead.
    """

    path: str
    before: Placement
    after: Placement
    files: int = 0
    size: int = 0
    copied: int = 0
    deleted: int = 0
    pending: int = 0
    is_made: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the table has another layout."""
        return self.before != self.after


def without_placement(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that do not say where data files lie."""
    return {key: value for key, value in options.items() if not _is_placing(key)}


def _is_placing(key: str) -> bool:
    return key.startswith(STRATEGY_PREFIX) or any(key in one.names for one in PlacementKeys.keys)


def plan_storage_conversion(
    path: str, options: Mapping[str, str], to: Mapping[str, str]
) -> StorageConversion:
    """Plan of a move; nothing is written, and no lock is taken.

    What the move would refuse is refused, but for names that are taken at the new place.
    """
    table = open_table(path, without_placement(options))
    wanted = _checked(table, _wanted(to))
    before = table.client.config.placement
    plan = StorageConversion(path=table.client.base_path, before=before, after=wanted)
    if not plan.is_needed:
        return plan
    timeline = table.client.timeline()
    require_no_savepoints(table.client, table.host, timeline)
    files = _moving(table.client, placed(table.client, table.host, wanted))
    pending = sum(not one.is_completed for one in table.timeline().instants)
    return replace(plan, files=len(files), size=sum(files.values()), pending=pending)


def convert_storage(
    path: str,
    options: Mapping[str, str],
    to: Mapping[str, str],
    engine: Engine,
    progress: Progress = no_progress,
) -> StorageConversion:
    """Move a table's data files; the present layout changes nothing.

    A move to another layout that died is given up, and what it left is deleted.

    ``to`` has all options of the new layout; what ``options`` says of the layout counts for
    nothing. Refused, with nothing changed, where savepoints or stages are in the way or there is no
    metadata table. After ``IncompleteListingError`` (a copy is not as the metadata table says),
    ``CommitConflictError`` or ``CommitStateUnknownError`` the table is where it was; after the
    latter two, run it again.
    """
    own, given = without_placement(options), _wanted(to)
    config = WriteConfig.from_options(own)
    opened = open_table(path, own)
    require_recoverable(opened.client)
    lock = table_lock(opened, config)
    with lock.held_by_service():
        table = moved_on(open_table(path, own))
        wanted, before = _checked(table, given), table.client.config.placement
        plan = StorageConversion(path=table.client.base_path, before=before, after=wanted)
        if not plan.is_needed and table.client.config.storage_move is None:
            return plan
        require_no_savepoints(table.client, table.host, table.client.timeline())
        _require_no_stages(table.client, config)
        state = _at_rest(table, config, lock)
        _require_metadata_table(state.client)
        state, deleted = _tidied(state, keep=wanted)
        if not plan.is_needed:
            return replace(plan, deleted=deleted)
        take_over_metadata_table(state.client)
        state, moved = _copied(state, wanted, engine, progress)
        lock.require_lease()
        state = take_step(begin_step(state))
        lock.require_lease()
        _, more = _tidied(state, keep=wanted)
        both = deleted + moved.deleted + more
        return replace(moved, before=before, deleted=both, is_made=True)


# --- what may be moved ------------------------------------------------------------------------


def _wanted(to: Mapping[str, str]) -> Placement:
    if not any(map(_is_placing, to)):
        raise InvalidOptionError(
            PlacementKeys.strategy.key,
            "",
            "no option says where the data files are to lie",
            f"Give {PlacementKeys.strategy.key} and {PlacementKeys.path.key}; `default` without a "
            "path is the table's folder.",
        )
    return given_placement(to)


def _checked(table: OpenTable, wanted: Placement) -> Placement:
    """The whole placement, which the table's format can have."""
    client, host = table.client, table.host
    require_recoverable(client)
    made = with_placement(replace(client.config, placement=wanted), client.base_path, host)
    require_metadata_table(client.options, made.placement)
    if made.placement == client.config.placement:
        return made.placement
    host.require(*table_needs(made))
    if is_two_step(table):
        host.require(Capability.CONVERSION)
        host.check_creation(placed(client, host, made.placement))
    return made.placement


def _require_no_stages(client: TableMetaClient, config: WriteConfig) -> None:
    delete_expired_stages(client.storage, config.services.stage_hours_retained)
    stages = stage_ids(client.storage)
    if stages:
        raise TableServiceError(
            f"Stages of the table at {client.base_path} were made where its files lie now: "
            f"{', '.join(stages)}",
            "Publish or drop them first.",
            stages=stages,
        )


def _at_rest(table: OpenTable, config: WriteConfig, lock: TableLock) -> TableState:
    """The state without writers at work or remains of dead ones."""
    state = recover(TableState.load(table), config)
    for pending in state.timeline.pending().where(is_at_work):
        # it would write to the places that it began with
        raise ConcurrentWriterError(table.client.base_path, pending.requested_time)
    # the metadata is rebuilt there, without what others have committed to it
    present_version(state.table)
    state = continue_pending(state, lock)
    tables = state.metadata
    if tables is not None:
        state = state.with_metadata(tables)
    return state.with_client(ensure_metadata_table(state.client, config.metadata, tables))


def _require_metadata_table(client: TableMetaClient) -> None:
    if not is_readable(client.config) or not StoredPartitions.of(client.config).is_there:
        raise TableServiceError(
            f"The table at {client.base_path} has no metadata table that can be read, which alone "
            "lists the files of a table whose data lies below storage paths",
            "`hudi metadata create` builds it.",
        )


# --- copying ----------------------------------------------------------------------------------


def _moving(old: TableMetaClient, new: TableMetaClient) -> dict[str, int]:
    """Sizes of the files whose places differ, by their logical paths."""
    lister = table_lister(old)
    partitions = list(lister.list_partitions())
    listed = chain.from_iterable(lister.list_files(partitions).values())
    sizes = {one.path: one.size for one in listed}
    # commits alone name these
    stored = StorageLister.of(old)
    for one in chain.from_iterable(stored.list_files(partitions).values()):
        log = LogFileName.parse(one.name)
        if log is not None and log.is_cdc:
            sizes[one.path] = one.size
    places = zip(sizes, old.files.uris(sizes), new.files.uris(sizes), strict=True)
    return {path: sizes[path] for path, here, there in places if here != there}


def _copied(
    state: TableState, wanted: Placement, engine: Engine, progress: Progress
) -> tuple[TableState, StorageConversion]:
    """Copy what is not there; delete there what is surplus."""
    client, host = state.client, state.table.host
    there = placed(client, host, wanted)
    stated = StorageMove(MovePhase.COPYING, wanted)
    if client.config.storage_move != stated:
        # before the claims: who gives the move up finds them by it
        changes = update_properties(client.storage, {MOVE_PROPERTY: stated.text})
        state = state.with_properties(changes)
    try:
        claim_storage(there, host, held=client.files.roots)
    except StoragePathTakenError:
        update_properties(client.storage, {MOVE_PROPERTY: None})
        raise
    moving = _moving(client, there)
    present = dict(_present(there))
    missing = [path for path, size in moving.items() if present.get(path) != size]
    opened = OpenTable(client, host).on(engine).client
    copying = CountedMap(opened.map_files, progress)
    list(copying(CopyToStorage(client.data, there.data), missing))
    others = [path for path in present if path not in moving]
    surplus = [path for path in others if client.files.uri(path) != there.files.uri(path)]
    there.data.discard(surplus)
    found = dict(_present(there))
    wrong = [path for path, size in moving.items() if found.get(path) != size]
    if wrong:
        raise IncompleteListingError(client.base_path, wrong)
    size = sum(moving.values())
    moved = StorageConversion(
        client.base_path,
        client.config.placement,
        wanted,
        len(moving),
        size,
        copied=len(missing),
        deleted=len(surplus),
    )
    return state, moved


def _present(client: TableMetaClient) -> Iterator[tuple[str, int]]:
    """Sizes of the table's files in storage, by their logical paths."""
    data = client.data
    listed: Iterable[FileStatus]
    if isinstance(data, FederatedStorage):
        listed = chain.from_iterable(prefix.list() for prefix in data.prefixes())
    else:
        listed = data.list("", recursive=True)
    return ((one.path, one.size) for one in listed if _is_of_table(one.path))


def _is_of_table(path: str) -> bool:
    """Whether a path is that of a file of a file group."""
    name = path.rpartition("/")[2]
    is_named = BaseFileName.parse(name) is not None or LogFileName.parse(name) is not None
    return is_named and path.split("/", 1)[0] != META_FOLDER


# --- deleting ---------------------------------------------------------------------------------


def _tidied(state: TableState, keep: Placement) -> tuple[TableState, int]:
    """Delete what a move has left at its other places.

    Copies at places that files are to be moved to now stay.
    """
    client, host = state.client, state.table.host
    move = client.config.storage_move
    if move is None or (move.phase is MovePhase.COPYING and move.other == keep):
        return state, 0
    other = placed(client, host, move.other)
    roots = client.files.roots
    is_shared = Capability.SHARED_STORAGE_PATH in host.capabilities
    if is_two_step(state.table) and move.phase is MovePhase.DELETING:
        if is_shared:
            left = state.table.afresh.leftovers()
            delete_together(state.table.format_storage, client.run_map, left)
        elif other.files.root not in roots:
            for folder in host.get_metadata_folders(other):
                _delete_oldest_first(other.root, folder)
    # without the places that a move which is given up was to go to
    deleted = _deleted(other, placed(client, host, client.config.placement))
    if isinstance(other.data, FederatedStorage):
        for path, root in zip(other.files.roots, other.data.root_storages, strict=True):
            if path not in roots:
                release_claim(root, client.config.name, client.base_path)
    properties = update_properties(client.storage, {MOVE_PROPERTY: None})
    return state.with_properties(properties), deleted


def _delete_oldest_first(storage: Storage, folder: str) -> None:
    """Delete a metadata folder; no reader sees an older state.

    Names of versions sort by their age: what is left shows the newest state, or is damaged.
    """
    for path in sorted(one.path for one in storage.list(folder, recursive=True)):
        storage.delete(path)
    storage.delete_tree(folder)


def _deleted(other: TableMetaClient, client: TableMetaClient) -> int:
    """Delete the table's files at other places; return how many.

    Where a storage path does not have the table's claim, nothing is deleted: another table may have
    the name there.
    """
    if not isinstance(other.data, FederatedStorage):
        here = [
            path
            for path, _ in _present(other)
            if client.files.layout.place(path) != Place(other.base_path, path)
        ]
        other.storage.discard(here)
        return len(here)
    name, count = client.config.name, 0
    claimed = {
        root.root
        for root in other.data.root_storages
        if own_claim(root, name, client.base_path) is not None
    }
    for prefix in other.data.prefixes():
        if prefix.storage.root not in claimed:
            continue
        listed = [one.path for one in prefix.storage.list(prefix.below(""), recursive=True)]
        gone = [path for path in listed if client.files.logical(path, prefix.root) is None]
        prefix.storage.discard(gone)
        if len(gone) == len(listed):
            prefix.storage.delete_tree(prefix.below(""))  # folders, on a disk
        count += len(gone)
    return count
