"""What a run of an ingestion gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hudi_core.model.result import CommitResult


@dataclass(frozen=True, slots=True)
class IngestedBatch:
    """Files that one commit brings.

    Attributes
    ----------
    files
        Their paths in the source folder.
    size
        Their bytes.
    commit
        The commit; ``None`` for a dry run.
    """

    files: Sequence[str]
    size: int
    commit: CommitResult | None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """A run of an ingestion.

    Attributes
    ----------
    path, source, name
        The table, the folder, and the name of the ingestion.
    batches
        What was written, a commit each; of a dry run, what would be.
    late
        How many files, at the least, came too late to be read; see
        ``hoodie.ingest.late.files.days``.
    changed
        Files that changed while they were read, and that the next run reads.
    """

    path: str
    source: str
    name: str
    batches: Sequence[IngestedBatch] = field(default_factory=tuple)
    late: int = 0
    changed: Sequence[str] = ()

    @property
    def commits(self) -> Sequence[CommitResult]:
        """The commits that were made."""
        return [one.commit for one in self.batches if one.commit is not None]

    @property
    def files(self) -> int:
        """How many files were read."""
        return sum(len(one.files) for one in self.batches)

    def __str__(self) -> str:
        count = f"{self.files:,} file{'' if self.files == 1 else 's'}"
        made = f"{len(self.batches)} commit{'' if len(self.batches) == 1 else 's'}"
        return f"{count} of {self.source} in {made}"
