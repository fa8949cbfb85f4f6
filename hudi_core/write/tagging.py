"""From staged rows to located rows: combine duplicates, ask the index, and note who goes where.

One tag task takes one partition. What it finds is three kinds of arrays of arrival positions, kept
beside the staged rows; only counts travel to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from hudi_core.engine.base import TaskContext
from hudi_core.index.simple import SimpleIndex
from hudi_core.keygen import key_generator
from hudi_core.model.files import BaseFile, PartitionPath
from hudi_core.model.schema import IS_DELETED, TableSchema
from hudi_core.storage.data_files import data_filesystem
from hudi_core.write.combine import Positions, winners
from hudi_core.write.context import WriteContext
from hudi_core.write.sorting import ordered_positions
from hudi_core.write.staging import StagedPart, StagedRows, stage_folder, true_mask
from hudi_core.write.stored_file import read_record_keys

_INSERTS = -1


@dataclass(frozen=True, slots=True)
class TagTask:
    """Locate the rows of one partition.

    Attributes
    ----------
    parts
        The staged input.
    base_files
        Candidate files: the latest base file of every file group of the partition; empty to look
        nothing up.
    combine
        Whether rows with one key are combined into one.
    sort
        Whether new rows are put in the order of a bulk insert.
    """

    partition_path: PartitionPath
    parts: tuple[StagedPart, ...]
    base_files: tuple[BaseFile, ...]
    combine: bool
    sort: bool = False


@dataclass(frozen=True, slots=True)
class Tagged:
    """Where the rows of one partition go.

    Attributes
    ----------
    located
        For every candidate file with matches, its ordinal: how many stored rows meet an incoming
        one.
    inserts
        How many rows are new.
    positions
        Arrival positions of the new rows (key -1), and of incoming and stored rows per candidate
        file, where the engine shares memory.
    location
        Path of the file that keeps ``positions`` otherwise, relative to the base path.
    """

    partition_path: PartitionPath
    located: Mapping[int, int]
    inserts: int
    positions: Mapping[int, tuple[np.ndarray, np.ndarray]] | None
    location: str | None


def tag_partition(
    task: TaskContext, item: TagTask, context: WriteContext, schema: TableSchema, in_memory: bool
) -> Tagged:
    """Locate the rows of one partition; see :class:`TagTask`."""
    rows = StagedRows(context, item.parts, item.partition_path).table()
    chosen = left = np.arange(rows.num_rows)
    if item.combine or item.base_files:
        all_keys = record_keys(rows, context, schema)
        left = _left_of_duplicates(all_keys, _ordering(rows, context))
        chosen = left if item.combine else chosen
    positions: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    is_new = np.ones(len(chosen), dtype=bool)
    if item.base_files:
        keys = all_keys.take(pa.array(chosen)).combine_chunks()
        coded = keys.dictionary_encode()
        codes = coded.indices.to_numpy()
        # of rows that were not combined, the one that would be left meets the stored row
        meeting = np.empty(len(coded.dictionary), dtype=np.int64)
        meeting[codes if item.combine else codes[left]] = left
        matches = SimpleIndex().tag(
            coded.dictionary,
            range(len(item.base_files)),
            lambda ordinal: read_record_keys(context, item.base_files[ordinal].path),
        )
        is_stored = np.zeros(len(coded.dictionary), dtype=bool)
        for match in matches:
            met = meeting[match.incoming].astype(np.int32)
            positions[match.candidate] = (met, match.stored)
            is_stored[match.incoming] = True
        is_new = ~is_stored[codes]
    if IS_DELETED in rows.column_names:
        is_new &= ~true_mask(rows.column(IS_DELETED))[chosen]
    new = chosen[is_new].astype(np.int32)
    if item.sort:
        new = ordered_positions(rows, new, context, key_generator(context.table, schema))
    positions[_INSERTS] = (new, np.empty(0, dtype=np.int32))
    located = {ordinal: len(pair[1]) for ordinal, pair in positions.items() if ordinal >= 0}
    if in_memory:
        return Tagged(item.partition_path, located, len(new), positions, None)
    location = f"{stage_folder(context)}/tag-{task.task}-{task.attempt}.arrow"
    _save(context, location, positions)
    return Tagged(item.partition_path, located, len(new), None, location)


def record_keys(rows: pa.Table, context: WriteContext, schema: TableSchema) -> pa.ChunkedArray:
    """Return the record key of every row."""
    keys = key_generator(context.table, schema)
    return pa.chunked_array(
        [keys.record_keys(batch) for batch in rows.to_batches()], type=pa.string()
    )


def _ordering(rows: pa.Table, context: WriteContext) -> pa.ChunkedArray | None:
    """Return the ordering values where they decide; rows that delete may come without."""
    name = context.event_time_field
    return rows.column(name) if name in rows.column_names else None


def _left_of_duplicates(keys: pa.ChunkedArray, ordering: pa.ChunkedArray | None) -> Positions:
    """Return the arrival positions of the rows that are left when each key has but one."""
    chosen = winners(keys, ordering)
    return np.arange(len(keys)) if chosen is None else chosen


def located_rows(
    context: WriteContext, tagged: Tagged, candidate: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the arrival positions and the stored positions of the rows one candidate file
    holds."""
    positions = tagged.positions or _load(context, tagged.location or "")
    return positions[candidate]


def new_rows(context: WriteContext, tagged: Tagged) -> np.ndarray:
    """Return the arrival positions of the partition's new rows."""
    return located_rows(context, tagged, _INSERTS)[0]


def _save(
    context: WriteContext, location: str, positions: Mapping[int, tuple[np.ndarray, np.ndarray]]
) -> None:
    filesystem, root = data_filesystem(context.base_path, context.storage_options)
    path = f"{root}/{location}"
    if isinstance(filesystem, pafs.LocalFileSystem):
        filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
    schema = pa.schema(
        [
            ("candidate", pa.int32()),
            ("incoming", pa.list_(pa.int32())),
            ("stored", pa.list_(pa.int32())),
        ]
    )
    with (
        filesystem.open_output_stream(path) as stream,
        pa.ipc.new_file(stream, schema) as writer,
    ):
        for candidate, (incoming, stored) in positions.items():
            columns = [
                pa.array([candidate], pa.int32()),
                _one_list(incoming),
                _one_list(stored),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _one_list(values: np.ndarray) -> pa.ListArray:
    offsets = pa.array([0, len(values)], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32()))


def _load(context: WriteContext, location: str) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    filesystem, root = data_filesystem(context.base_path, context.storage_options)
    with filesystem.open_input_file(f"{root}/{location}") as source:
        reader = pa.ipc.open_file(source)
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    return {
        batch.column(0)[0].as_py(): (
            batch.column(1).values.to_numpy(),
            batch.column(2).values.to_numpy(),
        )
        for batch in batches
    }


def tag_tasks(
    parts: Sequence[StagedPart],
    base_files: Mapping[PartitionPath, tuple[BaseFile, ...]],
    partitions: Sequence[PartitionPath],
    combine: bool,
    sort: bool = False,
) -> list[TagTask]:
    """Return one task per partition, each with just the parts that hold rows of it."""
    return [
        TagTask(
            path,
            tuple(part for part in parts if path in part.batch_numbers),
            base_files.get(path, ()),
            combine,
            sort,
        )
        for path in partitions
    ]
