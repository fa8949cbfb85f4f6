"""Partitions that may differ from what a metastore has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import HistoryExpiredError
from hudi_core.model.actions import RollbackMetadata
from hudi_core.model.files import PartitionPath
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.read.window import Windows
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.active import LAYOUT_1
from hudi_core.timeline.serde import decode_rollback

LAST_TIME_KEY: Final = "last_commit_time_sync"
LAST_COMPLETION_KEY: Final = "last_commit_completion_time_sync"
_SEEN_KEY: Final = "hudi.sync.completion.time"
"""Parameter with the completion time of the last instant that a sync has seen: a rollback is later
than the write that it takes back."""
_UNDOING: Final = frozenset({Action.ROLLBACK, Action.RESTORE})
_REPLACING: Final = frozenset({Action.REPLACECOMMIT.value, Action.CLUSTERING.value})
_SEEN: Final = WRITE_ACTIONS | _UNDOING
"""What changes which files there are. A savepoint may be gone again at the next sync."""


@dataclass(frozen=True, slots=True)
class TableTimes:
    """How far a table has come.

    ``last`` and ``last_completion`` are of the last write; ``seen`` is the completion time of the
    last write, rollback or restore. All are ``None`` where there is none.
    """

    last: InstantTime | None
    last_completion: InstantTime | None
    seen: InstantTime | None

    @classmethod
    def of(cls, timeline: TimelineView) -> TableTimes:
        """The times of a timeline."""
        writes = timeline.completed_writes()
        times = [
            one.effective_completion_time
            for one in timeline.instants
            if one.is_completed and one.action in _SEEN
        ]
        completions = [one.effective_completion_time for one in writes]
        return cls(
            max((one.requested_time for one in writes), default=None),
            max(completions, default=None),
            max(times, default=None),
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of an entry that keep them.

        The first two have Hudi's names.
        """
        named = {
            LAST_TIME_KEY: self.last,
            LAST_COMPLETION_KEY: self.last_completion,
            _SEEN_KEY: self.seen,
        }
        return {key: time for key, time in named.items() if time is not None}


def is_ahead(parameters: Mapping[str, str], times: TableTimes) -> bool:
    """Whether an entry knows a later state than a timeline has."""
    seen = parameters.get(_SEEN_KEY, "")
    return times.seen is not None and seen > times.seen


@dataclass(frozen=True, slots=True)
class ChangedPartitions:
    """Partitions to compare.

    ``present`` have files, ``absent`` have none. ``is_all``: they are all of the table, and the
    metastore should have no other.
    """

    present: frozenset[PartitionPath]
    absent: frozenset[PartitionPath] = frozenset()
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """Finds changed partitions of a table.

    ``timeline`` is fenced by the table's format.
    """

    opened: OpenTable
    timeline: TimelineView

    def since(self, parameters: Mapping[str, str]) -> ChangedPartitions:
        """What changed since the sync that left some parameters.

        Everything where there was none, where the timeline does not reach back to it, or where the
        table went back to an earlier state.
        """
        begin = parameters.get(_SEEN_KEY) or parameters.get(LAST_COMPLETION_KEY)
        # the first layout of the timeline does not say when a write completed
        if not begin or self.opened.client.config.layout_version == LAYOUT_1:
            return self.all()
        oldest = min((one.requested_time for one in self.timeline.instants), default=None)
        if oldest is None or begin < oldest:
            return self.all()
        later = [
            one
            for one in self.timeline.instants
            if one.is_completed and one.effective_completion_time > begin
        ]
        archived = self.opened.client.archived.load(InstantTime(begin))
        rollbacks = list(self._rollbacks(later))
        # what a replacement took from readers, and its rollback gave back, neither names any more
        gives_back = any(
            info.action in _REPLACING for one in rollbacks for info in one.instants_rollback
        )
        if (
            gives_back
            or any(one.action is Action.RESTORE for one in later)
            or any(one.instant.action in _UNDOING for one in archived)
        ):
            return self.all()
        try:
            writes = Windows(self.opened.client, self.timeline).writes(begin, None)
        except HistoryExpiredError:
            return self.all()
        written = {group.partition_path for write in writes for group, _ in write.written()}
        doubtful = {group.partition_path for write in writes for group in write.replaced()}
        doubtful |= {PartitionPath(path) for one in rollbacks for path in one.partition_metadata}
        held = self._held(doubtful)
        return ChangedPartitions(frozenset((written - doubtful) | held), frozenset(doubtful - held))

    def all(self) -> ChangedPartitions:
        """All partitions with files."""
        return ChangedPartitions(frozenset(self._held(None)), is_all=True)

    def _rollbacks(self, instants: Collection[Instant]) -> Iterator[RollbackMetadata]:
        client = self.opened.client
        for instant in instants:
            if instant.action is Action.ROLLBACK:
                name = f"{client.active.folder} ({instant})"
                yield decode_rollback(client.read_instant(instant), name)

    def _held(self, partitions: Collection[PartitionPath] | None) -> set[PartitionPath]:
        """Those in which a reader finds files; ``None`` for all."""
        if partitions is not None and not partitions:
            return set()
        view = self.opened.views().view(self.timeline)
        asked = None if partitions is None else sorted(partitions)
        return {one.partition_path for one in view.latest_slices(asked)}
