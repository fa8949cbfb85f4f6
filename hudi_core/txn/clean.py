"""Cleans of a table, its metadata table and its format.

A clean only goes forward. Its plan is put on the timeline; the format stops naming the files; they
are deleted; the metadata table records that; the clean completes, and the format records it. One
that is cut short at any point is continued from its stored plan by the next clean, and is in
the way of no write: nothing that a reader of a retained state needs is in a plan. Everything runs
under the table's lock.
"""

from __future__ import annotations

from functools import partial

from hudi_core.actions.clean import (
    CleanWork,
    complete_clean,
    delete_cleaned,
    pending_cleans,
    replaced_by_archived,
    request_clean,
    start_clean,
)
from hudi_core.actions.clean_of_files import savepointed_files
from hudi_core.actions.rollback import written_by
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.errors import TableServiceError
from hudi_core.metadata.session import MetadataSession, record_clean
from hudi_core.model.actions import CleanerPlan, CleanMetadata
from hudi_core.model.files import join_path
from hudi_core.model.instant import Instant
from hudi_core.txn.publication import (
    present_version,
    publish_with_retry,
    version_of_any_writer,
)
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import TableLock
from hudi_core.view.file_system import FileSystemView, replaced_groups, written_files
from hudi_core.view.storage_lister import StorageLister


def clean(
    state: TableState, lock: TableLock, plan: CleanerPlan, *, over_foreign: bool = False
) -> tuple[TableState, Instant | None, CleanMetadata | None]:
    """Run a new clean; see :func:`continue_clean`."""
    client = state.client
    requested = client.clock.next_time(state.timeline)
    instant = request_clean(client, requested, plan)
    state = state.with_instant(instant)
    return continue_clean(state, lock, instant, plan=plan, over_foreign=over_foreign)


def continue_pending(state: TableState, lock: TableLock) -> TableState:
    """Finish the cleans that others began; returns the table after them."""
    for instant in pending_cleans(state.timeline):
        state, _, _ = continue_clean(state, lock, instant)
    return state


def continue_clean(
    state: TableState,
    lock: TableLock,
    instant: Instant,
    *,
    plan: CleanerPlan | None = None,
    over_foreign: bool = False,
) -> tuple[TableState, Instant | None, CleanMetadata | None]:
    """Bring a clean whose plan is on the timeline to its end.

    ``plan`` is given by who has just made it, under this hold of the lock. ``over_foreign``:
    commits of other writers to the format may be there, and stay what they are.

    Both instant and metadata are ``None`` when the plan is empty, left by a writer that died while
    it wrote it: the clean was dropped.

    :class:`CorruptMetadataError` (a plan that is damaged or names what a clean may not delete) and
    :class:`TableServiceError` (a file that the present state, a savepoint or a pending write needs)
    mean that nothing was deleted. After :class:`CommitStateUnknownError` the clean is complete on
    the Hudi timeline, and the format does not hold it yet.
    """
    client, host = state.client, state.table.host
    version = version_of_any_writer if over_foreign else present_version
    check = partial(_require_superfluous, state) if plan is None else _unchecked
    work = start_clean(client, instant, check, plan)
    if work is None:
        return state.without(instant), None, None
    state = state.with_instant(work.instant)
    client = state.client
    if work.files or work.partitions:
        host.before_clean(client, work.plan, work.instant, version(state.table))
    lock.require_lease()
    metadata = delete_cleaned(client, work)
    if state.metadata is not None:
        session = MetadataSession(state.metadata, MetadataConfig.from_options(client.options))
        state = state.with_metadata(record_clean(session, work.instant.requested_time, metadata))
    lock.require_lease()
    client = state.client
    completion = client.clock.next_time(state.timeline)
    completed = complete_clean(client, work, completion, metadata)
    state = state.with_instant(completed).without_files(work.files)
    table, client = state.table, state.client
    publish_with_retry(
        table,
        completed,
        lambda: host.complete_clean(client, metadata, completed, version(table)),
    )
    return state, completed, metadata


def _unchecked(work: CleanWork) -> None:
    """Accept a plan that was made under this hold of the lock."""


def _require_superfluous(state: TableState, work: CleanWork) -> None:
    """Refuse to delete what must stay, by any plan.

    Since then what took the place of a file may have been undone.
    """
    client, timeline = state.client, state.timeline
    lister = StorageLister.of(client)
    view = FileSystemView(
        lister,
        timeline,
        replaced_groups(timeline, client.read_commit),
        written_files(timeline, client.read_commit),
    )
    needed: dict[tuple[str, str], str] = {}
    slices = view.latest_slices(list(work.files))
    named = {join_path(path, name) for path, names in work.files.items() for name in names}
    if any(one.base_file and one.base_file.path in named for one in slices):
        # what a write replaced that is archived since is no part of the table
        gone = replaced_by_archived(client, timeline)
        slices = tuple(one for one in slices if one.base_instant >= gone.get(one.group, ""))
    for one in slices:
        live = [log.status.name for log in one.log_files]
        live += [one.base_file.status.name] if one.base_file is not None else []
        needed.update({(one.partition_path, name): "the present state" for name in live})
    for file, savepoint in savepointed_files(client, timeline).items():
        needed[file] = f"the savepoint of {savepoint}"
    pending = {one.requested_time for one in timeline.pending()}
    for partition, names in work.files.items():
        for name in names:
            time = written_by(name)
            who = f"the pending write {time}" if time in pending else needed.get((partition, name))
            if who is not None:
                path = join_path(partition, name)
                raise TableServiceError(
                    f"The clean {work.instant.requested_time} of {client.base_path} would delete "
                    f"{path}, which {who} needs",
                    "Nothing was deleted. Remove the plan from the timeline; it was not made for "
                    "this state of the table.",
                    path=path,
                    instant=work.instant.requested_time,
                )
