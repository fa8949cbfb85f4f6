"""The toy format, by an author who makes every mistake that a test asks for.

What its objects are asked passes :func:`answer`, where a test may put another answer, or an error,
in the place of the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from hudi_core.spi import CommitMetadata as Commit
from hudi_core.spi import (
    FileColumns,
    FileIndex,
    FileStatus,
    FormatCommit,
    FormatOption,
    Granularity,
    InProcessLock,
    Instant,
    MetaClientView,
    NamedFile,
    PartitionPath,
    TimelineView,
    ValueRanges,
)
from hudi_core.spi.files import Positions
from tests.formats.toy_format import ToyFactory, ToyFormat, head

T = TypeVar("T")

FAULTS: dict[str, Callable[[Callable[[], Any]], Any]] = {}
"""By what is asked: makes the answer from what makes the right one."""


def answer(asked: str, right: Callable[[], T]) -> T:
    found: T = FAULTS[asked](right) if asked in FAULTS else right()
    return found


class Lister(FileIndex):
    """Lists what the newest version names, and nothing of before."""

    def __init__(self, client: MetaClientView) -> None:
        self.client = client

    @property
    def files(self) -> dict[PartitionPath, list[FileStatus]]:
        found: dict[PartitionPath, list[FileStatus]] = {}
        for path in head(self.client).files:
            status = self.client.storage.head(path)
            assert status is not None
            found.setdefault(PartitionPath(path.rpartition("/")[0]), []).append(status)
        return found

    def list_partitions(self) -> Sequence[PartitionPath]:
        return answer("list_partitions", lambda: sorted(self.files))

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        def listed() -> Mapping[PartitionPath, Sequence[FileStatus]]:
            found = self.files
            return {path: found.get(path, []) for path in partitions}

        return answer("list_files", listed)


class RicherLister(Lister):
    """Knows ranges too, what the format names, and what is left over."""

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        return answer("partition_ranges", lambda: None)

    def file_ranges(self, files: FileColumns, column: str, kind: pa.DataType) -> ValueRanges | None:
        unknown = ValueRanges.unknown(kind, len(files))
        return answer("file_ranges", lambda: unknown)

    def named_files(self) -> Iterator[NamedFile]:
        for files in self.files.values():
            for one in files:
                named = NamedFile(one.path, one.size)
                yield answer("named_files", partial(replace, named))

    def deleted_positions(self, paths: Sequence[str]) -> Mapping[str, Positions]:
        return answer("deleted_positions", lambda: dict.fromkeys(paths, np.array([0, 7], np.int64)))

    def leftovers(self) -> Iterator[str]:
        yield answer("leftovers", lambda: "old.json")


class Lock:
    """A lock between threads."""

    def __init__(self, client: MetaClientView) -> None:
        self.lock = InProcessLock(f"{client.base_path}/wrong")

    def try_lock(self, timeout_s: float) -> bool:
        return answer("try_lock", lambda: self.lock.try_lock(timeout_s))

    def unlock(self) -> None:
        answer("unlock", self.lock.unlock)

    def lease_left(self) -> float:
        return answer("lease_left", self.lock.lease_left)

    @property
    def excludes_processes(self) -> bool:
        return answer("excludes_processes", lambda: True)


class Strategy:
    """Compares with every write, and sees no conflict."""

    @property
    def granularity(self) -> Granularity:
        return answer("granularity", lambda: Granularity.TABLE)

    def candidates(
        self, began: TimelineView, now: TimelineView, instant: Instant
    ) -> Sequence[Instant]:
        return answer("candidates", now.completed_writes)

    def conflict(self, mine: Commit, theirs: Commit) -> str | None:
        return answer("conflict", lambda: None)


class OwnTimeline:
    """A timeline that is none of the project's."""

    def __init__(self, timeline: TimelineView) -> None:
        self.timeline = timeline

    @property
    def instants(self) -> tuple[Instant, ...]:
        return answer("instants", lambda: self.timeline.instants)

    def completed_writes(self) -> tuple[Instant, ...]:
        return answer("completed_writes", self.timeline.completed_writes)

    def is_committed(self, time: Any) -> bool:
        return answer("is_committed", lambda: self.timeline.is_committed(time))

    def find(self, time: Any, action: Any = None) -> Instant | None:
        return answer("find", lambda: self.timeline.find(time, action))


class Factory(ToyFactory):
    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        right = super().active_timeline
        return answer("active_timeline", lambda: OwnTimeline(right(meta_client)))

    def create(self, meta_client: MetaClientView) -> FileIndex:
        return answer("create", lambda: RicherLister(meta_client))


class WrongFormat(ToyFormat):
    """The hooks."""

    def get_options(self) -> Sequence[FormatOption[Any]]:
        declared = (
            FormatOption("pace", "slow", str, "How fast.", ("slow", "fast"), is_stored=True),
            FormatOption("tries", 3, int, "How often."),
            FormatOption("engine.", None, str, "Options of the engine."),
            FormatOption("engine.kind", None, str, "Which engine."),
        )
        return answer("get_options", lambda: declared)

    def check_creation(self, meta_client: MetaClientView) -> None:
        answer("check_creation", lambda: None)

    def create(self, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        right = super().create
        return answer("create_table", lambda: right(meta_client))

    def get_timeline_factory(self) -> ToyFactory:
        return Factory()

    def get_metadata_factory(self) -> ToyFactory:
        return Factory()

    def get_lock_provider(self, meta_client: MetaClientView, **_: Any) -> Lock:
        return Lock(meta_client)

    def get_conflict_resolution_strategy(self, **_: Any) -> Strategy:
        return Strategy()

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: Commit,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        right = super().complete_write
        return answer(
            "complete_write", lambda: right(meta_client, commit_metadata, instant, expected_version)
        )
