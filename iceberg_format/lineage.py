"""Which instants the current lineage of an Iceberg table holds.

An action that changes files or columns is a snapshot whose summary names it; any other is a
property of the table. Only the ancestors of the current snapshot count: what was rolled back may
still be listed elsewhere. Before snapshots are expired, a watermark takes their place; where
somebody else has expired them, the oldest that is left tells of them.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from hudi_core.spi import (
    ACTION_KEY,
    COMPLETION_TIME_KEY,
    INSTANT_KEY,
    WATERMARK_KEY,
    Action,
    Instant,
    Lineage,
    Publication,
    TableServiceError,
    parse_instant_time,
    to_datetime,
)

_log = logging.getLogger(__name__)

STATE_KEY: Final = "hudi.state"
"""Key of a snapshot that is no instant's: the first one, or one that a rollback goes on from."""
FIRST: Final = "first"
"""What the state is called that a lineage begins with."""
RECORD_PREFIX: Final = "hudi.instant."
"""Prefix of the properties that record instants without a snapshot."""
XTABLE_KEY: Final = "XTABLE_METADATA"
"""Under this key Apache XTable keeps what a snapshot was made from."""


def lineage_of(metadata: TableMetadata) -> Lineage:
    """Publications in the current lineage."""
    found = [one for one in map(_of_snapshot, ancestors(metadata)) if one is not None]
    found += _recorded(metadata.properties)
    watermark = watermark_of(metadata)
    return Lineage.of(found, parse_instant_time(watermark) if watermark else None)


def watermark_of(metadata: TableMetadata) -> str:
    """Return the watermark; empty where nothing was expired.

    The completion time up to which all is complete that is not named.

    A lineage is in the order of completion. So where its first snapshots are gone, what completed
    before the oldest that is left was in it, whoever expired them: only Hudi's writers note it.
    Some who expire a snapshot leave its child without a parent, as if it were the first.
    """
    noted = metadata.properties.get(WATERMARK_KEY, "")
    oldest = next(iter(deque(ancestors(metadata), maxlen=1)), None)
    if oldest is None or summary_of(oldest).get(STATE_KEY) == FIRST:
        return noted
    return max(noted, newest_completion(oldest))


def completed_up_to(metadata: TableMetadata, snapshot: Snapshot) -> str:
    """Return the newest completion time in a snapshot, or empty."""
    found = (newest_completion(one) for one in _back_from(snapshot, metadata))
    return next(filter(None, found), metadata.properties.get(WATERMARK_KEY, ""))


def newest_completion(snapshot: Snapshot) -> str:
    """Completion time of a snapshot's instant, or of the state it repeats.

    Empty where it repeats one that holds no instant.
    """
    summary = summary_of(snapshot)
    return summary.get(COMPLETION_TIME_KEY, "") or summary.get(WATERMARK_KEY, "")


def ancestors(metadata: TableMetadata) -> Iterator[Snapshot]:
    """Yield the snapshots of the current lineage, the newest first."""
    yield from _back_from(metadata.current_snapshot(), metadata)


def _back_from(snapshot: Snapshot | None, metadata: TableMetadata) -> Iterator[Snapshot]:
    # pyiceberg looks for each parent among all snapshots, and goes round in a damaged lineage
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    while snapshot is not None:
        by_id.pop(snapshot.snapshot_id, None)
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else by_id.get(parent)


def kept_line(metadata: TableMetadata) -> list[Snapshot]:
    """The current lineage and older states of savepoints, the newest first.

    A clean expires the snapshots between such a state and those that readers still need.
    """
    line = list(ancestors(metadata))
    if not line or summary_of(line[-1]).get(STATE_KEY) == FIRST:
        return line
    oldest = line[-1].sequence_number or 0
    before = [
        one
        for one in metadata.snapshots
        if (one.sequence_number or 0) < oldest and {INSTANT_KEY, STATE_KEY} & {*summary_of(one)}
    ]
    return line + sorted(before, key=lambda one: one.sequence_number or 0, reverse=True)


def summary_of(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the summary of a snapshot, without its operation."""
    return snapshot.summary.additional_properties if snapshot.summary else {}


def snapshot_of(metadata: TableMetadata, instant: Instant) -> Snapshot | None:
    """The snapshot of an instant in the lineage, or in a savepoint."""
    action = instant.action.completed_action
    for snapshot in kept_line(metadata):
        summary = summary_of(snapshot)
        if (summary.get(INSTANT_KEY), summary.get(ACTION_KEY)) == (instant.requested_time, action):
            return snapshot
    return None


def taken_out(instant: Instant) -> str:
    """Name of the state after an instant's rollback."""
    return f"rolled-back {instant.requested_time}"


def is_taken_out(metadata: TableMetadata, instant: Instant) -> bool:
    """Whether an instant was removed from the lineage for good."""
    name = taken_out(instant)
    return any(summary_of(one).get(STATE_KEY) == name for one in ancestors(metadata))


def require_hudi_lineage(foreign: Snapshot | None, where: str) -> None:
    """Refuse a lineage with a snapshot that no Hudi writer made.

    Parameters
    ----------
    foreign
        What :func:`foreign_snapshot` found.
    where
        The Iceberg table.

    Raises
    ------
    TableServiceError
        Names the snapshot.
    """
    if foreign is not None:
        raise TableServiceError(
            f"Snapshot {_named(foreign)} of the Iceberg table at {where} was not made by a Hudi "
            "writer",
            "Roll the Iceberg table back to the snapshot before it, or let `hudi table repair` "
            "rebuild its metadata: a table of this format is written through Hudi only.",
            snapshot_id=foreign.snapshot_id,
        )


def tell_of_foreign(foreign: Snapshot | None, where: str) -> None:
    """Warn once of a foreign snapshot; reads go on."""
    if foreign is not None:
        _tell_of(_named(foreign), where)


@lru_cache(maxsize=256)
def _tell_of(name: str, where: str) -> None:
    _log.warning(
        "Snapshot %s of the Iceberg table at %s was not made by a Hudi writer: rows that it added "
        "are not read, and files that it removed are missing. `hudi table repair` rebuilds "
        "the metadata.",
        name,
        where,
    )


def foreign_snapshot(metadata: TableMetadata) -> Snapshot | None:
    """The newest snapshot of the lineage that no Hudi writer made."""
    for snapshot in ancestors(metadata):
        summary = summary_of(snapshot)
        if INSTANT_KEY not in summary and STATE_KEY not in summary:
            return snapshot
    return None


def _named(snapshot: Snapshot) -> str:
    operation = snapshot.summary.operation.value if snapshot.summary else "unknown"
    return f"{snapshot.snapshot_id} ({operation})"


def xtable_key(instant: Instant) -> dict[str, str]:
    """The key by which Apache XTable's readers recognise a snapshot.

    XTable reads the digits of every instant as UTC.
    """
    synced = to_datetime(instant.effective_completion_time).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    value = {
        "lastInstantSynced": synced,
        "instantsToConsiderForNextSync": [],
        "version": 0,
        "sourceTableFormat": "HUDI",
        "sourceIdentifier": str(instant.requested_time),
    }
    return {XTABLE_KEY: json.dumps(value, separators=(",", ":"))}


def record_of(instant: Instant, version: str) -> dict[str, str]:
    """Return the property that records an instant without a snapshot."""
    action = instant.action.completed_action.value
    done = instant.effective_completion_time
    return {f"{RECORD_PREFIX}{instant.requested_time}.{action}": f"{done} {version}"}


def records_up_to(metadata: TableMetadata, watermark: str) -> list[str]:
    """Return the keys of the recorded instants that a watermark covers."""
    return [
        key
        for key, value in metadata.properties.items()
        if key.startswith(RECORD_PREFIX) and value.partition(" ")[0] <= watermark
    ]


def _of_snapshot(snapshot: Snapshot) -> Publication | None:
    summary = summary_of(snapshot)
    if INSTANT_KEY not in summary or ACTION_KEY not in summary:
        return None
    return Publication.of(summary, str(snapshot.snapshot_id))


def _recorded(properties: Mapping[str, str]) -> Iterator[Publication]:
    for key, value in properties.items():
        if key.startswith(RECORD_PREFIX):
            time, _, action = key.removeprefix(RECORD_PREFIX).partition(".")
            done, _, version = value.partition(" ")
            yield Publication(
                parse_instant_time(time), Action(action), version, parse_instant_time(done)
            )
