"""Blocks of a slice, found in its log files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from hudi_core.errors import CorruptMetadataError, UnsupportedTableError
from hudi_core.log_format.block import BlockPlace, BlockType, find_log_blocks
from hudi_core.log_format.counted import FoundBlock, counted_blocks
from hudi_core.model.files import FileStatus
from hudi_core.model.instant_time import InstantTime
from hudi_core.storage.data_files import DataFiles, FetchedFiles

_IGNORED: Final = frozenset({BlockType.CORRUPT, BlockType.CDC})
_READ: Final = frozenset({BlockType.DELETE, BlockType.AVRO, BlockType.PARQUET})

SliceBlock: TypeAlias = FoundBlock[FileStatus]


class CommittedInstants(Protocol):
    """What says which instants count: a timeline, or less."""

    def is_committed(self, time: InstantTime) -> bool: ...


def blocks_of_slice(
    files: DataFiles,
    logs: Sequence[FileStatus],
    timeline: CommittedInstants | None,
    until: InstantTime | None,
    fetched: FetchedFiles | None = None,
) -> list[SliceBlock]:
    """Return the blocks of a slice that count, without their contents.

    Left out are those of instants that are not committed, or later than the state that is read, and
    bytes of writers that died. ``logs`` are in their order; ``timeline`` has the instants that
    readers see, none where it is ``None``; ``until`` is the requested time of the state that is
    read, ``None`` for the latest. ``fetched`` takes small logs for :func:`content_of`.
    """
    blocks = (
        block
        for log in logs
        for block in _blocks(files, log, fetched)
        if block.place.type not in _IGNORED and (until is None or block.instant <= until)
    )
    found = counted_blocks(
        blocks, lambda time: timeline is not None and timeline.is_committed(time)
    )
    for block in found:
        _require_known(block, files.base_path)
    return found


def torn_bytes(files: DataFiles, log: FileStatus) -> Iterator[BlockPlace]:
    """Yield what of a log is no block.

    A writer died, or the file is damaged.
    """
    for block in _blocks(files, log):
        if block.place.type == BlockType.CORRUPT:
            yield block.place


def _blocks(
    files: DataFiles, log: FileStatus, fetched: FetchedFiles | None = None
) -> Iterator[SliceBlock]:
    with _opened(files, log, fetched) as source:
        length = source.size()

        def read(offset: int, size: int) -> bytes:
            found: bytes = source.read_at(max(0, min(size, length - offset)), offset)
            return found

        for place in find_log_blocks(read, length, log.path, skip_corrupt=True):
            yield FoundBlock(log, log.path, place)


@contextmanager
def _opened(
    files: DataFiles, log: FileStatus, fetched: FetchedFiles | None
) -> Iterator[pa.NativeFile]:
    """A log, which a clean may have deleted meanwhile."""
    try:
        with files.open(log.path, log.size, fetched, is_needed_again=True) as source:
            yield source
    except OSError as error:
        raise files.unreadable([log.path], str(error).split("\n", 1)[0]) from error


def _require_known(block: SliceBlock, base_path: str) -> None:
    kind = block.place.type
    if kind == BlockType.HFILE:
        raise UnsupportedTableError(
            base_path,
            f"has HFile blocks in {block.path}",
            "Read it with Apache Hudi.",
        )
    if kind not in _READ:
        raise CorruptMetadataError(block.path, f"it has a block of the unknown type {kind}")


def content_of(
    files: DataFiles, block: SliceBlock, fetched: FetchedFiles | None = None
) -> pa.Buffer:
    """Read the content of a block.

    ``fetched`` may have its log, and keeps it.
    """
    place = block.place
    # no memory map: a file that became shorter meanwhile would end the process
    with _opened(files, block.file, fetched) as source:
        source.seek(place.offset)
        content = source.read_buffer(place.size)
    if content.size != place.size:
        raise CorruptMetadataError(block.path, "it ended while it was read")
    return content
