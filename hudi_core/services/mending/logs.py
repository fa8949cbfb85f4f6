"""Compares the logs of file slices with the commits that wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from hudi_core.errors import CorruptMetadataError, DataFileError
from hudi_core.file_slice.blocks import torn_bytes
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.commit import WriteStat
from hudi_core.model.difference import Difference
from hudi_core.model.files import (
    BaseFileName,
    FileGroupId,
    FileId,
    FileSlice,
    FileStatus,
    LogFile,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.services.mending.differences import Source
from hudi_core.timeline.active import LAYOUT_1
from hudi_core.view.committed_files import CommittedFiles


@dataclass(frozen=True, slots=True)
class LogComparison:
    """The logs of present file slices, and the timeline's commits.

    ``slices`` are those that readers see, as the storage has them; ``gone`` are file groups that
    are left out.
    """

    client: TableMetaClient
    timeline: TimelineView
    committed: CommittedFiles
    slices: Sequence[FileSlice]
    gone: frozenset[FileGroupId]

    @property
    def logs(self) -> list[LogFile]:
        """The logs that are there."""
        return [log for one in self.slices for log in one.log_files]

    def compare(self) -> Iterator[Difference]:
        """Yield what names and sizes show."""
        stored = {log.status.path: log for log in self.logs}
        bases = self._bases()
        completed = {
            one.requested_time: one.effective_completion_time
            for one in self.timeline.completed_writes()
        }
        for path, stat in self.committed.logs.items():
            log = stored.get(path)
            if log is not None:
                yield from self._compare_size(log, stat)
                continue
            name, base = _parsed(path), bases.get(_group(stat))
            if name is None or _group(stat) in self.gone:
                continue
            # one that an older slice ended with may have been cleaned
            if base is None or completed.get(name.instant, name.instant) >= base:
                yield _difference(path, "stored, as its commit says", "it is not there")
        for log in stored.values():
            yield from self._compare_name(log)
        for one in self.slices:
            yield from self._compare_base(one)

    def torn(self) -> Iterator[Difference]:
        """Yield bytes of logs that are no blocks."""
        if self._appends:
            return  # of writers that died, and of which readers know
        logs = [log.status for log in self.logs]
        for found in self.client.map_files(partial(_torn, self.client.for_tasks), logs):
            yield from found

    @property
    def _appends(self) -> bool:
        """Whether several writes may have written to one log."""
        return self.client.config.layout_version == LAYOUT_1

    def _bases(self) -> dict[FileGroupId, InstantTime]:
        """The newest base file of each group, stored or lost."""
        found = {one.group: one.base_instant for one in self.slices if one.base_file is not None}
        for group, stat in self.committed.present.items():
            name = BaseFileName.parse((stat.path or "").rpartition("/")[2])
            if name is not None:
                found[group] = max(name.instant, found.get(group, name.instant))
        return found

    def _compare_size(self, log: LogFile, stat: WriteStat) -> Iterator[Difference]:
        stated, size = stat.file_size_in_bytes, log.status.size
        if stated and (size < stated or (size > stated and not self._appends)):
            expected = f"{stated} bytes, as its commit says"
            yield _difference(log.status.path, expected, f"{size} bytes")

    def _compare_name(self, log: LogFile) -> Iterator[Difference]:
        """Look for a log that its write does not name."""
        # a later write may have written it under the instant of the slice, as to buckets
        time, path = log.name.instant, log.status.path
        is_active = not self._appends and time in self.committed.written
        if is_active and path not in self.committed.logs:
            yield _difference(path, f"named by the write {time}, or later", "stored, not named")

    def _compare_base(self, one: FileSlice) -> Iterator[Difference]:
        """Look for a lost base file that only logs name."""
        if one.base_file is not None or one.group in self.committed.present:
            return
        stats = [self.committed.logs.get(log.status.path) for log in one.log_files]
        for name in sorted({stat.base_file for stat in stats if stat and stat.base_file}):
            path = join_path(one.partition_path, name)
            yield _difference(path, "stored, as the commits of its logs say", "it is not there")


def _torn(client: TableMetaClient, log: FileStatus) -> list[Difference]:
    expected = "blocks to its end"
    try:
        return [
            _difference(log.path, expected, f"{one.size} bytes from {one.offset} on are no block")
            for one in torn_bytes(client.files, log)
        ]
    except (CorruptMetadataError, DataFileError) as error:
        return [_difference(log.path, expected, error.what)]


def _parsed(path: str) -> LogFileName | None:
    """The name of a log that is merged; ``None`` for other files."""
    name = LogFileName.parse(path.rpartition("/")[2])
    return None if name is None or name.is_cdc else name


def _difference(path: str, expected: str, found: str) -> Difference:
    return Difference(Source.STORAGE, f"file {path}", expected, found)


def _group(stat: WriteStat) -> FileGroupId:
    return FileGroupId(PartitionPath(stat.partition_path or ""), FileId(stat.file_id or ""))
