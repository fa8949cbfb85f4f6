"""Columns that are not in the rows: where a row was read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hudi_core.read.connector.splits import Split

_PATH: Final = pa.field("$path", pa.string())
_SIZE: Final = pa.field("$file_size", pa.int64())
_TIME: Final = pa.field("$file_modified_time", pa.timestamp("ms", "UTC"))
_PARTITION: Final = pa.field("$partition", pa.string())


@dataclass(frozen=True)
class HiddenColumn:
    """A column that is read only where it is named.

    ``value`` is the same for all rows of a split; it may ask when the file was last changed. With
    ``needs_partitions`` only partitioned tables have the column.
    """

    field: pa.Field
    value: Callable[[Split, Callable[[], dt.datetime | None]], Any]
    needs_partitions: bool = False

    def scalar(self, split: Split, modified: Callable[[], dt.datetime | None]) -> pa.Scalar:
        """Its value in the rows of a split, as Arrow has it."""
        return pa.scalar(self.value(split, modified), self.field.type)


HIDDEN_COLUMNS: Final = {
    one.field.name: one
    for one in (
        HiddenColumn(_PATH, lambda split, _: split.path),
        HiddenColumn(_SIZE, lambda split, _: split.file_size),
        HiddenColumn(_TIME, lambda _, modified: modified()),
        HiddenColumn(_PARTITION, lambda split, _: split.partition, needs_partitions=True),
    )
}
"""By name, as Trino's connector for Hudi has them."""
