"""A foreign table, not Hudi's, as a format's plugin finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A data file of the table's present state.

    Attributes
    ----------
    path
        Relative to the table's folder.
    size
        Bytes.
    values
        Values of columns that the format keeps beside the file, which may lack them: those of its
        partition, as Python has them.
    dead
        Positions of rows of the file that the format has deleted, from 0 on, in ascending order;
        ``None`` where it has all.
    """

    path: str
    size: int
    values: Mapping[str, Any] = field(default_factory=dict)
    dead: npt.NDArray[np.int64] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FoundTable:
    """What is there.

    Attributes
    ----------
    schema
        The columns; with ``PARQUET:field_id`` where the format knows columns by ids and the files
        carry them.
    partition_by
        Columns whose values make the partitions; empty where there are none, or computed ones.
    files
        The files of the present state, in Parquet.
    version
        The format's own id of that state.
    stored
        The columns as the files call them, each in the place of that of ``schema`` that it is;
        ``None`` where the files have the same names, or ids.
    deletes_by_position
        Whether the format may delete rows of a file without writing another one. The table that it
        becomes deletes them so, too.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...]
    files: tuple[FoundFile, ...]
    version: str
    deletes_by_position: bool = False
    stored: pa.Schema | None = None
