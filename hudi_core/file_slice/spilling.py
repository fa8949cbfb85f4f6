"""Log rows of a slice on the disk, beyond what memory holds.

Rows of one key are in one shard, in the order in which they were written, so that shards are merged
one after the other. The files have no names: the system takes them away with their last user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile, gettempdir
from typing import Final, Self

import numpy as np
import pyarrow as pa

from hudi_core.config.read import ReadConfig
from hudi_core.errors import StorageError
from hudi_core.file_slice.log_rows import BlockRows
from hudi_core.rows.combine import Positions
from hudi_core.rows.gathering import take

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_MOST_SHARDS: Final = 128
"""So many files are open for one slice."""


@dataclass(frozen=True, slots=True)
class MergeMemory:
    """How much memory log rows of a slice may take.

    ``limit`` is in bytes of decoded rows; ``folder`` is where more of them go, ``None`` for the
    system's folder of temporary files.
    """

    limit: int
    folder: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> MergeMemory:
        """As options say."""
        return cls(ReadConfig.merge_memory.read(options), ReadConfig.spill_folder.read(options))

    def shards_for(self, size: float) -> int:
        """Into how many shards rows of so many bytes go.

        A shard that is merged is there twice.
        """
        return int(min(max(2, -(-2 * size // self.limit)), _MOST_SHARDS))

    def mapped(self, schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
        """Tables of one schema as one that stays on the disk."""
        with self.handled():
            file = TemporaryFile(dir=self.folder)  # noqa: SIM115 - closed below
        with file:
            with self.handled():
                writer = pa.ipc.new_stream(file, schema)
            for rows in tables:
                with self.handled():
                    writer.write_table(rows)
            with self.handled():
                writer.close()
                file.flush()
                content = mmap(file.fileno(), 0, access=ACCESS_READ)
        return pa.ipc.open_stream(pa.py_buffer(content)).read_all()

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Turn the system's errors into ours."""
        try:
            yield
        except OSError as error:
            folder = self.folder or gettempdir()
            raise StorageError(
                f"Log rows of a file slice cannot be kept in {folder}: {error}",
                "Name a folder with room in hoodie.memory.spillable.map.path, or let more of them "
                "be held with hoodie.memory.merge.max.size.",
                folder=folder,
            ) from error


UNLIMITED: Final = MergeMemory(1 << 62)
"""For rows that are known by their places: merged in shards, they have another order."""


class StoredRows:
    """Tables of one schema in a file without a name."""

    def __init__(self, memory: MergeMemory) -> None:
        self._memory = memory
        with memory.handled():
            self._file = TemporaryFile(dir=memory.folder)  # noqa: SIM115 - closed by close
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, rows: pa.Table) -> None:
        """Append rows."""
        with self._memory.handled():
            if self._writer is None:
                self._writer = pa.ipc.new_stream(self._file, rows.schema, options=_OPTIONS)
            self._writer.write_table(rows)

    def read(self) -> Iterator[pa.Table]:
        """Yield the rows in the order in which they were written."""
        if self._writer is None:
            return
        with self._memory.handled():
            self._writer.close()
            self._file.seek(0)
            reader = pa.ipc.open_stream(self._file)
        while True:
            with self._memory.handled():
                batch = next(iter(reader), None)
            if batch is None:
                return
            yield pa.Table.from_batches([batch])


class Shards:
    """Log rows in shards by the numbers of their keys.

    With each row goes what :class:`BlockRows` has of it, and the number of its block.
    """

    def __init__(self, memory: MergeMemory, count: int, files: ExitStack) -> None:
        self._stored = [files.enter_context(StoredRows(memory)) for _ in range(count)]
        self._blocks: list[tuple[frozenset[str], bool]] = []

    def __len__(self) -> int:
        return len(self._stored)

    def add(self, part: BlockRows, shards: Positions) -> None:
        """Append the rows of a block, each to its shard."""
        count = part.rows.num_rows
        number = len(self._blocks)
        self._blocks.append((part.lacking, part.is_bare))
        rows = part.rows
        # last, where names do not matter
        for column in (
            np.full(count, number, np.int32),
            part.deletes,
            part.always,
            np.full(count, -1, np.int64) if part.positions is None else part.positions,
        ):
            rows = rows.append_column("", pa.array(column))
        order = np.argsort(shards, kind="stable")
        rows = take(rows, order)
        bounds = np.searchsorted(shards[order], np.arange(len(self) + 1))
        for stored, begin, end in zip(self._stored, bounds, bounds[1:], strict=False):
            if end > begin:
                stored.write(rows.slice(begin, end - begin))

    def read(self, shard: int) -> list[BlockRows]:
        """The rows of a shard, block by block."""
        found = list(self._stored[shard].read())
        self._stored[shard].__exit__()
        if not found:
            return []
        rows = pa.concat_tables(found)
        blocks, deletes, always, positions = (
            rows.column(at).to_numpy() for at in range(rows.num_columns - 4, rows.num_columns)
        )
        rows = rows.select(range(rows.num_columns - 4))
        starts = np.flatnonzero(np.append(True, blocks[1:] != blocks[:-1]))
        return [
            BlockRows(
                rows.slice(begin, end - begin),
                deletes[begin:end],
                always[begin:end],
                lacking,
                None if positions[begin] < 0 else positions[begin:end],
                is_bare,
            )
            for begin, end in zip(starts, [*starts[1:], len(blocks)], strict=True)
            for lacking, is_bare in [self._blocks[blocks[begin]]]
        ]
