"""States of instants: on the timeline, in the format, to readers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hudi_core.model.client import HeldMetadata
from hudi_core.model.instant import Instant, State
from hudi_core.plugin.fenced import UNPUBLISHED_ACTIONS
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.archived import with_history
from hudi_core.timeline.timeline import instant_key
from hudi_core.txn.publication import is_two_step
from hudi_core.txn.roll_forward import can_record


class FormatState(StrEnum):
    """Whether a format holds an instant."""

    PUBLISHED = "published"
    """One of its versions names it."""
    EXPIRED = "expired"
    """It has forgotten that version; a watermark says that the instant is complete."""
    ABSENT = "absent"
    """It does not hold it."""


@dataclass(frozen=True, slots=True)
class InstantStates:
    """One instant, as each part of a table has it.

    ``instant`` is as the Hudi timeline has it, archived or active; ``seen`` as readers, planners
    and services of the table see it. ``in_format`` is ``None`` where nothing is published to a
    format: in a table of the native format, and for actions that change the metadata table alone.
    ``version`` is the format's own id of the state that brought it; ``None`` where it has none, or
    no more.

    ``explanation`` is one sentence where Hudi timeline and format disagree: what the instant is,
    what readers see, and who repairs it.
    """

    instant: Instant
    is_archived: bool
    seen: Instant
    in_format: FormatState | None = None
    version: str | None = None
    explanation: str | None = None


def timeline_states(table: OpenTable, *, archived: bool = False) -> tuple[InstantStates, ...]:
    """A table's instants in each of their states, by requested time.

    The format's metadata is read once, after the Hudi timeline.

    Archived instants are fenced like the active ones.
    """
    timeline = table.client.timeline()
    active = set(map(instant_key, timeline.instants))
    if archived:
        # guard reads-timeline-first
        timeline = with_history(timeline, table.client.archived.load())
    if not is_two_step(table):
        return tuple(
            InstantStates(one, instant_key(one) not in active, one) for one in timeline.instants
        )
    table = table.seeing(timeline).holding(HeldMetadata())
    fenced = table.fenced()
    seen = {instant_key(one): one for one in fenced.instants}
    lost = set(map(instant_key, table.lost_completions(fenced)))
    return tuple(
        _states(table, one, seen[key], is_archived=key not in active, is_lost=key in lost)
        for one in timeline.instants
        for key in (instant_key(one),)
    )


def _states(
    table: OpenTable, instant: Instant, seen: Instant, *, is_archived: bool, is_lost: bool
) -> InstantStates:
    if instant.action in UNPUBLISHED_ACTIONS:
        return InstantStates(instant, is_archived, seen)
    found = table.host.find_publication(table.client, instant)
    if found is None:
        in_format, version = FormatState.ABSENT, None
    elif found.is_expired:
        in_format, version = FormatState.EXPIRED, None
    else:
        in_format, version = FormatState.PUBLISHED, found.version
    explanation = None
    if is_lost:
        explanation = _lost(table, instant)
    elif instant.is_completed and seen.state is State.INFLIGHT:
        explanation = _pending_publication(table, instant)
    return InstantStates(instant, is_archived, seen, in_format, version, explanation)


def _pending_publication(table: OpenTable, instant: Instant) -> str:
    name = table.host.lacking(table.client, instant)
    repair = "the next write or table service of any writer publishes it, or takes it back where it"
    repair = f"{repair} conflicts with a later commit"
    if not can_record(table.host, instant):
        repair = f"`hudi table repair {table.client.base_path}` rebuilds the {name} metadata"
    return (
        f"{instant.requested_time} ({instant.action}) is pending publication: complete on the Hudi "
        f"timeline but not in the {name} metadata yet, so that readers see the table without it "
        f"(those that know only Hudi with it) until {repair}."
    )


def _lost(table: OpenTable, instant: Instant) -> str:
    return (
        f"{instant.requested_time} ({instant.action}) is complete in the {table.host.name} "
        "metadata, but its completed file on the Hudi timeline is lost, so that readers of this "
        f"library are refused until `hudi table repair {table.client.base_path}` puts it back."
    )
