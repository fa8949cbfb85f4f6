"""What keeps a table small and fast, and mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from hudi_core.config.clustering import ClusteringConfig
from hudi_core.config.options import GivenOptions
from hudi_core.config.resolve import given_options, options_as_strings
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.ttl import TtlConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine, engine_for
from hudi_core.errors import InvalidOptionError
from hudi_core.metadata.partitions.names import full_name
from hudi_core.metadata.partitions.registry import asked_partition
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.result import CommitResult
from hudi_core.read.query_times import QueryTime, requested_time
from hudi_core.services.alter import alter_table, schema_change
from hudi_core.services.archive import ArchiveResult, archive_table, plan_table_archive
from hudi_core.services.clean import CleanResult, clean_table, plan_table_clean
from hudi_core.services.clustering import Clustering, ClusteringService
from hudi_core.services.compaction import Compaction, CompactionService, LogCompactionService
from hudi_core.services.convert import (
    Conversion,
    TypeConversion,
    convert_table,
    convert_type,
    plan_conversion,
    plan_type_conversion,
    without_format,
    without_type,
)
from hudi_core.services.mending.differences import TableValidation
from hudi_core.services.mending.repair import Repair, plan_repair, repair_table
from hudi_core.services.mending.validate import validate_table
from hudi_core.services.metadata import MetadataOperator, MetadataRepair, repair_metadata_table
from hudi_core.services.opening import open_table
from hudi_core.services.partition_ttl import Expiry, expire_partitions
from hudi_core.services.purge import PurgeResult, plan_purge, purge_table
from hudi_core.services.relocate import (
    StorageConversion,
    convert_storage,
    plan_storage_conversion,
    without_placement,
)
from hudi_core.services.rewrite_keys import (
    KeyRewrite,
    KeyRewriting,
    KeyStorage,
    without_key_storage,
)
from hudi_core.services.rollback import (
    RestoreResult,
    RollbackPreview,
    plan_restore,
    plan_rollback,
    restore_table,
    roll_back_instant,
)
from hudi_core.services.upgrade import CHANGED_OPTIONS, Upgrade, plan_upgrade, upgrade_table
from hudi_core.sync.result import SyncResult
from hudi_core.sync.tool import require_syncable, sync_table, tool_named, with_entries
from hudi_core.table.arguments import Columns, Options, commit_time
from hudi_core.table.session import TableCall, TableSession
from hudi_core.txn.table_lock import table_lock

ALL_GROUPS: Final = {ClusteringConfig.max_groups.key: 1_000_000_000}
"""Options by which a clustering has no limit of groups."""


def clean(call: TableCall) -> CleanResult:
    """Delete file slices that no retained state needs."""
    opened, config = call.for_service()
    if call.dry_run:
        return plan_table_clean(opened, config)
    require_syncable(opened, opened.client.options)
    done = clean_table(opened, table_lock(opened, config), config)
    return done if done.instant is None else call.session.pointed(done, opened)


def archive(call: TableCall) -> ArchiveResult:
    """Move old instants to the history."""
    opened, config = call.for_service()
    if call.dry_run:
        return plan_table_archive(opened, config)
    return archive_table(opened, table_lock(opened, config), config)


def expire(call: TableCall, days: int | None) -> Expiry:
    """Delete partitions without a write for some days."""
    given = {} if days is None else {TtlConfig.days_retained.key: days}
    writer = call.session.writer({**given_options(call.options), **given}, engine_for(None))
    how, dry_run = writer.config.ttl, call.dry_run
    try:
        done = expire_partitions(writer, how, dry_run=dry_run, progress=call.progress)
    finally:
        call.session.opened = writer.table
    return done if done.commit is None or dry_run else call.session.synced(done)


def purge(
    call: TableCall, older_than: QueryTime | None, savepoints: Sequence[QueryTime]
) -> PurgeResult:
    """Make deleted rows leave the disk."""
    session, engine = call.session, chosen_engine(call.engine)
    opened, config = session.for_service(engine=engine)
    since, given = commit_time(older_than), [commit_time(one) for one in savepoints]
    named = [one for one in given if one is not None]
    if call.dry_run:
        return plan_purge(opened, older_than=since, savepoints=named)
    require_syncable(opened, session.options)
    done = purge_table(
        opened,
        table_lock(opened, config),
        engine,
        config,
        older_than=since,
        savepoints=named,
        progress=call.progress,
    )
    session.reopen()
    return session.pointed(done)


def clustering_options(
    options: Options | None, sort_by: Columns | None, layout: str | None, partitions: Columns | None
) -> Options:
    """The options of a clustering, with what is given by name."""
    wanted = {
        ClusteringConfig.sort_columns.key: sort_by,
        ClusteringConfig.layout.key: layout,
        ClusteringConfig.partitions.key: partitions,
    }
    given = {key: value for key, value in wanted.items() if value is not None}
    return {**given_options(options), **given}


def cluster(call: TableCall, *, schedule_only: bool = False) -> Clustering:
    """Rewrite small files into larger ones."""
    with clusterings(call) as service:
        if call.dry_run:
            return service.plan()
        if schedule_only:
            return service.schedule()
        done = service.cluster()
    return done if done.result is None else call.session.pointed(done)


def run_clusterings(call: TableCall, instant: QueryTime | None) -> list[Clustering]:
    """Run clusterings that are scheduled."""
    with clusterings(call) as service:
        done = service.run(requested_time(instant))
    return call.session.pointed(done) if done else done


def compact(
    call: TableCall, *, schedule_only: bool = False, log_compaction: bool = False
) -> Compaction:
    """Merge the logs of file slices into base files, or one log."""
    with compactions(call, log_compaction=log_compaction) as service:
        if call.dry_run:
            return service.plan()
        if schedule_only:
            return service.schedule()
        done = service.compact()
    return done if done.result is None else call.session.pointed(done)


def run_compactions(call: TableCall, instant: QueryTime | None) -> list[Compaction]:
    """Run compactions that are scheduled, of logs too."""
    wanted, done = requested_time(instant), list[Compaction]()
    with compactions(call, log_compaction=True) as service:
        timeline = service.table.client.active.load()
        found = None if wanted is None else timeline.find(InstantTime(wanted), service.action)
        if wanted is None or found is not None:
            done += service.run(wanted)
    if found is None:
        with compactions(call) as service:
            done += service.run(wanted)
    return call.session.pointed(done) if done else done


def rewrite_keys(
    call: TableCall, *, materialise: bool, transition: bool, keep_files: bool
) -> KeyRewrite:
    """Take stored record keys out of the files, or back."""
    if materialise and transition:
        raise InvalidOptionError(
            "transition", "true", "keys are materialised, or in transition", "Give one of them."
        )
    to = KeyStorage.STORED if materialise else KeyStorage.VIRTUAL
    to, session = KeyStorage.TRANSITION if transition else to, call.session
    with clusterings(call) as service:
        rewriting = KeyRewriting(service, to, keep_files)
        if call.dry_run:
            return rewriting.plan()
        try:
            done = rewriting.run()
        finally:
            # where the keys are is what the table says from now on
            session.options = GivenOptions(without_key_storage(session.options))
    return session.pointed(done) if done.instants else done


@contextmanager
def clusterings(call: TableCall) -> Iterator[ClusteringService]:
    """The service of a call; later reads use its table."""
    writer = call.writer(chosen_engine(call.engine))
    service = ClusteringService(
        writer.table, writer.lock, writer.engine, writer.config, call.progress
    )
    try:
        yield service
    finally:
        call.session.opened = service.table


@contextmanager
def compactions(call: TableCall, *, log_compaction: bool = False) -> Iterator[CompactionService]:
    """The service of a call; later reads use its table."""
    writer = call.writer(chosen_engine(call.engine))
    kind = LogCompactionService if log_compaction else CompactionService
    service = kind(writer.table, writer.lock, writer.engine, writer.config, call.progress)
    try:
        yield service
    finally:
        call.session.opened = service.table


def restore(call: TableCall, instant: QueryTime) -> RestoreResult:
    """Take the table back to the state after a commit."""
    opened, config = call.for_service()
    time = commit_time(instant) or InstantTime("")
    if call.dry_run:
        return plan_restore(opened, time)
    require_syncable(opened, call.session.options)
    done = restore_table(opened, table_lock(opened, config), config, time)
    call.session.reopen()
    return call.session.synced(done)


def rollback(call: TableCall, instant: QueryTime) -> Instant | RollbackPreview:
    """Undo a write."""
    # by the table's options, whatever the last write was given
    (opened, config), time = call.for_service(), requested_time(instant) or ""
    if call.dry_run:
        return plan_rollback(opened, config, time)
    require_syncable(opened, call.session.options)
    done = roll_back_instant(opened, table_lock(opened, config), config, time)
    call.session.opened = replace(opened, client=opened.client.at_rest)
    return call.session.synced(done)


def validate(call: TableCall, *, footers: bool, keys: bool) -> TableValidation:
    """Compare what is stored of the table, and its entries in metastores."""
    opened = open_table(call.session.path, call.merged).on(chosen_engine(call.engine))
    found = validate_table(opened, footers=footers, keys=keys, progress=call.progress)
    return with_entries(found, opened, call.merged)


def repair(call: TableCall, *, force: bool, take_in: bool, discard: bool) -> Repair:
    """Rebuild wrong metadata."""
    session, progress, engine = call.session, call.progress, chosen_engine(call.engine)
    path, options = session.path, session.options
    if call.dry_run:
        return plan_repair(path, options, engine, force=force, taking_in=take_in, progress=progress)
    done = repair_table(
        path,
        options,
        engine,
        force=force,
        taking_in=take_in,
        discarding=discard,
        progress=progress,
    )
    session.opened = open_table(path, options)
    return done


def repair_metadata(call: TableCall) -> MetadataRepair:
    """Rebuild the metadata table."""
    path, options, engine = call.session.path, call.merged, chosen_engine(call.engine)
    done = repair_metadata_table(
        path, options, engine, dry_run=call.dry_run, progress=call.progress
    )
    call.session.reopen()
    return done


def sync(call: TableCall, tool: str) -> SyncResult:
    """Register the table in a metastore, or update its entry."""
    kind = tool_named(tool)
    opened = open_table(call.session.path, call.merged)
    return sync_table(opened, kind, call.merged, dry_run=call.dry_run)


# --- other forms ----------------------------------------------------------------------------------


def alter(call: TableCall, *change: Any) -> CommitResult:
    """Change the columns, as :func:`~hudi_core.services.alter.schema_change` is given it."""
    session, merged = call.session, call.merged
    opened, config = open_table(session.path, merged), WriteConfig.from_options(merged)
    config = replace(config, extras=config.extras.given(call.extras.extra_metadata, None))
    require_syncable(opened, merged)
    lock, wanted = table_lock(opened, config), schema_change(*change)
    result = alter_table(opened, lock, config, wanted)
    session.opened = open_table(session.path, merged)
    return session.synced(result)


def create_index(
    session: TableSession,
    name: str,
    column: str | Sequence[str],
    using: str | None,
    options: Mapping[str, str] | None,
    *,
    engine: Engine | None,
) -> Instant:
    """Add an index of a column, or of a function of it."""
    given = dict(options or {})
    columns = [column] if isinstance(column, str) else list(column)
    keys = session.opened.client.config.record_key_fields
    asked = asked_partition(name, columns, using, keys, has_options=bool(given))
    return _indexed(session, lambda operator: operator.index(*asked, given), engine)


def drop_index(session: TableSession, name: str, *, cascades: bool) -> Instant:
    """Drop an index, by its user's name or Hudi's."""
    stored = session.opened.client.as_stored().config.metadata_partitions
    names = (name, full_name(name, is_of_function=True), full_name(name, is_of_function=False))
    found = next((one for one in names if one in stored), name)
    return _indexed(session, lambda operator: operator.drop(found, cascades=cascades))


def _indexed(
    session: TableSession,
    change: Callable[[MetadataOperator], Instant],
    engine: Engine | None = None,
) -> Instant:
    done = change(MetadataOperator(*session.locked(), engine))
    session.reopen()
    return done


# What the table says itself from now on, its options say no more.


def convert(call: TableCall, to: str | Sequence[str]) -> Conversion:
    """Change the format."""
    merged, wanted = call.merged, to if isinstance(to, str) else ",".join(to)
    run = plan_conversion if call.dry_run else convert_table
    done = run(call.session.path, merged, wanted, call.progress)
    return call.changed(done, without_format(merged))


def change_type(call: TableCall, to: str) -> TypeConversion:
    """Change the type."""
    merged, path = call.merged, call.session.path
    wanted = TableKeys.table_type.parse_as("to", to)
    if call.dry_run:
        return plan_type_conversion(path, merged, wanted)
    done = convert_type(path, merged, wanted, chosen_engine(call.engine), call.progress)
    return call.changed(done, without_type(merged))


def move_files(call: TableCall) -> StorageConversion:
    """Move the data files to the layout of the options."""
    wanted, merged, path = options_as_strings(call.options), call.merged, call.session.path
    if call.dry_run:
        return plan_storage_conversion(path, merged, wanted)
    done = convert_storage(path, merged, wanted, chosen_engine(call.engine), call.progress)
    return call.changed(done, without_placement(merged))


def upgrade(call: TableCall, to: int) -> Upgrade:
    """Change the version."""
    merged, path = call.merged, call.session.path
    if call.dry_run:
        return plan_upgrade(path, merged, to)
    done = upgrade_table(path, merged, to, chosen_engine(call.engine), call.progress)
    return call.changed(
        done, {name: merged[name] for name in merged if name not in CHANGED_OPTIONS}
    )
