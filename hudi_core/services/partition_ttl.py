"""Partition expiry: deletes partitions that were not written to for long.

As in Hudi it is one replacecommit of the operation ``DELETE_PARTITION``: past states stay readable
until a clean deletes the files.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hudi_core.config.ttl import TtlConfig, TtlStrategy
from hudi_core.errors import (
    HudiError,
    InvalidInstantTimeError,
    InvalidOptionError,
    PartitionValueError,
    PathNotFoundError,
)
from hudi_core.model.extra_metadata import CommitExtras
from hudi_core.model.files import PARTITION_METADATA_FILE, PartitionPath, join_path
from hudi_core.model.instant_time import SOLO_PREFIX, InstantTime, parse_instant_time
from hudi_core.model.result import CommitResult
from hudi_core.services.progress import CountedMap, Progress, no_progress
from hudi_core.table_handle import OpenTable
from hudi_core.write.client import WriteClient

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Partitions that were deleted for their age, or would be.

    ``strategy`` says from when on age counts, ``days`` how many are kept; ``partitions`` has the
    oldest first. ``commit`` is ``None`` where none expired, and of a plan.
    """

    path: str
    strategy: TtlStrategy
    days: int
    partitions: tuple[PartitionPath, ...] = ()
    commit: CommitResult | None = None


class _NothingExpiredError(HudiError):
    """Others wrote to, or deleted, what had expired."""

    def __init__(self) -> None:
        super().__init__("No partition has expired any more", "Nothing is to be done.")


def expire_partitions(
    writer: WriteClient,
    config: TtlConfig,
    *,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Expiry:
    """Delete the partitions of a table that have expired.

    ``progress`` counts the partitions looked at, where each has a file to be read; then those
    deleted, which all go at once.
    """
    if config.days_retained <= 0:
        key = TtlConfig.days_retained.key
        reason, hint = "no partition is ever that old", f"Give {key}, or days=."
        raise InvalidOptionError(key, config.days_retained, reason, hint)
    writer.table.client.require_writable()
    if not writer.table.client.config.partition_fields:
        raise PartitionValueError("The table has no partitions", "Delete rows by their keys.")
    done = Expiry(writer.table.client.base_path, config.strategy, config.days_retained)
    found = expired(writer.table.as_stored().afresh, config, progress)
    if dry_run or not found:
        return replace(done, partitions=tuple(found))

    def still(table: OpenTable) -> Sequence[PartitionPath]:
        # a writer may have written to one of them before this write began
        found[:] = expired(table, config)
        if not found:
            raise _NothingExpiredError
        progress(0, len(found))
        return found

    try:
        commit = writer.delete_chosen_partitions(still)
    except _NothingExpiredError:
        return done
    progress(len(found), len(found))
    return replace(done, partitions=tuple(found), commit=commit)


def expire_after_commit(writer: WriteClient) -> None:
    """Delete expired partitions after a commit, as options ask.

    Takes the lock itself. The commit has taken place: what fails now is logged, and left to the
    next one.
    """
    config = writer.config
    ttl = config.ttl
    has_partitions = bool(writer.table.client.config.partition_fields)
    if not (config.services.enabled and ttl.inline and ttl.days_retained > 0 and has_partitions):
        return
    # what the caller says of its commit, and wants to hold of it, is not meant of this one
    plain = replace(config, extras=CommitExtras())
    service = replace(writer, config=plain, validation=None, guard=None)
    try:
        expire_partitions(service, ttl)
    except HudiError:
        where = writer.table.client.base_path
        _log.warning("the expiry of partitions of %s failed", where, exc_info=True)
    finally:
        writer.table = service.table


def expired(
    table: OpenTable, config: TtlConfig, progress: Progress = no_progress
) -> list[PartitionPath]:
    """Partitions with rows that have expired, the oldest first.

    All partitions are looked at, or those that options select.
    """
    limit = datetime.now(UTC) - timedelta(days=config.days_retained)
    before = table.client.config.zone.digits(limit)
    wanted = [PartitionPath(path) for path in config.partitions] or None
    last: dict[PartitionPath, InstantTime] = {}
    for one in table.views().view().latest_slices(wanted):
        path, time = one.partition_path, one.last_instant
        last[path] = max(time, last.get(path, time))
    times: Mapping[PartitionPath, InstantTime | None] = last
    if config.strategy is TtlStrategy.KEEP_BY_CREATION_TIME:
        paths = list(last)
        counted = CountedMap(table.client.run_map, progress)
        made = counted(lambda path: _created(table, path), paths)
        times = dict(zip(paths, made, strict=True))
    # the first instants of some tables are no dates
    old = [
        (time, path)
        for path, time in times.items()
        if time is not None and time < before and not time.startswith(SOLO_PREFIX)
    ]
    return [path for _, path in sorted(old)[: config.max_partitions]]


def _created(table: OpenTable, path: PartitionPath) -> InstantTime | None:
    """The time of the commit that made a partition; ``None`` if unknown."""
    try:
        text = table.client.storage.read(join_path(path, PARTITION_METADATA_FILE))
        lines = (line.partition("=") for line in text.decode().splitlines())
        times = [value.strip() for name, _, value in lines if name.strip() == "commitTime"]
        return parse_instant_time(times[0]) if times else None
    except (PathNotFoundError, InvalidInstantTimeError, UnicodeDecodeError):
        return None
