"""What a write gives back to its caller."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hudi_core.model.commit import CommitMetadata, WriteOperation, WriteStatus
from hudi_core.model.extra_metadata import DELETED_ROWS_KEY
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import Instant

_COUNT: Final = re.compile("[0-9]{1,18}")


class RowCounts(NamedTuple):
    """The rows that a write inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int

    @classmethod
    def of(cls, metadata: CommitMetadata) -> RowCounts:
        """The sums over the files of a commit."""
        stats = metadata.stats
        unwritten = metadata.extra_metadata.get(DELETED_ROWS_KEY, "")
        return cls(
            sum(stat.num_inserts or 0 for stat in stats),
            sum(stat.num_update_writes or 0 for stat in stats),
            sum(stat.num_deletes or 0 for stat in stats)
            + (int(unwritten) if _COUNT.fullmatch(unwritten) else 0),
        )


@dataclass(frozen=True, slots=True)
class ProposedCommit:
    """What a write is about to commit.

    Attributes
    ----------
    operation
        As commits record it, such as ``UPSERT``.
    inserted, updated, deleted
        See :class:`CommitResult`.
    files, bytes_written
        Data files written, and their bytes.
    metadata
        The commit metadata.
    """

    operation: str
    inserted: int
    updated: int
    deleted: int
    files: int
    bytes_written: int
    metadata: CommitMetadata = field(repr=False)

    @classmethod
    def of(cls, metadata: CommitMetadata) -> ProposedCommit:
        """The sums over the files of a commit."""
        stats = metadata.stats
        written = sum(stat.total_write_bytes or 0 for stat in stats)
        operation = metadata.operation_type or ""
        return cls(operation, *RowCounts.of(metadata), len(stats), written, metadata)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A completed write.

    Attributes
    ----------
    instant
        The completed instant on the timeline.
    operation
        The requested operation.
    inserted, updated, deleted
        Rows that the table gained, replaced and lost: it has ``inserted - deleted`` rows more than
        before, but for those of partitions that were overwritten. Late rows, which lost
        against a stored row, count nowhere. Where a file held several rows with one key, as inserts
        can leave them, a row of that key updates, or deletes, each of them.
    files, bytes_written
        Data files written, and their bytes.
    timings
        Seconds by step: ``stage``, ``tag``, ``write``, ``commit``, ``total``.
    receipt
        What the table's format recorded.
    metadata
        The commit metadata.
    statuses
        What the handles reported, file by file, with the statistics of every column.
    is_repetition
        Whether nothing was written, because by ``idempotency`` this write, or a later one of
        its application, took place before. The rest is what the commit of that write keeps: no
        timings and no statuses.
    """

    instant: Instant
    operation: WriteOperation
    inserted: int
    updated: int
    deleted: int
    files: int
    bytes_written: int
    timings: Mapping[str, float]
    receipt: FormatCommit
    metadata: CommitMetadata = field(repr=False)
    statuses: tuple[WriteStatus, ...] = field(default=(), repr=False)
    is_repetition: bool = False

    @property
    def replaced(self) -> int:
        """Number of file groups replaced, with all their rows."""
        by_partition = getattr(self.metadata, "partition_to_replace_file_ids", {})
        return sum(map(len, by_partition.values()))

    @property
    def action(self) -> str:
        """The instant's action, as in its file name."""
        return self.instant.action.value

    def __str__(self) -> str:
        replaced = f", {self.replaced} file groups replaced" if self.replaced else ""
        total = self.timings.get("total", 0)
        seconds = "written before" if self.is_repetition else f"{total:.2f} s"
        return (
            f"{self.operation.value.lower()} {self.instant.requested_time}: "
            f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted "
            f"in {self.files} files{replaced} ({self.bytes_written / 1e6:.1f} MB, {seconds})"
        )


def commit_result(
    instant: Instant,
    operation: WriteOperation,
    metadata: CommitMetadata,
    receipt: FormatCommit,
    *,
    timings: Mapping[str, float] | None = None,
    statuses: Sequence[WriteStatus] = (),
    is_repetition: bool = False,
) -> CommitResult:
    """Add up what a commit did."""
    stats = metadata.stats
    rows = RowCounts.of(metadata)
    return CommitResult(
        instant=instant,
        operation=operation,
        inserted=rows.inserted,
        updated=rows.updated,
        deleted=rows.deleted,
        files=len(stats),
        bytes_written=sum(stat.total_write_bytes or 0 for stat in stats),
        timings=dict(timings or {}),
        receipt=receipt,
        metadata=metadata,
        statuses=tuple(statuses),
        is_repetition=is_repetition,
    )
