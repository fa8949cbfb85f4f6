"""What several formats of a table hold together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.file_index import FileIndex
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    Granularity,
    TimelineFactory,
)
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.fenced import fence
from hudi_core.timeline.timeline import Timeline

ClientOf = Callable[[MetaClientView, str], TableMetaClient]
"""Gives the client of a table as one of a single format."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one format holds, by its own timeline; a ``NamedInstants``."""

    timeline: TimelineView

    def holds(self, instant: Instant) -> bool:
        """Whether the format's timeline has it as completed."""
        found = self.timeline.find(instant.requested_time, instant.action)
        return found is not None and found.is_completed

    def names(self, instant: Instant) -> bool:
        """Whether the format names what the Hudi timeline has as pending."""
        seen = self.timeline
        return isinstance(seen, Timeline) and instant in seen.ahead


@dataclass(frozen=True, slots=True)
class JointTimelineFactory:
    """The timeline on which only what every format holds is completed."""

    factories: Mapping[str, TimelineFactory]
    client_of: ClientOf

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline; the Hudi timeline is read once, and first."""
        whole = meta_client.timeline()
        lineages = []
        for name, factory in self.factories.items():
            client = self.client_of(meta_client, name)
            seeing = client if not isinstance(whole, Timeline) else client.seeing(whole)
            lineages.append(_Seen(factory.active_timeline(seeing)))
        return fence(whole, lineages)


@dataclass(frozen=True, slots=True)
class UnitedListing:
    """The files of the table, by its own metadata.

    One format may be an instant ahead of another, and no longer name the files that a reader needs
    until both hold it; the table's metadata table, or the storage, has the files of both states.
    """

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the lister of the table's files."""
        return table_lister(meta_client)


@dataclass(frozen=True, slots=True)
class JointStrategy:
    """What any of several strategies takes for a conflict is one."""

    strategies: Sequence[ConflictResolutionStrategy]

    @property
    def granularity(self) -> Granularity:
        """The coarsest of all."""
        order = list(Granularity)
        return max((one.granularity for one in self.strategies), key=order.index)

    def candidates(
        self, began: TimelineView, now: TimelineView, instant: Instant
    ) -> Sequence[Instant]:
        """The instants that any of them compares with."""
        found = (one.candidates(began, now, instant) for one in self.strategies)
        return tuple(dict.fromkeys(each for those in found for each in those))

    def conflict(self, mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
        """Return the first reason that one of them has."""
        reasons = (one.conflict(mine, theirs) for one in self.strategies)
        return next((one for one in reasons if one is not None), None)
