"""Giving a table that is there another format, or another type.

The metadata of the new format is built once, from the present files. Its history begins there: what
completed before is complete by a watermark. ``hoodie.table.format`` changes last, under the table's
lock, so that until then the table is what it was, and a conversion that died is simply run again.

The metadata of the former format stays where it is, and is not updated: its readers see the
table as it was, for as long as its files are not cleaned. The table may be given the format again;
its metadata is then brought to what the table has become.

A table that becomes one of log files (MERGE_ON_READ) keeps its files. One that becomes
COPY_ON_WRITE has its logs compacted first, and base files of deltacommits written again that
Hudi-Spark would not see any more: from the compaction on it is the same table in either type, so
that a conversion that died there is run again, too. Past slices keep their logs, and readers of
past states merge them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hudi_core.actions.compaction import read_compaction, runs_at_once
from hudi_core.config.format_option import LOCATION, option_key
from hudi_core.config.index_keys import split_properties
from hudi_core.config.kinds import TableType
from hudi_core.config.stored_table import id_properties, require_possible_mode
from hudi_core.config.support import require_copy_on_write, require_writable_table
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import (
    ConcurrentWriterError,
    ForeignCommitError,
    HudiError,
    TableServiceError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.capability import Capability
from hudi_core.model.files import BaseFileName, FileSlice
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import COMPACTIONS, Action, Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.capability import table_needs
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.plugin.several import JointCommit
from hudi_core.services.compaction import CompactionService, new_plan
from hudi_core.services.create import location_property, with_mode
from hudi_core.services.opening import open_table
from hudi_core.services.placement import claim_for_format
from hudi_core.services.progress import CountedMap, Progress, no_progress
from hudi_core.services.upgrade_logs import compacting_all, require_nothing_planned
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.clean import continue_pending
from hudi_core.txn.recovery.recover import recover
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.storage_move import moved_on
from hudi_core.txn.table_lock import TableLock, table_lock
from hudi_core.view.file_system import ViewManager


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion that is planned, or was made.

    ``files``, ``size`` (bytes) and ``partitions`` are what the new metadata names; ``instants`` are
    completed ones, which it holds by its watermark. ``pending`` ones are recovered first where
    their writers are dead. ``receipt`` is what the new format recorded; ``None`` where nothing was
    done.
    """

    path: str
    before: str
    after: str
    files: int
    size: int
    partitions: int
    instants: int
    pending: int
    receipt: FormatCommit | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the table has another format."""
        return self.before != self.after

    @property
    def is_made(self) -> bool:
        """Whether the new format recorded anything."""
        return self.receipt is not None


def plan_conversion(
    path: str, options: Mapping[str, str], to: str, progress: Progress = no_progress
) -> Conversion:
    """Plan of a conversion; nothing is written, and no lock is taken.

    What the conversion would refuse is refused.
    """
    host = load_format(to)
    table = open_table(path, without_format(options))
    timeline = table.client.timeline()
    if host.name != table.host.name:
        _require_fitting(table, host, timeline)
        _require_possible_conversion(table, host, timeline)
        claim_for_format(_as_format(table, host, timeline), host, dry_run=True)
        for part in _added(table, host):
            part.check_files(_as_format(table, part, timeline, progress))
    return _plan(table, host.name, timeline, table.timeline())


def convert_table(
    path: str,
    options: Mapping[str, str],
    to: str,
    progress: Progress = no_progress,
) -> Conversion:
    """Change a table's format; the present one changes nothing.

    ``to`` may be several names with commas; those that the table has keep their metadata.
    ``options`` holds what the new format needs too, such as
    ``hoodie.table.format.<name>.location``. ``progress`` counts files whose footers are read.

    Every refusal comes before anything has changed. After ``CommitConflictError`` or
    ``CommitStateUnknownError`` the table has the format it had, and the conversion can be run
    again.
    """
    host = load_format(to)
    own = without_format(options)
    config = WriteConfig.from_options(own)
    before = open_table(path, own)
    if host.name != before.host.name:
        require_recoverable(before.client)
        host.require(Capability.CONVERSION, *table_needs(before.client.config))
    lock = table_lock(before, config)
    with lock.held_by_service():
        # as it is now: another process may have converted it while this one waited
        table = moved_on(open_table(path, own))
        client = table.client
        if host.name == table.host.name:
            timeline = client.timeline()
            return _plan(table, host.name, timeline, timeline)
        timeline = client.timeline()
        _require_fitting(table, host, timeline)
        _require_possible_conversion(table, host, timeline)
        timeline = _recovered(table, config, lock, timeline)
        _require_fitting(table, host, timeline)
        plan = _plan(table, host.name, timeline, timeline)
        claim_for_format(_as_format(table, host, timeline), host, dry_run=False)
        receipt = _build_added(table, host, timeline, progress)
        lock.require_lease()
        update_properties(client.storage, new_properties(table, host, receipt))
    return replace(plan, receipt=receipt)


def _recovered(
    table: OpenTable, config: WriteConfig, lock: TableLock, timeline: Timeline
) -> Timeline:
    """The timeline after what dead writers left; runs under the lock.

    What is under way completes in the table that it began with: it is refused, and a clean that a
    dead writer left is ended before.
    """
    state = recover(TableState.load(table, timeline), config)
    timeline = continue_pending(state, lock).timeline
    for pending in timeline.pending().where(is_at_work):
        raise ConcurrentWriterError(table.client.base_path, pending.requested_time)
    return timeline


def build_format(
    table: OpenTable, host: FormatHost, timeline: Timeline, progress: Progress
) -> FormatCommit:
    """Build a format's metadata from a table's present files.

    Runs under the table's lock.
    """
    return host.rebuild(_as_format(table, host, timeline, progress))


def _added(table: OpenTable, host: FormatHost) -> tuple[FormatHost, ...]:
    """The formats of a conversion that the table lacks yet."""
    had = {part.name for part in table.host.parts}
    return tuple(part for part in host.parts if part.name not in had)


def _build_added(
    table: OpenTable, host: FormatHost, timeline: Timeline, progress: Progress
) -> FormatCommit:
    """Build the metadata of the new formats; the others keep theirs."""
    added = _added(table, host)
    each = {}
    for part in host.parts:
        client = _as_format(table, part, timeline, progress)
        each[part.name] = part.rebuild(client) if part in added else part.open(client)
    return JointCommit.of(each) if len(each) > 1 else each[host.name]


def _as_format(
    table: OpenTable, host: FormatHost, timeline: Timeline, progress: Progress = no_progress
) -> TableMetaClient:
    """The client of a table as one of a format."""
    client = table.client
    raw = dict(client.config.raw)
    for key in (option_key(part.name, LOCATION) for part in host.parts):
        if key in raw and not _is_below(raw[key], client.base_path):
            del raw[key]  # the table was moved since
    return replace(
        client,
        config=replace(client.config, table_format=host.name, raw=raw),
        run_map=CountedMap(client.run_map, progress),
        seen=timeline,
    )


def new_properties(
    table: OpenTable, host: FormatHost, receipt: FormatCommit
) -> dict[str, str | None]:
    """Return the properties that make a format the table's.

    A table of another writer gets its field ids as well, which the format names from now on.
    """
    client = table.client
    changes: dict[str, str | None] = {
        TableKeys.table_format.key: host.name,
        **host.stored_options(client.options),
        **location_property(host, receipt, client.options),
    }
    if client.config.last_column_id is None:
        schema = client.schema
        changes |= dict(id_properties(schema.field_ids(), schema.last_column_id))
    return changes


def _is_below(location: str, base_path: str) -> bool:
    """Whether a location lies in the table's folder.

    The location may be relative to the table.
    """
    where, base = (one.rpartition("://")[2].rstrip("/") for one in (location, base_path))
    return (not where.startswith("/") and "://" not in location) or f"{where}/".startswith(
        f"{base}/"
    )


def load_format(name: str) -> FormatHost:
    """Return the format of a name."""
    return FormatHost.load(
        FormatRegistry(), TableKeys.table_format.parse_as(TableKeys.table_format.key, name)
    )


def without_format(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that do not say what the table's format is."""
    return {key: value for key, value in options.items() if key not in TableKeys.table_format.names}


def require_recoverable(client: TableMetaClient) -> None:
    """Refuse a table this release cannot recover after a dead writer.

    No row is written, so that the files need not have meta columns.
    """
    require_writable_table(replace(client.config, populate_meta_fields=True), client.base_path)


def require_no_savepoints(client: TableMetaClient, host: FormatHost, timeline: Timeline) -> None:
    """Refuse savepoints where a format's metadata is to be rebuilt."""
    saved = [one for one in timeline.completed() if one.action is Action.SAVEPOINT]
    if saved and Capability.SINGLE_STEP not in host.capabilities:
        times = ", ".join(one.requested_time for one in saved)
        raise TableServiceError(
            f"The table at {client.base_path} has savepoints ({times}), and the {host.name} "
            "format would know the present state only",
            "Delete the savepoints, convert the table, and save it again.",
            savepoints=[one.requested_time for one in saved],
        )


def _require_fitting(table: OpenTable, host: FormatHost, timeline: Timeline) -> None:
    client = table.client
    require_recoverable(client)
    host.require(Capability.CONVERSION, *table_needs(client.config))
    host.check_schema(client.config, client.schema_at(timeline), None)
    for part in _added(table, host):
        require_no_savepoints(client, part, timeline)


def _require_possible_conversion(table: OpenTable, host: FormatHost, timeline: Timeline) -> None:
    """Refuse a place or options that the format rejects."""
    host.check_options(table.client.options)
    for part in _added(table, host):
        part.check_creation(_as_format(table, part, timeline))
    _require_no_foreign_commits(table, host, timeline)


def _require_no_foreign_commits(table: OpenTable, host: FormatHost, timeline: Timeline) -> None:
    """Refuse to leave rows of other writers behind, or drop them.

    ``ForeignCommitError`` is for rows in the table's present format; ``TableServiceError`` for
    those in metadata that an earlier conversion has left.
    """
    try:
        table.host.open(table.client)
    except ForeignCommitError:
        raise
    except HudiError:
        pass  # what is damaged, or missing, may be left
    for part in _added(table, host):
        client = _as_format(table, part, timeline)
        try:
            part.open(client)
        except ForeignCommitError as foreign:
            _require_own_files(OpenTable(client, part), foreign)
        except HudiError:
            continue


def _require_own_files(table: OpenTable, foreign: ForeignCommitError) -> None:
    """Refuse metadata that names files of another writer."""
    try:
        named = [*(table.lister().named_files() or ())]
    except HudiError:
        return  # it is rebuilt
    others = [one for one in named if BaseFileName.parse(one.path.rpartition("/")[2]) is None]
    if others:
        folders = ", ".join(table.host.get_metadata_folders(table.client))
        raise TableServiceError(
            f"The {table.host.name} metadata in {table.client.base_path} names {len(others):,} "
            f"files of another writer, such as {others[0].path}: {foreign.what}",
            f"Nothing has changed. Where their rows may go, delete {folders}; else read them with "
            "that writer first.",
            files=len(others),
        ) from foreign


def _plan(table: OpenTable, to: str, timeline: Timeline, seen: TimelineView) -> Conversion:
    client = table.client
    lister = table_lister(client.seeing(timeline))
    slices = ViewManager(client.read_commit, lister, lambda: seen).view().latest_slices()
    completed = sum(one.is_completed for one in seen.instants)
    return Conversion(
        path=client.base_path,
        before=table.host.name,
        after=to,
        files=len(slices),
        size=sum(one.total_size for one in slices),
        partitions=len({one.partition_path for one in slices}),
        instants=completed,
        pending=len(seen.instants) - completed,
    )


# --- another type ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeConversion:
    """A change of a table's type that is planned, or was made.

    ``before`` and ``after`` are ``COPY_ON_WRITE`` or ``MERGE_ON_READ``. ``logs`` are the log files
    that are merged into base files first, ``log_bytes`` their bytes; ``slices`` are the file slices
    that are rewritten, some of them, whose base files Hudi-Spark would not see, without logs.
    ``pending`` instants are recovered first where their writers are dead.
    """

    path: str
    before: TableType
    after: TableType
    slices: int = 0
    logs: int = 0
    log_bytes: int = 0
    pending: int = 0
    is_made: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the table has another type."""
        return self.before is not self.after


def without_type(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that do not say what the table's type is."""
    names = (*TableKeys.table_type.names, *TableKeys.merge_on_read_mode.names)
    return {key: value for key, value in options.items() if key not in names}


def plan_type_conversion(path: str, options: Mapping[str, str], to: TableType) -> TypeConversion:
    """Plan of a change of type.

    Nothing is written, and no lock is taken. What the change would refuse is refused.
    """
    own = without_type(options)
    return _type_plan(open_table(path, own), compacting_all(own), to, options)


def convert_type(
    path: str,
    options: Mapping[str, str],
    to: TableType,
    engine: Engine,
    progress: Progress = no_progress,
) -> TypeConversion:
    """Change a table's type; the present one changes nothing.

    ``progress`` counts file slices whose logs are merged. Every refusal but that of a writer who
    comes meanwhile is before anything has changed; after that one the table has the type that it
    had, and the conversion can be run again.
    """
    own = without_type(options)
    table, config = open_table(path, own), compacting_all(own)
    plan = _type_plan(table, config, to, options)
    if not plan.is_needed:
        return plan
    lock = table_lock(table, config)
    # what a conversion that died has planned is taken back by that
    if plan.slices or (plan.pending and to is TableType.COPY_ON_WRITE):
        CompactionService(table, lock, engine, config, progress, is_last=True).compact()
    with lock.held_by_service():
        # as it is now: another process may have converted it while this one waited
        table = moved_on(open_table(path, own))
        client = table.client
        if client.config.table_type is to:
            return replace(plan, before=to)
        _require_type(table, to, options, client.timeline())
        timeline = _recovered(table, config, lock, client.timeline())
        changes = _require_type(table, to, options, timeline)
        if to is TableType.COPY_ON_WRITE:
            require_nothing_planned(client.base_path, timeline)
        for one in _to_rewrite(table.afresh, config, to):
            late = [log.name.instant for log in one.log_files] or [one.base_instant]
            raise ConcurrentWriterError(client.base_path, late[0])
        lock.require_lease()
        update_properties(client.storage, changes)
    return replace(plan, is_made=True)


def _type_plan(
    table: OpenTable, config: WriteConfig, to: TableType, options: Mapping[str, str]
) -> TypeConversion:
    client = table.client
    before, timeline = client.config.table_type, client.timeline()
    row = TableKeys.merge_on_read_mode
    if before is to and row.is_given(options):
        row.require_same(options, client.config.merge_on_read_mode, client.config.raw)
    if before is to:
        return TypeConversion(client.base_path, before, to)
    _require_type(table, to, options, timeline)
    slices = _to_rewrite(table, config, to)
    logs = [log for one in slices for log in one.log_files]
    return TypeConversion(
        client.base_path,
        before,
        to,
        len(slices),
        len(logs),
        sum(log.status.size for log in logs),
        len(timeline.pending().instants),
    )


def _to_rewrite(table: OpenTable, config: WriteConfig, to: TableType) -> Sequence[FileSlice]:
    """The slices that get another base file first."""
    return new_plan(table, config, is_last=True)[1] if to is TableType.COPY_ON_WRITE else ()


def _waits(client: TableMetaClient, instant: Instant) -> bool:
    """Whether any process may run a plan."""
    is_planned = instant.action in COMPACTIONS and not instant.is_completed
    return not is_planned or not runs_at_once(read_compaction(client, instant))


def _require_type(
    table: OpenTable, to: TableType, options: Mapping[str, str], timeline: Timeline
) -> dict[str, str | None]:
    """The properties of a type that the table can have now.

    With the mode of merge on read that options, or else the format, give. A type that the table, or
    its format, cannot have is refused.
    """
    client = table.client
    require_recoverable(client)
    row = TableKeys.merge_on_read_mode
    # of a table that has had one, options go on naming its mode
    mode = row.read(options) if to is TableType.MERGE_ON_READ else row.default
    was_split = client.config.is_split
    wanted = replace(client.config, table_type=to, merge_on_read_mode=mode)
    require_possible_mode(wanted, options)
    wanted = with_mode(wanted, table.host, options)
    changes = {
        TableKeys.table_type.property_name: to.value,
        row.property_name: row.property_of(wanted.merge_on_read_mode, {})[1],
        **(dict(split_properties(wanted.is_split)) if wanted.is_split or was_split else {}),
    }
    kept = {**client.config.raw, **changes}
    made = client.with_properties({name: text for name, text in kept.items() if text is not None})
    table.host.require(*table_needs(made.config))
    require_recoverable(made)
    if made.config.logs_changes:
        require_copy_on_write(made.config, client.base_path, "log changes")
    if to is not TableType.COPY_ON_WRITE:
        return changes
    require_nothing_planned(client.base_path, timeline.where(partial(_waits, client)))
    saved = [one.requested_time for one in timeline.completed().of_actions(Action.SAVEPOINT)]
    if saved:
        raise TableServiceError(
            f"The table at {client.base_path} has savepoints ({', '.join(saved)}), whose log files "
            "a table of type COPY_ON_WRITE cannot go back to",
            "Delete the savepoints first.",
            savepoints=saved,
        )
    return changes
