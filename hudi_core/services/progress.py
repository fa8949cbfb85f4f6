"""Progress of long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from hudi_core.engine.base import EngineMap
from hudi_core.model.client import Answer, FileBatch, FileMap, Item, RunMap
from hudi_core.table_handle import OpenTable

Progress = Callable[[int, int], None]
"""Called with how many things are done, and of how many."""


FILES_AT_A_TIME: Final = 256
"""Items after which progress is reported: maps answer when all of theirs are done."""


def no_progress(done: int, total: int) -> None:
    """Progress that is not shown."""
    del done, total


@dataclass(frozen=True, slots=True)
class CountedMap:
    """A :class:`~hudi_core.model.client.RunMap` that reports its progress.

    ``progress`` is called after every item, for each of a batch, and each map counts from the
    beginning; ``at_a_time`` items go to the inner map in one call.
    """

    inner: RunMap
    progress: Progress
    at_a_time: int = FILES_AT_A_TIME

    @property
    def requests(self) -> CountedMap:
        """This map for functions that wait; see :class:`~hudi_core.model.client.FileMap`."""
        inner = self.inner
        return replace(self, inner=inner.requests if isinstance(inner, FileMap) else inner)

    @property
    def heavy(self) -> CountedMap:
        """The map over items that are worth a job each."""
        inner = self.inner
        return replace(self, inner=inner.heavy if isinstance(inner, FileMap) else inner)

    def __call__(
        self, function: Callable[[Item], Answer], items: Sequence[Item], /
    ) -> Iterable[Answer]:
        sizes = [len(item) if isinstance(item, FileBatch) else 1 for item in items]
        answers: list[Answer] = []
        total, done = sum(sizes), count(1)
        for start in range(0, len(items), self.at_a_time):
            for answer in self.inner(function, items[start : start + self.at_a_time]):
                for _ in range(sizes[len(answers)]):
                    self.progress(next(done), total)
                answers.append(answer)
        return answers


def counted(opened: OpenTable, progress: Progress) -> OpenTable:
    """The table as one that reports what it does with many files."""
    if progress is no_progress:
        return opened
    client, engine_map = opened.client, opened.client.engine_map
    if isinstance(engine_map, EngineMap):
        # one job for all of a step is what executors are for
        at_a_time = FILES_AT_A_TIME if engine_map.engine.tasks_here else sys.maxsize
        client = client.mapping_files(CountedMap(engine_map, progress, at_a_time))
    else:
        client = replace(client, run_map=CountedMap(client.run_map, progress))
    return replace(opened, client=client)
