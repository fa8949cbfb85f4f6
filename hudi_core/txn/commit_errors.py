"""Errors of commits that failed, or whose outcome is unknown."""

from __future__ import annotations

from hudi_core.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    HudiError,
    IncompleteCommitError,
)
from hudi_core.model.instant import Instant


def aborted(instant: Instant, format_name: str, why: HudiError) -> CommitConflictError:
    """Error of a completed commit that could not be published."""
    return CommitConflictError(
        f"Instant {instant.requested_time} could not be published in the {format_name} format and "
        f"was rolled back: {why.what}",
        f"Nothing of the write is visible. {why.hint}",
        instant=instant.requested_time,
    )


def busy(instant: Instant) -> CommitConflictError:
    """Error of a write under whose lock others go on completing theirs."""
    return CommitConflictError(
        f"Other writers completed instants while instant {instant.requested_time} held the lock",
        "Nothing of the write is visible; run it again. A lease may be too short for its writers: "
        "see hoodie.write.lock.*.",
        instant=instant.requested_time,
    )


def superseded(instant: Instant, format_name: str) -> CommitConflictError:
    """Error of a commit that another writer rolled back after a conflict."""
    return CommitConflictError(
        f"Another writer was faster than instant {instant.requested_time}, which could not be "
        f"published in the {format_name} format and was rolled back",
        "Nothing of the write is visible; run it again on the new state of the table.",
        instant=instant.requested_time,
    )


def unknown_outcome(instant: Instant, what: str) -> CommitStateUnknownError:
    """Error of a commit that may be complete.

    ``what`` is followed by "instant ... was completed".
    """
    return CommitStateUnknownError(
        f"{what} instant {instant.requested_time} was completed",
        "Look at the timeline: if the instant is there as completed the write is visible, "
        "otherwise the next writer rolls it back. Only a write that was made with idempotency= may "
        "be repeated without that look, with the same two values.",
        instant=instant.requested_time,
    )


def rolled_back(instant: Instant) -> IncompleteCommitError:
    """Error of a pending commit that another writer rolled back."""
    return IncompleteCommitError(
        f"Instant {instant.requested_time} is being, or was, rolled back",
        "Another writer took this one for dead, or the table was dropped. Nothing of the "
        "write is visible; run it again.",
        instant=instant.requested_time,
    )
