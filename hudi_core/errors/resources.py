"""Errors of locks, tasks and scans."""

from __future__ import annotations

from hudi_core.errors.base import HudiError


class LockError(HudiError):
    """A lock could not be taken or was lost."""

    retryable = True


class ResourceLimitError(HudiError):
    """The system gives this process no more of something, such as threads."""

    retryable = True


class TaskFailedError(HudiError):
    """A task that an engine gave up.

    The processes that ran it died, or it broke; with Spark after as many attempts as
    ``spark.task.maxFailures`` allows.
    """

    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The engine gave up on a task: {reason}",
            "Nothing of it is visible, and the same call may succeed. Where executors keep dying, "
            "their logs say of what; for want of memory see docs/cluster.md.",
            reason=reason,
        )


class ScanClosedError(HudiError):
    """Splits were asked of a scan that is closed."""

    def __init__(self, base_path: str) -> None:
        self.base_path = base_path
        super().__init__(
            f"The scan of the table at {base_path} is closed, and not all of its splits were taken",
            "Begin another scan.",
            base_path=base_path,
        )
