"""The BLOOM index: bounds and bloom filters, then remaining key columns.

A file is ruled out for a key by the least and greatest key of the file, then by its bloom filter.
Neither ever denies a key that is there, and what they let pass is looked up exactly, so the result
is that of the SIMPLE index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.index.base import Candidates, Matches, join_keys
from hudi_core.rows.combine import IntArray

_SUPPLEMENTARY: Final = "[\U00010000-\U0010ffff]"
_KEYS_PER_ROW: Final = 4
"""A filter is asked for at most so many keys per row of its file: beyond that, reading the rows'
keys is cheaper, and settles it."""


class BloomIndex:
    """Exact and stateless; fast where most files are ruled out.

    By ranges or filters.
    """

    def tag(self, keys: pa.StringArray, candidates: Candidates) -> Iterator[Matches]:
        unordered = _has_supplementary(keys)
        for candidate in range(len(candidates)):
            footer = candidates.footer(candidate)
            possible = _within(keys, unordered, footer)
            if footer.bloom is not None and len(possible) <= _KEYS_PER_ROW * footer.rows:
                asked = keys if len(possible) == len(keys) else keys.take(pa.array(possible))
                possible = possible[_mask(footer.bloom.might_contain(asked))]
            if len(possible):
                chosen = None if len(possible) == len(keys) else possible
                yield from join_keys(candidate, candidates.keys(candidate), keys, chosen)


def _within(keys: pa.StringArray, unordered: npt.NDArray[Any], footer: KeyFooter) -> IntArray:
    """Return the ordinals of keys within a file's bounds.

    Arrow compares UTF-8 bytes and the bounds follow UTF-16 units. The two orders part only where
    one of two strings has a character beyond U+FFFF: such keys pass, and such bounds rule out
    nothing.
    """
    low, high = footer.min_key, footer.max_key
    bounds = pa.array([low, high], pa.string())
    if low is None or high is None or _has_supplementary(bounds).any():
        return np.arange(len(keys), dtype=np.int32)
    inside = pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))
    return np.flatnonzero(_mask(inside) | unordered).astype(np.int32)


def _has_supplementary(keys: pa.StringArray) -> npt.NDArray[Any]:
    return _mask(pc.match_substring_regex(keys, _SUPPLEMENTARY))


def _mask(values: pa.BooleanArray) -> npt.NDArray[Any]:
    return np.asarray(values.to_numpy(zero_copy_only=False))
