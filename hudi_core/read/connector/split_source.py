"""The splits of a scan, in batches, while they are found."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from hudi_core.errors import InvalidOptionError, ScanClosedError
from hudi_core.read.connector.loader import LoadProgress, LoadState, SplitLoad
from hudi_core.read.connector.splits import Split

QUOTA: Final = 100
"""Weight of a batch, as Trino asks for it."""
_LINGER_S: Final = 0.02
"""Seconds that a batch which is not full waits for more splits: those of few partitions come one
after the other, and a batch for each would cost more than it brings."""
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class SplitBatch:
    """Some splits of a scan.

    ``splits`` may be empty in the last batch.
    """

    splits: tuple[Split, ...]
    is_last: bool


class SplitSource:
    """The splits of one scan; several threads may take them.

    They are loaded in the background from the beginning, whether anybody asks for them or not, as
    far as the queue has room. It is to be closed, as a context or by :meth:`close`; one that is
    given up ends its threads when it is collected.

    ``load`` has not been started yet: the source starts it. ``per_second`` limits the splits handed
    out; ``linger_s`` is how long a batch that is not full waits for more.
    """

    def __init__(
        self, load: SplitLoad, table: str, per_second: int, linger_s: float = _LINGER_S
    ) -> None:
        self._load, self._table = load, table
        self._per_second, self._linger_s = per_second, linger_s
        self._next = time.monotonic()
        self._turn = threading.Lock()
        self._is_taken = False
        # the threads refer to the load alone; nothing may wait for them where it is collected
        self._finalizer = weakref.finalize(self, load.stop)
        load.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Split]:
        """Yield all splits that are left."""
        is_last = False
        while not is_last:
            batch = self.get_next_batch()
            yield from batch.splits
            is_last = batch.is_last

    @property
    def progress(self) -> LoadProgress:
        """What was loaded so far."""
        return self._load.progress

    def get_next_batch(self, quota: int = QUOTA) -> SplitBatch:
        """The next splits, whose weights are the quota together, or less.

        Waits for the first. A split that weighs more than the quota comes alone.

        ``quota`` counts large splits; of smaller ones a batch has more. An error of the background
        is raised by each call, and ``ScanClosedError`` where splits were left when the source was
        closed.
        """
        if quota < 1:
            raise InvalidOptionError("quota", quota, "it is less than 1", "Give 100, or so.")
        with self._turn:
            if self._is_taken:
                return SplitBatch((), is_last=True)
            return self._batch(quota)

    def close(self) -> None:
        """Stop loading at once, and wait until no thread is left."""
        self._finalizer.detach()
        if self._is_taken:  # its threads have nothing left but to end
            self._load.join()
        self._load.stop()
        self._load.join()

    def _batch(self, quota: int) -> SplitBatch:
        room = _Room(quota, self._per_second)
        while (left := self._next - time.monotonic()) > 0 and not self._load.splits.is_drained:
            time.sleep(min(left, 0.05))
        splits = self._load.splits.take_while(room.takes, None)
        until = time.monotonic() + self._linger_s
        while not room.is_full and (left := until - time.monotonic()) > 0:
            more = self._load.splits.take_while(room.takes, left)
            if not more and self._load.splits.is_drained:
                break
            splits += more
        self._next = time.monotonic() + len(splits) / self._per_second
        is_last = self._load.splits.is_drained
        if self._load.error is not None:
            raise self._load.error
        # looked at after the queue, which is drained by a close, too
        if self._load.progress.state is LoadState.CLOSED:
            raise ScanClosedError(self._table)
        self._is_taken = is_last
        return SplitBatch(tuple(splits), is_last)


class _Room:
    """What a batch can still take."""

    def __init__(self, quota: int, most: int) -> None:
        self._left, self._most = float(quota), most
        self._count = 0
        self.is_full = False

    def takes(self, split: Split) -> bool:
        """Whether a split goes into the batch; then it is in it."""
        fits = split.weight <= self._left + _ROUNDING and self._count < self._most
        if not fits and self._count:
            self.is_full = True
            return False
        self._left -= split.weight
        self._count += 1
        self.is_full = self._left < _ROUNDING
        return True
