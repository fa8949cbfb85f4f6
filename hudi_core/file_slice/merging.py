"""Merging of the slices of a table, as tasks do it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.config.merge_rules import MergeRules
from hudi_core.errors import CorruptMetadataError
from hudi_core.file_slice.blocks import CountedInstants, counted_blocks
from hudi_core.file_slice.log_rows import has_positions, read_logs
from hudi_core.file_slice.merged_logs import BaseRows, MergedLogs, merged_logs
from hudi_core.model.files import FileStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.rows.deciding import deciding_names
from hudi_core.schema.table_schema import RECORD_KEY
from hudi_core.storage.data_files import DataFiles


@dataclass(frozen=True, slots=True)
class SliceMerging:
    """Merges log files into base files.

    ``schema`` has all columns of the table, meta columns first. ``skips``: every row is returned as
    it was written, and deletes are left out of account.
    """

    files: DataFiles
    schema: pa.Schema
    rules: MergeRules
    keys: FileKeys
    instants: CountedInstants
    skips: bool = False

    def plan(
        self,
        logs: Sequence[FileStatus],
        until: InstantTime | None,
        base: BaseRows | None,
        columns: Collection[str],
    ) -> MergedLogs | None:
        """Merge the logs of a slice; ``None`` where none counts.

        ``until`` is the requested time of the state that is read, ``None`` for the latest;
        ``columns`` are what the rows are to have, at least.
        """
        blocks = counted_blocks(self.files, logs, self.instants, until)
        if not blocks:
            return None
        by_positions = base is not None and has_positions(blocks, base.instant)
        needed = {*columns, *deciding_names(self.rules)}
        if not by_positions:
            needed |= {RECORD_KEY, *(self.keys.made_of if self.keys.are_made else ())}
        schema = pa.schema([field for field in self.schema if field.name in needed])
        if RECORD_KEY in needed and RECORD_KEY not in schema.names:
            schema = schema.append(pa.field(RECORD_KEY, pa.string()))
        found = read_logs(self.files, blocks, schema, self.rules, by_positions=by_positions)
        if self.skips:
            return MergedLogs(np.empty(0, np.int64), found.rows.filter(pa.array(~found.deletes)))
        path = logs[0].path
        keys = None if by_positions else self._keys(found.rows, path)
        return merged_logs(found, keys, base, self.rules)

    def _keys(self, rows: pa.Table, path: str) -> pa.ChunkedArray:
        """Record keys of log rows, stored or made of columns."""
        stored = rows.column(RECORD_KEY)
        if not stored.null_count:
            return stored
        if not self.keys.are_made:
            raise CorruptMetadataError(path, "a log row has no record key")
        made = self.keys.made(rows.filter(stored.is_null()), path)
        return pa.chunked_array(
            pc.replace_with_mask(
                stored.combine_chunks(), stored.is_null().combine_chunks(), made.combine_chunks()
            )
        )
