"""Errors of columns, record keys and partition values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from hudi_core.errors.base import HudiError

_MOST_LETTERS: Final = 200
"""Of a value in an error."""


class SchemaError(HudiError):
    """Rows do not match the table, or a schema change is impossible."""


class ExpressionLimitError(SchemaError):
    """An expression is too deep, or takes too much memory or time."""


class RecordKeyError(SchemaError):
    """A record key is missing or null."""


class DuplicateRecordKeyError(RecordKeyError):
    """An insert that fails on duplicates brings existing keys."""


class KeyCollisionError(RecordKeyError):
    """Rows with different key columns have one record key.

    Attributes
    ----------
    key
        The record key.
    incoming, other
        The key columns of an incoming row, and of another row: a stored one, or one that comes
        with it.
    """

    key: str
    incoming: Mapping[str, object]
    other: Mapping[str, object]

    @classmethod
    def of(
        cls, key: str, incoming: Mapping[str, object], other: Mapping[str, object], where: str
    ) -> Self:
        """Return the error about two rows.

        Parameters
        ----------
        where
            Of the other row; completes "the row ...".
        """
        error = cls(
            f"Two rows have the record key {_shown(key)} without being one: the incoming row with "
            f"{_values(incoming)}, and the row {where} with {_values(other)}",
            "Nothing was written. Change a value of one of them, or leave one out; a stored row is "
            "taken out by a condition on its columns, Table.delete(where=...). In a table whose "
            "record key is one column of strings no two keys read alike.",
            key=key,
            incoming=dict(incoming),
            other=dict(other),
        )
        error.key, error.incoming, error.other = key, dict(incoming), dict(other)
        return error


def _values(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in row.items())


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


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
