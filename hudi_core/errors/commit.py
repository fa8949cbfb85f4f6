"""Errors of commits."""

from __future__ import annotations

from hudi_core.errors.base import HudiError


class CommitError(HudiError):
    """A commit did not take place."""


class CommitConflictError(CommitError):
    """Another writer committed something that this commit contradicts."""

    retryable = True


class ConcurrentWriterError(CommitConflictError):
    """A second writer is at work without a lock that both share."""

    def __init__(self, base_path: str, instant: str) -> None:
        self.base_path, self.instant = base_path, instant
        super().__init__(
            f"Another live writer is writing instant {instant} to {base_path}",
            "Wait for it to finish, or give both writers "
            "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL and the same "
            "hoodie.write.lock.provider.",
            base_path=base_path,
            instant=instant,
        )


class PendingClusteringError(CommitConflictError):
    """A write changes a file group under clustering.

    Parameters
    ----------
    base_path
        The table.
    instant
        Requested time of the clustering.
    file_id, partition_path
        One of the file groups.
    """

    def __init__(self, base_path: str, instant: str, file_id: str, partition_path: str) -> None:
        super().__init__(
            f"The write changes rows of file group {file_id} of partition {partition_path!r}, "
            f"which the pending clustering {instant} is about to replace",
            f"Nothing was written. Run the clustering (`hudi cluster {base_path} --run`) or give "
            f"it up (`hudi rollback {base_path} {instant}`), then write again; or let writes win: "
            "hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy.",
            instant=instant,
            file_id=file_id,
            partition=partition_path,
        )


class CommitValidationError(CommitError):
    """A validator refused the state that a commit was about to publish.

    Parameters
    ----------
    base_path
        The table.
    validator
        Which one: its query, or the name of its function.
    reason
        What did not hold.
    """

    def __init__(self, base_path: str, validator: str, reason: str) -> None:
        self.base_path, self.validator, self.reason = base_path, validator, reason
        super().__init__(
            f"The commit to {base_path} was refused by the validator {validator!r}: {reason}",
            "Nothing of this write is visible; put its rows right, or the validator.",
            base_path=base_path,
            validator=validator,
            reason=reason,
        )


class StageConflictError(CommitConflictError):
    """What a stage builds on has changed since.

    Parameters
    ----------
    base_path, stage
        The table and the stage.
    reason
        What has changed.
    """

    retryable = False

    def __init__(self, base_path: str, stage: str, reason: str) -> None:
        self.base_path, self.stage, self.reason = base_path, stage, reason
        super().__init__(
            f"Stage {stage} of {base_path} cannot be published: {reason}",
            "Nothing was published. Drop the stage and stage its rows again.",
            base_path=base_path,
            stage=stage,
            reason=reason,
        )


class CommitStateUnknownError(CommitError):
    """Whether the commit took place is unknown; nothing was deleted."""

    retryable = True


class IncompleteCommitError(CommitError):
    """The instant is not complete, and never will be: nobody sees it.

    It was taken back, or the format may not take it any more. What may become complete yet is a
    :class:`CommitStateUnknownError`.
    """

    retryable = True
