"""The background load of a scan's splits.

Three steps work at the same time (RFC-40, "Background loading of Hudi splits"), each in threads of
its own, with a bounded queue behind it: one thread gets partitions, some list them, some make
splits of their files.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from hudi_core.engine.base import start_thread
from hudi_core.read.connector.listing import FileListing
from hudi_core.read.connector.partitions import PartitionInfo, PartitionSource
from hudi_core.read.connector.splits import Split, SplitFactory
from hudi_core.read.plan import PlannedSlice

_log = logging.getLogger(__name__)
_FILES_AT_A_TIME: Final = 100
"""Files that a thread makes splits of before another gets its turn."""
_MOST_AT_A_TIME: Final = 100
"""Partitions that a thread lists by one call, at most."""
_PARTITIONS_AHEAD: Final = 2
"""Greatest batches of partitions that wait for who lists them."""


class LoadState(StrEnum):
    """How far a load is."""

    LOADING = "loading"
    FINISHED = "finished"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """What a load has done so far."""

    state: LoadState
    partitions: int
    partitions_listed: int
    files: int
    splits: int


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """How much a load does at once.

    ``outstanding`` limits the splits that wait to be taken, and as much the files that wait to be
    split.
    """

    listers: int
    makers: int
    outstanding: int
    partition_batch: int


_Found = tuple[PartitionInfo, PlannedSlice]


class SplitLoad:
    """A load in the background.

    Its threads know nothing of who takes the splits.

    ``partitions`` is closed by the load once it is not needed any more.
    """

    def __init__(
        self,
        partitions: PartitionSource,
        listing: FileListing,
        factory: SplitFactory,
        limits: LoadLimits,
    ) -> None:
        self._source, self._listing, self._factory = partitions, listing, factory
        self._limits = limits
        ahead = _PARTITIONS_AHEAD * limits.partition_batch
        self._partitions = Channel[PartitionInfo](ahead, 1)
        self._files = Channel[_Found](limits.outstanding, limits.listers)
        self.splits = Channel[Split](limits.outstanding, limits.makers)
        # a load is stopped where its source is collected: perhaps by a thread that holds the lock
        self._guard = threading.RLock()
        self._state = LoadState.LOADING
        self.error: BaseException | None = None
        self._counts = dict.fromkeys(("partitions", "partitions_listed", "files", "splits"), 0)
        self._running = limits.listers + limits.makers + 1
        work = [self._find, *[self._list] * limits.listers, *[self._make] * limits.makers]
        self._threads = [
            threading.Thread(target=self._run, args=(step,), name=f"hudi-splits-{n}", daemon=True)
            for n, step in enumerate(work)
        ]

    def start(self) -> None:
        """Begin.

        Where a thread cannot be started, those that were started are ended, and ``partitions`` is
        closed, before the error is raised.
        """
        try:
            for thread in self._threads:
                start_thread(thread)
        except BaseException:
            self.stop()
            self.join()
            self._source.close()
            raise

    @property
    def progress(self) -> LoadProgress:
        """What was done so far."""
        with self._guard:
            return LoadProgress(self._state, **self._counts)

    def stop(self, state: LoadState = LoadState.CLOSED) -> None:
        """Let all threads end as soon as they can; returns at once."""
        with self._guard:
            is_over = self._state is LoadState.FINISHED and self.splits.is_drained
            if self._state is not LoadState.FAILED and not is_over:
                self._state = state
        for channel in (self._partitions, self._files, self.splits):
            channel.stop()
        self._source.interrupt()

    def join(self) -> None:
        """Wait until no thread is left."""
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    def _run(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:  # noqa: BLE001 - raised again where splits are taken
            self._fail(error)
        with self._guard:
            self._running -= 1
            if not self._running and self._state is LoadState.LOADING:
                self._state = LoadState.FINISHED

    def _fail(self, error: BaseException) -> None:
        with self._guard:
            is_first = self._state is LoadState.LOADING
            if is_first:
                self.error, self._state = error, LoadState.FAILED
        if is_first:
            self.stop(LoadState.FAILED)
        else:  # what was interrupted fails, too
            _log.debug("a scan that is over already failed: %s", error)

    def _count(self, **counts: int) -> None:
        with self._guard:
            for name, count in counts.items():
                self._counts[name] += count

    # --- the three steps -------------------------------------------------------------------------

    def _find(self) -> None:
        try:
            for batch in self._source.batches():
                self._count(partitions=len(batch))
                if not self._partitions.put(batch):
                    return
            self._partitions.finish()
        finally:
            self._source.close()

    def _list(self) -> None:
        while some := self._partitions.take(self._share()):
            owners = {info.path: info for info in some}
            listed = self._listing.list_files(list(owners))
            found = [(owners[file.partition_path], file) for file in listed]
            self._count(partitions_listed=len(some), files=len(found))
            if not self._files.put(found):
                return
        self._files.finish()

    def _share(self) -> int:
        """Number of partitions to list by one call.

        No thread is to be idle meanwhile. One alone would give too little: of a single file nothing
        is asked but its footer.
        """
        waiting = len(self._partitions) // self._limits.listers
        return min(max(2, waiting), _MOST_AT_A_TIME)

    def _make(self) -> None:
        make = self._factory.splits
        while some := self._files.take(_FILES_AT_A_TIME):
            splits = [split for info, file in some for split in make(file, info)]
            self._count(splits=len(splits))
            if not self.splits.put(splits):
                return
        self.splits.finish()


# --- a queue between threads ----------------------------------------------------------------------


Item = TypeVar("Item")


class Channel(Generic[Item]):
    """Hands items from some threads to others, in their order.

    Many items change hands at once, so that a lock costs little for each.

    A thread that would put in more than ``bound`` items waits; the end comes after the last of
    ``writers`` threads has finished.
    """

    def __init__(self, bound: int, writers: int) -> None:
        self._bound, self._writers = bound, writers
        self._items: deque[Item] = deque()
        self._is_stopped = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_drained(self) -> bool:
        """Whether no item is there, nor will be."""
        with self._changed:
            return self._ended()

    def put(self, items: Sequence[Item]) -> bool:
        """Put items in, as room comes; whether anybody still wants more."""
        given = 0
        with self._changed:
            while given < len(items) and not self._is_stopped:
                room = self._bound - len(self._items)
                if room <= 0:
                    self._changed.wait()
                    continue
                self._items.extend(items[given : given + room])
                given += room
                self._changed.notify_all()
            return not self._is_stopped

    def take(self, most: int) -> list[Item]:
        """Take at least one item; none at the end, or once stopped."""
        with self._changed:
            while not self._items and not self._ended():
                self._changed.wait()
            return self._popped(min(most, len(self._items)))

    def take_while(self, fits: Callable[[Item], bool], timeout_s: float | None) -> list[Item]:
        """Take items as long as they fit.

        The first item that does not fit stays in the channel. ``timeout_s`` limits the wait for the
        first item only; ``None`` waits without limit.
        """
        with self._changed:
            if not self._items and not self._ended():
                self._changed.wait_for(lambda: self._items or self._ended(), timeout_s)
            count = 0
            for item in self._items:
                if not fits(item):
                    break
                count += 1
            return self._popped(count)

    def finish(self) -> None:
        """One of the writers puts nothing more in."""
        with self._changed:
            self._writers -= 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Drop all items, and wake all threads that wait."""
        with self._changed:
            self._is_stopped = True
            self._items.clear()
            self._changed.notify_all()

    def _ended(self) -> bool:
        return self._is_stopped or (not self._items and self._writers <= 0)

    def _popped(self, count: int) -> list[Item]:
        found = [self._items.popleft() for _ in range(count)]
        if found:
            self._changed.notify_all()
        return found
