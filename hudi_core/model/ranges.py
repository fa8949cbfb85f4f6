"""Value ranges of one column in many files, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Mask = npt.NDArray[np.bool_]
_MAX_VALUES: Final = 64
"""Of decimals, which Arrow cannot search, so many are compared one by one."""


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """Ranges of one column; entry i is of the i-th requested item.

    An item is a file or a partition.

    Attributes
    ----------
    minimum, maximum
        Of the column's type: no value but null and NaN lies outside. Null where no bound is known.
    may_be_null
        Whether there may be nulls. Booleans of Arrow become those of numpy; null among them is
        "there may be".
    may_have_value
        Whether there may be anything but nulls; likewise.
    """

    minimum: pa.Array
    maximum: pa.Array
    may_be_null: Mask
    may_have_value: Mask

    def __post_init__(self) -> None:
        for name in ("may_be_null", "may_have_value"):
            given = getattr(self, name)
            if isinstance(given, pa.Array | pa.ChunkedArray) and pt.is_boolean(given.type):
                mask = pc.fill_null(given, True).to_numpy(zero_copy_only=False)
                object.__setattr__(self, name, mask)

    def __len__(self) -> int:
        return len(self.may_be_null)

    @classmethod
    def unknown(cls, kind: pa.DataType, count: int) -> ValueRanges:
        """Return ranges that say nothing."""
        anything = np.ones(count, np.bool_)
        return cls(pa.nulls(count, kind), pa.nulls(count, kind), anything, anything)

    def take(self, ordinals: Sequence[int]) -> ValueRanges:
        """The ranges of some of the items, in their order."""
        chosen = np.array(ordinals, np.int64)
        low, high = (side.take(pa.array(chosen)) for side in (self.minimum, self.maximum))
        return ValueRanges(low, high, self.may_be_null[chosen], self.may_have_value[chosen])

    def may_hold(self, values: pa.Array) -> Mask:
        """Mask of the files that may hold one of some values.

        Parameters
        ----------
        values
            Without nulls; NaN may be in any file that has values.
        """
        if not len(values):
            return np.zeros(len(self), np.bool_)
        if pt.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            return self.may_have_value
        has_both = pc.and_(pc.is_valid(self.minimum), pc.is_valid(self.maximum))
        if pt.is_decimal(values.type):
            found = self._decimal_between(values)
        else:
            ordered = values.take(pc.sort_indices(values))
            # the least value that is not below the lower bound must not be above the upper one
            place = pc.search_sorted(ordered, self.minimum, side="left")
            is_beyond = pc.greater_equal(place, len(ordered))
            candidate = ordered.take(pc.if_else(is_beyond, None, place))
            found = pc.fill_null(pc.less_equal(candidate, self.maximum), False)
        mask: Mask = pc.if_else(has_both, found, True).to_numpy(zero_copy_only=False)
        return mask & self.may_have_value

    def _decimal_between(self, values: pa.Array) -> pa.Array:
        distinct = pc.unique(values)
        if len(distinct) > _MAX_VALUES:
            ends = pc.min_max(distinct)
            return pc.and_(
                pc.less_equal(self.minimum, ends["max"]),
                pc.greater_equal(self.maximum, ends["min"]),
            )
        between = (
            pc.and_(pc.less_equal(self.minimum, one), pc.greater_equal(self.maximum, one))
            for one in distinct
        )
        return reduce(pc.or_, between)
