"""Some columns of a stored file slice, for indexes and comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_core.base_file.file_keys import FileKeys
from hudi_core.base_file.footer import read_columns
from hudi_core.config.merge_rules import MergeRules, merge_rules
from hudi_core.config.table import TableConfig
from hudi_core.errors import CorruptMetadataError, DataFileError, UnsupportedTableError
from hudi_core.file_slice.blocks import blocks_of_slice
from hudi_core.file_slice.log_rows import read_block, written_rows
from hudi_core.file_slice.merged_logs import SliceMerging, living
from hudi_core.file_slice.spilling import MergeMemory
from hudi_core.file_slice.stored_slice import WrittenBase
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import BasePath, FileSlice, FileStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.rows.deciding import deciding_names
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema
from hudi_core.storage.data_files import DataFiles


@dataclass(frozen=True, slots=True)
class StoredSlices:
    """Reads file slices, merged with their logs.

    Blocks of instants that are committed on ``timeline`` count, and those of ``also``, a write that
    is about to be. ``DataFileError``: a slice cannot be read.
    """

    client: TableMetaClient
    timeline: TimelineView
    also: InstantTime | None = None

    @property
    def for_tasks(self) -> StoredSlices:
        """The same as executors may get it."""
        return replace(self, client=self.client.for_tasks)

    def is_committed(self, time: InstantTime) -> bool:
        """Whether blocks of an instant count."""
        return time == self.also or self.timeline.is_committed(time)

    def written(self, log: FileStatus) -> Iterator[tuple[pa.Table, frozenset[str]]]:
        """The rows of each block of a log, and its columns."""
        with self._named():
            blocks = blocks_of_slice(self.files, [log], self, None)
            yield from written_rows(self.files, blocks, self._columns, self.rules)

    def counts(self, log: FileStatus) -> tuple[int, int]:
        """How many rows, and how many deletes, a log has."""
        rules, written, deleted = self.rules, 0, 0
        needed = {RECORD_KEY, *deciding_names(rules)}
        wanted = pa.schema([field for field in self.schema.with_meta() if field.name in needed])
        with self._named():
            for block in blocks_of_slice(self.files, [log], self, None):
                deletes = read_block(self.files, block, wanted, rules, by_positions=False).deletes
                written, deleted = written + int((~deletes).sum()), deleted + int(deletes.sum())
        return written, deleted

    def columns(self, one: FileSlice, names: Sequence[str]) -> pa.Table:
        """Columns of the rows of a slice.

        Those of a base file without logs are in its own types.
        """
        if one.base_file is not None and not one.log_files:
            return read_columns(self.client, one.base_file.path, names)
        return self.merged(one, names)

    def merged(self, one: FileSlice, columns: Sequence[str]) -> pa.Table:
        """Columns of a slice, in the table's types and with virtual keys."""
        keys, every = FileKeys.of(self.client), self.schema.with_meta()
        are_made = keys.are_made and RECORD_KEY in columns
        needed = [name for name in columns if not (are_made and name == RECORD_KEY)]
        if are_made:
            needed = list(dict.fromkeys([*needed, *keys.made_of]))
        schema = pa.schema([field for field in every if not are_made or field.name != RECORD_KEY])
        rows = self._rows(one, pa.schema([schema.field(name) for name in needed]), schema, keys)
        if are_made:
            rows = rows.append_column(every.field(RECORD_KEY), keys.made(rows, one.files[0].path))
        return rows.select(list(columns))

    def _rows(
        self, one: FileSlice, wanted: pa.Schema, schema: pa.Schema, keys: FileKeys
    ) -> pa.Table:
        memory, names = MergeMemory.of(self.client.options), wanted.names
        merging = SliceMerging(self.files, schema, self.rules, keys, self, memory)
        logs = [log.status for log in one.log_files]
        base = None if one.base_file is None else WrittenBase(self, one.base_file)
        parts = [wanted.empty_table()]
        with self._named(), merging.merged(logs, None, base, names) as found:
            if base is not None:
                _, rows = next(base.columns(names))
                parts.append(rows if found is None else living(rows, found.dead))
            tail = () if found is None else found.tail
            parts += (rows.select(names).cast(wanted) for rows in tail)
        return pa.concat_tables(parts)

    # --- what its base files are read with: a :class:`~hudi_core.base_file.reader.FileContext`

    @property
    def base_path(self) -> BasePath:
        return self.client.base_path

    @property
    def files(self) -> DataFiles:
        return self.client.files

    @property
    def table(self) -> TableConfig:
        return self.client.config

    @property
    def schema(self) -> TableSchema:
        return self.client.schema_at(self.timeline)

    @property
    def rules(self) -> MergeRules:
        return merge_rules(self.table)

    @property
    def fetched(self) -> None:
        return None

    @property
    def _columns(self) -> pa.Schema:
        return self.schema.with_meta() if self.table.populate_meta_fields else self.schema.arrow

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (CorruptMetadataError, UnsupportedTableError) as error:
            raise DataFileError(self.client.base_path, error.what) from error
