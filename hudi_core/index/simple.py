"""The SIMPLE index: read the key column of every base file of the partition and join in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.index.base import Matches, ReadKeys


class SimpleIndex:
    """Exact and stateless: costs one column of each candidate file, keeps nothing between
    writes."""

    def tag(
        self, keys: pa.Array, candidates: Sequence[int], read_keys: ReadKeys
    ) -> Iterator[Matches]:
        for candidate in candidates:
            stored = read_keys(candidate)
            found = pc.index_in(stored, value_set=keys).combine_chunks()
            rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
            if len(rows):
                incoming = found.take(pa.array(rows)).to_numpy().astype(np.int32)
                yield Matches(candidate, incoming, rows.astype(np.int32))
