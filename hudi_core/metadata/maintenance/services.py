"""Table services of the metadata table, after each commit.

Compaction, cleaning and archiving.

In Hudi's order: what dead writers began is finished first; then old slices are deleted, then a
compaction is made if it is due, then the timeline is archived. Everything runs under the lock of
the table, and every step that is cut short is finished by the next call.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from hudi_core.actions.archive import archive
from hudi_core.actions.archive_plan import ArchiveRules, LastClean, plan_archive
from hudi_core.actions.clean import pending_cleans, request_clean, run_clean
from hudi_core.actions.clean_of_files import last_clean, plan_clean
from hudi_core.actions.clean_plan import CleanRules, Retention, retain
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.metadata.damage import with_rebuild_hint
from hudi_core.metadata.maintenance.compaction import compact_if_due, finish_compactions
from hudi_core.metadata.state import MetadataState
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.storage_lister import StorageLister

_AFTER_COMPACTION: Final = 3
"""Instants after a compaction before a clean: readers that began before it may be at work."""


def run_services(locked: MetadataState, config: MetadataConfig) -> MetadataState:
    """Compact, clean and archive where due; under the lock.

    To be called before the deltacommit of an instant, or after that instant is complete. In between
    nothing is compacted: an instant that is not complete must not get into a base file.
    """
    with with_rebuild_hint():
        # mostly nothing is due
        if finish_compactions(locked) or _finish_cleans(locked):
            locked = locked.reloaded()
        if clean_if_due(locked, config) is not None:
            locked = locked.reloaded()
        if compact_if_due(locked, config) is not None:
            locked = locked.reloaded()
        return locked.reloaded() if archive_if_due(locked, config) else locked


def _finish_cleans(locked: MetadataState) -> bool:
    """Finish the cleans of dead writers; return whether there were any."""
    pending = pending_cleans(locked.timeline)
    for one in pending:
        _run_clean(locked, one)
    return bool(pending)


def clean_if_due(locked: MetadataState, config: MetadataConfig) -> Instant | None:
    """Delete slices that no recent commit reads; under the lock."""
    metadata, timeline = locked.metadata, locked.timeline
    retention = retain(
        timeline,
        CleanRules(commits_retained=config.clean_commits_retained),
        datetime.now(UTC),
        metadata.config.zone,
    )
    old = _old_compactions(timeline, retention)
    if not old:
        return None
    last = last_clean(metadata, timeline)
    if last is not None and max(old) < last.metadata.earliest_commit_to_retain:
        return None
    lister = StorageLister(metadata.storage, partitioned=True, run_map=metadata.run_map)
    plan = plan_clean(metadata, timeline, lister, retention, last)
    if plan is None:
        return None
    return _run_clean(locked, request_clean(metadata, locked.next_time(), plan))


def archive_if_due(locked: MetadataState, config: MetadataConfig) -> tuple[Instant, ...]:
    """Archive old instants of the metadata table; under the lock.

    An instant stays as long as the table's own timeline has one that is not younger: readers ask
    both about it.
    """
    metadata, timeline = locked.metadata, locked.timeline
    if len(timeline.completed_writes()) <= config.keep_max_commits:
        return ()
    rules = ArchiveRules(
        config.keep_min_commits,
        config.keep_max_commits,
        compaction_delta_commits=config.compact_delta_commits,
    )
    done = last_clean(metadata, timeline)
    last = None if done is None else LastClean(done.instant, done.earliest_retained)
    old = plan_archive(timeline, rules, last, _needed(locked.data_timeline))
    return archive(metadata, old) if old else ()


def _needed(data_timeline: Timeline) -> Iterator[InstantTime]:
    """Yield the times from which on the table's timeline has its instants."""
    if data_timeline.active_start is not None:
        yield data_timeline.active_start
    pending = data_timeline.pending().first
    if pending is not None:
        yield pending.requested_time


def _old_compactions(timeline: Timeline, retention: Retention) -> list[InstantTime]:
    """Return the compactions that made slices older than what is retained.

    Nothing else makes a second slice of a file group; so most commits need no listing.
    """
    compactions = [one.requested_time for one in timeline.completed().of_actions(Action.COMMIT)]
    newest = max(compactions, default="")
    after = [one for one in timeline.completed() if one.requested_time > newest]
    if retention.earliest is None or len(after) < _AFTER_COMPACTION:
        return []
    return [time for time in compactions if time < retention.earliest.requested_time]


def _run_clean(locked: MetadataState, instant: Instant) -> Instant | None:
    return run_clean(locked.metadata, instant, locked.next_time)
