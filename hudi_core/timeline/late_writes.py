"""Writes whose completed file landed after they had been rolled back.

A store may apply a put long after its writer was declared dead: the rollback is complete by then,
and what it deleted is gone. Nothing else on the timeline shows it. A rollback follows all that its
instant did, so a completed rollback that names a completed write has the last word (Hudi's writers
remove the completed file of what they undo, and never complete it again).

Rollbacks are read only where a write of this kind can be, which the names of files show:

* its requested and inflight files are gone, as they are after a rollback; or
* they are there yet, because the rollback was cut short at its very end. That lasts until the next
  writer begins, so only rollbacks count after which nothing was requested. An action that is
  completed under another name than it was requested as, such as a compaction, may be tried again
  after its rollback and does not count. Nor does a deltacommit: those of a metadata table have the
  times of the table's instants, and may be tried again at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from hudi_core.model.instant import Action, Instant
from hudi_core.timeline.timeline import InstantKey, instant_key

RollbackTargets = Callable[[Instant], Collection[str]]
"""Reads which requested times a completed rollback names."""

_TRIED_ONCE: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT})
_KEPT_WHOLE: Final = _TRIED_ONCE | {Action.DELTACOMMIT}
"""Writes whose requested and inflight files stay beside the completed one."""


def late_writes(files: Sequence[Instant], targets: RollbackTargets) -> frozenset[Instant]:
    """Return the completed writes of a timeline that count for nothing."""
    rollbacks = [one for one in files if one.action is Action.ROLLBACK and one.is_completed]
    if not rollbacks:
        return frozenset()
    newest = max(file.requested_time for file in files)
    last = [one for one in rollbacks if one.effective_completion_time >= newest]
    suspected: dict[Instant, list[Instant]] = defaultdict(list)
    for write, is_left in _suspects(files):
        for rollback in last if is_left else rollbacks:
            if rollback.requested_time > write.requested_time:
                suspected[rollback].append(write)
    return frozenset(_named(suspected.items(), targets))


def _suspects(files: Iterable[Instant]) -> Iterator[tuple[Instant, bool]]:
    """Yield completed writes that may be late, with a flag.

    The flag: whether other files of the instant are left.
    """
    earlier: dict[InstantKey, set[Action]] = defaultdict(set)
    completed = []
    for file in files:
        if file.is_completed and file.action in _KEPT_WHOLE:
            completed.append(file)
        elif not file.is_completed:
            earlier[instant_key(file)].add(file.action)
    for write in completed:
        found = earlier.get(instant_key(write), set())
        if not found or (write.action in _TRIED_ONCE and found == {write.action}):
            yield write, bool(found)


def _named(
    suspected: Iterable[tuple[Instant, list[Instant]]], targets: RollbackTargets
) -> Iterator[Instant]:
    for rollback, writes in suspected:
        named = targets(rollback)
        yield from (write for write in writes if write.requested_time in named)
