"""Which instants the current lineage of an Iceberg table holds.

An action that changes files or columns is a snapshot whose summary names it; any other is a
property of the table. Only the ancestors of the current snapshot count: what was rolled back may
still be listed elsewhere. Before snapshots are expired, a watermark takes their place; where
another engine has expired them, the oldest that is left shows them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from hudi_core.spi import (
    ACTION_KEY,
    COMPLETION_TIME_KEY,
    INSTANT_KEY,
    TAKES_IN_KEY,
    WATERMARK_KEY,
    Action,
    Instant,
    Lineage,
    Publication,
    parse_instant_time,
    to_datetime,
)

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
    before the oldest that is left was in it, whatever expired them: only Hudi's writers note it.
    Some who expire a snapshot leave its child without a parent, as if it were the first.
    """
    noted = metadata.properties.get(WATERMARK_KEY, "")
    oldest = next(iter(deque(filter(is_of_hudi, ancestors(metadata)), maxlen=1)), None)
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

    A clean expires the snapshots between such a state and those that readers still need. Snapshots
    of others are left out.
    """
    line = list(filter(is_of_hudi, ancestors(metadata)))
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


@dataclass(frozen=True, slots=True)
class ForeignSnapshots:
    """Snapshots that no Hudi writer made.

    ``snapshots`` are of the current lineage, the newest first, without those that Hudi has taken
    in. ``hudi`` is the newest that holds nothing of theirs; ``None`` where there is none.
    """

    snapshots: tuple[Snapshot, ...]
    hudi: Snapshot | None


def is_of_hudi(snapshot: Snapshot) -> bool:
    """Whether a Hudi writer made a snapshot."""
    summary = summary_of(snapshot)
    return INSTANT_KEY in summary or STATE_KEY in summary


def foreign_snapshots(metadata: TableMetadata) -> ForeignSnapshots | None:
    """The snapshots of others in the lineage; ``None`` where all is Hudi's.

    A snapshot of ours is made on one of ours only, or on those that it takes in, so that the newest
    answers for all. A table that a Hudi writer made has a snapshot from the beginning.
    """
    found: list[Snapshot] = []
    hudi: Snapshot | None = None
    taken: Snapshot | None = None
    for snapshot in ancestors(metadata):
        if snapshot == taken:
            break
        if is_of_hudi(snapshot):
            hudi = hudi or snapshot
            # others may have come between what was looked at and the snapshot
            known = summary_of(snapshot).get(TAKES_IN_KEY)
            taken = next((one for one in metadata.snapshots if str(one.snapshot_id) == known), None)
            if taken is None:
                break
        else:
            found.append(snapshot)
            hudi = hudi and taken
    return ForeignSnapshots(tuple(found), hudi) if found or hudi is None else None


def newest_of_hudi(metadata: TableMetadata) -> Snapshot | None:
    """The newest snapshot of the lineage that a Hudi writer made."""
    return next(filter(is_of_hudi, ancestors(metadata)), None)


def foreign_behind(metadata: TableMetadata, kept: Snapshot) -> list[Snapshot]:
    """The snapshots of others that a snapshot descends from."""
    return [one for one in _back_from(kept, metadata) if not is_of_hudi(one)]


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
