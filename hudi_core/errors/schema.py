"""Errors of columns, record keys and partition values."""

from __future__ import annotations

from hudi_core.errors.base import HudiError


class SchemaError(HudiError):
    """Rows do not match the table, or a schema change is impossible."""


class RecordKeyError(SchemaError):
    """A record key is missing or null."""


class DuplicateRecordKeyError(RecordKeyError):
    """An insert that fails on duplicates brings existing keys."""


class MergeCardinalityError(SchemaError):
    """Several source rows would change one row of the table."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        super().__init__(
            f"Several rows of the source match one row of the table and would change it ({rows} "
            "more than there may be)",
            "Nothing was written. Leave one source row for each row of the table, such as the "
            "latest one by its key, or narrow the conditions of the merge.",
            rows=rows,
        )


class PartitionValueError(SchemaError):
    """A partition value cannot become a path."""


class UnknownPartitionError(PartitionValueError):
    """A partition that the table lacks, or that has no rows."""
