"""Splits and rows by their positions, for calls that may be repeated."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

from hudi_core.errors import InvalidInstantTimeError, SchemaError
from hudi_core.model.instant_time import InstantTime, parse_instant_time

T = TypeVar("T")
_KEPT: Final = 256
_KEPT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a scan of one state, or in a split.

    ``count`` splits or rows come before it. ``state`` is a requested time, ``None`` for a table
    without one and within a split, which has its own. ``finished`` is when the last write up to it
    was complete, ``mark`` what the properties said of the files when the scan began.
    """

    count: int = 0
    state: InstantTime | None = None
    finished: str | None = None
    mark: str | None = None

    def encode(self) -> bytes:
        """What the next call brings back."""
        return json.dumps([self.count, self.state, self.finished, self.mark]).encode()

    @classmethod
    def decode(cls, text: bytes) -> Position:
        """The position of a token."""
        try:
            count, state, finished, mark = json.loads(text)
            texts = all(isinstance(one, str | None) for one in (finished, mark))
            if type(count) is not int or count < 0 or not texts:
                raise ValueError(text)
            return cls(count, None if state is None else parse_instant_time(state), finished, mark)
        except (ValueError, TypeError, InvalidInstantTimeError) as error:
            raise SchemaError(f"{text[:80]!r} is no token", "Begin the scan again.") from error


class Continued(Generic[T]):
    """Iterators that later calls go on with.

    A call that goes on where the last one ended gets its iterator; one that is repeated, or was
    answered elsewhere before, gets a new one that is brought to the position. Without it a scan in
    100 batches is planned 100 times. What no call asks for is given up after a while.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._iterators: OrderedDict[Hashable, tuple[float, Iterator[T]]] = OrderedDict()
        self._guard = Lock()

    def at(
        self, what: Hashable, position: Position, begin: Callable[[int], Iterator[T]]
    ) -> Iterator[T]:
        """An iterator at a position, which no other call has."""
        with self._guard:
            _, found = self._iterators.pop((what, position), (0, None))
        return begin(position.count) if found is None else found

    def keep(self, what: Hashable, position: Position, iterator: Iterator[T]) -> None:
        """Keep an iterator for the call that goes on at a position."""
        now = time.monotonic()
        with self._guard:
            self._iterators[what, position] = now, iterator
            oldest = next(iter(self._iterators.values()))[0]
            while len(self._iterators) > self._kept or oldest < now - _KEPT_S:
                self._iterators.popitem(last=False)
                oldest = next(iter(self._iterators.values()))[0]
