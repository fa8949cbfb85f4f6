"""What a write gives back to its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_core.model.commit import CommitMetadata, WriteOperation, WriteStatus
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import Instant


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A completed write.

    Attributes
    ----------
    instant
        The completed instant on the timeline.
    operation
        What was asked for.
    inserted, updated, deleted
        Rows that the table gained, replaced and lost: it has ``inserted - deleted`` rows more than
        before, but for those of partitions that were overwritten. Late rows, which lost
        against a stored row, count nowhere. Where a file held several rows with one key, as inserts
        can leave them, a row of that key leaves one of them: the others count as deleted.
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

    @property
    def replaced(self) -> int:
        """How many file groups were taken out of the table, with all their rows."""
        by_partition = getattr(self.metadata, "partition_to_replace_file_ids", {})
        return sum(map(len, by_partition.values()))

    @property
    def action(self) -> str:
        """The instant's action, as in its file name."""
        return self.instant.action.value

    def __str__(self) -> str:
        replaced = f", {self.replaced} file groups replaced" if self.replaced else ""
        return (
            f"{self.operation.value.lower()} {self.instant.requested_time}: "
            f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted "
            f"in {self.files} files{replaced} ({self.bytes_written / 1e6:.1f} MB, "
            f"{self.timings.get('total', 0):.2f} s)"
        )
