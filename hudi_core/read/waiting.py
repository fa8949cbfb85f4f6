"""Commits that wait for a reader which follows a table.

Layout 1 of the timeline records no completion times. There the requested time of a commit is used
instead, and a writer that began earlier may still complete; so nothing after the first pending
write is taken, as with Hudi's policy BLOCK for hollow commits.
"""

from __future__ import annotations

from hudi_core.config.streaming import LATEST, StreamSourceConfig
from hudi_core.errors import InstantNotFoundError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.instant import WRITE_ACTIONS, Instant, State
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.active import LAYOUT_1
from hudi_core.timeline.relayout import is_planned_clustering


def latest_time(client: TableMetaClient, timeline: TimelineView) -> InstantTime:
    """Completion time of the last write; the earliest time without one."""
    writes = _firm_writes(client, timeline)
    return max((one.effective_completion_time for one in writes), default=EARLIEST)


def first_offset(client: TableMetaClient, timeline: TimelineView, start: str) -> InstantTime:
    """Completion time after which a stream begins."""
    return latest_time(client, timeline) if start == LATEST else client.instant_time(start)


def next_offset(
    client: TableMetaClient,
    timeline: TimelineView,
    start: str,
    config: StreamSourceConfig,
    end: str | None = None,
) -> str:
    """Completion time up to which the next batch goes.

    It is ``start`` where nothing waits. Of a limit at least one commit is taken.

    Everything up to ``start`` has been read; ``end`` is ``None`` for the last commit.
    """
    waiting = sorted(
        (
            one
            for one in _firm_writes(client, timeline)
            if one.effective_completion_time > start
            and (end is None or one.effective_completion_time <= end)
        ),
        key=lambda one: one.effective_completion_time,
    )
    if not config.is_limited:
        return waiting[-1].effective_completion_time if waiting else start
    files = size = 0
    reached = start
    for instant in waiting:
        if reached != start and _is_reached(config, files, size):
            break
        more_files, more_size = _written(client, instant)
        files, size = files + more_files, size + more_size
        reached = instant.effective_completion_time
    return reached


def _firm_writes(client: TableMetaClient, timeline: TimelineView) -> tuple[Instant, ...]:
    """Completed writes that none which is pending can come before."""
    writes = timeline.completed_writes()
    if client.config.layout_version != LAYOUT_1 or not writes:
        return writes
    last = writes[-1].requested_time
    pending = (
        one.requested_time
        for one in timeline.instants
        if one.requested_time < last and _may_bring_rows(client, one)
    )
    first = next(pending, None)
    return tuple(one for one in writes if first is None or one.requested_time < first)


def _may_bring_rows(client: TableMetaClient, instant: Instant) -> bool:
    """Whether an instant of layout 1 may yet change rows."""
    if instant.is_completed or instant.action not in WRITE_ACTIONS:
        return False
    try:
        return not is_planned_clustering(client.active, instant.to(State.REQUESTED))
    except InstantNotFoundError:
        return True  # rolled back since; the next look finds it gone


def _is_reached(config: StreamSourceConfig, files: int, size: int) -> bool:
    return (config.max_files is not None and files >= config.max_files) or (
        config.max_bytes is not None and size >= config.max_bytes
    )


def _written(client: TableMetaClient, instant: Instant) -> tuple[int, int]:
    """Files and bytes that a commit wrote."""
    commit = client.read_commit(instant)
    sizes = [
        stat.file_size_in_bytes or 0
        for stats in commit.partition_to_write_stats.values()
        for stat in stats
        if stat.path
    ]
    return len(sizes), sum(sizes)
