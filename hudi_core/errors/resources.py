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


class ForkedProcessError(HudiError):
    """A library whose threads are in another process, not in this fork.

    A call would wait for ever, or end the process.

    Parameters
    ----------
    library
        The package that has the threads.
    """

    def __init__(self, library: str) -> None:
        self.library = library
        super().__init__(
            f"This process was forked from one that had used {library}, whose threads a fork does "
            "not take along",
            "Start worker processes with multiprocessing.get_context('spawn') or 'forkserver', or "
            "open tables in the workers only.",
            library=library,
        )


class OutdatedScanError(HudiError):
    """A table was changed since a scan of it was planned.

    Its files lie elsewhere, or its record keys are had in another way, as after a move, a rewriting
    of keys, or where another table has taken its place. A read by what the scan knew would fail, or
    return other keys than the rest of the scan.

    Parameters
    ----------
    base_path
        The table.
    """

    def __init__(self, base_path: str) -> None:
        self.base_path = base_path
        super().__init__(
            f"The table at {base_path} was changed since the scan was planned: its files were "
            "moved, its record keys rewritten, or it was created anew",
            "Plan the scan again.",
            base_path=base_path,
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


class RefusedCallError(HudiError):
    """A call that a service does not answer.

    It brings what was not handed out by the service, or not for this call; it has expired, is
    malformed, or asks for more than the options allow.
    """

    def __init__(self, what: str, reason: str, hint: str) -> None:
        self.reason = reason
        super().__init__(f"{what} is refused: {reason}", hint, reason=reason)
