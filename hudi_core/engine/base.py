"""The engine: two ways to run a function in parallel, accepted input.

A function that an engine runs is importable, takes frozen values and Arrow batches, and returns
frozen values; it may run in another process, more than once, and at the same time as another
attempt at itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa

from hudi_core.engine.arrangement import Arrangement
from hudi_core.errors import ResourceLimitError
from hudi_core.model.client import Answer, Item, RunMap

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Which attempt at which task this is.

    ``task`` is the same for every attempt; ``stage`` counts within the write; no other attempt at
    this task of this write has the same ``attempt``.
    """

    task: int
    stage: int
    attempt: int


InputFunction = Callable[[TaskContext, Iterator[pa.RecordBatch]], Iterator[R]]
TaskFunction = Callable[[TaskContext, T], R]


class Engine(Protocol):
    """Runs the project's functions over rows and over tasks."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``."""
        ...

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time."""
        ...

    @property
    def tasks_here(self) -> bool:
        """Whether :meth:`map_tasks` runs on threads of this process."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether later tasks may use Arrow data that a task returns."""
        ...

    def take(self, data: Any, columns: Callable[[], pa.Schema] | None = None) -> Any:
        """Return the rows in a form the other methods need not reread.

        Every write calls it once: what can be read just once must not be read for its schema and
        then for its rows. Rows of which some lack a column that others have say so: see
        :mod:`hudi_core.schema.absence`.

        ``columns`` is asked where the rows alone do not say which of their values are maps.
        """
        ...

    def schema_of(self, data: Any) -> pa.Schema:
        """Return the Arrow schema of the rows, without reading them."""
        ...

    def source_files(self, data: Any) -> list[str]:
        """Return the files the rows are read from, where known."""
        ...

    def arrange(self, data: Any, arrangement: Arrangement) -> Any:
        """Return the rows, for :meth:`map_input`, redistributed over tasks."""
        ...

    def map_input(self, data: Any, function: InputFunction[R], stage: int) -> list[R]:
        """Run ``function`` over every split of the rows.

        Each row is passed once per successful task.

        Results are in the order of the tasks.
        """
        ...

    def map_tasks(
        self,
        tasks: Sequence[T],
        function: TaskFunction[T, R],
        stage: int,
        weights: Sequence[int] | None = None,
    ) -> list[R]:
        """Run ``function`` once per task; results are in task order."""
        ...


def heaviest_first(count: int, weights: Sequence[int] | None) -> list[int]:
    """Return the task numbers, the heaviest first.

    In this order the longest tail is shortest.
    """
    if weights is None:
        return list(range(count))
    return sorted(range(count), key=lambda task: -weights[task])


def bins(count: int, weights: Sequence[int] | None, number: int) -> list[list[int]]:
    """Spread tasks evenly by weight over at most ``number`` bins.

    Longest processing time first: each task, the heaviest first, goes to the lightest bin.
    """
    loads = [0] * max(1, min(number, count))
    spread: list[list[int]] = [[] for _ in loads]
    for task in heaviest_first(count, weights):
        lightest = loads.index(min(loads))
        spread[lightest].append(task)
        loads[lightest] += (weights[task] if weights else 1) + 1
    return spread


# --- threads of this process, and the error where none is left ------------------------------------


_NO_MORE: Final = "can't start new thread"
"""What CPython says where the system refuses a thread; there is no class for it."""


@contextmanager
def thread_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads, ended with the block."""
    with translated(), ThreadPoolExecutor(workers) as pool:
        yield pool


def start_thread(thread: threading.Thread) -> None:
    """Start a thread."""
    with translated():
        thread.start()


@contextmanager
def translated() -> Iterator[None]:
    """Raise the error of this project where the system refuses a thread."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _NO_MORE:
            raise
        raise ResourceLimitError(
            "This process cannot start another thread",
            "Raise its limits (memory: ulimit -v, threads: ulimit -u), or end other threads of it; "
            "then do the same again.",
        ) from error


# --- an engine's map over the files and folders of a table ----------------------------------------


_WORTH_A_JOB: Final = 32
"""Files and folders from which on a job of executors is worth its beginning."""
_TASKS_PER_SLOT: Final = 2
REQUESTS_AT_A_TIME: Final = 16
"""As many as stores answer at once without asking to slow down."""


@dataclass(frozen=True, slots=True)
class EngineMap:
    """A :class:`~hudi_core.model.client.FileMap` whose work an engine does.

    What it is called with may go to another process: functions are values there, and no closures
    over what this process has open. ``check`` refuses a machine that does not have the table.

    ``here`` is the map of this process. Few items go to it where ``engine`` runs tasks in other
    processes, as they are not worth a job; so does work that waits for a store (not ``is_local``),
    which needs more threads than there are processors. For the same reason a task in another
    process does ``at_a_time`` items in threads. ``least`` is how many items are worth a job.
    """

    engine: Engine
    here: RunMap
    is_local: bool
    check: Callable[[], None]
    at_a_time: int = 1
    least: int = _WORTH_A_JOB

    @property
    def requests(self) -> EngineMap:
        """This map for functions that wait."""
        return replace(self, at_a_time=REQUESTS_AT_A_TIME)

    @property
    def heavy(self) -> EngineMap:
        """The map over items that are worth a job each."""
        return replace(self, least=1)

    def __call__(
        self, function: Callable[[Item], Answer], items: Sequence[Item], /
    ) -> Iterable[Answer]:
        is_here = self.engine.tasks_here
        is_for_engine = self.is_local if is_here else len(items) >= self.least
        if not is_for_engine:
            return self.here(function, items)
        each = _Each(function, _unchecked if is_here else self.check)
        if is_here or self.at_a_time == 1:
            return self.engine.map_tasks(items, each, 0)
        count = min(len(items), _TASKS_PER_SLOT * self.engine.parallelism)
        parts = [items[number::count] for number in range(count)]
        done = self.engine.map_tasks(parts, _Together(each, self.at_a_time), 0)
        return [done[number % count][number // count] for number in range(len(items))]


def _unchecked() -> None:
    """Take the table to be where its driver is."""


@dataclass(frozen=True, slots=True)
class _Each(Generic[T, R]):
    """A function of an item, as a function of a task."""

    function: Callable[[T], R]
    check: Callable[[], None]

    def __call__(self, _: TaskContext, item: T) -> R:
        self.check()
        return self.function(item)


@dataclass(frozen=True, slots=True)
class _Together(Generic[T, R]):
    """A function of an item, for a task that has several."""

    each: _Each[T, R]
    at_a_time: int

    def __call__(self, task: TaskContext, items: Sequence[T]) -> list[R]:
        with thread_pool(min(self.at_a_time, len(items))) as pool:
            return list(pool.map(partial(self.each, task), items))
