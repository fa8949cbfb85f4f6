"""The SIMPLE index: joins candidates' key columns in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_core.index.base import Candidates, Matches, join_keys


class SimpleIndex:
    """Exact and stateless; reads one column of each candidate."""

    def tag(self, keys: pa.StringArray, candidates: Candidates) -> Iterator[Matches]:
        for candidate in range(len(candidates)):
            yield from join_keys(candidate, candidates.keys(candidate), keys)
