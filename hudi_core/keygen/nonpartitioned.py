"""Tables without partitions."""

from __future__ import annotations

import pyarrow as pa

from hudi_core.keygen.base import KeyColumns
from hudi_core.keygen.partitions import no_paths


class NonpartitionedKeyGenerator:
    """Hudi's ``NonpartitionedKeyGenerator``: bare keys of one field, ``f1:v1,f2:v2`` of several."""

    def __init__(self, columns: KeyColumns) -> None:
        self._columns = columns

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row."""
        if len(self._columns.record_key) == 1:
            return self._columns.bare_key(batch)
        return self._columns.joined_key(batch)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the empty path for every row."""
        return no_paths(batch)
