"""Value ranges of one column in many files, as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_core.model.files import FileGroupId, FileStatus, PartitionPath

Mask = npt.NDArray[np.bool_]
Texts: TypeAlias = Sequence[PartitionPath] | Sequence[str] | pa.Array
"""Texts, one by one or as an Arrow array of strings, which may be dictionary encoded."""
MayMatch = Callable[[Texts, Texts], Mask]
"""Mask of the files, by partition paths and names, that may match."""


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """Ranges of one column; entry i is of the i-th requested item.

    An item is a file or a partition.

    Attributes
    ----------
    minimum, maximum
        Of the column's type: no value but null and NaN lies outside. Null where no bound is known.
    may_be_null
        Whether there may be nulls.
    may_have_value
        Whether there may be anything but nulls.
    """

    minimum: pa.Array
    maximum: pa.Array
    may_be_null: Mask
    may_have_value: Mask

    def __len__(self) -> int:
        return len(self.may_be_null)

    @classmethod
    def unknown(cls, kind: pa.DataType, count: int) -> ValueRanges:
        """Return ranges that say nothing."""
        anything = np.ones(count, np.bool_)
        return cls(pa.nulls(count, kind), pa.nulls(count, kind), anything, anything)


@runtime_checkable
class ValueIndex(Protocol):
    """A file lister that can look up column values."""

    def groups_of_values(self, column: str, values: pa.Array) -> frozenset[FileGroupId] | None:
        """Return the file groups with a present row of some values.

        ``None`` where that is not known.

        Parameters
        ----------
        column
            Path of the column, with dots.
        values
            Of its type in the table's schema.
        """
        ...


@runtime_checkable
class MatchingLister(Protocol):
    """A file lister that can skip file groups before describing them."""

    def list_matching(
        self, partitions: Sequence[PartitionPath], may_match: MayMatch
    ) -> Mapping[PartitionPath, Sequence[FileStatus]]:
        """Return each partition's files, without file groups that cannot match.

        A file group is listed whole or not at all, so that what is its latest file is not changed.

        Parameters
        ----------
        partitions
            Paths of partitions.
        may_match
            Tells of base files, by the paths of their partitions and their names.
        """
        ...


@runtime_checkable
class RangeSource(Protocol):
    """A lister of files that also knows ranges of their columns."""

    def partition_ranges(
        self, partitions: Sequence[PartitionPath], column: str, kind: pa.DataType
    ) -> ValueRanges | None:
        """Return ranges over the present rows of each partition.

        ``None`` where none are kept.

        Parameters
        ----------
        partitions
            Paths of partitions.
        column
            Path of the column, with dots.
        kind
            Its type in the table's schema.
        """
        ...

    def file_ranges(
        self,
        partitions: Texts,
        names: Texts,
        column: str,
        kind: pa.DataType,
    ) -> ValueRanges | None:
        """Return ranges over the rows of each base file.

        ``None`` where none are kept.

        Parameters
        ----------
        partitions, names
            Of each file the path of its partition and its name. Arrow arrays are given only to a
            :class:`MatchingLister` that got such.
        column, kind
            As above.
        """
        ...
