"""Errors of table services and stages."""

from __future__ import annotations

from hudi_core.errors.base import HudiError


class TableServiceError(HudiError):
    """A table service (rollback, clean, clustering, ...) cannot do what was requested."""


class UnknownStageError(TableServiceError):
    """There is no such stage: it was published, dropped, or has expired."""

    def __init__(self, base_path: str, stage: str) -> None:
        self.base_path, self.stage = base_path, stage
        super().__init__(
            f"The table at {base_path} has no stage {stage}: it was published or dropped, or it "
            "has expired",
            f"`hudi stage list {base_path}` shows its stages.",
            base_path=base_path,
            stage=stage,
        )
