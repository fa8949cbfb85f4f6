"""Several partition fields, each made its own way: ``city:SIMPLE,ts:TIMESTAMP``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_core.keygen.base import KeyColumns
from hudi_core.keygen.partitions import FieldStrings, joined_paths
from hudi_core.storage.partition_path import PartitionPathCodec


class CustomKeyGenerator:
    """Hudi's ``CustomKeyGenerator``: bare keys of one field, ``f1:v1,f2:v2`` of several."""

    def __init__(
        self, columns: KeyColumns, fields: Sequence[FieldStrings], codec: PartitionPathCodec
    ) -> None:
        self._columns, self._fields, self._codec = columns, tuple(fields), codec

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row."""
        if len(self._columns.record_key) > 1:
            return self._columns.joined_key(batch)
        return self._columns.bare_key(batch)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row."""
        return joined_paths(batch, self._fields, self._codec)
