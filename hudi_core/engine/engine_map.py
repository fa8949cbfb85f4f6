"""An engine's map over the files and folders of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hudi_core.engine.base import Engine, TaskContext
from hudi_core.model.client import Answer, Item, RunMap

T = TypeVar("T")
R = TypeVar("R")

_WORTH_A_JOB: Final = 32
"""Files and folders from which on a job of executors is worth its beginning."""


@dataclass(frozen=True, slots=True)
class EngineMap:
    """A :class:`~hudi_core.model.client.RunMap` whose work an engine does.

    What it is called with may go to another process: functions are values there, and no closures
    over what this process has open.

    ``here`` is the map of this process. Few items go to it where ``engine`` runs tasks in other
    processes, as they are not worth a job; so does work that waits for a store (not ``is_local``),
    which needs more threads than there are processors.
    """

    engine: Engine
    here: RunMap
    is_local: bool

    def __call__(
        self, function: Callable[[Item], Answer], items: Sequence[Item], /
    ) -> Iterable[Answer]:
        is_for_engine = self.is_local if self.engine.tasks_here else len(items) >= _WORTH_A_JOB
        if not is_for_engine:
            return self.here(function, items)
        return self.engine.map_tasks(items, _Each(function), 0)


@dataclass(frozen=True, slots=True)
class _Each(Generic[T, R]):
    """A function of an item, as a function of a task."""

    function: Callable[[T], R]

    def __call__(self, _: TaskContext, item: T) -> R:
        return self.function(item)
