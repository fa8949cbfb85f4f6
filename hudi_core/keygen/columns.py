"""Record keys and partition paths made of the values of columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_core.keygen.base import KeyColumns
from hudi_core.keygen.partitions import FieldStrings, joined_paths, no_paths
from hudi_core.storage.partition_path import PartitionPathCodec


class ColumnKeys:
    """Keys and paths of columns, as Hudi's key generators make them.

    With ``names_one_key`` the key of one field is ``f:v`` and not the bare value; that of several
    is always ``f1:v1,f2:v2``, unless ``between`` separates the values instead. ``fields`` is empty
    without partitions.
    """

    def __init__(
        self,
        columns: KeyColumns,
        fields: Sequence[FieldStrings],
        codec: PartitionPathCodec,
        *,
        names_one_key: bool,
        between: str | None = None,
    ) -> None:
        self._columns, self._fields, self._codec = columns, tuple(fields), codec
        self._between = between
        self._bare = len(columns.record_key) == 1 and not names_one_key

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row."""
        if self._between is not None:
            return self._columns.concatenated_key(batch, self._between)
        return self._columns.bare_key(batch) if self._bare else self._columns.joined_key(batch)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the partition path of every row."""
        return joined_paths(batch, self._fields, self._codec) if self._fields else no_paths(batch)
