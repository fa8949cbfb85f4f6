"""Key indexes as records: locations, and keys of values.

The rows of the files that an instant wrote, and of those that they replace, say what it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.config.table import TableConfig
from hudi_core.errors import UnsupportedTableError
from hudi_core.model.files import (
    FileGroupId,
    FileId,
    LogFileName,
    PartitionPath,
    join_path,
)
from hudi_core.model.instant_time import InstantTime
from hudi_core.schema.java_float import double_text, float_text

Location = tuple[PartitionPath, FileId]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A base file of the table, or a log."""

    partition_path: PartitionPath
    file_id: FileId
    name: str

    @property
    def is_log(self) -> bool:
        """Whether it is a log."""
        return LogFileName.parse(self.name) is not None

    @property
    def path(self) -> str:
        """Path below the table."""
        return join_path(self.partition_path, self.name)

    @property
    def group(self) -> FileGroupId:
        """Its file group."""
        return FileGroupId(self.partition_path, self.file_id)


def index_millis(time: InstantTime, config: TableConfig) -> int:
    """Return an instant's time in the record index, in milliseconds.

    Since the epoch, by the clock of the timeline's time zone.
    """
    return config.zone.epoch_millis(time)


# --- secondary indexes ------------------------------------------------------


def value_texts(values: pa.ChunkedArray, column: str, base_path: str) -> list[str | None]:
    """Return the values of an indexed column as its index spells them."""
    kind = values.type
    for matches, spell in _SPELLINGS:
        if matches(kind):
            found: list[str | None] = spell(values)
            return found
    raise UnsupportedTableError(
        base_path,
        f"has a secondary index of {column}, which is of type {kind}",
        "Drop the index, or write with Apache Hudi.",
    )


def _texts(values: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = values.to_pylist()
    return found


def _numbers(values: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = pc.cast(values, pa.string()).to_pylist()
    return found


def _spelled(spell: Callable[[Any], str]) -> Callable[[pa.ChunkedArray], list[Any]]:
    def spell_all(values: pa.ChunkedArray) -> list[Any]:
        return [None if one is None else spell(one) for one in values.to_pylist()]

    return spell_all


def _float(value: float) -> str:
    return float_text(np.float32(value))


_SPELLINGS: Final[
    tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.ChunkedArray], list[Any]]], ...]
] = (
    (pt.is_null, lambda values: [None] * len(values)),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), _texts),
    (pt.is_boolean, _numbers),
    (pt.is_integer, _numbers),
    (pt.is_date32, lambda values: _numbers(values.cast(pa.int32()))),
    (pt.is_timestamp, lambda values: _numbers(values.cast(pa.int64()))),
    (pt.is_float32, _spelled(_float)),
    (pt.is_float64, _spelled(double_text)),
)
