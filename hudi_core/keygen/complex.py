"""Several record key or partition fields: keys of the form ``f1:v1,f2:v2``."""

from __future__ import annotations

import pyarrow as pa

from hudi_core.keygen.base import KeyColumns
from hudi_core.keygen.partitions import partition_paths
from hudi_core.storage.partition_path import PartitionPathCodec


class ComplexKeyGenerator:
    """Hudi's ``ComplexKeyGenerator``.

    Parameters
    ----------
    prefix_single
        Whether the key of a single key field is ``f:v``, and not the bare value. Before version 9 a
        writer's option decides it (``hoodie.write.complex.keygen.new.encoding``); from 9 on it is
        ``f:v``, unless the table says otherwise.
    """

    def __init__(self, columns: KeyColumns, codec: PartitionPathCodec, prefix_single: bool) -> None:
        self._columns, self._codec = columns, codec
        self._bare = len(columns.record_key) == 1 and not prefix_single

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the fields of the key of every row with their names."""
        if self._bare:
            return self._columns.bare_key(batch)
        return self._columns.joined_key(batch)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row."""
        return partition_paths(batch, self._columns, self._codec)
