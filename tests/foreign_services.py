"""Table services as another engine, or an earlier release, leaves them on the timeline.

What is deleted and recorded is done by this project's own steps; what only this release writes or
keeps is left out. The engines themselves come in ``make interop``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import hudi_core as hudi
from hudi_core.actions.archive import archive
from hudi_core.actions.clean_of_files import last_clean, plan_clean
from hudi_core.actions.clean_plan import RETAINED_SINCE_KEY, CleanRules, Needed, retain
from hudi_core.config.kinds import CleanPolicy
from hudi_core.config.write import WriteConfig
from hudi_core.metadata.lister import table_lister
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import EARLIEST, InstantTime, to_datetime
from hudi_core.services.opening import open_table
from hudi_core.timeline.serde import decode_clean, decode_savepoint, encode
from hudi_core.txn.clean import clean
from hudi_core.txn.publication import present_version
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import table_lock
from hudi_core.txn.table_service import locked_for_service
from hudi_core.view.file_system import replaced_groups

COMMITS, VERSIONS = CleanPolicy.KEEP_LATEST_COMMITS, CleanPolicy.KEEP_LATEST_FILE_VERSIONS


def foreign_clean(
    table: hudi.Table, policy: CleanPolicy = COMMITS, retained: int = 1
) -> Instant | None:
    """Clean by a policy alone: it knows no earlier clean, and tells nothing of one.

    ``None`` where there was nothing to delete.
    """
    opened, config = open_table(table.path, {}), WriteConfig.from_options({})
    lock = table_lock(opened, config)
    with locked_for_service(opened, lock, config) as state:
        client, timeline = state.client, state.timeline
        saved = timeline.completed().of_actions(Action.SAVEPOINT).instants
        bodies = [decode_savepoint(client.active.read(one), str(one)) for one in saved]
        kept = {
            (path, name)
            for body in bodies
            for path, files in body.partition_metadata.items()
            for name in files.savepoint_data_file
        }
        rules = CleanRules(policy, retained, retained)
        plan = plan_clean(
            client,
            timeline,
            table_lister(client),
            retain(timeline, rules, to_datetime(client.clock.next_time(timeline))),
            replaced=lambda: replaced_groups(timeline, client.read_commit),
            needed=lambda: Needed(frozenset(kept)),
            savepoints=[one.requested_time for one in saved],
        )
        if plan is None:
            return None
        assert RETAINED_SINCE_KEY not in (plan.extra_metadata or {})
        return clean(state, lock, plan)[1]


def foreign_archive(
    table: hudi.Table, kept: int = 2, *, with_replacing: bool = False
) -> tuple[Instant, ...]:
    """Archive all writes but the last ones, and all cleans and rollbacks before those.

    As Hudi does: everything stays from the first savepoint or pending instant on, and from the
    first replacecommit that the last clean has not dealt with; nothing is kept for a clean to go on
    from. Returns what was archived.

    ``with_replacing``: whether replacecommits go as others do, whatever is there of what they
    replaced.
    """
    opened, config = open_table(table.path, {}), WriteConfig.from_options({})
    lock = table_lock(opened, config)
    with locked_for_service(opened, lock, config) as state:
        timeline, writes = state.timeline, state.timeline.completed_writes()
        stays = [one.requested_time for one in timeline if not one.is_completed]
        stays += [one.requested_time for one in timeline if one.action is Action.SAVEPOINT]
        if not with_replacing:
            stays += _not_dealt_with(state)
        first = min((*stays, *(one.requested_time for one in writes[-kept:])), default="")
        old = [one for one in writes if one.requested_time < first]
        if not old:
            return ()
        with_them = {Action.CLEAN, Action.ROLLBACK, Action.RESTORE}
        old += [
            one
            for one in timeline.completed()
            if one.action in with_them and one.requested_time < old[-1].requested_time
        ]
        archived = archive(state.client, old)
        now = reduce(TableState.without, archived, state)
        now.table.host.archive_instants(now.client, archived, present_version(now.table))
        return archived


def _not_dealt_with(state: TableState) -> list[InstantTime]:
    """Requested time of the first replacecommit whose files the last active clean left."""
    replacing = state.timeline.completed().of_actions(Action.REPLACECOMMIT).instants
    last = last_clean(state.client, state.timeline)
    since = EARLIEST
    if last is not None:
        known = min(last.savepoints, default="9")
        since = InstantTime(min(last.earliest_retained or last.instant.requested_time, known))
    return [one.requested_time for one in replacing if one.requested_time >= since][:1]


def without_own_keys(table: hudi.Table) -> None:
    """Have the cleans of the active timeline tell what those of an earlier release do."""
    client = open_table(table.path, {}).client
    for one in client.timeline().completed().of_actions(Action.CLEAN):
        path = client.active.path(one)
        body = decode_clean(client.active.read(one), path)
        extra = {
            key: value
            for key, value in (body.extra_metadata or {}).items()
            if key != RETAINED_SINCE_KEY
        }
        client.storage.delete(path)
        client.storage.put(path, encode(replace(body, extra_metadata=extra)))
