"""What a format's hooks return, guarded as the hooks are.

Which rows a table has, and to which file a row that comes belongs, hangs on what the index of files
says: one that names too little makes rows disappear, and an upsert put them in twice. So its
answers are checked as far as that is cheap: their kind, that every partition asked for is in them,
and that one without a file has no rows by what the table itself knows.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import numpy as np
import pyarrow as pa

from hudi_core.errors import CorruptMetadataError, InstantNotFoundError
from hudi_core.extension.guard import Guard
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import MetadataLister, ValidatingLister, table_lister
from hudi_core.model.client import MetaClientView
from hudi_core.model.conflicts import TouchConflicts
from hudi_core.model.file_columns import FileColumns
from hudi_core.model.file_index import FileIndex, NamedFile
from hudi_core.model.files import FileSlice, FileStatus, PartitionPath
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    Granularity,
    MetadataFactory,
    TimelineFactory,
)
from hudi_core.model.instant import Instant
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import NamesOwner, TimelineView
from hudi_core.model.ranges import ValueRanges
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_system import FileSystemView, replaced_groups
from hudi_core.view.storage_lister import StorageLister

# --- timelines, locks and strategies --------------------------------------------------------------
# What hooks return may fail in the same ways as the hooks, and is called in the same way. A
# timeline or a strategy of the project's own passes as it is: nothing of it is the format's.


_INSTANTS: Final = "a sequence of Instant"
Check = Callable[[Guard, str, Any], Any]
"""Refuses a wrong answer of a method, and returns what its caller gets."""


def answer_of(wanted: str, *kinds: type) -> Check:
    """An answer of some kinds."""

    def check(guard: Guard, method: str, found: Any) -> Any:
        guard.require(method, found, kinds, wanted)
        return found

    return check


def _instants(guard: Guard, method: str, found: Any) -> tuple[Instant, ...]:
    guard.require(method, found, (Sequence,), _INSTANTS)
    kept = guard.call(method, lambda: tuple(found))
    for one in kept:
        guard.require(method, one, (Instant,), _INSTANTS)
    return kept


def _seconds(guard: Guard, method: str, left: Any) -> Any:
    if not isinstance(left, (int, float)) or isinstance(left, bool) or math.isnan(left):
        guard.refuse(method, left, "a number of seconds")
    return left


def _positions(guard: Guard, method: str, found: Any) -> Any:
    guard.require(method, found, (Mapping, type(None)), "positions by path, or None")
    for one in () if found is None else guard.call(method, lambda: tuple(found.values())):
        if not isinstance(one, np.ndarray) or one.dtype != np.int64:
            guard.refuse(method, one, "an array of 64-bit positions")
    return found


_BOOLEAN: Final = answer_of("a boolean", bool)


@dataclass(frozen=True, slots=True)
class Guarded:
    """An object of a format's, and the guard that calls it."""

    guard: Guard
    own: Any


# ``Any``: the protocols have the signatures


def asked(method: str, check: Check) -> Any:
    """A method that asks the format's own."""
    name = method.rpartition(".")[2]

    def ask(self: Guarded, *arguments: Any) -> Any:
        found = self.guard.call(method, lambda: getattr(self.own, name)(*arguments))
        return check(self.guard, method, found)

    return ask


def read(method: str, check: Check) -> Any:
    """A property that reads the format's own."""
    name = method.rpartition(".")[2]

    def got(self: Guarded) -> Any:
        return check(self.guard, method, self.guard.call(method, lambda: getattr(self.own, name)))

    return property(got)


class GuardedTimeline(Guarded):
    """A format's own :class:`~hudi_core.model.protocols.TimelineView`."""

    instants = read("TimelineView.instants", _instants)
    completed_writes = asked("TimelineView.completed_writes", _instants)
    is_committed = asked("TimelineView.is_committed", _BOOLEAN)
    find = asked("TimelineView.find", answer_of("Instant or None", Instant, type(None)))


class GuardedTimelineFactory(Guarded):
    """A format's :class:`~hudi_core.model.format.TimelineFactory`."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the table's timeline as the format sees it now."""
        method, factory = "TimelineFactory.active_timeline", self.own
        found = self.guard.call(method, lambda: factory.active_timeline(meta_client))
        if type(found) is Timeline:
            return found
        self.guard.require(method, found, (TimelineView,), "TimelineView")
        return GuardedTimeline(self.guard, found)


class GuardedLock(Guarded):
    """A format's :class:`~hudi_core.model.protocols.LockProvider`."""

    try_lock = asked("LockProvider.try_lock", _BOOLEAN)
    lease_left = asked("LockProvider.lease_left", _seconds)
    excludes_processes = read("LockProvider.excludes_processes", _BOOLEAN)

    def unlock(self) -> None:
        """Give the lock back, even after the table was closed."""
        replace(self.guard, lease=None).call("LockProvider.unlock", self.own.unlock)

    def owner(self) -> str | None:
        """Who holds the lock, where the format's lock says so."""
        return _owner(self) if isinstance(self.own, NamesOwner) else None


_owner: Final = asked("LockProvider.owner", answer_of("a string or None", str, type(None)))


class GuardedStrategy(Guarded):
    """A format's own :class:`~hudi_core.model.format.ConflictResolutionStrategy`."""

    granularity = read(
        "ConflictResolutionStrategy.granularity", answer_of("Granularity", Granularity)
    )
    candidates = asked("ConflictResolutionStrategy.candidates", _instants)
    conflict = asked(
        "ConflictResolutionStrategy.conflict", answer_of("a reason or None", str, type(None))
    )


def guarded_strategy(
    guard: Guard, strategy: ConflictResolutionStrategy
) -> ConflictResolutionStrategy:
    """Return a strategy, guarded where it is the format's own."""
    own = type(strategy) is TouchConflicts
    return strategy if own else GuardedStrategy(guard, strategy)


# --- indexes of files -----------------------------------------------------------------------------


T = TypeVar("T")
_log = logging.getLogger(__name__)
Files = Mapping[PartitionPath, Sequence[FileStatus]]

_OWN: Final = frozenset({StorageLister, MetadataLister, ValidatingLister})
"""The project's own, which a format may return: nothing of them is its own."""
_FILES: Final = "a mapping from partition paths to sequences of FileStatus"


class GuardedFileIndex(FileIndex):
    """A format's :class:`~hudi_core.model.file_index.FileIndex`."""

    def __init__(self, guard: Guard, index: FileIndex, empty: EmptyListings) -> None:
        self.guard, self.own, self._empty = guard, index, empty

    def list_partitions(self) -> Sequence[PartitionPath]:
        """Return every partition path."""
        method, wanted = "FileIndex.list_partitions", "a sequence of partition paths"
        found = self.guard.call(method, self.own.list_partitions)
        self.guard.require(method, found, (Sequence,), wanted)
        paths = self.guard.call(method, lambda: tuple(found))
        if isinstance(found, str) or not _are_all(paths, str):
            self.guard.refuse(method, found, wanted)
        if not paths:
            self._empty.require_partitions()
        return paths

    def list_files(self, partitions: Sequence[PartitionPath]) -> Files:
        """Return the files of each partition."""
        method = "FileIndex.list_files"

        def listed() -> object:
            found: object = self.own.list_files(partitions)
            if not isinstance(found, Mapping):
                return found
            return {path: found[path] for path in partitions if path in found}

        answer = self.guard.call(method, listed)
        self.guard.require(method, answer, (dict,), _FILES)
        found = cast("dict[PartitionPath, Sequence[FileStatus]]", answer)
        missing = [path for path in partitions if path not in found]
        if missing:
            self.guard.raise_violation(f"{method} says nothing of the partition {missing[0]!r}")
        for path, files in found.items():
            self.guard.require(method, files, (Sequence,), _FILES)
            found[path] = kept = self.guard.call(method, lambda files=files: tuple(files))  # type: ignore[misc]
            if not _are_all(kept, FileStatus):
                self.guard.raise_violation(
                    f"{method} names a file of the partition {path!r} that is no FileStatus"
                )
        empty = [path for path, files in found.items() if not files]
        if empty:
            self._empty.require_files(empty)
        return found

    def list_columns(self, partitions: Sequence[PartitionPath]) -> FileColumns:
        """The files of :meth:`list_files` as columns."""
        if type(self.own).list_columns is FileIndex.list_columns:
            return super().list_columns(partitions)
        method, wanted = "FileIndex.list_columns", list(dict.fromkeys(partitions))
        found = self.guard.call(method, lambda: self.own.list_columns(wanted))
        self.guard.require(method, found, (FileColumns,), "FileColumns")
        chosen = self.guard.call(method, lambda: found.select(wanted))
        known = self.guard.call(method, lambda: found.known(wanted).to_pylist())
        for path, is_known in zip(wanted, known, strict=True):
            if not is_known:
                self.guard.raise_violation(f"{method} says nothing of the partition {path!r}")
        with_files = set(chosen.owners.tolist())
        empty = [path for place, path in enumerate(wanted) if place not in with_files]
        if empty:
            self._empty.require_files(empty)
        return chosen

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        """Ranges of a column in partitions."""
        method, ask = "FileIndex.partition_ranges", self.own.partition_ranges
        return self._ranges(method, len(partitions), kind, lambda: ask(partitions, column, kind))

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        """Ranges of a column in files.

        Where the format has none, the table's own metadata table may. What it says of a file is so
        for every timeline; what it says of a partition is not, and is no answer here.
        """
        method, ask = "FileIndex.file_ranges", self.own.file_ranges
        found = self._ranges(method, len(files), kind, lambda: ask(files, column, kind))
        if found is not None:
            return found
        try:
            return self._beside.file_ranges(files, column, kind)
        except (CorruptMetadataError, InstantNotFoundError):
            # the format lists the files; what is damaged beside it is for validate to say
            _log.info("the metadata table gives no ranges of %s", column, exc_info=True)
            return None

    @cached_property
    def _beside(self) -> FileIndex:
        """The table's own files; opened once, by the first use."""
        return table_lister(self._empty.client)

    groups_of_values = asked(
        "FileIndex.groups_of_values", answer_of("a frozenset or None", frozenset, type(None))
    )
    deleted_positions = asked("FileIndex.deleted_positions", _positions)
    unreadable = asked("FileIndex.unreadable", answer_of("a string or None", str, type(None)))
    reads_old_lists = asked("FileIndex.reads_old_lists", answer_of("a bool", bool))

    def named_files(self) -> Iterable[NamedFile] | None:
        """The files of the newest state."""
        method, ask = "FileIndex.named_files", self.own.named_files
        found = self.guard.call(method, ask)
        wanted = "NamedFile after NamedFile, or None"
        return None if found is None else self._each(method, found, NamedFile, wanted)

    def leftovers(self) -> Iterable[str]:
        """Files of the format's metadata that nothing reaches."""
        method, ask = "FileIndex.leftovers", self.own.leftovers
        return self._each(method, self.guard.call(method, ask), str, "path after path")

    def _each(self, method: str, found: Iterable[T], kind: type[T], wanted: str) -> Iterator[T]:
        self.guard.require(method, found, (Iterable,), wanted)
        for one in self.guard.each(method, self.guard.call(method, lambda: iter(found))):
            self.guard.require(method, one, (kind,), wanted)
            yield one

    def _ranges(
        self, method: str, count: int, kind: pa.DataType, ask: Callable[[], ValueRanges | None]
    ) -> ValueRanges | None:
        found = self.guard.call(method, ask)
        self.guard.require(method, found, (ValueRanges, type(None)), "ValueRanges or None")
        if found is not None:
            wrong = self.guard.call(method, lambda: _breach(found, count, kind))
            if wrong is not None:
                self.guard.raise_violation(f"{method} returned ranges whose {wrong}")
        return found


class GuardedMetadataFactory:
    """A format's :class:`~hudi_core.model.format.MetadataFactory`."""

    def __init__(
        self, guard: Guard, factory: MetadataFactory, timelines: Callable[[], TimelineFactory]
    ) -> None:
        self._guard, self._factory, self._timelines = guard, factory, timelines

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """The table's files; one of the project's own kinds is not guarded."""
        index = self._own_index(meta_client)
        if type(index) in _OWN:
            return index
        empty = EmptyListings(self._guard, meta_client, self._own_index, self._timelines)
        return GuardedFileIndex(self._guard, index, empty)

    def _own_index(self, meta_client: MetaClientView) -> FileIndex:
        method = "MetadataFactory.create"
        index = self._guard.call(method, lambda: self._factory.create(meta_client))
        self._guard.require(method, index, (FileIndex,), "FileIndex")
        return index


def _are_all(items: Sequence[object], kind: type) -> bool:
    """Whether all items are of a kind; checked once per type."""
    return all(issubclass(one, kind) for one in set(map(type, items)))


def _breach(ranges: ValueRanges, count: int, kind: pa.DataType) -> str | None:
    """Part of the ranges that breaks the contract, if any."""
    for name in ("minimum", "maximum"):
        bounds = getattr(ranges, name)
        if not isinstance(bounds, pa.Array):
            return f"{name} is a {type(bounds).__name__}, not a pyarrow.Array"
        if bounds.type != kind:
            return f"{name} is of type {bounds.type}, not {kind}"
        if len(bounds) != count:
            return f"{name} has {len(bounds)} values, not {count}"
    for name in ("may_be_null", "may_have_value"):
        mask = getattr(ranges, name)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            return f"{name} is no array of booleans, of numpy or of Arrow"
        if len(mask) != count:
            return f"{name} has {len(mask)} values, not {count}"
    return None


# --- formats that report nothing ------------------------------------------------------------------

# Checked only where the format reports one as empty, which is right for a partition that a write is
# about to make. The table's own files are compared then: its metadata table, or its folders, and
# the commits of the fenced timeline. A file counts that a completed commit of that timeline left
# with rows, that no later one replaced, and that the format does not name in a second listing; so
# that neither a writer that is at work, nor a list that is older than the timeline, is taken for a
# mistake of the format.


@dataclass(frozen=True, slots=True)
class EmptyListings:
    """Looks at empty answers of one lister.

    ``new_lister`` makes a lister that has nothing cached; ``timelines`` gives the timeline as the
    format sees it.
    """

    guard: Guard
    client: MetaClientView
    new_lister: Callable[[MetaClientView], FileIndex]
    timelines: Callable[[], TimelineFactory]

    def require_partitions(self) -> None:
        """Refuse an empty list of partitions where one has rows."""
        self._refuse(None)

    def require_files(self, partitions: Sequence[PartitionPath]) -> None:
        """Refuse that partitions have no files, where one of them has rows."""
        self._refuse(partitions)

    def _refuse(self, partitions: Sequence[PartitionPath] | None) -> None:
        if not isinstance(self.client, TableMetaClient):
            return
        # as it is now: what was read before may be older than the answer, or newer
        client = replace(self.client, seen=None)
        try:
            paths, timeline = self._with_files(client, partitions)
            live = _with_rows(client, paths, timeline) if timeline is not None else None
        except CorruptMetadataError:
            return  # what cannot be asked says nothing; who needs it gets an error
        if live is None or timeline is None or live.base_file is None:
            return
        where, again = live.partition_path, self.new_lister(client)
        method = "FileIndex.list_files"
        if partitions is None:
            method = "FileIndex.list_partitions"
            is_empty = not self.guard.call(method, again.list_partitions)
        else:
            files = self.guard.call(method, lambda: again.list_files([where])).get(where)
            # a lister may have both ways to say it
            columns = self.guard.call(method, lambda: again.list_columns([where]))
            is_empty = not files or not len(columns)
        if is_empty and self._timeline(client).completed_writes() == timeline.completed_writes():
            self.guard.raise_violation(
                f"{method} names no file of the partition {where!r}, in which "
                f"{live.base_file.path} has rows"
            )

    def _with_files(
        self, client: TableMetaClient, partitions: Sequence[PartitionPath] | None
    ) -> tuple[Sequence[PartitionPath], TimelineView | None]:
        """Partitions in which the table knows files, and the timeline.

        The timeline only if there are such.
        """
        own = table_lister(client)
        listed = own.list_files(own.list_partitions() if partitions is None else partitions)
        paths = [path for path, files in listed.items() if files]
        return paths, self._timeline(client) if paths else None

    def _timeline(self, client: TableMetaClient) -> TimelineView:
        return self.timelines().active_timeline(client)


def _with_rows(
    client: TableMetaClient, partitions: Sequence[PartitionPath], timeline: TimelineView
) -> FileSlice | None:
    """A file slice whose commit wrote rows, or ``None``."""
    view = FileSystemView(
        table_lister(client), timeline, replaced_groups(timeline, client.read_commit)
    )
    writes = {one.requested_time: one for one in timeline.completed_writes()}
    with_rows: dict[InstantTime, set[str | None]] = {}
    for found in view.latest_slices(partitions):
        time = found.base_instant
        if time not in writes or found.base_file is None:
            continue  # its commit is archived
        if time not in with_rows:
            stats = client.read_commit(writes[time]).stats
            with_rows[time] = {one.path for one in stats if one.num_writes}
        if found.base_file.path in with_rows[time]:
            return found
    return None
