"""The options of the Delta format."""

from __future__ import annotations

from typing import Final

from hudi_core.spi import FormatOption

_MAX_DAYS: Final = 36500


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MAX_DAYS):
        raise ValueError(f"it is no number of days from 1 to {_MAX_DAYS}")
    return int(text)


LOCATION: Final = FormatOption(
    "location",
    None,
    str,
    "Root of the Delta table. It cannot be another folder than the table's own.",
    default_text="(the table's own folder)",
    is_stored=True,
)
RETENTION_DAYS: Final = FormatOption(
    "deleted-file-retention-days",
    _MAX_DAYS,
    _days,
    "Days for which vacuums of other engines leave files alone that no version names any more, and "
    "their clean-ups of the log its versions. Set when the log is made; the log keeps it.",
)
TRANSACTION_RETENTION: Final = {
    "delta.setTransactionRetentionDuration": f"interval {_MAX_DAYS} days"
}
"""Has a log lose the transactions that are dated back, and no other."""
OPTIONS: Final = (LOCATION, RETENTION_DAYS)
