"""Record keys that incoming rows already carry in meta columns.

A table without a record key generates its keys, so that no column has them. Rows that were read
from it have them in their meta columns, as in Hudi: written back, they are updates.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError, RecordKeyError
from hudi_core.keygen.base import KeyColumns, KeyGenerator
from hudi_core.keygen.partitions import FieldStrings, joined_paths, no_paths
from hudi_core.schema.table_schema import PARTITION_PATH, RECORD_KEY
from hudi_core.storage.partition_path import PartitionPathCodec


def brings_keys(config: TableConfig, names: list[str]) -> bool:
    """Whether rows with these columns carry generated record keys."""
    return not config.record_key_fields and RECORD_KEY in names


class StoredKeys:
    """The record key and partition path with which a row was read."""

    def __init__(self, made: KeyGenerator | None) -> None:
        self._made = made

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """The key that each row was read with."""
        keys = batch.column(RECORD_KEY)
        missing = pc.sum(_is_missing(keys), min_count=0).as_py()
        if missing:
            raise RecordKeyError(
                f"The column {RECORD_KEY} is null or empty in {missing} of {len(keys)} rows",
                f"Rows that were read from the table have a key; insert new rows by themselves, "
                f"without the column {RECORD_KEY}.",
                columns=(RECORD_KEY,),
                rows=missing,
            )
        return keys

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """The partition that each row was read from."""
        made = None if self._made is None else self._made.partition_paths(batch)
        if PARTITION_PATH not in batch.schema.names:
            if made is None:
                raise ValueError("neither the columns nor the meta column of the path were staged")
            return made
        stored = batch.column(PARTITION_PATH)
        others = 0 if made is None else _count_of_others(stored, made)
        if others or stored.null_count:
            raise PartitionValueError(
                f"{others or stored.null_count} of {len(stored)} rows do not belong to the "
                f"partition that their column {PARTITION_PATH} names",
                "Without a record key a row stays in its partition: delete it there, and insert it "
                f"without the column {RECORD_KEY}. Rows of another table are written with the "
                "operation insert.",
                rows=others or stored.null_count,
            )
        return stored.dictionary_encode()


def _is_missing(keys: pa.StringArray) -> pa.BooleanArray:
    return pc.fill_null(pc.equal(pc.binary_length(keys), 0), True)


def _count_of_others(stored: pa.StringArray, made: pa.DictionaryArray) -> int:
    differs = pc.not_equal(stored, made.dictionary_decode())
    return int(pc.sum(pc.fill_null(differs, True), min_count=0).as_py())


# --- columns of keys ------------------------------------------------------------------------------


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
