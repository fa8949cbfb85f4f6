"""The active timeline: instant files in one folder of the table.

Layout 2 keeps them in ``.hoodie/timeline``, layout 1 (table version 6) in ``.hoodie`` among other
files. Every change of state creates a file and never replaces one, so that of two writers one
loses.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    InstantNotFoundError,
    PathNotFoundError,
    TimelineError,
)
from hudi_core.model.commit import CommitMetadata, WriteStat
from hudi_core.model.files import join_path
from hudi_core.model.instant import (
    Action,
    Instant,
    State,
    file_name_v1,
    file_name_v2,
    parse_file_name_v1,
    parse_file_name_v2,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import Storage
from hudi_core.storage.flushing import flushed_together
from hudi_core.timeline.serde import decode_commit, decode_replace_commit, decode_rollback
from hudi_core.timeline.serde.records import MAX_INSTANT_BYTES
from hudi_core.timeline.timeline import InstantKey, Timeline, instant_key

_FINISHED_BY_OTHERS: Final = frozenset({Action.ROLLBACK, Action.INDEXING})
"""What a writer that died in the midst of it leaves to the next one."""
_MOST_NOTES: Final = 1024
"""Writes of which notes are kept: more than a timeline has before it is archived."""
LAYOUT_1: Final = 1
LAYOUT_2: Final = 2
_parse_v1 = lru_cache(maxsize=32_768)(parse_file_name_v1)
_parse_v2 = lru_cache(maxsize=32_768)(parse_file_name_v2)
# every step of a write lists the same names again
_LIKE_AN_INSTANT: Final = re.compile(r"[0-9]{14,}(_[0-9]+)?\.[^/]+")
"""Names that only instants have; what does not parse as one is of a release we do not know."""
_TEMPORARY: Final = re.compile(r".+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Names of files that Hudi writes before it renames them, and may leave when it dies."""


@dataclass(frozen=True)
class TimelineListing:
    """Everything one timeline folder holds.

    ``files`` has one instant per file: up to three states of the same one. ``unknown`` are names
    that look like instants of a later release. ``late`` are those of ``files`` that complete a
    write which had been rolled back (:func:`late_writes`). ``surplus`` are completions of an action
    that was complete already: not in ``files``, unknown names, and removed by a writer.
    """

    files: tuple[Instant, ...]
    unknown: tuple[str, ...] = ()
    late: frozenset[Instant] = frozenset()
    surplus: tuple[Instant, ...] = ()

    @cached_property
    def timeline(self) -> Timeline:
        """Each instant once, in its highest state; a late write is inflight."""
        if not self.late:
            return Timeline.of(self.files, self.unknown)
        counted = (
            Instant(file.requested_time, file.action, State.INFLIGHT) if file in self.late else file
            for file in self.files
        )
        return Timeline.of(counted, self.unknown)


class ActiveTimeline:
    """Reads and writes the instant files of one timeline folder.

    ``layout_version`` is 2, or 1 for tables of version 6, whose timeline is only read. ``archived``
    gives the body of an instant that has left the folder since it was listed, ``None`` where the
    history has none.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str,
        layout_version: int = LAYOUT_2,
        archived: Callable[[Instant], bytes | None] = lambda _: None,
    ) -> None:
        if layout_version not in (LAYOUT_1, LAYOUT_2):
            raise TimelineError(
                f"Timeline layout {layout_version} is not known",
                "Use a release that knows it; this one reads layouts 1 and 2.",
                layout_version=layout_version,
            )
        self.storage = storage
        self.folder = folder
        self.layout_version = layout_version
        self._archived = archived
        self._notes: dict[Instant, CommitMetadata] = {}
        self._last_clean: tuple[Instant, bytes] | None = None
        self._scanned: tuple[Sequence[str], TimelineListing] | None = None

    # --- reading -------------------------------------------------------------------------------

    def load(self) -> Timeline:
        """Return the timeline as it is now; one listing, see :meth:`scan`."""
        return self.scan().timeline

    def scan(self) -> TimelineListing:
        """Return every instant file there is now.

        One listing, and a look into rollbacks that may name a write which landed after them.
        """
        files: list[Instant] = []
        unknown: list[str] = []
        others: list[str] = []
        names = self.storage.list_names(self.folder, others)
        # files of a timeline never change: of a metadata table, every other scan finds the same,
        # for 0.3 instead of 1 ms with 200 commits
        if self._scanned is not None and self._scanned[0] == names and not others:
            return self._scanned[1]
        for name in names:
            instant = self.parse(name)
            if instant is not None:
                files.append(instant)
            elif _LIKE_AN_INSTANT.fullmatch(name) and not _TEMPORARY.fullmatch(name):
                unknown.append(name)
        for path in others:
            if self.parse(path.rpartition("/")[2]) is not None:
                raise CorruptMetadataError(
                    f"{self.storage.root}/{path}",
                    "it has the name of an instant and is no file",
                    "Remove it. If it took the place of a completed file, restore that from a "
                    "backup of the table, or let `hudi table repair` put it back.",
                )
        second = _second_completions(files)
        unknown += map(self.file_name, second)
        surplus = tuple(one for one in second if one.action in _FINISHED_BY_OTHERS)
        files = [file for file in files if file not in surplus]
        # timelines of layout 1 are only read, and name all clusterings like other writes
        is_ours = self.layout_version == LAYOUT_2
        is_of_metadata = self.storage.root.endswith(_METADATA_TABLE)
        tried_once = _KEPT_WHOLE - {Action.DELTACOMMIT} if is_of_metadata else _KEPT_WHOLE
        late = frozenset[Instant]()
        if is_ours:
            late = late_writes(files, self._rolled_back_by, tried_once)
        found = TimelineListing(tuple(files), tuple(sorted(unknown)), late, surplus)
        self._scanned = names, found
        return found

    def parse(self, name: str) -> Instant | None:
        """The instant of a file's name; ``None`` for any other file."""
        return _parse_v2(name) if self.layout_version == LAYOUT_2 else _parse_v1(name)

    def file_name(self, instant: Instant) -> str:
        """Return the name of the file of ``instant`` in its state."""
        name = file_name_v2 if self.layout_version == LAYOUT_2 else file_name_v1
        return name(instant)

    def path(self, instant: Instant) -> str:
        """Return the path of an instant's file, below the root.

        The file is that of the instant's state.
        """
        return join_path(self.folder, self.file_name(instant))

    def read(self, instant: Instant) -> bytes:
        """Return the bytes of the file of ``instant`` in its state.

        A completed instant that another process archives meanwhile is read from the history. The
        last clean that was put here is not read again: archival and the next clean look at it, and
        an upsert of 1,000 rows with its clean makes 2 requests of a store less.
        """
        if self._last_clean is not None and self._last_clean[0] == instant:
            return self._last_clean[1]
        try:
            return self.storage.read(self.path(instant), MAX_INSTANT_BYTES)
        except PathNotFoundError as error:
            body = self._archived(instant) if instant.is_completed else None
            if body is not None:
                return body
            raise InstantNotFoundError(str(instant), self._where) from error

    def read_commit(self, instant: Instant) -> CommitMetadata:
        """Return a write's metadata in its state; a requested one's is empty.

        The metadata of a completed replacecommit is a
        :class:`~hudi_core.model.commit.ReplaceCommitMetadata`.
        """
        if instant.state is State.REQUESTED:
            return CommitMetadata()
        data, path = self.read(instant), f"{self.storage.root}/{self.path(instant)}"
        if instant.is_completed and instant.action is Action.REPLACECOMMIT:
            return decode_replace_commit(data, path)
        return decode_commit(data, path, allow_empty=not instant.is_completed)

    def read_notes(self, instant: Instant) -> CommitMetadata:
        """Operation and extra metadata of a completed write, read once.

        Its files are left out, but for one statistic of the bytes and rows of base files together,
        and those of logs that may have new keys.

        Several steps of each write look at what the last ones keep.
        """
        if instant not in self._notes:
            self.note(instant, self.read_commit(instant))
        return self._notes[instant]

    def note(self, instant: Instant, metadata: CommitMetadata) -> None:
        """Keep what :meth:`read_notes` returns of a write, from its metadata."""
        while len(self._notes) >= _MOST_NOTES:
            self._notes.pop(next(iter(self._notes)), None)
        base_files = [stat for stat in metadata.stats if not stat.log_files]
        written = sum(stat.total_write_bytes or 0 for stat in base_files)
        rows = sum(stat.num_writes or 0 for stat in base_files)
        kept = {"": (WriteStat(total_write_bytes=written, num_writes=rows),)}
        for path, stats in metadata.partition_to_write_stats.items():
            # who does not count inserts may have made some
            adding = [stat for stat in stats if stat.log_files and stat.num_inserts != 0]
            if adding:
                kept[path] = (*kept.get(path, ()), *adding)
        self._notes[instant] = CommitMetadata(
            partition_to_write_stats=kept,
            extra_metadata=metadata.extra_metadata,
            operation_type=metadata.operation_type,
        )

    def _rolled_back_by(self, rollback: Instant) -> Collection[str]:
        try:
            data = self.read(rollback)
        except InstantNotFoundError:
            return ()  # archived meanwhile
        return decode_rollback(data, self.path(rollback)).commits_rollback

    # --- changes -------------------------------------------------------------------------------

    def create_requested(self, instant: Instant, body: bytes = b"") -> Instant:
        """Create an instant's requested file, with its plan if any.

        The caller holds the table's lock since it asked the clock for the requested time; else
        another process could be handed the same time.
        """
        return self._put(instant.to(State.REQUESTED), body)

    def to_inflight(self, instant: Instant, body: bytes = b"") -> Instant:
        """Put the inflight file of ``instant``; the requested file stays."""
        return self._put(instant.to(State.INFLIGHT), body)

    def begin(self, instant: Instant, plan: bytes = b"", body: bytes = b"") -> Instant:
        """Put an instant's requested file, and its inflight file.

        They are flushed together, for nothing is written before both are there. A plan is flushed
        before it has its name, as it is read wherever it is found.
        """
        if plan:
            return self.to_inflight(self.create_requested(instant, plan), body)
        with flushed_together(self.storage) as storage:
            both = copy.copy(self)
            both.storage = storage
            return both.to_inflight(both.create_requested(instant), body)

    def complete(
        self,
        instant: Instant,
        completion_time: InstantTime,
        body: bytes,
        timeline: Timeline | None = None,
    ) -> Instant:
        """Put the completed file of ``instant``; the other files stay.

        The caller holds the table's lock since it asked the clock for ``completion_time``.

        ``timeline`` is loaded under the same hold of the lock, by default now. A completion time
        that is not after the requested time is refused, and so is an empty body;
        ``AlreadyExistsError`` may also mean an earlier completion time of the instant.
        """
        if completion_time <= instant.requested_time:
            raise TimelineError(
                f"{instant} cannot complete at {completion_time}, which is not after its request",
                "Ask the table's clock for the completion time.",
                instant=str(instant),
                completion_time=completion_time,
            )
        if not body:
            raise TimelineError(
                f"{instant} cannot complete without metadata",
                "Every action records what it did.",
                instant=str(instant),
            )
        # another completion time gives another name, which put-if-absent would let pass
        seen = self.load() if timeline is None else timeline
        found = seen.find(instant.requested_time, instant.action)
        if found is not None and found.is_completed:
            raise AlreadyExistsError(self.path(found))
        completed = self._put(instant.to(State.COMPLETED, completion_time), body)
        if completed.action is Action.CLEAN:
            self._last_clean = completed, body
        return completed

    def delete(self, instant: Instant) -> bool:
        """Delete an instant's file in its state; ``False`` without one."""
        self._require_layout_2(instant)
        return self.storage.delete(self.path(instant))

    def delete_pending(self, instant: Instant) -> None:
        """Delete the inflight and the requested file of ``instant``, in this order.

        What is left after a crash is pending still.
        """
        for state in (State.INFLIGHT, State.REQUESTED):
            self.delete(instant.to(state))

    def _put(self, instant: Instant, body: bytes) -> Instant:
        self._require_layout_2(instant)
        if len(body) > MAX_INSTANT_BYTES:
            raise CorruptMetadataError(
                self.path(instant),
                f"its {len(body)} bytes are more than readers accept",
                "Write fewer files in one commit.",
            )
        self.storage.put_if_absent(self.path(instant), body)
        return instant

    def _require_layout_2(self, instant: Instant) -> None:
        if self.layout_version == LAYOUT_1:
            raise TimelineError(
                f"{instant} cannot be written to {self._where}, which has timeline layout 1",
                "Run `hudi table upgrade PATH --to 8` (or 9) first; layout 1 is only read.",
                instant=str(instant),
            )

    @property
    def _where(self) -> str:
        return f"the timeline {self.storage.root}/{self.folder}"


def _second_completions(files: Iterable[Instant]) -> list[Instant]:
    """Return completed instants beside the one of the same instant that counts.

    That is the earliest, which readers may have seen; of an action that others finish it is the
    latest, as who finished it came after the one whose request was late.
    """
    done = [file for file in files if file.state is State.COMPLETED]
    second: list[Instant] = []
    if len({(file.requested_time, file.action.completed_action) for file in done}) == len(done):
        return second
    completed: dict[InstantKey, list[Instant]] = {}
    for file in done:
        completed.setdefault(instant_key(file), []).append(file)
    for some in completed.values():
        some.sort(key=lambda file: file.completion_time or "")
        counts = some[-1] if some[0].action in _FINISHED_BY_OTHERS else some[0]
        second += [one for one in some if one != counts]
    return second


# --- writes whose completed file landed after they had been rolled back ---------------------------
# A store may apply a put long after its writer was declared dead: the rollback is complete by then,
# and what it deleted is gone. Nothing else on the timeline shows it. A rollback follows all that
# its instant did, so a completed rollback that names a completed write has the last word (Hudi's
# writers remove the completed file of what they undo, and never complete it again).
#
# Rollbacks are read only where a write of this kind can be, which the names of files show:
#
# * its requested and inflight files are gone, as they are after a rollback; or
# * they are there yet, because the rollback was cut short at its very end. That lasts until the
#   next writer begins, so only rollbacks count after which nothing was requested. An action that is
#   completed under another name than it was requested as, such as a compaction, may be tried again
#   after its rollback and does not count. Nor does a deltacommit of a metadata table: it has the
#   time of the table's instant, and may be tried again at the same time.


RollbackTargets = Callable[[Instant], Collection[str]]
"""Reads which requested times a completed rollback names."""

_KEPT_WHOLE: Final = frozenset({Action.COMMIT, Action.REPLACECOMMIT, Action.DELTACOMMIT})
"""Writes whose requested and inflight files stay beside the completed one."""
_METADATA_TABLE: Final = "/.hoodie/metadata"
"""What the path of a metadata table ends with."""


def late_writes(
    files: Sequence[Instant],
    targets: RollbackTargets,
    tried_once: Collection[Action] = _KEPT_WHOLE,
) -> frozenset[Instant]:
    """Return the completed writes of a timeline that count for nothing.

    Writes of other actions than those of ``tried_once`` may be tried again at the same time.
    """
    rollbacks = [one for one in files if one.action is Action.ROLLBACK and one.is_completed]
    if not rollbacks:
        return frozenset()
    newest = max(file.requested_time for file in files)
    last = [one for one in rollbacks if one.effective_completion_time >= newest]
    suspected: dict[Instant, list[Instant]] = defaultdict(list)
    for write, is_left in _suspects(files, tried_once):
        for rollback in last if is_left else rollbacks:
            if rollback.requested_time > write.requested_time:
                suspected[rollback].append(write)
    return frozenset(_named(suspected.items(), targets))


def _suspects(
    files: Iterable[Instant], tried_once: Collection[Action]
) -> Iterator[tuple[Instant, bool]]:
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
        if not found or (write.action in tried_once and found == {write.action}):
            yield write, bool(found)


def _named(
    suspected: Iterable[tuple[Instant, list[Instant]]], targets: RollbackTargets
) -> Iterator[Instant]:
    for rollback, writes in suspected:
        named = targets(rollback)
        yield from (write for write in writes if write.requested_time in named)
