"""A bounded queue between the threads of a scan, with an end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

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
