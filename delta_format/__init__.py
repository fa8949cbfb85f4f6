"""Delta Lake as a table format: the log of versions beside the Hudi timeline, in one commit."""

from delta_format.plugin import DeltaTableFormat

__all__ = ["DeltaTableFormat"]
