"""Indexes that other distributions provide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_core.config.extension_points import INDEX_POINT, IndexTraits
from hudi_core.extension.guard import Guard
from hudi_core.index.base import Candidates, Index, Matches
from hudi_core.rows.combine import IntArray


class BaseIndex(IndexTraits, ABC):
    """Finds incoming record keys among base files.

    One is made for each task, without arguments, where the task runs: with Spark on an executor. It
    keeps nothing from one task to the next.
    """

    @abstractmethod
    def tag(self, keys: pa.StringArray, candidates: Candidates) -> Iterator[Matches]:
        """Yield the matches of every candidate that has any.

        Every stored row whose key is among the incoming ones has to be named: one that is missed
        becomes a second row of its key. :func:`hudi_core.spi.join_keys` finds those of one file.

        Parameters
        ----------
        keys
            Distinct incoming record keys.
        candidates
            The files to look into, by ordinal: those of one partition, or with ``is_global`` those
            of the whole table.
        """


@dataclass(frozen=True, slots=True)
class GuardedKeyIndex:
    """An index of another distribution, whose answers are checked."""

    guard: Guard
    index: BaseIndex

    def tag(self, keys: pa.StringArray, candidates: Candidates) -> Iterator[Matches]:
        found = self.guard.call("tag", lambda: iter(self.index.tag(keys, candidates)))
        seen: set[int] = set()
        for match in self.guard.each("tag", found):
            self._require_fits(match, len(keys), len(candidates))
            if match.candidate in seen:
                self.guard.raise_violation(f"tag named candidate {match.candidate} twice")
            seen.add(match.candidate)
            yield match

    def _require_fits(self, match: Matches, keys: int, candidates: int) -> None:
        self.guard.require("tag", match, (Matches,), "Matches")
        if not isinstance(match.candidate, int) or not 0 <= match.candidate < candidates:
            self.guard.raise_violation(f"tag named candidate {match.candidate!r} of {candidates}")
        incoming, stored = match.incoming, match.stored
        if not (_is_ordinals(incoming) and _is_ordinals(stored) and len(incoming) == len(stored)):
            self.guard.raise_violation("tag returned no pairs of int32 arrays of one length")
        if not len(stored):
            return
        if incoming.min() < 0 or incoming.max() >= keys:
            self.guard.raise_violation(f"tag named an incoming key that is none of {keys}")
        if stored[0] < 0 or (np.diff(stored) <= 0).any():
            self.guard.raise_violation("tag named stored rows that do not ascend")


def named_index(name: str) -> Index:
    """Return the index that another distribution provides under a name."""
    index = INDEX_POINT.make(name, BaseIndex, lambda kind: kind())
    return GuardedKeyIndex(INDEX_POINT.guard(name), index)


def _is_ordinals(array: IntArray) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.int32 and array.ndim == 1
