"""Tables without partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_core.keygen.base import KeyColumns


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
        paths = pa.array([""] if batch.num_rows else [], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(batch.num_rows, np.int32)), paths)
