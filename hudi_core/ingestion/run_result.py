"""What a run of an ingestion gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hudi_core.model.result import CommitResult


@dataclass(frozen=True, slots=True)
class IngestedBatch:
    """Files that one commit brings.

    ``size`` is in bytes; ``commit`` is ``None`` for a dry run.
    """

    files: Sequence[str]
    size: int
    commit: CommitResult | None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """A run of an ingestion.

    ``batches`` of a dry run are what would be written. ``late`` is a lower bound of the files that
    came too late to be read (``hoodie.ingest.late.files.days``); the next run reads those in
    ``changed``.
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
