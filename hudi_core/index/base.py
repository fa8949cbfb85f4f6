"""What an index answers: which incoming rows are stored already, and where.

An index gets distinct incoming record keys and the base files they may be in, and says, per file,
which incoming key meets which stored row. Rows it names nowhere are inserts. It is the same
question for the files of one partition and, with a global index, for those of the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.model.files import FileId
from hudi_core.rows.combine import IntArray


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


class Candidates(Protocol):
    """Base files that may hold incoming keys, by ordinal."""

    def __len__(self) -> int: ...

    def file_id(self, ordinal: int) -> FileId:
        """Return the id of the file's group."""
        ...

    def footer(self, ordinal: int) -> KeyFooter:
        """Read the footer."""
        ...

    def keys(self, ordinal: int) -> pa.ChunkedArray:
        """Read the record keys, in file order."""
        ...


class Index(Protocol):
    """Finds incoming keys among base files."""

    def tag(self, keys: pa.StringArray, candidates: Candidates) -> Iterator[Matches]:
        """Yield the matches of every candidate that has any."""
        ...


def join_keys(
    candidate: int,
    stored: pa.ChunkedArray,
    keys: pa.StringArray,
    chosen: IntArray | None = None,
) -> Iterator[Matches]:
    """Yield the exact matches of one file, if there are any.

    Parameters
    ----------
    stored
        Record keys of the file.
    keys
        Distinct incoming keys.
    chosen
        Ordinals of the incoming keys that can be in the file; ``None`` for all.
    """
    yield from _join([(candidate, stored)], keys, chosen)


def _join(
    held: Sequence[tuple[int, pa.ChunkedArray]], keys: pa.StringArray, chosen: IntArray | None
) -> Iterator[Matches]:
    """Yield the matches of some files; keys are hashed once."""
    wanted = keys if chosen is None else keys.take(pa.array(chosen))
    _, stored = held[0]
    if len(held) > 1:
        stored = pa.chunked_array(chain.from_iterable(one.chunks for _, one in held), pa.string())
    found = pc.index_in(stored, value_set=wanted).combine_chunks()
    rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    incoming = found.take(pa.array(rows)).to_numpy().astype(np.int32)
    if chosen is not None:
        incoming = chosen[incoming]
    start = 0
    for candidate, one in held:
        low, high = np.searchsorted(rows, (start, start + len(one)))
        if high > low:
            own = (rows[low:high] - start).astype(np.int32)
            yield Matches(candidate, incoming[low:high], own)
        start += len(one)


# --- the SIMPLE index ----------------------------------------------------------------------------


_HELD_BYTES: Final = 4 << 20
"""Bytes of stored keys that are in memory at a time, or those of one file where it has more."""


class SimpleIndex:
    """Exact and stateless; reads one column of each candidate.

    Small files are looked into together: the incoming keys are hashed once for all of them.
    """

    def tag(self, keys: pa.StringArray, candidates: Candidates) -> Iterator[Matches]:
        held: list[tuple[int, pa.ChunkedArray]] = []
        size = 0
        for candidate in range(len(candidates)):
            stored = candidates.keys(candidate)
            held.append((candidate, stored))
            size += stored.nbytes
            if size >= _HELD_BYTES or candidate + 1 == len(candidates):
                yield from _join(held, keys, None)
                held, size = [], 0
