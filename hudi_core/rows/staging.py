"""Incoming rows, scattered by partition once for all later tasks.

The input of a write is evaluated exactly once. Each input task sorts its rows by partition path and
keeps them as Arrow batches, in memory where the engine shares it, else as one Arrow file below the
instant's temporary folder. A part counts only when the task's result names it: what a failed or
speculative attempt left behind is never read, and a source that gives other rows when it is read
twice cannot split a row between two file groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from hudi_core.config.schema import SchemaConfig
from hudi_core.engine.base import TaskContext
from hudi_core.keygen.ambiguity import Ambiguity
from hudi_core.model.files import BasePath, PartitionPath
from hudi_core.rows.context import WriteContext
from hudi_core.schema.absence import ABSENT, narrowed
from hudi_core.schema.casting import only_fields, without_nanoseconds
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.location import require_shared
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.temp_folders import STAGE, temp_folder

# --- files of stages -----------------------------------------------------------------------------

# They lie below the instant's temporary folder.
#
# A file counts only when a task's result names it; the attempt in its name keeps two attempts from
# meeting.


SpillRef: TypeAlias = pa.Table | str
"""A table between two tasks: itself, where the engine shares memory, else the path of a file."""


class SpillPlace(Protocol):
    """The table below whose folder tasks spill."""

    @property
    def base_path(self) -> BasePath: ...
    @property
    def storage_options(self) -> StorageOptions: ...


def spill(
    context: WriteContext, task: TaskContext, kind: str, table: pa.Table, in_memory: bool
) -> SpillRef:
    """Leave a table for a later task.

    ``kind`` becomes a word of the file's name. With ``in_memory`` the table itself is handed on.
    """
    if in_memory:
        return table
    location = f"{stage_folder(context)}/{kind}-{task.stage}-{task.task}-{task.attempt}.arrow"
    put_spill(context, location, table)
    return location


def put_spill(place: SpillPlace, location: str, table: pa.Table) -> None:
    """Put a table into a file, a batch for each chunk."""
    filesystem, root = data_filesystem(place.base_path, place.storage_options)
    path = f"{root}/{location}"
    if isinstance(filesystem, pafs.LocalFileSystem):
        filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
    with (
        filesystem.open_output_stream(path) as stream,
        pa.ipc.new_file(stream, table.schema) as writer,
    ):
        writer.write_table(table)


def load(place: SpillPlace, left: SpillRef) -> pa.Table:
    """The rows that an earlier task spilled."""
    if isinstance(left, pa.Table):
        return left
    with spilled(place, left) as reader:
        return reader.read_all()


@contextmanager
def spilled(place: SpillPlace, location: str) -> Iterator[pa.RecordBatchFileReader]:
    """The file of an earlier task, to read some of its batches."""
    filesystem, root = data_filesystem(place.base_path, place.storage_options)
    path = f"{root}/{location}"
    local = isinstance(filesystem, pafs.LocalFileSystem)
    with pa.memory_map(path) if local else filesystem.open_input_file(path) as source:
        yield pa.ipc.open_file(source)


# --- staged rows ---------------------------------------------------------------------------------


_FLUSH_ROWS: Final = 65_536
_FLUSH_BYTES: Final = 64 << 20
INGEST_ORDER: Final = "_hoodie_arrival"
"""Column of staged rows that orders the rows of all partitions, where a global index asks for it:
the input task, and below it the row of the task."""
PLAIN: Final = SchemaConfig()
_TASK_ROWS: Final = 1 << 40
LAST_INGESTED: Final = 1 << 62
"""Arrival of rows that come behind those of all input tasks."""
_SMALL_CODES: Final = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class StagedPart:
    """The staged rows of one input task.

    Parts in task order, and batches in their own order, are the arrival order. ``location`` is
    relative to the base path, ``None`` when ``batches`` holds the rows (where the engine shares
    memory). ``batch_numbers`` and ``rows`` have, by partition path, the batches with its rows and
    the number of these, ``size`` the bytes of all in memory. ``ambiguity``: their record keys could
    be those of other rows.
    """

    task: int
    schema: pa.Schema
    location: str | None
    batches: tuple[pa.RecordBatch, ...]
    batch_numbers: Mapping[PartitionPath, tuple[int, ...]] = field(default_factory=dict)
    rows: Mapping[PartitionPath, int] = field(default_factory=dict)
    batch_rows: tuple[int, ...] = ()
    size: int = 0
    ambiguity: Ambiguity = Ambiguity.NONE


def stage_folder(context: WriteContext) -> str:
    """Return the folder of staged files, relative to the base path."""
    return f"{context.preview or temp_folder(context.instant)}/{STAGE}"


def stage_rows(
    task: TaskContext,
    batches: Iterator[pa.RecordBatch],
    context: WriteContext,
    schema: TableSchema,
    in_memory: bool,
) -> Iterator[StagedPart]:
    """Stage the rows of one input task as one part, if any.

    For deletes ``schema`` has only the columns that make key and partition. With ``in_memory`` no
    file is written.
    """
    staged = schema.arrow
    if context.is_global:
        staged = staged.append(pa.field(INGEST_ORDER, pa.int64()))
    builder = PartBuilder(task, context, staged, in_memory)
    keys = context.key_generator(schema)
    for chunk in _chunks(batches, schema, context.write.schema):
        keys.record_keys(chunk)  # refuses rows without a key before any data file exists
        builder.see(chunk)
        arrived = chunk
        if context.is_global:
            first = task.task * _TASK_ROWS + builder.rows
            places = np.arange(first, first + chunk.num_rows)
            arrived = chunk.append_column(INGEST_ORDER, pa.array(places))
        for path, piece in scatter(arrived, keys.partition_paths(chunk)):
            builder.add(path, piece)
    part = builder.close()
    if part is not None:
        yield part


class PartBuilder:
    """Stages rows, piece by piece, as one part."""

    def __init__(
        self, task: TaskContext, context: WriteContext, schema: pa.Schema, in_memory: bool
    ) -> None:
        self._task, self._schema, self._context = task.task, schema, context
        self._sink = _MemorySink() if in_memory else _FileSink(context, schema, task)
        self._numbers: dict[PartitionPath, list[int]] = {}
        self._rows: dict[PartitionPath, int] = {}
        self._batch_rows: list[int] = []
        self._size = 0
        self._ambiguity = Ambiguity.NONE

    @property
    def rows(self) -> int:
        """How many rows there are so far."""
        return sum(self._rows.values())

    def add(self, path: PartitionPath, piece: pa.RecordBatch) -> None:
        """Stage rows of one partition."""
        self._sink.write(piece)
        self._numbers.setdefault(path, []).append(len(self._batch_rows))
        self._rows[path] = self._rows.get(path, 0) + piece.num_rows
        self._batch_rows.append(piece.num_rows)

    def see(self, rows: pa.RecordBatch) -> None:
        """Look at the size and the key columns of rows to add."""
        self._size += rows.nbytes
        finder = self._context.key_ambiguity
        if finder is not None and self._ambiguity is not Ambiguity.ACTIVE:
            self._ambiguity = max(self._ambiguity, finder.of(rows))

    def close(self) -> StagedPart | None:
        """Return the part; ``None`` where there are no rows."""
        location, kept = self._sink.close()
        if not self._batch_rows:
            return None
        numbers = {path: tuple(own) for path, own in self._numbers.items()}
        return StagedPart(
            self._task,
            self._schema,
            location,
            kept,
            numbers,
            self._rows,
            tuple(self._batch_rows),
            self._size,
            self._ambiguity,
        )


def scatter(
    batch: pa.RecordBatch, partition_paths: pa.DictionaryArray
) -> Iterator[tuple[PartitionPath, pa.RecordBatch]]:
    """Yield the rows of each partition, in ingest order.

    By one stable sort and one gather.
    """
    paths = [PartitionPath(path) for path in partition_paths.dictionary.to_pylist()]
    if len(paths) == 1:
        yield paths[0], batch
        return
    codes = partition_paths.indices.to_numpy()
    small = codes.astype(np.uint16) if len(paths) <= _SMALL_CODES else codes
    ordered = batch.take(pa.array(np.argsort(small, kind="stable")))
    start = 0
    for path, length in zip(paths, np.bincount(codes, minlength=len(paths)), strict=True):
        if length:
            yield path, ordered.slice(start, int(length))
        start += int(length)


def normalised(
    batches: Iterator[pa.RecordBatch], schema: TableSchema, how: SchemaConfig = PLAIN
) -> Iterator[pa.RecordBatch]:
    """Yield the batches in the table's types and column order.

    Only the schema's columns are kept, and of structs its fields: what else may come was checked
    before, and a delete needs no more.
    """
    kinds = {field.name: field.type for field in schema.arrow}
    wanted = kinds.keys()
    for batch in chain.from_iterable(map(_light, batches)):
        names = [name for name in batch.schema.names if name in wanted]
        columns = [
            (narrowed if name == ABSENT else only_fields)(batch.column(name), kinds[name])
            for name in names
        ]
        if how.truncate_nanoseconds:
            columns = [without_nanoseconds(column) for column in columns]
        own = pa.RecordBatch.from_arrays(columns, names=names)
        yield schema.cast_batch(own, widely=how.widen_numbers)


def _light(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield heavy rows in several batches.

    A column of the table has 2 GB of strings in one piece at most, one of the rows may have more.
    """
    if batch.num_rows <= 1 or batch.nbytes <= _FLUSH_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _light(batch.slice(0, half))
    yield from _light(batch.slice(half))


def _chunks(
    batches: Iterator[pa.RecordBatch], schema: TableSchema, how: SchemaConfig
) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in normalised(batches, schema, how):
        if not batch.num_rows:
            continue
        own = batch.nbytes
        if held and size + own > _FLUSH_BYTES:  # heavy rows are not copied into one batch
            yield _one(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size += own
        if rows >= _FLUSH_ROWS or size >= _FLUSH_BYTES:
            yield _one(held)
            held, rows, size = [], 0, 0
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class _MemorySink:
    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def close(self) -> tuple[str | None, tuple[pa.RecordBatch, ...]]:
        return None, tuple(self._batches)


class _FileSink:
    """Writes one Arrow file, with the attempt in its name.

    So two attempts never collide.
    """

    def __init__(self, context: WriteContext, schema: pa.Schema, task: TaskContext) -> None:
        require_shared(context.base_path)
        self._location = f"{stage_folder(context)}/{task.stage}-{task.task}-{task.attempt}.arrow"
        filesystem, root = data_filesystem(context.base_path, context.storage_options)
        path = f"{root}/{self._location}"
        if isinstance(filesystem, pafs.LocalFileSystem):
            filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
        self._stream = filesystem.open_output_stream(path)
        self._writer = pa.ipc.new_file(self._stream, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> tuple[str | None, tuple[pa.RecordBatch, ...]]:
        self._writer.close()
        self._stream.close()
        return self._location, ()


class StagedRows:
    """Reads back the staged rows of one partition, in arrival order."""

    def __init__(
        self,
        context: WriteContext,
        parts: Sequence[StagedPart],
        partition_path: PartitionPath,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._context = context
        self._parts = [part for part in parts if partition_path in part.batch_numbers]
        self._path = partition_path
        self._columns = columns

    def table(self) -> pa.Table:
        """Return the partition's rows; positions in it are arrival positions."""
        batches = [batch for part in self._parts for batch in self._read(part)]
        return pa.Table.from_batches(batches)

    def take(self, numbers: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Yield the rows at some positions.

        Batches without one of them are not read.

        ``numbers`` are ascending arrival positions.
        """
        start = 0
        for part in self._parts:
            own = part.batch_numbers[self._path]
            bounds = start + np.cumsum([0, *(part.batch_rows[number] for number in own)])
            cuts = np.searchsorted(numbers, bounds)
            used = np.flatnonzero(np.diff(cuts)).tolist()
            batches = self._read(part, [own[one] for one in used])
            for one, batch in zip(used, batches, strict=True):
                positions = numbers[cuts[one] : cuts[one + 1]] - bounds[one]
                if (np.diff(positions) == 1).all():  # then nothing is copied
                    yield batch.slice(int(positions[0]), len(positions))
                else:
                    yield batch.take(pa.array(positions))
            start = int(bounds[-1])

    def _read(
        self, part: StagedPart, numbers: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        if numbers is None:
            numbers = part.batch_numbers[self._path]
        if part.location is None:
            for number in numbers:
                batch = part.batches[number]
                yield batch if self._columns is None else batch.select(list(self._columns))
            return
        if not numbers:
            return
        filesystem, root = data_filesystem(self._context.base_path, self._context.storage_options)
        path = f"{root}/{part.location}"
        local = isinstance(filesystem, pafs.LocalFileSystem)
        with pa.memory_map(path) if local else filesystem.open_input_file(path) as source:
            reader = pa.ipc.open_file(source, options=self._options(part))
            for number in numbers:
                yield reader.get_batch(number)

    def _options(self, part: StagedPart) -> pa.ipc.IpcReadOptions:
        if self._columns is None:
            return pa.ipc.IpcReadOptions()
        included = [part.schema.get_field_index(name) for name in self._columns]
        return pa.ipc.IpcReadOptions(included_fields=included)


def partition_rows(parts: Sequence[StagedPart]) -> dict[PartitionPath, int]:
    """Return the number of staged rows of every partition, in partition order."""
    totals: dict[PartitionPath, int] = {}
    for part in parts:
        for path, rows in part.rows.items():
            totals[path] = totals.get(path, 0) + rows
    return dict(sorted(totals.items()))


def true_mask(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return a boolean column as a mask, null counting as false."""
    filled = pc.fill_null(column, False)
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    return np.asarray(filled.to_numpy(zero_copy_only=False))
