"""The fence: the Hudi timeline as a table's formats see it.

An instant is complete when step 1 (the Hudi timeline) and step 2 (the format's current lineage)
have both happened (RFC-93, "Commit Protocol"). What only step 1 has reached is shown as inflight,
so that no reader, planner, cleaner or archiver takes it for complete. It keeps its completion time,
which no other inflight instant has: that is how recovery recognises a pending publication, which is
rolled forward, from a write that failed, which is rolled back.

The fence is over a list of publications: a table that is published to several formats at once is
complete when all of them hold an instant. Today the list has one element.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_core.errors import ForeignCommitError, HudiError, UnpublishedCommitsError
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.file_index import FileIndex
from hudi_core.model.files import PartitionPath
from hudi_core.model.format import PARENT_KEY, NamedInstants, Publication, PublishedInstants
from hudi_core.model.instant import WRITE_ACTIONS, Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.timeline.timeline import InstantKey, Timeline, instant_key

UNPUBLISHED_ACTIONS: Final = frozenset({Action.INDEXING})
"""Actions for which no hook is called: they change the metadata table only."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a format has read from its current lineage; a :class:`PublishedInstants`.

    Attributes
    ----------
    publications
        What the lineage holds, by requested time and the action as which the instant completed.
    completed_watermark
        Instants that completed up to this time are complete, also where the format has forgotten
        them; ``None`` when it has never forgotten any. Step 2 follows the order of completion
        times, so that nothing that completed earlier can still be on its way.
    """

    publications: Mapping[InstantKey, Publication] = field(default_factory=dict)
    completed_watermark: InstantTime | None = None

    @classmethod
    def of(
        cls, publications: Iterable[Publication], completed_watermark: InstantTime | None = None
    ) -> Lineage:
        """Return the lineage of these publications."""
        held = {(one.requested_time, one.action.completed_action): one for one in publications}
        return cls(held, completed_watermark)

    def find(self, instant: Instant) -> Publication | None:
        """Return the publication of ``instant``, or ``None`` if not in the lineage."""
        return self.publications.get(instant_key(instant))

    def holds(self, instant: Instant) -> bool:
        """Whether ``instant``, completed in step 1, is complete in the format too."""
        if self.find(instant) is not None:
            return True
        watermark = self.completed_watermark
        return watermark is not None and instant.effective_completion_time <= watermark

    def names(self, instant: Instant) -> bool:
        """Whether the lineage names ``instant``, in whatever state it is."""
        return self.find(instant) is not None

    def publication(self, instant: Instant, version: str) -> Publication | None:
        """Return the publication of ``instant``, by name or watermark.

        By its name or, where the lineage has expired it, with the ``version`` whose watermark
        covers it; ``None`` where neither does.

        The watermark covers only what step 1 has completed.
        """
        found = self.find(instant)
        is_over = instant.is_completed or instant.completion_time is not None
        if found is not None or not is_over or not self.holds(instant):
            return found
        action = instant.action.completed_action
        done = instant.completion_time
        return Publication(instant.requested_time, action, version, done, is_expired=True)


def fence(timeline: TimelineView, publications: Sequence[PublishedInstants]) -> Timeline:
    """Return the timeline in which only what every format holds is completed.

    Parameters
    ----------
    timeline
        The Hudi timeline, read *before* the lineages: an instant that completes in between is then
        seen as requested or inflight, never as complete too early.
    publications
        What each format of the table holds. Without any, step 1 alone completes an instant.
    """

    def seen(instant: Instant) -> Instant:
        if not instant.is_completed or instant.action in UNPUBLISHED_ACTIONS:
            return instant
        if all(one.holds(instant) for one in publications):
            return instant
        return replace(instant, state=State.INFLIGHT)

    whole = timeline if isinstance(timeline, Timeline) else Timeline.of(timeline.instants)
    naming = [one for one in publications if isinstance(one, NamedInstants)]
    # of several formats one may hold what another one is to get yet: step 1 has completed that
    unfinished = [one for one in whole.pending() if one.completion_time is None]
    ahead = tuple(one for one in unfinished if any(each.names(one) for each in naming))
    return replace(whole, instants=tuple(map(seen, whole.instants)), ahead=ahead)


def pending_publications(timeline: TimelineView) -> tuple[Instant, ...]:
    """Return instants that step 1 has completed and step 2 has not.

    They are as the Hudi timeline has them (completed), in the order of completion times, which is
    the order in which recovery publishes them.
    """
    found = [
        replace(instant, state=State.COMPLETED)
        for instant in timeline.instants
        if instant.state is State.INFLIGHT and instant.completion_time is not None
    ]
    return tuple(sorted(found, key=lambda instant: instant.effective_completion_time))


# --- commits of engines that do not know the table's format ---------------------------------------
# Readers see the state before them, as readers of the format do, until the next write publishes
# them. Where that engine has cleaned, files of that state are gone: neither fewer rows nor an error
# about a file would say why.


_log: Final = logging.getLogger(__name__)
_MOST: Final = 1024
_seen: Final[dict[tuple[str, str], bool]] = {}
"""Whether newest unpublished commits, by table and time, are of such an engine."""


def look_at_unpublished(
    client: TableMetaClient,
    listers: Callable[[], Iterable[FileIndex]],
    table_format: str,
    seen: TimelineView,
    unpublished: Sequence[Instant],
) -> None:
    """Warn once that the timeline is ahead of the format.

    A writer that knows the format publishes what it has completed at once, and nothing is said.

    ``seen`` is the fenced timeline, ``unpublished`` what it holds back. Files that the format names
    but that no longer exist are an :class:`UnpublishedCommitsError` instead.
    """
    writes = [one for one in unpublished if one.action in WRITE_ACTIONS]
    if not writes:
        return
    newest = writes[-1]
    key = client.base_path, newest.requested_time
    if key not in _seen:
        if len(_seen) >= _MOST:
            _seen.clear()
        _seen[key] = PARENT_KEY not in client.read_commit(newest).extra_metadata
        if _seen[key]:
            _log.warning(
                "%s: an engine that does not know the %s format completed %d commits on the Hudi "
                "timeline, the last of them %s, which the format does not hold yet. Reads show the "
                "state before them, as its own readers do. The next write publishes them; `hudi "
                "table repair %s` does so at once.",
                client.base_path,
                table_format,
                len(writes),
                newest.requested_time,
                client.base_path,
            )
    if _seen[key] and _may_be_cleaned(seen, unpublished):
        for path in _gone(client, listers()):
            raise UnpublishedCommitsError(
                client.base_path, table_format, newest.requested_time, path
            )


def _may_be_cleaned(seen: TimelineView, unpublished: Sequence[Instant]) -> bool:
    """Whether a clean came since, perhaps an archived one."""
    if any(one.action is Action.CLEAN for one in unpublished):
        return True
    return not seen.completed_writes()


def _gone(client: TableMetaClient, listers: Iterable[FileIndex]) -> Iterator[str]:
    """Yield files that formats name and the table does not have."""
    try:
        named = {one.path for lister in listers for one in lister.named_files() or ()}
    except HudiError:
        return  # who reads it says what is wrong
    partitions = sorted({PartitionPath(path.rpartition("/")[0]) for path in named})
    listed = table_lister(client).list_files(partitions)
    held = {file.path for files in listed.values() for file in files}
    yield from sorted(named - held)


# --- reads of a table whose format other writers have committed to --------------------------------


_noted: Final[set[tuple[str, str]]] = set()


def warn_of_foreign_commits(
    where: str, version: str, describe: Callable[[], ForeignCommitError]
) -> None:
    """Log once that readers of the format see other rows than Hudi.

    Parameters
    ----------
    where, version
        The format's metadata, and its present state.
    describe
        Makes the error that a write would get; called once for each state, as it may count rows.
    """
    if (where, version) in _noted:
        return
    if len(_noted) >= _MOST:
        _noted.clear()
    _noted.add((where, version))
    error = describe()
    _log.warning("%s. Reads go on with Hudi's state. %s", error.what, error.hint)
