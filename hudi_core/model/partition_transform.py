"""Partition transforms, for formats that keep them for their readers."""

from __future__ import annotations

from enum import StrEnum


class PartitionTransform(StrEnum):
    """How the value of a partition field comes from its column."""

    IDENTITY = "identity"
    """The column's own value."""
    YEAR = "year"
    """The year of a date, or of a timestamp in UTC; and so on."""
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    OTHER = "other"
    """Anything else: another zone, a string that is parsed, values that several periods share."""
