"""A file slice to be written again: base file and logs, merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_core.base_file.encoded_columns import constant, plain
from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.key_footer import KeyFooter
from hudi_core.base_file.reader import FileContext, StoredFile, read_base_file
from hudi_core.config.merge_rules import merge_rules
from hudi_core.file_slice.blocks import CommittedInstants
from hudi_core.file_slice.merged_logs import MergedLogs, SliceMerging, beyond_last_row, living
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.file_slice.stored_slice import HeldBase, own_instants
from hudi_core.model.files import BaseFile, FileStatus, PartitionPath
from hudi_core.rows.combine import Positions
from hudi_core.schema.table_schema import PARTITION_PATH, RECORD_KEY

_NOTHING_KNOWN: Final = KeyFooter(None, None, None, 0)


@dataclass(frozen=True, slots=True)
class MergedSlice:
    """The rows of a slice, with meta columns.

    They are in the types of the table. ``base`` is the base file as it is stored, without rows
    where there is none; ``logs`` say which of its rows go, and what comes.
    """

    base: StoredFile
    logs: MergedLogs
    partition_path: str
    _keys: FileKeys

    @property
    def kept(self) -> pa.Table:
        """The rows of the base file that stay."""
        return living(self.base.rows, self.logs.dead)

    @property
    def gone_keys(self) -> pa.Array:
        """Record keys of the rows of the base file that go."""
        keys = self.base.rows.column(RECORD_KEY).take(pa.array(self.logs.dead))
        return plain(keys).cast(pa.string()).combine_chunks()

    def tail(self) -> Iterator[pa.Table]:
        """Yield the rows that come; once."""
        names = self.base.rows.column_names
        for rows in self.logs.tail:
            if rows.num_rows:
                yield self._as_stored(rows.select(names))

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        """Rows of logs, which may lack what their table does not store."""
        known = {PARTITION_PATH: pa.array(constant(self.partition_path, rows.num_rows))}
        if self._keys.are_made:
            known[RECORD_KEY] = self._keys.made(rows, self.partition_path)
        for name, values in known.items():
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), values.cast(pa.string()))
        return rows


@contextmanager
def merged_slice(
    files: FileContext,
    partition_path: PartitionPath,
    base: BaseFile | None,
    logs: Sequence[FileStatus],
    memory: MergeMemory,
    *,
    committed: CommittedInstants | None = None,
) -> Iterator[MergedSlice]:
    """Read the rows of a slice.

    Those of its logs are there as long as the context is. A slice without logs, or without a block
    that counts, has none. ``committed`` has the instants whose blocks count, by default those that
    the logs are named by.
    """
    schema = files.schema.with_meta()
    if base is None:
        stored = StoredFile(schema.empty_table(), _NOTHING_KNOWN)
    else:
        stored = read_base_file(files, base.path, partition_path, base.size)
    merging = merging_of_logs(files, logs, memory, committed=committed)
    rows = None if base is None else HeldBase(base, stored.rows, schema)
    with merging.merged(logs, None, rows, schema.names) as counted:
        merged = counted or MergedLogs(np.empty(0, np.int64), iter(()))
        _require_there(base, stored, merged.dead)
        yield MergedSlice(stored, merged, partition_path, merging.keys)


def merging_of_logs(
    files: FileContext,
    logs: Sequence[FileStatus],
    memory: MergeMemory,
    *,
    committed: CommittedInstants | None = None,
) -> SliceMerging:
    """What merges the logs of a slice.

    ``committed`` has the instants whose blocks count, by default those that the logs are named by.
    """
    keys = FileKeys(files.base_path, files.table, files.schema)
    instants = committed or own_instants(logs)
    schema, rules = files.schema.with_meta(), merge_rules(files.table)
    return SliceMerging(files.files, schema, rules, keys, instants, memory)


def _require_there(base: BaseFile | None, stored: StoredFile, dead: Positions) -> None:
    if base is not None and len(dead) and dead[-1] >= stored.rows.num_rows:
        raise beyond_last_row(base.path)
