"""The spelling of values in record keys and partition paths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyForm:
    """The ways of one table.

    Attributes
    ----------
    timestamp_zone
        Zone whose clocks spell timestamps with a zone as strings, as ``java.sql.Timestamp`` does;
        ``None`` where they are microseconds since the epoch.
    old_floats
        Whether floating-point numbers have the digits of Java before 19.
    """

    timestamp_zone: str | None = None
    old_floats: bool = False
