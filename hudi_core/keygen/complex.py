"""Several record key or partition fields: keys of the form ``f1:v1,f2:v2``."""

from __future__ import annotations

import pyarrow as pa

from hudi_core.config.stored_keys import COMPLEX_ENCODING
from hudi_core.config.table import TableConfig
from hudi_core.keygen.base import KeyColumns
from hudi_core.keygen.partitions import partition_paths
from hudi_core.storage.partition_path import PartitionPathCodec


def prefixes_single_field(config: TableConfig) -> bool:
    """Whether the key of a single key field is ``f:v``, and not the bare value.

    Before version 9 a writer's option decided it (``hoodie.write.complex.keygen.new.encoding``, the
    bare value when true); from 9 on it is ``f:v``, unless the table has stored the other one.
    """
    stored = COMPLEX_ENCODING.key in config.raw
    return not config.complex_keygen_new_encoding or (config.version >= 9 and not stored)


class ComplexKeyGenerator:
    """Hudi's ``ComplexKeyGenerator``."""

    def __init__(
        self, columns: KeyColumns, hive_style: bool, url_encode: bool, prefix_single: bool
    ) -> None:
        self._columns = columns
        self._bare = len(columns.record_key) == 1 and not prefix_single
        names = [column.name for column in columns.partition]
        self._codec = PartitionPathCodec(names, hive_style, url_encode)

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the fields of the key of every row with their names."""
        if self._bare:
            return self._columns.bare_key(batch)
        return self._columns.joined_key(batch)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row."""
        return partition_paths(batch, self._columns, self._codec)
