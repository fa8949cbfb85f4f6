"""The base of conflict strategies that other distributions provide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from hudi_core.model.commit import CommitMetadata
from hudi_core.model.conflicts import others_since
from hudi_core.model.format import Granularity
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import TimelineView


class BaseConflictStrategy(ABC):
    """Refuses writes beside those that change one file group.

    Two writes of one file group conflict in every table: a strategy adds to that. A new one is made
    for every commit, without arguments, and asked under the table's lock. A
    :class:`~hudi_core.model.format.ConflictResolutionStrategy`.
    """

    @property
    def granularity(self) -> Granularity:
        """What the answers are about, for errors."""
        return Granularity.TABLE

    def candidates(
        self, began: TimelineView, now: TimelineView, instant: Instant
    ) -> Sequence[Instant]:
        """Return the instants that ``instant`` must be compared with.

        By default these are the writes that were completed meanwhile.

        Parameters
        ----------
        began, now
            The timeline when the write began, and now, under the lock.
        instant
            The write about to be completed.
        """
        return others_since(began, now, instant)

    @abstractmethod
    def conflict(self, mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
        """Why both cannot be kept, after "because"; ``None`` when both can.

        The answer has to be the same the other way round: which of two writes comes later is
        chance.

        Parameters
        ----------
        mine
            What is about to be committed.
        theirs
            What one of the candidates committed.
        """
