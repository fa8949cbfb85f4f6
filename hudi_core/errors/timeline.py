"""Errors of instants and of the timeline."""

from __future__ import annotations

from hudi_core.errors.base import HudiError


class TimelineError(HudiError):
    """The timeline does not allow the requested change."""


class InvalidInstantTimeError(TimelineError):
    """A string is not an instant time."""

    def __init__(self, text: str, reason: str) -> None:
        self.text, self.reason = text, reason
        super().__init__(
            f"{text!r} is not an instant time: {reason}",
            "Use 17 digits (yyyyMMddHHmmssSSS, UTC), 14 digits, or an RFC 3339 date and time.",
            text=text,
            reason=reason,
        )


class TimeOutOfRangeError(TimelineError):
    """The requested time is before a table's first commit or after now.

    Parameters
    ----------
    base_path
        The table.
    asked
        The time, as the user wrote it.
    first
        Requested time of the first commit; ``None`` where there is none.
    now
        The time in the table's zone.
    """

    def __init__(self, base_path: str, asked: str, first: str | None, now: str) -> None:
        self.base_path, self.asked, self.first, self.now = base_path, asked, first, now
        known = "it has no commits" if first is None else f"its first commit is {first}"
        super().__init__(
            f"The table at {base_path} has no state as of {asked!r}: {known}, and now is {now}",
            "Leave the time out to read the latest state."
            if first is None
            else "Give a time from the one to the other; `hudi timeline PATH` lists the commits.",
            base_path=base_path,
            asked=asked,
            first=first,
            now=now,
        )


class InstantNotFoundError(TimelineError):
    """No instant of that time (and action) is on the timeline."""

    def __init__(self, instant: str, where: str) -> None:
        self.instant, self.where = instant, where
        super().__init__(
            f"Instant {instant} is not on {where}",
            "List the instants with `hudi timeline PATH`.",
            instant=instant,
            where=where,
        )


class HistoryExpiredError(TimelineError):
    """A past state needs a data file that is no longer stored.

    Parameters
    ----------
    instant, path
        The file.
    undoing
        Requested time of the write whose rollback needs it; empty where nothing is rolled back.
    """

    def __init__(self, instant: str, path: str, *, undoing: str = "") -> None:
        self.instant, self.path, self.undoing = instant, path, undoing
        if undoing:
            what = f"Instant {undoing} cannot be rolled back: {path}, which it took the place of"
            what += ", was removed, most likely by a clean"
            hint = (
                "Its rows would be lost. Restore the file from a backup of the table, or write the "
                "rows that are wanted."
            )
        else:
            what = f"{path}, which instant {instant} wrote, is no longer stored"
            hint = "Clean has removed that version: begin later, or read the latest snapshot."
        super().__init__(what, hint, instant=instant, path=path, undoing=undoing)
