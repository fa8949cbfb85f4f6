"""One record key field, one partition field; keys are bare values."""

from __future__ import annotations

import pyarrow as pa

from hudi_core.keygen.base import KeyColumns
from hudi_core.keygen.partitions import partition_paths
from hudi_core.storage.partition_path import PartitionPathCodec


class SimpleKeyGenerator:
    """Hudi's ``SimpleKeyGenerator``."""

    def __init__(self, columns: KeyColumns, codec: PartitionPathCodec) -> None:
        self._columns, self._codec = columns, codec

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the value of the key field of every row."""
        return self._columns.bare_key(batch)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row."""
        return partition_paths(batch, self._columns, self._codec)
