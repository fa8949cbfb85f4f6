"""The steps of a conditional write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from hudi_core.engine.base import TaskContext
from hudi_core.index.positions import PositionTagging
from hudi_core.model.commit import WriteStatus
from hudi_core.model.files import BaseFile, FileId, PartitionPath
from hudi_core.read.plan import PlannedSlice
from hudi_core.read.query import SnapshotQuery
from hudi_core.rows.changes import FILE, KIND, ChangeKind, Clause, decide
from hudi_core.rows.context import WriteContext
from hudi_core.rows.deciding import deleted
from hudi_core.rows.staging import PartBuilder, StagedPart, partition_rows, scatter
from hudi_core.schema.table_schema import TableSchema
from hudi_core.write.conditional.changes import JoinedRows, Resolved
from hudi_core.write.steps import WriteSteps

_STAGE, _TAG = range(2)
_ADDS = (ChangeKind.INSERT, ChangeKind.MOVE)


@dataclass(slots=True)
class ChangeSteps(WriteSteps):
    """The steps between ``begin`` and ``commit`` of a conditional write.

    Its rows follow from the state of the table that the write builds on, so that a write changing a
    file group that it changes, after this, is met by the conflict check.
    """

    def run(self, data: Resolved) -> list[WriteStatus]:
        """Write the changed rows to invisible data files; return their statuses."""
        engine, table, began = self.engine, self.transaction.table, self.transaction.began
        with self._timed("match"):
            query = SnapshotQuery(table.client, table.lister(), began)
            found = data.find(engine, table.client, query)
        in_memory = engine.shares_memory
        with self._timed("stage"):
            stage = partial(
                stage_changes,
                context=self.context,
                schema=self.staged,
                clauses=data.clauses,
                names=found.names,
                partitions=tuple(one.partition_path for one in found.files),
                in_memory=in_memory,
            )
            parts = engine.map_input(found.rows, stage, _STAGE)
        rows = partition_rows(parts)
        self.partitions = list(rows)
        self._require_unnested(rows)
        with self._timed("tag"):
            everywhere = {one.partition_path for one in found.files} | rows.keys()
            base_files = self._base_files_of(None if self.context.is_global else everywhere)
            targets = _targets(found, base_files)
            tagging = PositionTagging(self.context, self.staged, targets, in_memory)
            tagged = tagging.run(
                engine, parts, self.partitions, base_files, _TAG, are_new=data.are_new
            )
        groups = self._plan({}, base_files, tagged, parts)
        self._require_not_clustered(groups)
        with self._timed("write"):
            return self._write_groups(groups, parts, tagged)


def stage_changes(
    task: TaskContext,
    batches: Iterator[pa.RecordBatch],
    *,
    context: WriteContext,
    schema: TableSchema,
    clauses: Sequence[Clause],
    names: Sequence[str] | None,
    partitions: Sequence[PartitionPath],
    in_memory: bool,
) -> Iterator[StagedPart]:
    """Stage what one input task changes as one part, if any.

    ``names`` are the columns of joined rows where the batches have other names; ``partitions`` are
    those of the files, by file number.
    """
    builder = PartBuilder(task, context, schema.arrow, in_memory)
    codes = {path: code for code, path in enumerate(dict.fromkeys(partitions))}
    folder_of = np.array([codes[path] for path in partitions], np.int32)
    folders = pa.array([*codes], pa.string())
    for batch in batches:
        if not batch.num_rows:
            continue
        joined = pa.Table.from_batches([batch])
        if names is not None:
            joined = joined.rename_columns(list(names))
        rows = decide(joined, clauses, schema.arrow)
        for kinds in (_ADDS, (ChangeKind.UPDATE, ChangeKind.DELETE)):
            for chunk in _of_kinds(_marked(rows, context), kinds):
                if kinds is _ADDS:
                    keys = context.key_generator(schema)
                    keys.record_keys(chunk)  # refuses rows without a key
                    builder.see(chunk)
                    paths = keys.partition_paths(chunk)
                else:
                    numbers = chunk.column(FILE).to_numpy()
                    indices = pa.array(folder_of[numbers])
                    paths = pa.DictionaryArray.from_arrays(indices, folders)
                for path, piece in scatter(chunk, paths):
                    builder.add(path, piece)
    part = builder.close()
    if part is not None:
        yield part


def _marked(rows: pa.Table, context: WriteContext) -> pa.Table:
    """Rows with the table's delete marker as deletes, or left out."""
    kinds = rows.column(KIND).to_numpy()
    marked = deleted(rows, context.rules) & (kinds != ChangeKind.DELETE)
    if not marked.any():
        return rows
    kinds = np.where(marked, np.int8(ChangeKind.DELETE), kinds)
    position = rows.schema.get_field_index(KIND)
    rows = rows.set_column(position, rows.schema.field(position), pa.array(kinds))
    return rows.filter(pa.array(~(marked & (rows.column(FILE).is_null().to_numpy()))))


def _of_kinds(rows: pa.Table, kinds: Sequence[ChangeKind]) -> Iterator[pa.RecordBatch]:
    wanted = np.isin(rows.column(KIND).to_numpy(), kinds)
    if wanted.any():
        yield from rows.filter(pa.array(wanted)).combine_chunks().to_batches()


def _targets(
    found: JoinedRows, base_files: Mapping[PartitionPath, Sequence[BaseFile]]
) -> tuple[tuple[PartitionPath, int], ...]:
    """The partition of each file, and its place among the candidates there."""
    places: dict[PartitionPath, dict[FileId, int]] = {
        path: {file.name.file_id: place for place, file in enumerate(some)}
        for path, some in base_files.items()
    }
    return tuple(_target(one, places) for one in found.files)


def _target(
    file: PlannedSlice, places: Mapping[PartitionPath, Mapping[FileId, int]]
) -> tuple[PartitionPath, int]:
    return file.partition_path, places[file.partition_path][file.file_id]
