"""Rebuilding what can be rebuilt from the timeline and the data files.

That is the metadata table and the metadata of the table's format: neither holds anything that is
nowhere else. Data files and the timeline cannot be made from anything, and are only checked. A
repair that died is run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.table_parsers import NATIVE
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentWriterError,
    CorruptMetadataError,
    ForeignCommitError,
    IncompleteCommitError,
    InvalidOptionError,
    TableServiceError,
    UnfinishedMoveError,
    UnpublishedCommitsError,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.index_definitions import discard_damaged
from hudi_core.metadata.maintenance.indexing import recover_pending_indexing
from hudi_core.metadata.maintenance.lifecycle import rebuild_metadata_table
from hudi_core.model.capability import Capability
from hudi_core.model.difference import Difference
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.clustering import can_be_clustered, rewrite_each
from hudi_core.services.convert import (
    build_format,
    load_format,
    new_properties,
    require_recoverable,
)
from hudi_core.services.mending.differences import Source, TableValidation
from hudi_core.services.mending.lost_completions import (
    LostCompletion,
    ReturnedGroup,
    find_returned,
    lost_completions,
    mend_returned,
    put_back,
)
from hudi_core.services.mending.taking_in import (
    ForeignChanges,
    TakeIn,
    can_take_in,
    finish_earlier,
    foreign_changes,
    require_fit,
    take_in,
)
from hudi_core.services.mending.validate import checksum_folders, validate_table
from hudi_core.services.opening import open_table
from hudi_core.services.progress import Progress, no_progress
from hudi_core.storage.hadoop_checksums import stale_checksums
from hudi_core.storage.properties_file import recover as recover_properties
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.recover import is_writing, recover, require_known_actions
from hudi_core.txn.scheduled import is_at_work
from hudi_core.txn.state import TableState
from hudi_core.txn.storage_move import moved_on
from hudi_core.txn.table_lock import table_lock


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair that is planned, or was made.

    ``found`` is what was wrong; ``left`` what still is, since nothing is known from which it could
    be made (of a plan: what the repair will not mend). ``commits`` are requested times of commits
    whose lost completed file is written again. ``checksums`` means that wrong checksum files are
    removed.

    ``returned`` are ids of file groups that came back when what replaced them was archived, and are
    taken out again, see :mod:`hudi_core.services.mending.lost_completions`. ``foreign`` is what
    other writers did to the formats; ``taken_in`` their appended rows, ``None`` where none are;
    ``can_take_in`` is of a plan. ``rewritten`` are data files replaced by others with the same
    rows: readers of a format fail on lists of two levels.
    """

    path: str
    table_format: str
    found: tuple[Difference, ...]
    metadata_table: bool
    format_metadata: bool
    left: tuple[Difference, ...]
    commits: tuple[InstantTime, ...] = ()
    checksums: bool = False
    returned: tuple[str, ...] = ()
    foreign: tuple[ForeignChanges, ...] = ()
    taken_in: TakeIn | None = None
    rewritten: tuple[str, ...] = ()
    can_take_in: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether anything is rebuilt, rewritten, recovered or taken in."""
        pending = any(one.is_pending for one in self.found)
        rebuilt = self.metadata_table or self.format_metadata
        done = bool(self.commits or self.returned or self.rewritten) or rebuilt or self.checksums
        return done or pending or self.taken_in is not None

    @property
    def drops_rows(self) -> bool:
        """Whether the repair takes rows of other writers out."""
        return self.taken_in is None and any(one.changes_rows for one in self.foreign)


def plan_repair(
    path: str,
    options: Mapping[str, str],
    engine: Engine,
    *,
    force: bool = False,
    taking_in: bool = False,
    progress: Progress = no_progress,
) -> Repair:
    """Plan of a repair; nothing is written, and no lock is taken.

    What other writers have done is counted whatever is to become of it.
    """
    table = open_table(path, options).on(engine)
    require_recoverable(table.client)
    foreign = foreign_changes(table)
    taken_in = None
    if taking_in and any(one.changes_rows for one in foreign):
        taken_in = take_in(table, WriteConfig.from_options(options), foreign, is_planned=True)
    lost = lost_completions(table, table.client.timeline())
    plan = _plan(table, force, progress)
    return replace(
        plan,
        commits=tuple(one.instant.requested_time for one in lost),
        returned=_ids(find_returned(table)),
        foreign=foreign,
        taken_in=taken_in,
        can_take_in=bool(foreign) and can_take_in(table, foreign),
    )


def repair_table(
    path: str,
    options: Mapping[str, str],
    engine: Engine,
    *,
    force: bool = False,
    taking_in: bool = False,
    discarding: bool = False,
    progress: Progress = no_progress,
) -> Repair:
    """Rebuild lost or wrong parts of metadata table and format's metadata.

    Completed files that the timeline has lost are put back first, see
    :mod:`hudi_core.services.mending.lost_completions`.
    What the Hudi timeline holds as complete is complete afterwards. Where another writer than Hudi
    has added, deleted or changed rows in the format's metadata, the caller says what becomes of
    them.

    ``force`` rebuilds the format's metadata where nothing is wrong with it, too, and all of it from
    data files that are not as their commits say, which is not done otherwise. ``taking_in`` writes
    rows that others appended into the table; ``discarding`` takes their commits out of the format's
    metadata: their files stay in the folder, and are in no table. With neither, changed rows are a
    ``ForeignCommitError``, and nothing has changed.

    The timeline and the properties cannot be rebuilt. The engine does what :func:`validate_table`
    does with files, and reads what a new metadata table needs.
    """
    config = WriteConfig.from_options(options)
    found: tuple[ForeignChanges, ...] = ()
    mended: tuple[str, ...] = ()
    taken_in: TakeIn | None = None
    if taking_in:
        if discarding:
            raise InvalidOptionError(
                "take_in", True, "discard is given as well", "Choose one of the two."
            )
        found, mended, taken_in = _taken_in(path, options, config)
    before = open_table(path, options)
    require_recoverable(before.client)
    lock = table_lock(before, config)
    with lock.held_by_service():
        recover_properties(before.client.storage)
        table = moved_on(open_table(path, options)).on(engine)
        require_recoverable(table.client)
        foreign = foreign_changes(table)
        if not discarding:
            _require_no_loss(table, foreign)
        lost_commits = _put_back(table)
        plan = _with_commits(_plan(table, force, progress), lost_commits)
        plan = replace(plan, foreign=(*found, *foreign), returned=mended, taken_in=taken_in)
        if not force and _has_lost(plan.found):
            return plan
        returned = find_returned(table)
        if returned:
            mend_returned(table, lock, config, returned)
            table = open_table(path, options).on(engine)
            again = _plan(table, force, progress)
            plan = replace(
                plan,
                metadata_table=again.metadata_table,
                format_metadata=again.format_metadata,
                checksums=again.checksums,
                returned=(*mended, *_ids(returned)),
            )
        if plan.checksums:
            for checksum in stale_checksums(table.client.storage, *checksum_folders(table)):
                table.client.storage.delete(checksum)
        lost: tuple[Difference, ...] = ()
        if plan.metadata_table:
            refuse_other_writers(table, config)
            lost = _rebuild_metadata_table(table.client)
            table = open_table(path, options).on(engine)
        timeline, is_stuck = _recovered(table, config, plan.format_metadata)
        plan = replace(plan, format_metadata=plan.format_metadata or is_stuck)
        for pending in timeline.pending().where(is_at_work):
            raise ConcurrentWriterError(table.client.base_path, pending.requested_time)
        if plan.format_metadata:
            host = table.host
            host.require(Capability.CONVERSION)
            lock.require_lease()
            receipt = build_format(table, host, timeline, progress)
            update_properties(table.client.storage, new_properties(table, host, receipt))
    after = validate_table(open_table(path, options).on(engine), progress=progress)
    if after.old_lists and can_be_clustered(table):
        # also those that metadata that is rebuilt names for the first time
        rewrite_each(open_table(path, options), lock, config, after.old_lists)
        plan = replace(plan, rewritten=after.old_lists)
        after = validate_table(open_table(path, options).on(engine), progress=progress)
    return replace(plan, left=(*after.differences, *lost))


def _taken_in(
    path: str, options: Mapping[str, str], config: WriteConfig
) -> tuple[tuple[ForeignChanges, ...], tuple[str, ...], TakeIn | None]:
    """Changes of other writers, returned groups, and the rows that came in."""
    table = open_table(path, options)
    require_recoverable(table.client)
    if foreign_changes(table, reads_rows=False):
        finish_earlier(table, config)
    table = open_table(path, options)
    foreign = foreign_changes(table)
    if not any(one.changes_rows for one in foreign):
        return (), (), None
    # rows would be put into groups that have come back, whose files the format does not name
    returned = find_returned(table)
    if returned:
        require_fit(table, config, foreign)
        mend_returned(table, table_lock(table, config), config, returned)
        table = open_table(path, options)
        foreign = foreign_changes(table)
    return foreign, _ids(returned), take_in(table, config, foreign)


def _require_no_loss(table: OpenTable, foreign: Sequence[ForeignChanges]) -> None:
    """Refuse to rebuild metadata in which others have changed rows."""
    for one in foreign:
        if one.changes_rows:
            where = f"the {one.table_format} metadata of {table.client.base_path}"
            raise ForeignCommitError(
                table.client.base_path,
                where,
                one.commits,
                version=one.version,
                changes=one.text,
                can_take_in=can_take_in(table, foreign),
            )


def _plan(table: OpenTable, force: bool, progress: Progress) -> Repair:
    try:
        found: TableValidation = validate_table(table, progress=progress)
    except UnfinishedMoveError as error:
        if not force:
            raise
        found = _without_format(table, error, progress)
    has_own = Capability.SINGLE_STEP not in table.host.capabilities
    wrong = [one for one in found.of(Source.FORMAT) if not one.is_pending]
    is_safe = force or not _has_lost(found.differences)
    mended = {Source.TIMELINE}
    rewritten = found.old_lists if is_safe and can_be_clustered(table) else ()
    if rewritten:
        mended.add(Source.DATA_FILE)
    if is_safe:
        mended |= {Source.FORMAT, Source.METADATA_TABLE, Source.CHECKSUM}
    return Repair(
        path=table.client.base_path,
        table_format=table.host.name,
        found=found.differences,
        metadata_table=is_safe and bool(found.of(Source.METADATA_TABLE)),
        format_metadata=is_safe and has_own and (force or bool(wrong)),
        rewritten=rewritten,
        checksums=is_safe and bool(found.of(Source.CHECKSUM)),
        left=tuple(one for one in found.differences if one.source not in mended),
    )


def _ids(found: Sequence[ReturnedGroup]) -> tuple[str, ...]:
    return tuple(str(one.group.id.file_id) for one in found)


def _put_back(table: OpenTable) -> list[LostCompletion]:
    """Restore lost completed files, the oldest first.

    In this order, as the schema and files before a commit come from earlier ones.
    """
    timeline = table.client.timeline()
    lost = lost_completions(table, timeline)
    for one in lost:
        put_back(table, timeline, one)
        timeline = table.client.timeline()
    return lost


def _with_commits(plan: Repair, lost: Sequence[LostCompletion]) -> Repair:
    differences = tuple(one.difference for one in lost)
    times = tuple(one.instant.requested_time for one in lost)
    return replace(plan, found=(*differences, *plan.found), commits=times)


def _without_format(
    table: OpenTable, error: UnfinishedMoveError, progress: Progress
) -> TableValidation:
    """Findings of a validation of a table whose format cannot be read."""
    found = validate_table(replace(table, host=load_format(NATIVE)), progress=progress)
    difference = Difference(
        Source.FORMAT, f"metadata of {table.host.name}", "in the table's folder", error.what
    )
    return replace(
        found, table_format=table.host.name, differences=(*found.differences, difference)
    )


def _has_lost(found: Sequence[Difference]) -> bool:
    """Whether data files are not those of the commits.

    A rebuild from them would take older rows, or rows of no commit, for the table's.
    """
    return any(one.source == Source.STORAGE for one in found)


def _recovered(table: OpenTable, config: WriteConfig, is_rebuilt: bool) -> tuple[Timeline, bool]:
    """Recover what dead writers left.

    Where the format's metadata is about to be rebuilt and cannot be read, or cannot take an instant
    any more, step 1 alone decides what is complete. A format whose metadata may be elsewhere is not
    read, and is rebuilt by force alone, see :func:`_plan`.

    Returns the timeline then, and whether the format's metadata has to be rebuilt for an instant
    that it cannot take.
    """
    is_stuck = False
    try:
        return recover(TableState.load(table), config).timeline, False
    except ConcurrentWriterError:
        raise
    except (IncompleteCommitError, UnpublishedCommitsError):
        is_stuck = True
    except (
        *(CorruptMetadataError, CommitConflictError, CommitStateUnknownError),
        *(ForeignCommitError, InvalidOptionError, TableServiceError, UnfinishedMoveError),
    ):
        if not is_rebuilt:
            raise
    native = OpenTable(table.client.as_stored(), load_format(NATIVE))
    state = TableState(native.seeing(native.client.active.load()))
    return recover(state, config).timeline, is_stuck


def refuse_other_writers(table: OpenTable, config: WriteConfig) -> None:
    """Refuse a table with live writers; forget a dead indexing.

    Before anything of the table changes.
    """
    client, timeline = table.client, table.client.timeline()
    require_known_actions(client.seeing(timeline))
    for pending in timeline.pending().where(is_at_work):
        if is_writing(table, pending, config):
            raise ConcurrentWriterError(client.base_path, pending.requested_time)
    discard_damaged(client.storage, client.config)
    recover_pending_indexing(client.seeing(timeline), is_lost=True)


def _rebuild_metadata_table(client: TableMetaClient) -> tuple[Difference, ...]:
    config = MetadataConfig.from_options(client.options)
    client = client.as_stored()
    _, lost = rebuild_metadata_table(client.seeing(client.timeline()), config)
    return tuple(map(_undefined, lost))


def _undefined(index: str) -> Difference:
    return Difference(
        Source.METADATA_TABLE,
        index,
        "an index of a column of the table",
        "its column is not recorded, and it was left out; `hudi metadata index` rebuilds it",
    )
