"""Delta Lake as a table format: one commit for timeline and log."""

from delta_format.plugin import DeltaTableFormat

__all__ = ["DeltaTableFormat"]
