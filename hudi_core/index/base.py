"""What an index answers: where the incoming rows of one partition already live.

An index works on one partition at a time. It gets the incoming record keys and the candidate base
files and says, per file, which incoming row meets which stored row. Rows it names nowhere are
inserts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

IntArray = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class Matches:
    """The incoming rows that one base file holds already.

    Attributes
    ----------
    candidate
        Ordinal of the file among the candidates.
    incoming
        Ordinal of the incoming key, for every stored row that has one; ``int32``.
    stored
        Position of that row in the file; ``int32``, ascending.
    """

    candidate: int
    incoming: IntArray
    stored: IntArray


ReadKeys = Callable[[int], pa.ChunkedArray]
"""Returns the record keys of a candidate file, by its ordinal, in file order."""


class Index(Protocol):
    """Finds incoming keys among the base files of their partition."""

    def tag(
        self, keys: pa.Array, candidates: Sequence[int], read_keys: ReadKeys
    ) -> Iterator[Matches]:
        """Yield the matches of every candidate that has any.

        Parameters
        ----------
        keys
            Distinct incoming record keys.
        candidates
            Ordinals of the partition's base files.
        read_keys
            Reads the keys of one of them.
        """
        ...
